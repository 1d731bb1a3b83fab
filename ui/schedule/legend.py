"""What the colours of the schedule mean, in one line."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from inspector.picture.palette import INKS, ink
from ui.inks import swatch
from ui.theme import Theme

_SHORT = {"generation, room for more tokens": "draft not used", "held, not scheduled": "not scheduled"}


class Legend(QWidget):
    """Swatches with their names, as many as fit."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._names: tuple[str, ...] = ()
        self.setAccessibleName("Colours of the schedule")

    def say(self, static: bool, drafts: bool, steps: bool) -> None:
        """Those that can occur."""
        names = ["queued", "context chunk", "generation"]
        names += ["generation, room for more tokens"] if drafts else []
        names += ["paused", "held, not scheduled"] if steps else []
        names += ["padding"] if static else []
        if tuple(names) != self._names:
            self._names = tuple(names)
            self.setAccessibleDescription(", ".join(names))
            self.update()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(self._theme.px(240), self._theme.px(20))

    def retheme(self) -> None:
        """Type sizes anew."""
        self.updateGeometry()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """From left to right until there is no more room."""
        painter, px = QPainter(self), self._theme.px
        painter.setFont(self._theme.font("small"))
        metrics, x, size = QFontMetricsF(painter.font()), float(px(4)), px(9)
        for name in self._names:
            text = _SHORT.get(name, INKS[ink(name)].name)
            width = size + px(5) + metrics.horizontalAdvance(text)
            if x + width > self.width():
                return
            middle = self.height() / 2
            swatch(painter, QRectF(round(x), round(middle - size / 2), size, size), ink(name), self._theme)
            painter.setPen(self._theme.color("muted"))
            line = QRectF(x + size + px(5), 0, width, self.height())
            painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), text)
            x += width + px(12)
