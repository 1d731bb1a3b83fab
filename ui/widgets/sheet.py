"""A page of lines to look something up in: the keys, the legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QScrollArea, QWidget

from ui.theme import GRID, Theme
from ui.widgets.overlay import Overlay


@dataclass(frozen=True)
class Line:
    """`name` and what stands beside it; a heading where both others are empty; `ink` is drawn before the name."""

    name: str
    text: str = ""
    ink: int = -1


class Sheet(Overlay):
    """Lines in two columns, scrolled with the keys."""

    def __init__(self, theme: Theme, window: QWidget, title: str) -> None:
        super().__init__(theme, window)
        self.setAccessibleName(title)
        self._title = QLabel(title)
        head = QHBoxLayout()
        head.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        head.addWidget(self._title)
        self._area = QScrollArea(self)
        self._area.setWidgetResizable(True)
        self._area.setAccessibleName(title)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._page = _Page(theme)
        self._area.setWidget(self._page)
        self.body.addLayout(head)
        self.body.addWidget(self._area, 1)

    def show_lines(self, lines: Sequence[Line]) -> None:
        """Open with these; a second time closes."""
        if self.isVisible():
            self.close_()
            return
        self._title.setFont(self.theme.font("strong"))
        self._page.set_lines(lines)
        self.open(self._area)

    def text(self) -> str:
        """All that it lists."""
        return "\n".join(f"{line.name}\t{line.text}".rstrip() for line in self._page.lines)


class _Page(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.lines: Sequence[Line] = ()

    def set_lines(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self.setAccessibleDescription("; ".join(f"{line.name}: {line.text}" for line in lines))
        self._lay_out()
        self.update()

    def resizeEvent(self, event: object) -> None:
        self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        px = self._theme.px
        painter.fillRect(self.rect(), self._theme.color("raised"))
        for line, rect in zip(self.lines, self._rects(), strict=True):
            heading = not line.text and line.ink < 0
            painter.setFont(self._theme.font("strong" if heading else "text"))
            room = QRectF(rect)
            if line.ink >= 0:
                # Not needed before a trace is open, and the legend only then.
                from ui.inks import swatch

                size = px(11)
                box = QRectF(room.left(), room.top() + (self._height() - size) / 2, size, size)
                swatch(painter, box, line.ink, self._theme)
                room.setLeft(room.left() + size + px(8))
            painter.setPen(self._theme.color("muted" if heading else "text"))
            painter.drawText(room, int(Qt.AlignmentFlag.AlignTop), line.name)
            beside = QRectF(rect)
            beside.setLeft(self._middle())
            painter.setPen(self._theme.color("muted"))
            painter.drawText(beside, int(Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap), line.text)

    def _middle(self) -> float:
        metrics, px = QFontMetricsF(self._theme.font()), self._theme.px
        names = [
            metrics.horizontalAdvance(line.name) + (px(19) if line.ink >= 0 else 0) for line in self.lines if line.text
        ]
        return px(16) + min(max(names, default=0) + px(16), self.width() * 0.6)

    def _height(self) -> float:
        return QFontMetricsF(self._theme.font()).height() + self._theme.px(4)

    def _rects(self) -> list[QRectF]:
        metrics, px = QFontMetricsF(self._theme.font()), self._theme.px
        y, left, right, middle = float(px(4)), px(16), self.width() - px(16), self._middle()
        found: list[QRectF] = []
        for line in self.lines:
            if not line.text and line.ink < 0 and found:
                y += px(8)
            bound = QRectF(middle, 0, max(right - middle, 1), 10_000)
            tall = metrics.boundingRect(bound, int(Qt.TextFlag.TextWordWrap), line.text).height() + px(4)
            height = max(self._height(), tall if line.text else 0)
            found.append(QRectF(left, y, right - left, height))
            y += height
        return found

    def _lay_out(self) -> None:
        rects = self._rects()
        self.setMinimumHeight(int(rects[-1].bottom() if rects else 0) + self._theme.px(8))
