"""Exports that are a folder with one file per table: Parquet or Arrow IPC."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inspector.errors import Unreadable
from inspector.readers.nsys.source import Batch, Faults, Part, mask_array

_BATCH_ROWS = 1 << 16
# Of one table, the first of these that is there is read.
_PARQUET = (".parquet",)
_ARROW = (".arrow", ".arrows", ".ipc", ".feather")


class _Table(Protocol):
    """One file."""

    names: Sequence[str]
    rows: int
    parts: Sequence[Part | None]

    def read(self, columns: Sequence[str], part: Part | None) -> Iterator[pa.RecordBatch]:
        """Rows of `part`; opens the file anew, so that threads do not share a position."""
        ...


class _Parquet:
    """A Parquet file; a part is a run of row groups."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with pq.ParquetFile(path) as file:
            self.names: Sequence[str] = list(file.schema_arrow.names)
            self.rows = file.metadata.num_rows
            self.parts: Sequence[Part | None] = [(group, group) for group in range(file.metadata.num_row_groups)]

    def read(self, columns: Sequence[str], part: Part | None) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self._path, memory_map=True) as file:
            groups = None if part is None else list(range(part[0], part[1] + 1))
            yield from file.iter_batches(_BATCH_ROWS, groups, list(columns), use_threads=False)


class _Arrow:
    """An Arrow IPC file, of which a part is a run of batches, or an Arrow IPC stream, which is read as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with pa.memory_map(os.fsencode(path)) as memory:
            try:
                reader = pa.ipc.open_file(memory)
            except pa.ArrowInvalid:
                memory.seek(0)
                stream = pa.ipc.open_stream(memory)
                self._stream = True
                self.names: Sequence[str] = list(stream.schema.names)
                self.rows = sum(batch.num_rows for batch in stream)
                self.parts: Sequence[Part | None] = [None]
            else:
                self._stream = False
                self.names = list(reader.schema.names)
                self.rows = sum(reader.get_batch(at).num_rows for at in range(reader.num_record_batches))
                self.parts = [(at, at) for at in range(reader.num_record_batches)]

    def read(self, columns: Sequence[str], part: Part | None) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(os.fsencode(self._path)) as memory:
            for batch in self._batches(memory, part):
                picked = batch.select(list(columns))
                for at in range(0, picked.num_rows, _BATCH_ROWS):
                    yield picked.slice(at, _BATCH_ROWS)

    def _batches(self, memory: pa.MemoryMappedFile, part: Part | None) -> Iterator[pa.RecordBatch]:
        if self._stream:
            yield from pa.ipc.open_stream(memory)
        else:
            reader = pa.ipc.open_file(memory)
            first, last = part or (0, reader.num_record_batches - 1)
            yield from (reader.get_batch(at) for at in range(first, last + 1))


class FolderSource:
    """Tables of a parquetdir or arrowdir export: each file bears the name of its table."""

    def __init__(self, folder: Path) -> None:
        self.faults = Faults()
        self._folder = folder
        self._tables: dict[str, _Table] = {}
        for name, path in table_files(folder).items():
            try:
                self._tables[name] = _Parquet(path) if path.suffix in _PARQUET else _Arrow(path)
            except (pa.ArrowException, OSError) as error:
                raise self._unreadable(name, error) from error

    @property
    def kind(self) -> str:
        """The trace kind of the contract."""
        return "nsys-parquet" if any(isinstance(t, _Parquet) for t in self._tables.values()) else "nsys-arrow"

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(path.stat().st_size for path in table_files(self._folder).values())

    def tables(self) -> Collection[str]:
        """As in Source."""
        return self._tables

    def columns(self, table: str) -> Collection[str]:
        """As in Source."""
        found = self._tables.get(table)
        return found.names if found else ()

    def count(self, table: str) -> int:
        """As in Source."""
        found = self._tables.get(table)
        return found.rows if found else 0

    def parts(self, table: str) -> Sequence[Part | None]:
        """As in Source: row groups or batches."""
        found = self._tables.get(table)
        return found.parts if found else []

    def batches(
        self,
        table: str,
        columns: Sequence[str],
        part: Part | None = None,
        where: tuple[str, Sequence[int]] | None = None,
    ) -> Iterator[Batch]:
        """As in Source."""
        found = self._tables.get(table)
        there = set(found.names if found else ())
        wanted = [column for column in columns if column in there]
        if found is None or not wanted or (where and where[0] not in there):
            return
        extra = [where[0]] if where and where[0] not in wanted else []
        try:
            for rows in found.read([*wanted, *extra], part):
                arrays = dict(zip(rows.schema.names, rows.columns, strict=True))
                if where:
                    batch = Batch(table, arrays, rows.num_rows, self.faults)
                    keep = mask_array(np.isin(batch.ints(where[0]), where[1]) & ~batch.null(where[0]))
                    arrays = {name: array.filter(keep) for name, array in arrays.items()}
                    yield Batch(table, arrays, keep.true_count, self.faults)
                else:
                    yield Batch(table, arrays, rows.num_rows, self.faults)
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable(table, error) from error

    def _unreadable(self, table: str, error: Exception) -> Unreadable:
        return Unreadable(
            f"cannot read {self._folder}", f"{table}: {error}", "the file may be damaged; export the report again"
        )


def table_files(folder: Path) -> dict[str, Path]:
    """Files of `folder` that hold a table, by its name; empty where it is no folder that can be read."""
    try:
        files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    except OSError:
        return {}
    for suffixes in (_PARQUET, _ARROW):
        if found := {path.name[: -len(path.suffix)]: path for path in files if path.suffix in suffixes}:
            return found
    return {}
