"""Painting with meaning: an ink's colour and its pattern, the same in bars, legends and swatches."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen

from inspector.picture.palette import INKS, Ink, text_on
from ui.theme import Theme

_STYLES = {
    "dots": Qt.BrushStyle.Dense6Pattern,
    "hatch": Qt.BrushStyle.BDiagPattern,
    "diagonals": Qt.BrushStyle.FDiagPattern,
    "lines": Qt.BrushStyle.HorPattern,
}


def color_of(ink: Ink | int, theme: Theme) -> QColor:
    """The colour of an ink (or its number) in the theme that is on."""
    entry = INKS[ink] if isinstance(ink, int) else ink
    return QColor(entry.colour("dark" if theme.dark else "light"))


def fill(painter: QPainter, rect: QRectF, ink: Ink | int, theme: Theme) -> None:
    """Fill `rect` with an ink, pattern and all."""
    entry = INKS[ink] if isinstance(ink, int) else ink
    color = color_of(entry, theme)
    painter.fillRect(rect, color)
    style = _STYLES.get(entry.pattern)
    if style is not None:
        marks = QColor(text_on(color.name()))
        marks.setAlpha(110 if entry.pattern in ("dots", "hatch") else 77)
        painter.fillRect(rect, QBrush(marks, style))


def swatch(painter: QPainter, rect: QRectF, ink: Ink | int, theme: Theme) -> None:
    """A sample of an ink for a legend, with an edge so that light ones show on light ground."""
    fill(painter, rect, ink, theme)
    painter.setPen(QPen(theme.color("edge"), 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5))
