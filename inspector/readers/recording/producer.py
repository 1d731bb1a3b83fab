"""One producer of a recording: its streams, read on from where they were, and its rows as those of the trace.

A producer counts its own rows: what its tables refer to are rows of its own tables. Devices, processes, threads and
streams that several producers know are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from inspector.readers.recording.fitting import fitting, unreadable
from inspector.trace.arrow_reader import StreamTail
from inspector.trace.builder import Builder
from inspector.trace.growing import GrowingArray
from inspector.trace.guarded import in_bounds
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Array

# Those that others refer to, each after what it refers to itself.
SHARED = ("devices", "processes", "threads", "streams", "series")
REFERRED = (*SHARED, "iterations", "requests")
# Those that refer to others, and are read first: what they refer to was written before them.
_OTHERS = tuple(name for name in SCHEMAS if name not in REFERRED and name != "rejected")
Columns = dict[str, Array]


class Producer:
    """Reads `<name>.<table>.arrows` of a folder. `number` tells it from other producers."""

    def __init__(self, folder: Path, name: str, number: int, builder: Builder) -> None:
        self.name = name
        self.number = number
        self.num_rows = dict.fromkeys(SCHEMAS, 0)
        self.reached: dict[str, int] = {}
        """The latest moment of what was taken of each table that is sorted by time, trace time."""
        self._folder = folder
        self._builder = builder
        self._tails: dict[str, StreamTail] = {}
        self._rows = {table: _Map() for table in ("names", *REFERRED)}
        self.cut: tuple[str, ...] = ()
        """The tables of which there was more to read the last time."""

    def open(self, table: str) -> None:
        """There is a stream for that table, or "names"."""
        if table not in self._tails:
            self._tails[table] = StreamTail(self._folder / f"{self.name}.{table}.arrows")

    def positions(self) -> dict[str, int]:
        """How far the producer's ring had been read when each stream was written last."""
        return {table: tail.to for table, tail in self._tails.items() if tail.to >= 0}

    def broken(self) -> list[str]:
        """The streams that do not end with a whole batch. Raises Unreadable."""
        return [tail.path.name for tail in self._tails.values() if not tail.is_whole]

    def sizes(self) -> dict[str, int]:
        """Bytes of the files of those tables that nothing refers to, by table."""
        found = {}
        for table in _OTHERS:
            if table in self._tails:
                with suppress(OSError):
                    found[table] = self._tails[table].path.stat().st_size
        return found

    def read(
        self, most_bytes: int, of: Mapping[str, int] = MappingProxyType({})
    ) -> tuple[list[str], dict[str, Columns]]:
        """New texts and rows, as the producer counts them, those first that others refer to.

        About `most_bytes` of each table, or what `of` says; all of those that are referred to. Raises Unreadable.
        """
        found: dict[str, Columns] = {}
        self.cut = ()
        for table in (*_OTHERS, *reversed(REFERRED)):
            tail = self._tails.get(table)
            if tail is None:
                continue
            batches = tail.columns(of.get(table, most_bytes) if table in _OTHERS else 1 << 62)
            if tail.is_cut and SCHEMAS[table].sorted_by is not None:
                self.cut += (table,)
            if batches:
                columns = {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]}
                found[table] = fitting(tail.path, table, columns, self._builder.quality)
        texts = self._tails["names"].texts() if "names" in self._tails else []
        return texts, {table: found[table] for table in (*REFERRED, *_OTHERS) if table in found}

    def know(self, texts: list[str]) -> None:
        """Take new texts."""
        self._rows["names"].append(self._builder.names.add_all(texts))

    def translate(self, table: str, columns: Mapping[str, Array]) -> Columns:
        """Rows with references to those of the trace, and to serials of iterations and requests. Raises Unreadable."""
        return {key: self._moved(table, key, values) for key, values in columns.items()}

    def share(self, table: str, columns: Mapping[str, Array]) -> None:
        """Take translated rows of one of SHARED."""
        self._rows[table].append(np.array(self._shared(table, columns), np.int64))

    def refer(self, table: str, serials: Array) -> None:
        """The serials of new rows of iterations or requests; -1 for those that were set aside."""
        self._rows[table].append(serials)

    def held(self) -> dict[str, int]:
        """Rows taken of each of REFERRED, and texts."""
        return {table: len(rows) for table, rows in self._rows.items()}

    def _moved(self, table: str, key: str, values: Array) -> Array:
        column = SCHEMAS[table].column(key)
        if not in_bounds(column, values):
            raise unreadable(self._folder / f"{self.name}.{table}.arrows", f"column {key} holds what cannot be")
        if not column.refers:
            return values
        rows = self._rows[column.refers]
        # What was not flushed in time is unknown now, not wrong.
        lost = (values < -1) | (values >= len(rows))
        if lost.any():
            text = f"{table}.{key}: what it refers to was not written in time"
            count = int(np.count_nonzero(lost))
            self._builder.quality.add("truncated", text, count, f"{self.name}.{table}.arrows")
        return rows.of(np.where(lost, -1, values))

    def _shared(self, table: str, columns: Mapping[str, Array]) -> list[int]:
        builder, names = self._builder, self._builder.names
        rows: list[dict[str, Any]] = [
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


class _Map:
    """From a producer's rows to what stands for them in the trace; -1 stays -1."""

    def __init__(self) -> None:
        self._column, self._values = GrowingArray("int32").extended(0, np.array([-1], np.int32))

    def __len__(self) -> int:
        return len(self._values) - 1

    def append(self, values: Array) -> None:
        self._column, self._values = self._column.extended(len(self._values), values.astype(np.int32))

    def of(self, rows: Array) -> Array:
        found: Array = self._values[rows + 1]
        return found
