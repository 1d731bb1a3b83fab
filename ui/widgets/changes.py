"""Where the user changed something of a run: a line through a picture, and what it was."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from inspector.picture.palette import ink
from ui.inks import color_of
from ui.theme import Theme

_NEAR_PX, _LEAST = 4, 40
Change = tuple[float, str]
"""At which pixel, and what."""


def paint_changes(painter: QPainter, area: QRectF, changes: Iterable[Change], theme: Theme) -> None:
    """A dashed line for each change inside `area`; at its top the words, as far as there is room."""
    painter.setFont(theme.font("small"))
    metrics, colour = QFontMetricsF(painter.font()), color_of(ink("mark"), theme)
    for at, (x, text) in enumerate(shown := _side_by_side(area, changes)):
        painter.setPen(QPen(colour, 1, Qt.PenStyle.DashLine))
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()))
        end = shown[at + 1][0] if at + 1 < len(shown) else area.right()
        pad, whole = theme.px(8), metrics.horizontalAdvance(text)
        width = min(whole, end - x - pad - 2) + pad
        if width >= min(whole, theme.px(_LEAST)) + pad:
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width - pad + 1)
            plate = QRectF(x, area.top(), width, metrics.height() + theme.px(2))
            painter.setPen(QPen(theme.color("edge"), 1))
            painter.setBrush(theme.color("raised"))
            painter.drawRect(plate)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(theme.color("text"))
            painter.drawText(plate, int(Qt.AlignmentFlag.AlignCenter), text)


def change_at(x: float, changes: Iterable[Change]) -> list[tuple[str, str]]:
    """The line of a tip at pixel `x`; none where nothing was changed."""
    found = ", ".join(text for at, text in changes if abs(at - x) <= _NEAR_PX)
    return [("changed", found)] if found else []


def _side_by_side(area: QRectF, changes: Iterable[Change]) -> list[Change]:
    """Those inside, with what falls on one pixel together."""
    found: list[Change] = []
    for place, text in changes:
        x = round(place) + 0.5
        if not area.left() <= x <= area.right():
            continue
        if found and x - found[-1][0] < 2:
            found[-1] = (found[-1][0], f"{found[-1][1]}, {text}")
        else:
            found.append((x, text))
    return found
