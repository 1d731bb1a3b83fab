"""What colours mean, in a line: swatch and label, as many as there is room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QLineF, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from inspector.picture.palette import Ink
from ui.inks import swatch
from ui.theme import Theme

Entry = tuple[str, tuple[Ink, ...]]
_LINE = 20


class Swatches(QWidget):
    """Entries side by side, in further lines where one is too short; without `wraps`, what does not fit is left out.

    An entry of several inks shows them in a row; one that has a line beside its bars shows a piece of that too.
    """

    def __init__(self, theme: Theme, name: str, wraps: bool = True) -> None:
        super().__init__()
        self._theme = theme
        self._wraps = wraps
        self._entries: Sequence[Entry] = ()
        self._lines: Mapping[str, Qt.PenStyle] = {}
        self.setAccessibleName(name)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_entries(self, entries: Sequence[Entry], lines: Mapping[str, Qt.PenStyle] | None = None) -> None:
        """Show these; `lines` are the styles of those (by label) that are drawn as lines too."""
        lines = lines or {}
        if entries == self._entries and lines == self._lines:
            return
        self._entries, self._lines = entries, lines
        self.setAccessibleDescription(", ".join(label for label, _ in entries))
        self.setMinimumHeight(self.heightForWidth(self.width()))
        self.updateGeometry()
        self.update()

    def hasHeightForWidth(self) -> bool:
        """Narrow, it takes more lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """All lines."""
        places = self._places(width)
        return int(places[-1].bottom()) + 1 if places else self._line()

    def sizeHint(self) -> QSize:
        """One line."""
        return QSize(self._theme.px(240), self._line())

    def retheme(self) -> None:
        """Type sizes anew."""
        self.setMinimumHeight(self.heightForWidth(self.width()))
        self.updateGeometry()
        self.update()

    def resizeEvent(self, event: object) -> None:
        """Lines break elsewhere."""
        self.setMinimumHeight(self.heightForWidth(self.width()))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Swatches and labels."""
        painter = QPainter(self)
        px = self._theme.px
        painter.setFont(self._theme.font("small"))
        # Those that are left out stand at the end.
        for place, (label, inks) in zip(self._places(self.width()), self._entries, strict=False):
            size = px(9)
            top = place.center().y() - size / 2
            each = size if len(inks) == 1 else px(4)
            for number, ink in enumerate(inks):
                swatch(painter, QRectF(place.left() + number * each, round(top), each, size), ink, self._theme)
            left = place.left() + each * len(inks) + px(5)
            if label in self._lines:
                painter.setPen(QPen(self._theme.color("text"), px(1.3), self._lines[label]))
                painter.drawLine(QLineF(left, place.center().y(), left + px(_LINE), place.center().y()))
                left += px(_LINE + 5)
            painter.setPen(self._theme.color("muted"))
            painter.drawText(QRectF(left, place.top(), place.right() - left, place.height()), _LEFT, label)
        painter.end()

    def _line(self) -> int:
        return round(QFontMetricsF(self._theme.font("small")).height()) + self._theme.px(2)

    def _places(self, width: int) -> list[QRectF]:
        metrics, px, line = QFontMetricsF(self._theme.font("small")), self._theme.px, self._line()
        x, y, places = 0.0, 0.0, []
        for label, inks in self._entries:
            swatches = px(9) if len(inks) == 1 else px(4) * len(inks)
            line_room = px(_LINE + 5) if label in self._lines else 0
            room = swatches + px(5) + line_room + metrics.horizontalAdvance(label) + 2
            if x + room > width and not self._wraps:
                break
            if x and x + room > width:
                x, y = 0.0, y + line
            places.append(QRectF(x, y, room, line))
            x += room + px(12)
        return places


_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
