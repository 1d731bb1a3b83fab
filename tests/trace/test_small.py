"""Names, notes, quantities, tables and windows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import units
from inspector.trace.names import Names
from inspector.trace.quality import CODES, Note, Quality
from inspector.trace.schema import SCHEMAS, TABLES
from inspector.trace.selection import NOTHING, Window
from inspector.trace.table import Table


@given(st.lists(st.text(max_size=3)))
def test_names_are_kept_once(texts: list[str]) -> None:
    names = Names()
    ids = names.add_all(texts)
    assert ids.dtype == np.int32
    assert [names[n] for n in ids.tolist()] == texts
    assert list(names.texts) == list(dict.fromkeys(texts))
    assert [names.find(text) for text in names.texts] == list(range(len(names)))
    assert names[-1] == ""
    assert names.find("not there, too long") == -1


def test_equal_notes_are_counted_together() -> None:
    quality = Quality()
    quality.add("reversed", "kernels", 2)
    quality.add("outside", "kernels")
    quality.add("reversed", "kernels", 3, "row 7")
    quality.add("reversed", "ranges", first="row 1")
    quality.add("reversed", "kernels", 1, "row 9")
    assert quality.notes == [
        Note("reversed", 6, "kernels", "row 7"),
        Note("outside", 1, "kernels"),
        Note("reversed", 1, "ranges", "row 1"),
    ]
    assert quality.count("reversed") == 7
    assert [note.text for note in quality.find("reversed")] == ["kernels", "ranges"]
    assert {Note(code, 1, "").severity for code in CODES} == {"info", "suspect", "loss"}
    with pytest.raises(KeyError):
        quality.add("nonsense", "")


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"), (999, "999 ns"), (1_000, "1.00 µs"), (12_345, "12.3 µs"), (999_499, "999 µs"),
        (999_999, "1.00 ms"), (999_950_000, "1.00 s"), (61 * 10**9, "61.0 s"), (-1_500, "-1.50 µs"),
        (3_600 * 10**9, "3600 s"), (0.5, "0.500 ns"),
    ],
)  # fmt: skip
def test_times_in_three_digits(ns: float, text: str) -> None:
    assert units.time(ns) == text


@given(st.integers(-(10**15), 10**15))
def test_three_digits_are_near_and_read_back(ns: int) -> None:
    text = units.time(ns)
    assert abs(units.parse_time(text) - ns) <= abs(ns) * 0.005 + 0.5
    assert "e" not in text
    assert int(units.exact(ns).replace(",", "")) == ns


@given(ns=st.integers(-(10**15), 10**15), span=st.integers(1, 10**10))
def test_a_place_in_time_is_found_again_by_its_words(ns: int, span: int) -> None:
    text = units.place(ns, span)
    finest = 1 if span < 1000 or abs(ns) < 10**6 else 1000
    number, unit = text.split()
    factor = {"s": 10**9, "ms": 10**6, "µs": 10**3, "ns": 1}[unit]
    # Cut, not rounded: what lies before a place never reads as if it lay behind it.
    assert Fraction(number) * factor == (abs(ns) // finest * finest) * (-1 if ns < 0 else 1)


def test_places_of_gaps_in_a_long_run_differ() -> None:
    assert units.place(448_123_456_789, 2_000_000) == "448.123456 s"
    assert units.place(448_123_456_789, 48) == "448.123456789 s"
    assert [units.place(ns) for ns in (0, 999, 12_345, 12_345_678)] == ["0 ns", "999 ns", "12.345 µs", "12.345 ms"]


def test_other_quantities() -> None:
    assert units.size(80 * 10**9) == "80.0 GB"
    assert units.size(512) == "512 B"
    assert units.rate(3_350 * 10**9) == "3.35 TB/s"
    assert units.count(1_234_567) == "1.23 M"
    assert units.count(999) == "999"
    assert units.share(1, 3) == "33.3 %"
    assert units.share(1, 0) == "–"
    assert units.parse_time("1.5ms") == 1_500_000
    assert units.parse_time(" 20 us ") == units.parse_time("20", "us") == 20_000
    for wrong in ("", "ms", "1 minute", "1e3", "--1"):
        with pytest.raises(ValueError, match="not a duration"):
            units.parse_time(wrong)


def test_tables_hold_what_the_schema_says() -> None:
    for name, schema in SCHEMAS.items():
        empty = Table(name)
        assert len(empty) == 0
        assert set(empty.columns) == {column.name for column in schema.columns if not column.optional}
        assert all(empty[column].dtype == schema.column(column).dtype for column in empty.columns)
        assert schema.sorted_by is None or not schema.column(schema.sorted_by).optional
        assert {c.refers for c in schema.columns} <= {"", "names", *SCHEMAS}
    assert len(SCHEMAS) == len(TABLES)
    marks = {"time": [3, 4, 5], "thread": [0, 1, 2], "name": [-1] * 3, "domain": [-1] * 3}
    table = Table("marks", {key: np.array(values) for key, values in marks.items()})
    assert table["thread"].dtype == np.int32
    assert table.take(np.array([True, False, True]))["time"].tolist() == [3, 5]
    assert np.shares_memory(table.take(slice(1, 3))["time"], table["time"])
    assert table.nbytes() == 3 * (8 + 4 + 4 + 4)
    with pytest.raises(KeyError):
        Table("marks", {**table.columns, "colour": table["time"]})
    with pytest.raises(ValueError, match="2 rows, not 3"):
        Table("marks", {**table.columns, "name": table["name"][:2]})
    with pytest.raises(ValueError, match="not optional"):
        Table("marks", {"time": table["time"]})


@given(*[st.integers(-10, 10)] * 4)
def test_windows_are_cut(start: int, end: int, low: int, high: int) -> None:
    start, end = sorted((start, end))
    low, high = sorted((low, high))
    found = Window(start, end).clipped(low, high)
    assert low <= found.start <= found.end <= high
    assert set(range(found.start, found.end)) == set(range(start, end)) & set(range(low, high))
    assert found.length == found.end - found.start


def test_a_selection_is_changed_by_copy() -> None:
    chosen = NOTHING.but(device=1, window=Window(0, 5))
    assert (chosen.device, NOTHING.device) == (1, None)
    assert chosen.but(device=None).window == Window(0, 5)
