"""Page events in the order in which the engine numbered them: late ones put in place, holes and oddities found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import PAGE_EVENTS
from inspector.trace.table import Array, Table

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]

FREED, ALLOCATED, CACHED, REUSED, EVICTED, OFFLOADED, RESTORED = range(len(PAGE_EVENTS))
MOST_BLOCKS = 1 << 24
"""A block number from here on is none: no pool has so many pages."""
# The number of the first event ever is 0 or 1, as engines count.
_FIRST = 1


@dataclass(frozen=True)
class PageLog:
    """The events of one pool, by sequence; all columns have one row per event.

    `time` (int64 ns) never falls: an event that came late stands at the time of those around it. `rows` are rows of
    page_events, None where these are in order already. A hole lies before every event of `holes` (ascending;
    `missing` events in all of them); 0 among them: what was before the first event is not known. `repeated` events came
    twice and `strange` ones name a block that can be none: both are left out. `engines` have events in here.
    """

    rows: Int | None
    sequence: Int
    time: Int
    block: Int
    request: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    other: Int
    host: npt.NDArray[np.bool_]
    holes: Int
    missing: int
    repeated: int
    strange: int
    engines: int

    def __len__(self) -> int:
        return len(self.sequence)

    @classmethod
    def build(cls, trace: Trace) -> PageLog:
        """Sort by sequence where needed; a table that is in order is not copied."""
        table = trace["page_events"]
        sequence = table["sequence"]
        strange = _strange(table)
        steps = np.diff(sequence)
        if not strange.any() and (steps > 0).all():
            return cls._of(trace, table, None, 0, 0)
        rows = np.flatnonzero(~strange)
        rows = rows[np.lexsort((table["time"][rows], sequence[rows]))]
        again = np.zeros(len(rows), bool)
        again[1:] = True
        for name in ("sequence", "time", "block", "kind", "request"):
            again[1:] &= table[name][rows[1:]] == table[name][rows[:-1]]
        return cls._of(trace, table, rows[~again], int(again.sum()), int(strange.sum()))

    @classmethod
    def _of(cls, trace: Trace, table: Table, rows: Int | None, repeated: int, strange: int) -> PageLog:
        def pick(values: Array) -> Array:
            return values if rows is None else values[rows]

        sequence = pick(table["sequence"])
        skipped = np.maximum(np.diff(sequence) - 1, 0)
        # Those that are only there for what they tell of the pages, and the first one after them.
        kept = trace.kept
        only = int(np.searchsorted(sequence, kept.page_sequence))
        skipped[:only] = 0
        if 0 < only < len(sequence):
            skipped[only - 1] = int(sequence[only]) - kept.page_sequence
        holes = np.flatnonzero(skipped) + 1
        begins_late = only == 0 and len(sequence) > 0 and int(sequence[0]) > max(kept.page_sequence, _FIRST)
        if begins_late or (len(sequence) and not kept.pages_known):
            holes = np.r_[0, holes]
        return cls(
            rows,
            sequence,
            np.maximum.accumulate(pick(table["time"])) if len(sequence) else table["time"],
            pick(table["block"]),
            pick(table["request"]),
            pick(table["kind"]),
            pick(table.get("other")),
            pick(table.get("tier")) == 1,
            holes,
            int(skipped.sum()),
            repeated,
            strange,
            _engines(trace),
        )

    def column(self, trace: Trace, name: str) -> Array:
        """Another column of page_events, in this order."""
        values = trace["page_events"].get(name)
        return values if self.rows is None else values[self.rows]

    def goes_on(self, old: PageLog) -> bool:
        """Whether the first events are those of `old`, so that what was made of it stays true."""
        size = len(old)
        if size > len(self) or (old.repeated, old.strange) > (self.repeated, self.strange):
            return False
        # A row of requests may have been renumbered by one that arrived before it and was told of later.
        same = (np.array_equal(getattr(old, name), getattr(self, name)[:size]) for name in ("sequence", "request"))
        return old.engines == self.engines and all(same)

    def at(self, time: int) -> int:
        """How many events have happened at `time`."""
        return int(np.searchsorted(self.time, time, "right"))


def _strange(table: Table) -> npt.NDArray[np.bool_]:
    block, other, kind = table["block"], table.get("other"), table["kind"]
    moved = (kind == OFFLOADED) | (kind == RESTORED)
    wrong: npt.NDArray[np.bool_] = (
        (block < 0) | (block >= MOST_BLOCKS) | moved & ((other < -1) | (other >= MOST_BLOCKS))
    )
    return wrong


def _engines(trace: Trace) -> int:
    """How many processes have a pool, or requests that hold pages."""
    owners = set(trace["pools"]["process"].tolist())
    if "process" in trace["requests"]:
        held = np.unique(trace["page_events"]["request"])
        owners |= set(trace["requests"]["process"][held[held >= 0]].tolist())
    return max(len(owners - {-1}), 1)
