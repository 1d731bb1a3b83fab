"""What the colours of the speculation view mean, in one line: groups of prompts, then kinds of tokens."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from inspector.picture.palette import INKS, Ink
from inspector.picture.ribbon import KIND_INKS, KIND_MARKS
from inspector.picture.speculation import SpeculationPicture
from inspector.trace.schema import TOKEN_KINDS
from ui.inks import swatch
from ui.speculation.chart import group_ink, shown_groups
from ui.theme import Theme


class Legend(QWidget):
    """Swatches with their names, as many as fit."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._entries: list[tuple[str, Ink]] = []
        self.setAccessibleName("Colours of the speculation view")

    def say(self, picture: SpeculationPicture) -> None:
        """Those that can occur."""
        entries = [
            (group.name, group_ink(group, at)) for at, group in enumerate(shown_groups(picture)) if group.rank >= 0
        ]
        if picture.ribbon is not None:
            for at, number in enumerate(KIND_INKS):
                entries.append((f"{KIND_MARKS[at]} {TOKEN_KINDS[at]}".strip(), INKS[number]))
        self._entries = entries
        self.setAccessibleDescription(", ".join(name for name, _ in entries))
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
        metrics, x, size = QFontMetricsF(painter.font()), 0.0, px(9)
        for name, entry in self._entries:
            width = size + px(5) + metrics.horizontalAdvance(name)
            if x + width > self.width():
                return
            swatch(painter, QRectF(round(x), round((self.height() - size) / 2), size, size), entry, self._theme)
            painter.setPen(self._theme.color("muted"))
            line = QRectF(x + size + px(5), 0, width, self.height())
            painter.drawText(line, int(Qt.AlignmentFlag.AlignVCenter), name)
            x += width + px(12)
