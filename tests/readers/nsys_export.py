"""Small Nsight Systems exports for tests: made from rows, or turned from SQLite into folders."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

VM = 1 << 48
Row = Mapping[str, Any]

KERNEL: Row = {
    "start": 100,
    "end": 200,
    "deviceId": 0,
    "contextId": 1,
    "streamId": 7,
    "correlationId": 1,
    "globalPid": VM | 10 << 24,
    "demangledName": 1,
    "shortName": 2,
    "graphNodeId": None,
}
CALL: Row = {
    "start": 50,
    "end": 90,
    "eventClass": 0,
    "globalTid": VM | 10 << 24 | 10,
    "correlationId": 1,
    "nameId": 3,
    "returnValue": 0,
}
STRINGS = [
    {"id": i, "value": text} for i, text in enumerate(["", "void gemm<4>(float *)", "gemm", "cudaLaunchKernel_v7000"])
]


def global_pid(pid: int, machine: int = 1) -> int:
    """The 64 bits that name a process."""
    return machine << 48 | pid << 24


def global_tid(pid: int, tid: int | None = None) -> int:
    """The 64 bits that name a thread."""
    return global_pid(pid) | (pid if tid is None else tid)


def write(path: Path, tables: Mapping[str, Sequence[Row]], typed: bool = True) -> Path:
    """An SQLite file of these tables; a table has the columns of its first row, `typed` ones or of no declared type."""
    with closing(sqlite3.connect(path)) as file:
        for table, rows in tables.items():
            columns = list(rows[0])
            names = ", ".join(f'"{column}" {_declared(rows, column) if typed else ""}' for column in columns)
            file.execute(f'CREATE TABLE "{table}" ({names})')
            marks = ", ".join("?" * len(columns))
            file.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [[row.get(c) for c in columns] for row in rows])
        file.commit()
    return path


def _declared(rows: Sequence[Row], column: str) -> str:
    values = [row.get(column) for row in rows]
    if any(isinstance(value, str | bytes) for value in values):
        return "TEXT"
    return "REAL" if all(isinstance(value, float | None) for value in values) else "INTEGER"


def to_folder(source: Path, folder: Path, kind: str) -> Path:
    """The tables of an SQLite export as a folder of Parquet or Arrow files, integers as narrow as they fit."""
    folder.mkdir()
    with closing(sqlite3.connect(f"file:{source}?mode=ro&immutable=1", uri=True)) as file:
        file.text_factory = bytes
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            table = name.decode()
            cursor = file.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
            data = pa.table({n: _column([row[i] for row in rows]) for i, n in enumerate(names)})
            if kind == "parquet":
                pq.write_table(data, folder / f"{table}.parquet", row_group_size=1000)
            elif kind == "arrow":
                with pa.ipc.new_file(str(folder / f"{table}.arrow"), data.schema) as writer:
                    writer.write_table(data, max_chunksize=700)
            else:
                with pa.ipc.new_stream(str(folder / f"{table}.arrows"), data.schema) as writer:
                    writer.write_table(data, max_chunksize=700)
    return folder


def _column(values: list[Any]) -> pa.Array:
    if any(isinstance(value, bytes) for value in values):
        # Bytes that are no UTF-8 stand in string columns of real exports.
        array = pa.array([v if v is None or isinstance(v, bytes) else str(v).encode() for v in values], pa.binary())
        return pa.Array.from_buffers(pa.string(), len(array), array.buffers(), array.null_count)
    if any(isinstance(value, float) for value in values):
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    whole = [value for value in values if value is not None]
    low, high = min(whole, default=0), max(whole, default=0)
    fitting = next(t for t in (pa.uint8(), pa.int16(), pa.uint32(), pa.uint64(), pa.int64()) if _fits(t, low, high))
    return pa.array(values, fitting)


def _fits(kind: pa.DataType, low: int, high: int) -> bool:
    limits = np.iinfo(kind.to_pandas_dtype())
    return bool(limits.min <= low and high <= limits.max)
