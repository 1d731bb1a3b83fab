"""Level of detail: sums and maxima over disjoint intervals that answer for any stretch of time without walking it.

Exact where it counts: how much of a column is covered comes from prefix sums, at every zoom. Only *which* of several
kinds a crowded column shows is decided from blocks of BLOCK events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.trace.growing import GrowingArray
from inspector.trace.intervals import expand

Int = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.uint8]

BLOCK = 16


class Columns(NamedTuple):
    """Per column: `until` (num + 1) covered ns before each column edge, `events` that begin in it or reach
    into it, and the `kind` that covers most of it (0 without events)."""

    until: Int
    events: npt.NDArray[np.int32]
    kind: Kinds


@dataclass(frozen=True)
class Pyramid:
    """Disjoint intervals sorted by start (some may be empty), each with a small number, its `kind`.

    `before[i]` is the length of all earlier ones (n + 1 values), so the end of event i is start + before[i + 1] -
    before[i]. `longest` holds the greatest length of each full block, `votes` the ns of each of `kinds` before each of
    them and before what is left: a pyramid that grows adds to them and changes nothing.
    """

    start: Int
    before: Int
    kind: Kinds
    longest: Int
    kinds: Kinds
    votes: Int
    growing: tuple[GrowingArray, ...] | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def of(cls, start: Int, end: Int, kind: Kinds) -> Pyramid:
        """Build over intervals with start[i] <= end[i] <= start[i + 1]; `kind` uint8 per interval."""
        size = len(start)
        length = end - start
        before = np.zeros(size + 1, np.int64)
        np.cumsum(length, out=before[1:])
        kinds = np.flatnonzero(np.bincount(kind, minlength=1)).astype(np.uint8)
        longest, votes = _blocks(length, kind, kinds)
        return cls(start, before, kind, longest, kinds, votes)

    def extended(self, start: Int, end: Int, kind: Kinds) -> Pyramid:
        """The pyramid with more events behind its own. O(new), and shares memory with this one."""
        if not len(start):
            return self
        size = len(self)
        kinds = np.union1d(self.kinds, kind).astype(np.uint8)
        votes, growing = self.votes, self.growing
        if len(kinds) > len(self.kinds):
            votes = np.zeros((len(self.votes), len(kinds)), np.int64)
            votes[:, np.searchsorted(kinds, self.kinds)] = self.votes
        if growing is None:
            growing = tuple(
                GrowingArray(values.dtype).extended(0, values)[0]
                for values in (self.start, self.before, self.kind, self.longest)
            )
        else:
            growing = growing[:4]
        length = end - start
        columns, arrays = [], []
        before = self.before[-1] + np.cumsum(length)
        added = ((size, start), (size + 1, before), (size, kind))
        for column, (at, values) in zip(growing[:3], added, strict=True):
            grown, snapshot = column.extended(at, values)
            columns.append(grown)
            arrays.append(snapshot)
        full = len(self.longest)
        tail = slice(full * BLOCK, size + len(start))
        longest, more = _blocks(np.diff(arrays[1][tail.start :]), arrays[2][tail], kinds)
        grown, found = growing[3].extended(full, longest)
        columns.append(grown)
        if self.growing is None or len(kinds) > len(self.kinds):
            column = GrowingArray("int64", len(kinds)).extended(0, votes)[0]
        else:
            column = self.growing[4]
        grown, votes = column.extended(full + 1, votes[-1] + more[1:])
        columns.append(grown)
        return Pyramid(arrays[0], arrays[1], arrays[2], found, kinds, votes, tuple(columns))

    def ends(self, rows: Int | slice) -> Int:
        """Ends of those events."""
        if isinstance(rows, slice):
            low, high, _ = rows.indices(len(self.start))
            high = max(high, low)
            return self.start[low:high] + np.diff(self.before[low : high + 1])
        found: Int = self.start[rows] + self.before[rows + 1] - self.before[rows]
        return found

    def window(self, start: int, end: int) -> slice:
        """The events that touch [start, end); those without length count where they stand."""
        low, high = (int(at) for at in np.searchsorted(self.start, (start, end)))
        while low > 0 and int(self.ends(slice(low - 1, low))[0]) > start:
            low -= 1
        return slice(low, max(high, low))

    def columns(self, origin: int, step: int, num: int) -> Columns:
        """`num` columns of `step` ns from `origin` on. O(columns), or O(events) where they are few."""
        rows = self.window(origin, origin + step * num)
        start, before = self.start[rows], self.before[rows.start : rows.stop + 1]
        if not len(start):
            none = np.zeros(num, np.int32)
            return Columns(np.zeros(num + 1, np.int64), none, none.astype(np.uint8))
        edges = origin + step * np.arange(num + 1, dtype=np.int64)
        # Events that begin before each edge; the last of them may reach over it.
        begun = np.searchsorted(start, edges)
        last = np.maximum(begun - 1, 0)
        inside = np.minimum(np.maximum(edges - start[last], 0), before[last + 1] - before[last])
        until = before[last] - before[0] + np.where(begun > 0, inside, 0)
        reaches = (begun > 0) & (start[last] + before[last + 1] - before[last] > edges)
        count = (np.diff(begun) + reaches[:-1]).astype(np.int32)
        if len(self.kinds) == 1:
            kind = np.where(count > 0, self.kinds[0], 0).astype(np.uint8)
        elif len(start) <= num * BLOCK:
            kind = self._exact(rows, origin, step, num)
        else:
            kind = self._voted(rows.start + begun, count)
        return Columns(until, count, kind)

    def _exact(self, rows: slice, origin: int, step: int, num: int) -> Kinds:
        """The kind with the most time in each column, every event cut at the column edges."""
        start = np.maximum(self.start[rows] - origin, 0)
        end = np.minimum(self.ends(rows) - origin, step * num)
        many = len(self.kinds)
        first = start // step
        of_kind = _numbered(self.kinds)[self.kind[rows]]
        edge = (first + 1) * step
        # An event without length still gives its column a colour when nothing else does.
        weight = np.maximum(np.minimum(end, edge) - start, 0.25)
        sums = np.bincount(first * many + of_kind, weights=weight, minlength=num * many)
        over = np.flatnonzero(end > edge)
        if len(over):
            times = (end[over] - 1) // step - first[over]
            column = expand(first[over] + 1, times)
            event = np.repeat(over, times)
            share = np.minimum(end[event], (column + 1) * step) - column * step
            sums += np.bincount(column * many + of_kind[event], weights=share, minlength=num * many)
        table = sums.reshape(num, len(self.kinds))
        winner: Kinds = np.where(table.any(axis=1), self.kinds[table.argmax(axis=1)], 0).astype(np.uint8)
        return winner

    def _voted(self, begun: Int, count: npt.NDArray[np.int32]) -> Kinds:
        """The kind with the most time in the blocks that begin in each column; with none, that of its last event."""
        block = np.minimum(-(-begun // BLOCK), len(self.longest))
        votes = self.votes[block[1:]] - self.votes[block[:-1]]
        last = self.kind[np.minimum(np.maximum(begun[1:] - 1, 0), len(self.kind) - 1)]
        winner = np.where(block[1:] > block[:-1], self.kinds[votes.argmax(axis=1)], last)
        return np.where(count > 0, winner, 0).astype(np.uint8)

    def long(self, start: int, end: int, least: int) -> npt.NDArray[Any]:
        """Rows of the events that touch [start, end) and last at least `least` ns, ascending."""
        rows = self.window(start, end)
        if rows.stop - rows.start <= BLOCK * 4:
            near = np.arange(rows.start, rows.stop)
        else:
            first, last = rows.start // BLOCK, -(-rows.stop // BLOCK)
            blocks = first + np.flatnonzero(self.longest[first:last] >= least)
            rest = np.arange(len(self.longest) * BLOCK, len(self))
            near = np.r_[(blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel(), rest]
            near = near[(near >= rows.start) & (near < rows.stop)]
        found: npt.NDArray[Any] = near[self.before[near + 1] - self.before[near] >= least]
        return found

    def at(self, time: float, slack: float) -> int:
        """Row of the event at `time`, else of the nearest within `slack` ns; -1 none."""
        begun = int(np.searchsorted(self.start, time, "right"))
        best, distance = -1, slack
        for row in range(max(begun - 2, 0), min(begun + 1, len(self.start))):
            start = int(self.start[row])
            end = start + int(self.before[row + 1] - self.before[row])
            away = max(start - time, time - end, 0.0)
            # The later one wins where they touch, so that an event without length on another's edge can be hit.
            if away <= distance:
                best, distance = row, away
        return best


def _blocks(length: Int, kind: Kinds, kinds: Kinds) -> tuple[Int, Int]:
    """The greatest length of each full block, and the ns of each kind before each and before what is left."""
    full = len(length) // BLOCK
    length, kind = length[: full * BLOCK], kind[: full * BLOCK]
    longest = length.reshape(full, BLOCK).max(axis=1) if full else np.empty(0, np.int64)
    votes = np.zeros((full + 1, len(kinds)), np.int64)
    if len(kinds) == 1:
        np.cumsum(length.reshape(full, BLOCK).sum(axis=1), out=votes[1:, 0])
    elif full:
        # One pass over the events; sums within a block are far below 2**53, so float64 holds them exactly.
        cell = np.repeat(np.arange(full) * len(kinds), BLOCK) + _numbered(kinds)[kind]
        sums = np.bincount(cell, weights=length, minlength=full * len(kinds))
        np.cumsum(sums.reshape(-1, len(kinds)).astype(np.int64), axis=0, out=votes[1:])
    return longest, votes


def _numbered(kinds: Kinds) -> Int:
    """Place of each kind among `kinds`, for all 256."""
    places = np.zeros(256, np.int64)
    places[kinds] = np.arange(len(kinds))
    return places
