"""One lane of a track: records that do not overlap, and how lanes are made and made longer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inspector.picture.lanes import lanes
from inspector.trace.growing import GrowingColumns
from inspector.trace.pyramid import Pyramid
from inspector.trace.schema import WORK_TABLES

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Inks = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Lane:
    """Disjoint records in time order. `table[i]` indexes `sources`, `row[i]` is the row there.

    A source is a table of the schema, or 'busy', 'causes' (row of DeviceSlices), 'iterations' (row of Iterations) or
    'graph launch' (row is the first node's, in `kernels`).
    """

    pyramid: Pyramid
    sources: tuple[str, ...]
    table: npt.NDArray[np.uint8] | None
    row: Rows
    growing: GrowingColumns | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.row)

    def extended(self, start: Int, end: Int, inks: Inks, code: npt.NDArray[np.uint8] | None, row: Rows) -> Lane:
        """The lane with more records behind its own, of the same sources. Shares memory with this one."""
        added: dict[str, npt.NDArray[Any]] = {"row": row}
        held: dict[str, npt.NDArray[Any]] = {"row": self.row}
        if self.table is not None and code is not None:
            added["table"], held["table"] = code, self.table
        growing = self.growing
        if growing is None:
            growing = GrowingColumns({key: values.dtype for key, values in held.items()}).extended(0, held)[0]
        growing, found = growing.extended(len(self), added)
        return Lane(self.pyramid.extended(start, end, inks), self.sources, found.get("table"), found["row"], growing)

    def source(self, at: int) -> str:
        """The source of record `at`."""
        return self.sources[0 if self.table is None else int(self.table[at])]

    def take(self, rows: npt.NDArray[Any]) -> Lane:
        """Those records only."""
        pyramid = Pyramid.of(self.pyramid.start[rows], self.pyramid.ends(rows), self.pyramid.kind[rows])
        return Lane(pyramid, self.sources, None if self.table is None else self.table[rows], self.row[rows])

    def names(self, trace: Trace) -> Rows:
        """Name id of every record, -1 none."""
        found = np.full(len(self), -1, np.int32)
        for code, source in enumerate(self.sources):
            if source in trace.tables and "name" in trace[source]:
                mine = slice(None) if self.table is None else self.table == code
                found[mine] = trace[source]["name"][self.row[mine]]
        return found


def lanes_of(parts: list[tuple[npt.NDArray[Any], ...]], sources: tuple[str, ...]) -> tuple[Lane, ...]:
    """Lanes of records given as (start, end, ink, code, row), each part sorted by start."""
    if not parts or not sum(len(part[0]) for part in parts):
        return ()
    start, end, inks, code, row = _by_start(parts)
    if (code == code[0]).all():
        return split(start, end, inks, None, row, lanes(start, end), (sources[int(code[0])],))
    return split(start, end, inks, code, row, lanes(start, end), sources)


def _by_start(parts: list[tuple[npt.NDArray[Any], ...]]) -> tuple[npt.NDArray[Any], ...]:
    """Parts as one, sorted by start; at equal starts in the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    columns = tuple(np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(columns[0], kind="stable")
    return tuple(column[order] for column in columns)


def row_numbers(rows: Rows | slice, size: int) -> Rows:
    """Row numbers of a selection of `size` rows."""
    return np.arange(rows.start or 0, (rows.start or 0) + size, dtype=np.int32) if isinstance(rows, slice) else rows


def stand_ins(before: tuple[Lane, ...], start: Int) -> tuple[Int, Int]:
    """Stand-ins for what is open in each lane when the first of `start` begins, one each, that take just those lanes:
    they begin one after the other before it, and those of free lanes end there.
    """
    first = int(start[0]) if len(start) else 0
    ends = [int(lane.pyramid.ends(slice(len(lane) - 1, len(lane)))[0]) if len(lane) else first for lane in before]
    return first - len(before) + np.arange(len(before)), np.maximum(np.array(ends, np.int64), first)


def longer(before: tuple[Lane, ...], parts: list[tuple[npt.NDArray[Any], ...]]) -> tuple[Lane, ...] | None:
    """Lanes of work with more of it behind; None where they do not hold work of those tables yet."""
    if not parts:
        return before
    start, end, inks, code, row = _by_start(parts)
    if not before:
        return None
    sources = before[0].sources
    if sources == WORK_TABLES:
        codes = code
    elif (code == code[0]).all() and sources == (WORK_TABLES[int(code[0])],):
        codes = None
    else:
        return None
    open_start, open_end = stand_ins(before, start)
    lane = lanes(np.r_[open_start, start], np.r_[open_end, end])[len(before) :]
    return behind(before, start, end, inks, codes, row, lane, sources)


def behind(
    before: tuple[Lane, ...],
    start: Int,
    end: Int,
    inks: Inks,
    code: npt.NDArray[np.uint8] | None,
    row: Rows,
    lane: npt.NDArray[np.int32],
    sources: tuple[str, ...],
) -> tuple[Lane, ...]:
    """Lanes with more records behind."""
    new = split(start, end, inks, code, row, lane, sources)
    if not before:
        return new
    found = []
    for number, old in enumerate(before):
        more = new[number] if number < len(new) else None
        if more is None or not len(more):
            found.append(old)
            continue
        pyramid = more.pyramid
        found.append(old.extended(pyramid.start, pyramid.ends(slice(None)), pyramid.kind, more.table, more.row))
    return (*found, *new[len(before) :])


def split(
    start: Int,
    end: Int,
    inks: Inks,
    code: npt.NDArray[np.uint8] | None,
    row: Rows,
    lane: npt.NDArray[np.int32],
    sources: tuple[str, ...],
) -> tuple[Lane, ...]:
    """A lane for each number up to the highest in `lane`, of records sorted by start."""
    made = []
    for number in range(int(lane.max(initial=-1)) + 1):
        mine = np.flatnonzero(lane == number) if lane.any() else slice(None)
        codes = None if code is None else code[mine]
        made.append(Lane(Pyramid.of(start[mine], end[mine], inks[mine]), sources, codes, row[mine]))
    return tuple(made)
