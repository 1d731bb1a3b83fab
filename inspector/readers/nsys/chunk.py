"""Rows of one of our tables, made from a batch of an export's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from inspector.readers.nsys.context import Context
from inspector.readers.nsys.source import Batch, Bool, Int
from inspector.trace.table import Array


@dataclass(frozen=True)
class Chunk:
    """Columns of `table`; the rows marked by `unstamped` have no time and are set aside, those by `unclosed` no end."""

    table: str
    columns: dict[str, Array]
    unstamped: Bool | None = None
    unclosed: Bool | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def take(self, rows: Bool) -> Chunk:
        """Those rows, taken as stamped and closed."""
        return Chunk(self.table, {name: values[rows] for name, values in self.columns.items()})

    def without(self, rows: Bool) -> Chunk:
        """The other rows."""
        unclosed = None if self.unclosed is None else self.unclosed[~rows]
        return Chunk(self.table, self.take(~rows).columns, None, unclosed)


@dataclass(frozen=True)
class Mapping:
    """How rows of the export's `table` become rows of ours.

    Of alternatives ('a|b') in `columns` the first one that the table has is read.
    """

    table: str
    columns: tuple[str, ...]
    chunks: Callable[[Batch, Context], Sequence[Chunk]]


def times(batch: Batch) -> tuple[Int, Int, Bool | None]:
    """Start, end, and where one of them is missing (None: nowhere)."""
    start, end = batch.ints("start"), batch.ints("end")
    if not batch.any_null("start", "end"):
        return start, end, None
    return start, end, batch.null("start") | batch.null("end")


def stamped(chunk: Chunk, batch: Batch, column: str) -> Chunk:
    """The rows of an instant whose time, `column` of the batch, is there; the others are counted."""
    without = batch.null(column)
    if not without.any():
        return chunk
    batch.skipped("rows without a time", int(np.count_nonzero(without)))
    return chunk.take(~without)
