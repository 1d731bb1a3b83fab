from __future__ import annotations

import pytest

from inspector.trace.face import to_pandas
from inspector.trace.schema import NEVER, SCHEMAS
from tests.drawn import draw
from tests.readers.recordings import full_trace

pd = pytest.importorskip("pandas")


def test_names_are_words() -> None:
    trace = draw("gpu 0 stream 7   AAABBA", unlinked="AB", kernels={"A": "gemm"}).trace
    frame = to_pandas("kernels", trace)
    assert frame["name"].tolist() == ["gemm", "B", "gemm"]
    assert isinstance(frame["name"].dtype, pd.CategoricalDtype)
    assert set(frame["name"].cat.categories) == {"gemm", "B"}
    assert frame.groupby("name", observed=False).size().to_dict() == {"gemm": 2, "B": 1}
    assert (frame["end"] - frame["start"]).tolist() == [3000, 2000, 1000]
    assert frame.attrs["units"] == {"start": "ns", "end": "ns"}


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_table(name: str) -> None:
    trace = full_trace()
    table = trace[name]
    frame = to_pandas(table, trace)
    assert list(frame.columns) == list(table.columns)
    for column in table.schema.columns:
        values, found = table[column.name], frame[column.name]
        if column.refers == "names":
            words = [None if pd.isna(word) else word for word in found]
            assert words == [trace.names[n] if n >= 0 else None for n in values.tolist()]
        elif column.may_be_never:
            assert found.isna().tolist() == (values == NEVER).tolist()
            assert found.dropna().tolist() == values[values != NEVER].tolist()
        else:
            assert found.dtype == column.dtype
            pd.testing.assert_series_equal(found, pd.Series(values, name=column.name))


def test_empty_tables() -> None:
    trace = draw("gpu 0 stream 7   A", unlinked="A").trace
    assert all(len(to_pandas(name, trace)) == len(trace[name]) for name in SCHEMAS)


def test_a_frame_of_its_own() -> None:
    trace = full_trace()
    frame = to_pandas("requests", trace)
    frame.loc[0, "first_token"] = 7
    assert trace["requests"]["first_token"].tolist() == full_trace()["requests"]["first_token"].tolist()
