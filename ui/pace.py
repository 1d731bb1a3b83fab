"""How often something that takes its time is done again for every generation of a growing trace."""

from __future__ import annotations

import time
from collections.abc import Hashable

# Of the time, what one question may take for new generations alone.
_SHARE = 0.25


class Pace:
    """Tells when something is due again: after a rest of three times what it took the last time."""

    def __init__(self) -> None:
        self._began: dict[Hashable, float] = {}
        self._rests_until: dict[Hashable, float] = {}

    def begin(self, what: Hashable) -> None:
        """It is being done."""
        self._began[what] = time.monotonic()

    def end(self, what: Hashable, rests: bool = True) -> None:
        """It is done. What is short need not rest."""
        now = time.monotonic()
        took = now - self._began.pop(what, now)
        self._rests_until[what] = now + took * (1 / _SHARE - 1) if rests else now

    def forget(self) -> None:
        """Everything is due."""
        self._began.clear()
        self._rests_until.clear()

    def is_due(self, what: Hashable) -> bool:
        """Whether it is neither being done nor to rest."""
        return what not in self._began and time.monotonic() >= self._rests_until.get(what, 0.0)


class Rounds:
    """Keeps questions together that need the same analyses: all are asked of one generation, or none of it is.

    A round begins with a generation after the one before has been answered, and has rested as in Pace.
    """

    def __init__(self) -> None:
        self._pace = Pace()
        self._generation = -1
        self._open: set[Hashable] = set()

    def is_due(self, generation: int) -> bool:
        """Whether to ask of that generation."""
        if generation != self._generation and not self._open and self._pace.is_due(self):
            self._generation = generation
            self._pace.begin(self)
            # Nothing may come of it: what was asked is the same as before.
            self._pace.end(self)
        return generation == self._generation

    def begin(self, what: Hashable) -> None:
        """It is being done."""
        if not self._open:
            self._pace.begin(self)
        self._open.add(what)

    def end(self, what: Hashable) -> None:
        """It is done, or is not wanted any more."""
        if what in self._open:
            self._open.discard(what)
            if not self._open:
                self._pace.end(self)
