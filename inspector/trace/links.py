"""Which launch call started which work: by (process, correlation id), never by the id alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import WORK_TABLES

if TYPE_CHECKING:
    from inspector.trace.table import Array
    from inspector.trace.trace import Trace

Rows = npt.NDArray[np.int32]
Int = npt.NDArray[np.int64]

# A table may have so many places for each call that it holds, and this many more.
_MOST_EMPTY, _SMALL = 4, 1 << 20


def process_of(trace: Trace, table: str) -> Rows:
    """Rows of processes for every row of a work table or of host_calls, int32; -1 unknown."""
    if table in WORK_TABLES:
        owners, rows = trace["streams"]["process"], trace[table]["stream"]
    else:
        owners, rows = trace["threads"]["process"], trace[table]["thread"]
    # One more entry at the end answers for -1.
    found: Rows = np.append(owners, np.int32(-1))[rows]
    return found


@dataclass(frozen=True)
class Links:
    """For each work table, row of host_calls that launched each row, int32; -1 no launch call in the trace."""

    launch: dict[str, Rows]

    @classmethod
    def build(cls, trace: Trace) -> Links:
        """Join on (process, correlation). Of several calls with one id (a runtime call and the driver call inside it)
        the outermost is the launch, since it is what the thread was doing.
        """
        calls = trace["host_calls"]
        owners = process_of(trace, "host_calls")
        pairs = _Pairs(owners, calls["correlation"])
        call_of = _outermost(pairs.numbers(owners, calls["correlation"]), pairs.count, calls["start"], calls["end"])
        launch = {}
        for table in WORK_TABLES:
            launch[table] = call_of[pairs.numbers(process_of(trace, table), trace[table]["correlation"])]
        return cls(launch)

    def started_by(self, trace: Trace, call: int) -> list[tuple[str, Rows]]:
        """The work that a row of host_calls launched: (table, rows) for each table that has some."""
        found = [(table, np.flatnonzero(rows == call).astype(np.int32)) for table, rows in self.launch.items()]
        return [(table, rows) for table, rows in found if len(rows)]


class _Pairs:
    """Numbers the (process, correlation id) pairs of the launch calls; `count` stands for a pair that no call has.

    Ids count up within a process, so multiplying gives numbers that fit a table. Where they lie too far apart for that,
    the pairs that occur are listed and looked up.
    """

    def __init__(self, owners: Rows, ids: Array) -> None:
        linked = (ids > 0) & (owners >= 0)
        self._low = int(ids.min(where=linked, initial=np.iinfo(np.int64).max))
        self._high = int(ids.max(where=linked, initial=0))
        self._processes = int(owners.max(initial=-1)) + 1
        self._span = max(self._high - self._low + 1, 0)
        self.count = self._span * self._processes
        self._listed: Int | None = None
        if self.count > _MOST_EMPTY * len(ids) + _SMALL:
            self._ids = np.unique(ids[linked])
            self._listed = np.unique(self._places(owners[linked], ids[linked]))
            self.count = len(self._listed)

    def numbers(self, owners: Rows, ids: Array) -> Int:
        """A number for every row, equal where (process, id) are."""
        if not self.count:
            return np.zeros(len(ids), np.int64)
        unknown = (ids < self._low) | (ids > self._high) | (owners < 0) | (owners >= self._processes)
        if self._listed is None:
            numbers: Int = ids - self._low
            if self._processes > 1:
                numbers += np.multiply(owners, self._span, dtype=np.int64)
        else:
            places = self._places(owners, ids)
            numbers = np.minimum(np.searchsorted(self._listed, places), self.count - 1)
            unknown |= self._listed[numbers] != places
            at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
            unknown |= self._ids[at] != ids
        numbers[unknown] = self.count
        return numbers

    def _places(self, owners: Rows, ids: Array) -> Int:
        return np.multiply(owners, len(self._ids), dtype=np.int64) + np.searchsorted(self._ids, ids)


def _outermost(numbers: Int, count: int, start: Int, end: Int) -> Rows:
    """Row of the outermost call of every number, -1 for a number without one and for `count`."""
    call_of = np.full(count + 1, -1, np.int32)
    rows = np.arange(len(numbers), dtype=np.int32)
    # Calls are sorted by start, so the first is the outermost; of equal numbers the last one written stays.
    call_of[numbers[::-1]] = rows[::-1]
    call_of[count] = -1
    first = call_of[numbers]
    inner = np.flatnonzero((first != rows) & (first >= 0))
    first = first[inner]
    # Where both start at once, the longer one is outside.
    longer = inner[(start[inner] == start[first]) & (end[inner] > end[first])]
    longer = longer[np.lexsort((-longer, end[longer]))]
    call_of[numbers[longer]] = longer
    return call_of
