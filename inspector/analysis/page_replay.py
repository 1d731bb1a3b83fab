"""Page events replayed once, so that the pages at any time come from a checkpoint and the few events after it.

New events extend what is there; the result is that of a replay from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_log import MOST_BLOCKS, OFFLOADED, RESTORED, PageLog
from inspector.analysis.page_steps import (
    FREE,
    KEPT,
    ODD,
    OPEN,
    OPENS,
    UNKNOWN,
    USED,
    Before,
    Stretches,
    closings,
    steps,
)

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

__all__ = ["FREE", "KEPT", "UNKNOWN", "USED", "Checkpoint", "Pools", "Replay"]

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

_SPACING = 1 << 14
_NO_ROWS = np.empty(0, np.int32)
_NO_FLAGS = np.empty(0, np.int8)


@dataclass(frozen=True)
class Pools:
    """Sizes over time: `time` ascending (ns), device and host pages, tokens and bytes (-1 unknown) of one page.

    With `assumed` nobody told the size: it is the largest that iterations or block numbers speak of.
    """

    time: Int
    blocks: Int
    host_blocks: Int
    tokens: Int
    block_bytes: Int
    assumed: bool

    @classmethod
    def build(cls, trace: Trace) -> Pools:
        """From the pools table where there is one. Tokens of a page are -1 where nobody tells."""
        table = trace["pools"]
        if len(table):
            tokens = table["tokens_per_block"].astype(np.int64)
            return cls(
                table["time"], table["blocks"], table["host_blocks"], tokens, table["block_bytes"], assumed=False
            )
        log, iterations = trace.index(PageLog), trace["iterations"]
        used, free = iterations["used_blocks"].astype(np.int64), iterations["free_blocks"].astype(np.int64)
        told = (used + free)[(used >= 0) & (free >= 0)]
        largest = max(int(told.max(initial=0)), int(log.block[~log.host].max(initial=-1)) + 1)
        pages = np.where(log.host, log.block, log.other)
        zero = np.zeros(1, np.int64)
        return cls(zero, zero + largest, zero + int(pages.max(initial=-1)) + 1, zero - 1, zero - 1, assumed=True)

    def row(self, time: int) -> int:
        """The row that holds at `time`; the first one before all of them."""
        return max(int(np.searchsorted(self.time, time, "right")) - 1, 0)


@dataclass(frozen=True)
class Checkpoint:
    """After `after` events: the last event of every block and host page (-1 none; int32), and the references that are
    open, each as the event that took it."""

    after: int
    last: Rows
    host_last: Rows
    held: Rows


@dataclass(frozen=True)
class Replay:
    """Per event of `log`: the references of its block after it, its `flags` and `content` (see Steps), the event that
    ends the reference which it took (`closed`, OPEN: none does), and (5, events) `counts`: used, kept, settled blocks,
    full and settled host pages."""

    log: PageLog
    pools: Pools
    stretches: Stretches
    refs: Rows
    flags: npt.NDArray[np.int8]
    content: Rows
    closed: Rows
    counts: Rows
    checkpoints: tuple[Checkpoint, ...]

    @classmethod
    def build(cls, trace: Trace) -> Replay:
        """Replay all events."""
        log = trace.index(PageLog)
        none = np.empty(0, np.int64)
        start = Checkpoint(0, _NO_ROWS, _NO_ROWS, _NO_ROWS)
        counts = np.empty((5, 0), np.int32)
        empty = cls(
            log,
            trace.index(Pools),
            Stretches(none, none, none),
            _NO_ROWS,
            _NO_FLAGS,
            _NO_ROWS,
            _NO_ROWS,
            counts,
            (start,),
        )
        return empty._grown(log, trace.index(Pools))

    @classmethod
    def extend(cls, old: Replay, trace: Trace) -> Replay:
        """Go on from `old` where its events are the first of the trace's, else replay all of them."""
        log, pools = trace.index(PageLog), trace.index(Pools)
        if not len(old) or not log.goes_on(old.log) or pools.assumed != old.pools.assumed:
            return cls.build(trace)
        return old._grown(log, pools)

    def __len__(self) -> int:
        return len(self.refs)

    @property
    def contradictions(self) -> int:
        """How many events do not fit what their page was."""
        return int(np.count_nonzero(self.flags & ODD))

    def stretch(self, after: int) -> int:
        """The stretch between holes in which things are after that many events."""
        return max(int(np.searchsorted(self.stretches.starts, after - 1, "right")) - 1, 0)

    def checkpoint(self, after: int) -> Checkpoint:
        """How things are after that many events; not to be written to."""
        places = [point.after for point in self.checkpoints]
        known = self.checkpoints[int(np.searchsorted(places, after, "right")) - 1]
        return known if known.after == after else self._on(known, after)

    def _on(self, point: Checkpoint, after: int) -> Checkpoint:
        log, span = self.log, slice(point.after, after)
        events = np.arange(point.after, after, dtype=np.int32)
        host, kind = log.host[span], log.kind[span]
        last = _latest(point.last, log.block[span][~host], events[~host])
        moves = ((kind == OFFLOADED) | (kind == RESTORED)) & (log.other[span] >= 0) | host
        pages = np.where(host, log.block[span], log.other[span])[moves]
        host_last = _latest(point.host_last, pages, events[moves])
        held = np.r_[point.held, events[~host & (self.flags[span] & OPENS != 0)]]
        return Checkpoint(after, last, host_last, held[self.closed[held] >= after])

    def _grown(self, log: PageLog, pools: Pools) -> Replay:
        low = len(self)
        stretches = _stretches(self.stretches, low, log, pools)
        point = self.checkpoint(low)
        now = self.counts[:, -1].astype(np.int64) if low else np.zeros(5, np.int64)
        before = Before(self.refs, self.flags, self.content, point.last, point.host_last, now)
        made = steps(log, low, stretches, before)
        flags = np.r_[self.flags, made.flags]
        closed = np.r_[self.closed, np.full(len(log) - low, OPEN, np.int32)]
        taken, ends = closings(log, low, stretches, flags, point.held)
        closed[taken] = ends
        refs, content = np.r_[self.refs, made.refs], np.r_[self.content, made.content]
        counts = np.concatenate([self.counts, made.counts], axis=1)
        grown = Replay(log, pools, stretches, refs, flags, content, closed, counts, self.checkpoints)
        # Far enough apart that all checkpoints together are no larger than the events.
        points = list(self.checkpoints)
        while True:
            space = max(_SPACING, 2 * (len(points[-1].last) + len(points[-1].held)))
            if points[-1].after + space > len(log):
                break
            points.append(grown._on(points[-1], points[-1].after + space))
        return Replay(log, pools, stretches, refs, flags, content, closed, counts, tuple(points))


def _latest(last: Rows, keys: Int, events: Rows) -> Rows:
    """`last` with the last of the events of each key, longer where a key needs it."""
    size = max(len(last), int(keys.max(initial=-1)) + 1)
    found = np.full(size, -1, np.int32)
    found[: len(last)] = last
    # Of equal keys numpy keeps the last one written.
    found[keys] = events
    return found


def _stretches(old: Stretches, low: int, log: PageLog, pools: Pools) -> Stretches:
    """Those of before, and those that holes among the new events begin."""
    holes = log.holes[log.holes >= low]
    starts, base, host_base = old.starts.tolist(), old.base.tolist(), old.host_base.tolist()
    if not starts and not (len(holes) and holes[0] == 0):
        starts, base, host_base = [0], [0], [0]
    for hole in holes.tolist():
        row = pools.row(int(log.time[hole]))
        starts.append(hole)
        base.append(MOST_BLOCKS if pools.assumed else int(pools.blocks[row]))
        host_base.append(MOST_BLOCKS if pools.assumed else int(pools.host_blocks[row]))
    return Stretches(*(np.array(values, np.int64) for values in (starts, base, host_base)))
