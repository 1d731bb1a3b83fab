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
