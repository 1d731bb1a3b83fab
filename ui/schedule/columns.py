"""Which iterations of a schedule are in view, also while there come more."""

from __future__ import annotations

import numpy as np

from inspector.picture.schedule_axis import Axis

LEAST = 4.0
"""No fewer iterations than this are in view."""
NEWEST = 160.0
"""Of a run that goes on so many come into view by themselves: few enough to see each of them."""


class Columns:
    """A span of iterations (ordinals) out of `total`. Until `settle` it is not known how many there are, and all are
    shown. What ends with the newest iteration goes on with it; what the user let show all of them goes on to show all.
    """

    def __init__(self) -> None:
        self.total = 0.0
        self._span: tuple[float, float] | None = None
        self._chosen = False

    @property
    def settled(self) -> bool:
        """Whether a span was set."""
        return self._span is not None

    @property
    def span(self) -> tuple[float, float]:
        """[low, high)."""
        return self._span or (0.0, max(self.total, 1.0))

    @property
    def follows(self) -> bool:
        """Whether the newest iteration is in view."""
        return self._span is None or self._span[1] >= self.total

    def begin(self, total: int, newest: bool) -> None:
        """Where rows for all of `total` do not fit: the newest ones, else the first."""
        if self._span is None and total > NEWEST:
            low = total - NEWEST if newest else 0.0
            self._span, self.total = (low, low + NEWEST), float(total)

    def settle(self, span: tuple[float, float], total: int) -> None:
        """There are `total` iterations now, and where nothing was in view yet, `span` is."""
        if self._span is None:
            self._span = span
        elif self.follows and total > self.total:
            self._end_at(float(total))
        self.total = float(total)

    def forget(self, before: Axis | None, now: Axis | None) -> bool:
        """Whether iterations of the axis of before are at hand no more: what was in view then is so in that of now."""
        old, new = (axis.batches if axis is not None else None for axis in (before, now))
        if old is None or new is None or old.process != new.process or not len(new):
            return False
        count = int(np.searchsorted(old.start, new.start[0]))
        self.total = max(self.total - count, 0.0)
        if self._span is not None:
            low, high = self._span
            self._span = (max(low - count, 0.0), max(low - count, 0.0) + high - low)
        return count > 0

    def look(self, low: float, high: float) -> None:
        """Show [low, high), moved and cut so that it lies among the iterations."""
        length = min(max(high - low, LEAST), max(self.total, LEAST))
        if length != high - low:
            low = (low + high - length) / 2
        low = min(max(low, 0.0), max(self.total - length, 0.0))
        self._span, self._chosen = (low, low + length), True

    def follow(self) -> None:
        """The right edge to the newest iteration."""
        self._end_at(self.total)

    def _end_at(self, total: float) -> None:
        low, high = self.span
        length = high - low
        if low <= 0 and high >= self.total:
            length = total if self._chosen else min(total, NEWEST)
        self._span = (max(total - length, 0.0), max(total, length))
