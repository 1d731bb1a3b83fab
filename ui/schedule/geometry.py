"""Where the parts of the schedule are: names at the left, strips and cells in the middle, latencies at the right."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF

from ui.theme import Theme

_STRIPS_SHARE = 0.58
"""No more of the height than this goes to what stands above the rows."""
_HIGHEST_PX, _LOWEST_PX, _LOWEST_HALVED_PX = 18, 2, 9


@dataclass(frozen=True)
class Geometry:
    """Pixels of a canvas of `width` x `height`, without its scroll bar."""

    theme: Theme
    width: int
    height: int

    @property
    def left(self) -> int:
        """Where columns begin."""
        return self.theme.px(136)

    @property
    def side(self) -> int:
        """Width of each of the two columns of latencies; 0 where there is no room for them."""
        return self.theme.px(76) if self.width >= self.theme.px(560) else 0

    @property
    def right(self) -> int:
        """Where columns end."""
        return max(self.width - 2 * self.side - self.theme.px(8), self.left + 16)

    @property
    def columns(self) -> int:
        """Pixels of the columns."""
        return self.right - self.left

    @property
    def ruler(self) -> int:
        """Height of the ruler."""
        return self.theme.px(20)

    def strip(self, at: int, count: int) -> QRectF:
        """The `at`-th of `count` strips."""
        tall = self._strip_height(count)
        top = self.ruler + at * (tall + self.theme.px(4))
        return QRectF(self.left, top, self.columns, tall)

    def top(self, strips: int) -> int:
        """Where rows begin."""
        return round(self.ruler + strips * (self._strip_height(strips) + self.theme.px(4)))

    def strips_that_fit(self, count: int) -> int:
        """How many of `count` strips, the first ones, leave the rows their room."""
        return next(
            (each for each in range(count, 1, -1) if self.top(each) <= _STRIPS_SHARE * self.height), min(count, 1)
        )

    def rows(self, strips: int) -> QRectF:
        """The area of the cells."""
        top = self.top(strips)
        return QRectF(self.left, top, self.columns, max(self.height - top, 0))

    def row_height(self, rows: int, strips: int, halved: bool = False) -> int:
        """As tall as fits, between two bounds; below the lower one they scroll. `halved` rows hold two bars each."""
        room = self.rows(strips).height()
        least = self.theme.px(_LOWEST_HALVED_PX if halved else _LOWEST_PX)
        return round(min(max(room // max(rows, 1), least), self.theme.px(_HIGHEST_PX)))

    def _strip_height(self, count: int) -> int:
        share = self.height * 0.3 / max(count, 1)
        return round(min(max(share, self.theme.px(18)), self.theme.px(44)))
