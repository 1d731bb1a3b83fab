"""Small drawings that stand in a cell of a table: a bar, slices, a spark line, a spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPen

from ui.inks import color_of, fill
from ui.theme import Theme


@dataclass(frozen=True)
class Slices:
    """A bar cut into (share, ink number); shares are of the cell's width and sum to at most 1."""

    parts: Sequence[tuple[float, int]]

    def paint(self, painter: QPainter, rect: QRectF, theme: Theme) -> None:
        """Draw it, left to right; every part that is there is at least a pixel wide."""
        height = min(rect.height() - 6, theme.px(12))
        at, top = rect.left(), rect.center().y() - height / 2
        for share, ink in self.parts:
            width = max(share * rect.width(), 1.0)
            fill(painter, QRectF(at, top, min(width, rect.right() - at), height), ink, theme)
            at += width
            if at >= rect.right():
                return


@dataclass(frozen=True)
class Spark:
    """Heights over time, 0 to 1, one per step, as filled steps in an ink's colour."""

    heights: Sequence[float]
    ink: int

    def paint(self, painter: QPainter, rect: QRectF, theme: Theme) -> None:
        """Draw it; what is not 0 rises at least a pixel."""
        inner = rect.adjusted(0, 4, 0, -4)
        painter.fillRect(QRectF(inner.left(), inner.bottom(), inner.width(), 1), theme.color("line"))
        if not self.heights:
            return
        step, color = inner.width() / len(self.heights), color_of(self.ink, theme)
        for at, share in enumerate(self.heights):
            if share > 0:
                height = max(share * inner.height(), 1.0)
                left, right = round(inner.left() + at * step), round(inner.left() + (at + 1) * step)
                painter.fillRect(QRectF(left, inner.bottom() - height, max(right - left, 1), height), color)


@dataclass(frozen=True)
class Spread:
    """Shortest, median, 99th percentile and longest, each as a place in the cell, 0 to 1 (of a logarithmic axis)."""

    low: float
    median: float
    high: float
    longest: float

    def paint(self, painter: QPainter, rect: QRectF, theme: Theme) -> None:
        """A thin line over all, a bar from shortest to p99, a tick at the median."""
        inner = rect.adjusted(2, 0, -2, 0)
        middle = inner.center().y()

        def x(place: float) -> float:
            return inner.left() + place * inner.width()

        painter.setPen(QPen(theme.color("edge"), 1))
        painter.drawLine(QPointF(x(self.low), middle), QPointF(x(self.longest), middle))
        bar = QRectF(x(self.low), middle - theme.px(3), max(x(self.high) - x(self.low), 1.0), theme.px(6))
        painter.fillRect(bar, theme.color("edge"))
        painter.setPen(QPen(theme.color("text"), theme.px(2)))
        painter.drawLine(QPointF(x(self.median), middle - theme.px(5)), QPointF(x(self.median), middle + theme.px(5)))


@dataclass(frozen=True)
class Swatch:
    """A text with the ink that it stands for."""

    text: str
    ink: int

    def paint(self, painter: QPainter, rect: QRectF, theme: Theme) -> None:
        """A small square, then the text, cut where it does not fit."""
        size = theme.px(9)
        box = QRectF(rect.left(), rect.center().y() - size / 2, size, size)
        path = QPainterPath()
        path.addRoundedRect(box, 2, 2)
        painter.save()
        painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
        fill(painter, box, self.ink, theme)
        painter.restore()
        room = rect.adjusted(size + theme.px(6), 0, 0, 0)
        painter.setPen(theme.color("text"))
        shown = painter.fontMetrics().elidedText(self.text, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)


Graphic = Slices | Spark | Spread | Swatch
