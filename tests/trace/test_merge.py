from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.merge import merge
from inspector.trace.schema import NEVER, SCHEMAS
from inspector.trace.table import Table
from inspector.trace.trace import Trace
from tests.analysis.generate import traces
from tests.drawn import draw
from tests.readers.recordings import full_trace


def at(trace: Trace, epoch: int | None) -> Trace:
    info = replace(trace.info, start_epoch_ns=epoch, paths=(f"at {epoch}",))
    return Trace(info, trace.tables, trace.names, trace.quality)


def meaning(trace: Trace, table: str, row: int, shift: int) -> tuple[Any, ...]:
    """A row in words: names as texts, rows of other tables as what stands there, times moved by `shift`.

    Without what merging is there to change: the file that a row is from, and the numbers of devices.
    """
    found: list[Any] = [table]
    for column in SCHEMAS[table].columns:
        value = trace[table].get(column.name)[row].item()
        if column.name == "source" or (table, column.name) == ("devices", "number"):
            continue
        if column.refers == "names":
            value = trace.names[value]
        elif column.refers:
            value = meaning(trace, column.refers, value, shift) if value >= 0 else None
        elif column.is_moment and not (column.may_be_never and value == NEVER):
            value += shift
        elif isinstance(value, float) and math.isnan(value):
            value = "nan"
        found.append(value)
    return tuple(found)


def contents(trace: Trace, shift: int) -> list[str]:
    return [repr(meaning(trace, name, row, shift)) for name, table in trace.tables.items() for row in range(len(table))]


def assert_sorted(trace: Trace) -> None:
    for name, table in trace.tables.items():
        if key := SCHEMAS[name].sorted_by:
            assert table[key].tolist() == sorted(table[key].tolist()), name


@given(traces(), traces(), st.integers(0, 400), st.integers(0, 400))
def test_random_files_on_one_clock(a: Trace, b: Trace, a_epoch: int, b_epoch: int) -> None:
    found = merge([at(a, a_epoch), at(b, b_epoch)])
    base = min(a_epoch, b_epoch)
    assert sorted(contents(found, 0)) == sorted(contents(a, a_epoch - base) + contents(b, b_epoch - base))
    assert_sorted(found)
    assert found.info.start_epoch_ns == base
    assert found.info.duration_ns == max(a.info.duration_ns + a_epoch - base, b.info.duration_ns + b_epoch - base)


def test_every_column_that_refers_to_another_table() -> None:
    # The second began earlier, so its rows come first, and all that refers to rows has to follow.
    one, two = at(full_trace(), 10_000), at(full_trace(), 9_300)
    found = merge([one, two])
    assert sorted(contents(found, 0)) == sorted(contents(one, 700) + contents(two, 0))
    assert_sorted(found)
    assert found["devices"]["source"].tolist() == [0] * 5 + [1] * 5
    assert found.quality.count("reversed") == 4
    assert found.info.basis == "simulated"
    assert found.info.paths == ("at 10000", "at 9300")


def test_devices_of_one_number_are_told_apart() -> None:
    pictures = ("gpu 0 stream 7   A", "gpu 0 stream 7   B", "gpu 1 stream 7   C")
    parts = [at(draw(picture, unlinked="ABC").trace, 0) for picture in pictures]
    found = merge(parts)
    assert found["devices"]["number"].tolist() == [0, 1, 2]
    assert found.quality.count("assumed") == 2
    assert [found.names[n] for n in found["kernels"]["name"]] == ["A", "B", "C"]
    assert found.device_of(found["kernels"]["stream"]).tolist() == [0, 1, 2]


def test_a_file_without_a_wall_clock() -> None:
    one = draw("gpu 0 stream 7   A", unlinked="A").trace
    found = merge([at(one, None), at(one, 5_000)])
    assert found.info.start_epoch_ns is None
    assert found["kernels"]["start"].tolist() == [0, 0]
    assert found.quality.count("unaligned") == 1


def test_a_column_that_only_one_file_has() -> None:
    one = draw("gpu 0 stream 7   A", unlinked="A").trace
    bare = {
        name: Table(name, {c.name: table[c.name] for c in table.schema.columns if not c.optional})
        for name, table in one.tables.items()
    }
    found = merge([at(one, 0), at(Trace(one.info, bare, one.names, one.quality), 0)])
    assert found["kernels"]["context"].tolist() == [1, 0]
    assert found["devices"]["memory"].tolist() == [-1, -1]
    assert "bandwidth" in found["devices"]
    alone = merge([at(Trace(one.info, bare, one.names, one.quality), 0)] * 2)
    assert "context" not in alone["kernels"]


def test_one_is_itself_and_none_has_no_names() -> None:
    one = full_trace()
    assert merge([one]) is one
    empty = Trace(one.info, {"marks": Table("marks")}, type(one.names)(), type(one.quality)())
    assert len(merge([empty, empty]).names) == 0
