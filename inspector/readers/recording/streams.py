"""A recording that was not closed: every whole batch of every producer's streams, as one trace.

A producer counts its own rows: what its tables refer to are rows of its own tables. Devices, processes, threads and
streams that several producers know are one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from inspector.errors import Unreadable
from inspector.readers.reader import Progress, Report
from inspector.readers.recording.fitting import fitting, unreadable
from inspector.trace.arrow_reader import read_columns, read_texts
from inspector.trace.builder import Builder
from inspector.trace.guarded import in_bounds
from inspector.trace.header import Header
from inspector.trace.quality import Quality
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Array
from inspector.trace.trace import Trace, TraceInfo

_FILE = re.compile(r"([A-Za-z0-9_-]+)\.([a-z_]+)\.arrows")
# Those that others refer to, each after what it refers to itself.
_SHARED = ("devices", "processes", "threads", "streams", "series")
# Two clocks that part by more during a recording are worth a word.
_DRIFT_NS = 1_000_000


def read_streams(folder: Path, head: Header, info: TraceInfo, quality: Quality, report: Report) -> Trace:
    """The trace of a recording whose header is `head`; raises Unreadable, Cancelled."""
    files: dict[str, dict[str, Path]] = {}
    try:
        for path in sorted(folder.iterdir()):
            if (match := _FILE.fullmatch(path.name)) and (match[2] in SCHEMAS or match[2] == "names"):
                files.setdefault(match[1], {})[match[2]] = path
    except OSError as error:
        raise Unreadable(f"cannot read {folder}", error.strerror or str(error), "check its permissions") from error
    builder = Builder()
    builder.quality = quality
    text = "the recording was not closed: what had been written by then is here"
    quality.add("recovered", text)
    offsets = dict.fromkeys(SCHEMAS, 0)
    done, total = 0, sum(len(tables) for tables in files.values())
    for name, tables in files.items():
        producer = _Producer(builder, tables, offsets)
        for table in (*_SHARED, *(t for t in SCHEMAS if t not in _SHARED and t != "rejected")):
            if table in tables:
                producer.add(table)
                done += 1
                report(Progress(f"recovering {name}", done, total))
    epoch = head.clock[0].epoch_ns - head.clock[0].monotonic_ns if head.clock else None
    if head.clock and abs(head.clock[-1].epoch_ns - head.clock[-1].monotonic_ns - (epoch or 0)) > _DRIFT_NS:
        quality.add("clock", "the wall clock and that of the records parted during the recording")
    details = {**info.details, "state": "recovered"}
    return builder.build(replace(info, start_epoch_ns=epoch, details=details))


class _Producer:
    """Adds the tables of one producer, with its row numbers and name ids turned into those of the trace."""

    def __init__(self, builder: Builder, files: dict[str, Path], offsets: dict[str, int]) -> None:
        self._builder = builder
        self._files = files
        self._offsets = offsets
        texts: list[str] = []
        if "names" in files:
            texts, whole = read_texts(files["names"])
            self._tail(files["names"], whole)
        # One more entry at the end of each answers for -1.
        self._rows: dict[str, Array] = {"names": np.append(builder.names.add_all(texts), np.int32(-1))}

    def add(self, table: str) -> None:
        """Add the whole batches of a table."""
        path = self._files[table]
        batches, whole = read_columns(path)
        self._tail(path, whole)
        rows: list[int] = []
        count = 0
        for batch in batches:
            columns = {
                key: self._moved(path, table, key, values)
                for key, values in fitting(path, table, batch, self._builder.quality).items()
            }
            if table in _SHARED:
                rows += self._shared(table, columns)
            else:
                self._builder.add(table, **columns)
                count += len(next(iter(columns.values())))
        first = self._offsets[table]
        self._offsets[table] += count
        own = rows if table in _SHARED else np.arange(first, first + count, dtype=np.int32)
        self._rows[table] = np.append(own, np.int32(-1)).astype(np.int32)

    def _tail(self, path: Path, whole: bool) -> None:
        if not whole:
            self._builder.quality.add("truncated", "streams that end in the middle of a batch", first=path.name)

    def _moved(self, path: Path, table: str, key: str, values: Array) -> Array:
        column = SCHEMAS[table].column(key)
        if not in_bounds(column, values):
            raise unreadable(path, f"column {key} holds what cannot be")
        if not column.refers:
            return values
        rows = self._rows.get(column.refers, np.array([-1], np.int32))
        # What was not flushed in time is unknown now, not wrong.
        lost = (values < -1) | (values >= len(rows) - 1)
        if lost.any():
            text = f"{table}.{key}: what it refers to was not written in time"
            self._builder.quality.add("truncated", text, int(np.count_nonzero(lost)), path.name)
        return rows[np.where(lost, -1, values)]

    def _shared(self, table: str, columns: dict[str, Array]) -> list[int]:
        builder, names = self._builder, self._builder.names
        rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)
        ]
        for row in rows:
            for column in SCHEMAS[table].columns:
                if column.refers == "names":
                    row[column.name] = names[row[column.name]]
            row.pop("source", None)
        if table == "devices":
            return [builder.device(**row) for row in rows]
        if table == "processes":
            return [builder.process(**row) for row in rows]
        if table == "threads":
            return [builder.thread(**row) for row in rows]
        if table == "streams":
            return [builder.stream(**row) for row in rows]
        return [builder.series(**row) for row in rows]
