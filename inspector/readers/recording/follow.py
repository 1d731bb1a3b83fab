"""A recording that is being made, as trace after trace: each poll reads what has been written since the one before."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from inspector import units
from inspector.readers.reader import silent
from inspector.readers.recording.opening import compacted, info_of, notes_of, said_of_end
from inspector.readers.recording.streams import Streams, is_closed, note_clocks
from inspector.trace import header, lock
from inspector.trace.trace import Trace

State = Literal["recording", "complete", "recovered"]
# Of one table in one poll, so that a recording that is long already comes in pieces too.
_MOST_BYTES = 16 << 20
# The recorder empties the rings every 100 ms, and what is sorted by its start is told at its end.
_FIRST_LAG_NS, _MOST_LAG_NS = 150_000_000, 350_000_000

# How much of a run stays at hand: at least so long, at most half as long again. Where there are more
# records of device work than this, as many of the newest ones.
KEPT_NS, KEPT_ROWS = 60_000_000_000, 4_000_000


class Following:
    """Follows the folder `path`; raises Unreadable when it is no recording.

    `state` is "recording" while the recorder lives, "complete" once the recording is closed and opened as such,
    "recovered" when the recorder has gone without closing it. `now` is the clock of the records, for tests to turn.
    """

    def __init__(self, path: Path, now: Callable[[], int] = time.monotonic_ns) -> None:
        self.path = path
        self.state: State = "recording"
        self.lag_ns = _FIRST_LAG_NS
        """How far behind the newest record rows are shown, so that they come in order."""
        self._now = now
        self._head = header.read(path)
        self._streams = Streams(path, self._head)
        self._newest = (0, 0)
        self._horizon: int | None = None
        self._generation = 0

    def poll(self) -> Trace | None:
        """The trace with all that is settled by now; None when nothing has changed. Raises Unreadable."""
        if self.state != "recording":
            return None
        # In this order: what ends after the first look is seen as living, and met by the next poll.
        is_live = lock.is_held(self.path)
        head = header.read(self.path)
        if head.state == "complete":
            self.state = "complete"
            return self._numbered(compacted(self.path, self.path, head, silent))
        changed = head != self._head or not self._generation
        self._head = head
        if not is_live:
            self.state = "complete" if is_closed(head) else "recovered"
            if self._streams.growth.kept.from_ns:
                # It is all of it now that nothing is added: what was left to the file is read again.
                self._streams = Streams(self.path, head)
            self._streams.close(with_rings=not is_closed(head))
            return self._trace(None)
        producers = self._streams.find()
        self._streams.take(producers, _MOST_BYTES)
        horizon = self._next_horizon()
        if horizon is None:
            return self._trace(0) if changed else None
        shown = self._streams.growth.settle(horizon)
        growth = self._streams.growth
        if (before := growth.forgettable(horizon, KEPT_NS, KEPT_ROWS)) is not None:
            growth.forget(before)
        late_by = growth.late_by()
        if 0 < late_by < _MOST_LAG_NS:
            self.lag_ns = min(max(self.lag_ns, late_by + self.lag_ns), _MOST_LAG_NS)
        moved, self._horizon = horizon != self._horizon, horizon
        return self._trace(horizon) if shown or changed or moved else None

    @property
    def num_repairs(self) -> int:
        """How often rows that came late were put in their places."""
        return self._streams.growth.num_repairs

    def _next_horizon(self) -> int | None:
        """Up to when everything is here, trace time; None before the first record."""
        newest = self._streams.growth.newest
        if newest is None:
            return None
        now = self._now()
        if newest != self._newest[0] or not self._newest[1]:
            self._newest = (newest, now)
        # Where nothing comes for a while, the last records are shown as well.
        horizon = newest + min(now - self._newest[1] - self.lag_ns, 1)
        cut = self._streams.cut_at()
        if cut is not None:
            horizon = min(horizon, cut)
        return horizon if self._horizon is None else max(horizon, self._horizon)

    def _trace(self, settled: int | None) -> Trace:
        notes = notes_of(self.path, self._head)
        said_of_end(self.state, notes)
        note_clocks(self._head, notes)
        info = info_of(self.path, self._head)
        details = {**info.details, "state": self.state}
        if since := self._streams.growth.kept.from_ns:
            details["at hand"] = f"what ended after {units.time(since)}; all of it when the run has ended"
        info = replace(info, details=details)
        return self._numbered(self._streams.growth.trace(info, settled, notes))

    def _numbered(self, trace: Trace) -> Trace:
        self._generation += 1
        trace.generation = self._generation
        return trace
