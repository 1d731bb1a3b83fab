"""What tests of recordings share: a trace with every table, equality of traces, and use of every column."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inspector.readers import recording
from inspector.readers.reader import silent
from inspector.trace.links import Links
from inspector.trace.names import Names
from inspector.trace.quality import Quality
from inspector.trace.schema import NEVER, SCHEMAS
from inspector.trace.table import Array, Table
from inspector.trace.trace import Trace, TraceInfo
from inspector.trace.work import Work

ROWS = 5


def full_trace() -> Trace:
    """Every table with every column, `ROWS` rows each, with the extremes that the schema allows."""
    quality = Quality()
    quality.add("assumed", "a thing that was taken for granted", 3, "row 7")
    quality.add("reversed", "kernels: ends before it starts", 2)
    tables = {}
    for name, schema in SCHEMAS.items():
        columns: dict[str, Array] = {}
        for place, column in enumerate(schema.columns):
            values = np.arange(ROWS)
            if column.refers:
                values = values - 1
            elif column.name == "end":
                values = values * 1_000 + 500
            elif column.unit == "ns":
                values = values * 1_000
            elif column.below:
                values = values % column.below
            else:
                values = values + place
            columns[column.name] = values.astype(column.dtype)
            if column.may_be_never:
                columns[column.name][1] = NEVER
            if column.dtype == "float64":
                columns[column.name][:2] = np.nan, -np.inf
            if column.dtype == "uint64":
                columns[column.name][0] = np.iinfo(np.uint64).max
        tables[name] = Table(name, columns)
    info = TraceInfo(
        paths=("folder/some file.sqlite",),
        kind="nsys-sqlite",
        producer="a profiler 1.2",
        schema_version="3.0",
        origin_ns=123,
        duration_ns=4_500,
        start_epoch_ns=1_700_000_000_000_000_000,
        basis="simulated",
        details={"host": "ä"},
        missing={"kernels": "not asked for"},
    )
    return Trace(info, tables, Names(["gemm", "", "größe 大", "half \ud800 a pair"]), quality)


def opened(path: Path) -> Trace:
    return recording.read(path, silent)


def assert_equal(found: Trace, wanted: Trace) -> None:
    """The same tables, names and notes, and what a recording keeps of the info."""
    for name, table in wanted.tables.items():
        assert len(found[name]) == len(table), name
        if not len(table):
            continue
        assert set(found[name].columns) == set(table.columns), name
        for key, values in table.columns.items():
            assert found[name][key].dtype == values.dtype
            np.testing.assert_array_equal(found[name][key], values, f"{name}.{key}")
    assert list(found.names.texts) == list(wanted.names.texts)
    assert found.quality.notes == wanted.quality.notes
    assert found.info.kind == "recording"
    for key in ("producer", "schema_version", "origin_ns", "duration_ns", "start_epoch_ns", "basis", "missing"):
        assert getattr(found.info, key) == getattr(wanted.info, key), key
    assert {k: v for k, v in found.info.details.items() if k != "converted from"} == {
        k: v for k, v in wanted.info.details.items() if k != "converted from"
    }


def use(trace: Trace) -> None:
    """Every column, and the two indexes that all analyses stand on."""
    for table in trace.tables.values():
        for column in table.columns:
            assert len(table[column]) == len(table)
    trace.index(Links)
    trace.index(Work)
