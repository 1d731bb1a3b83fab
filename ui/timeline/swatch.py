"""A patch of an ink with its pattern, for bars and legends."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter

from inspector.picture.palette import INKS
from ui.theme import Theme

_PATTERNS = {"dots": Qt.BrushStyle.Dense6Pattern, "hatch": Qt.BrushStyle.BDiagPattern}


def fill(painter: QPainter, box: QRectF, ink: int, theme: Theme) -> None:
    """Fill a box with an ink's colour and pattern."""
    entry = INKS[ink]
    painter.fillRect(box, QColor(entry.colour("dark" if theme.dark else "light")))
    if entry.pattern in _PATTERNS:
        painter.fillRect(box, QBrush(QColor(theme.tokens.muted), _PATTERNS[entry.pattern]))
