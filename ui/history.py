"""Where one has been: a line of values with a position, for undo and redo."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
_LIMIT = 500


class History(Generic[T]):
    """`present` and what lies before and after it. A new present drops what lay ahead."""

    def __init__(self, present: T) -> None:
        self._past: list[T] = []
        self._future: list[T] = []
        self.present = present

    def go(self, value: T) -> None:
        """`value` becomes the present, the old present the nearest past."""
        self._past.append(self.present)
        del self._past[:-_LIMIT]
        self._future.clear()
        self.present = value

    def back(self) -> bool:
        """One step back; False when there is no past."""
        if not self._past:
            return False
        self._future.append(self.present)
        self.present = self._past.pop()
        return True

    def forward(self) -> bool:
        """One step forward; False when nothing lies ahead."""
        if not self._future:
            return False
        self._past.append(self.present)
        self.present = self._future.pop()
        return True
