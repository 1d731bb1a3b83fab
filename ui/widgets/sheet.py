"""A page of lines to look something up in: the keys, the legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QScrollArea, QWidget

from ui.theme import GRID, Theme
from ui.widgets.overlay import Overlay

# A column at its narrowest, and how many lines make one worth it.
_COLUMN, _FEW = 360, 18


@dataclass(frozen=True)
class Line:
    """`name` and what stands beside it; a heading where both others are empty; `ink` is drawn before the name."""

    name: str
    text: str = ""
    ink: int = -1


class Sheet(Overlay):
    """Names and what stands beside them, in as many columns as there is room for, scrolled with the keys."""

    def __init__(self, theme: Theme, window: QWidget, title: str, widest: int = 680) -> None:
        super().__init__(theme, window)
        self.widest = widest
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
            if line.text:
                room.setRight(rect.left() + self._beside() - px(8))
            painter.drawText(room, int(Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap), line.name)
            beside = QRectF(rect)
            beside.setLeft(rect.left() + self._beside())
            painter.drawText(beside, int(Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap), line.text)

    def _columns(self) -> int:
        """As many as there is room for; few lines need but one."""
        fitting = max(int(self.width() // self._theme.px(_COLUMN)), 1)
        return min(fitting, 3, max(len(self.lines) // _FEW, 1))

    def _width(self) -> float:
        """Of one column."""
        count, px = self._columns(), self._theme.px
        return max((self.width() - px(32) - (count - 1) * px(24)) / count, 1)

    def _beside(self) -> float:
        """From the left of a column to what stands beside the names."""
        metrics, px = QFontMetricsF(self._theme.font()), self._theme.px
        names = [
            metrics.horizontalAdvance(line.name) + (px(19) if line.ink >= 0 else 0) for line in self.lines if line.text
        ]
        return min(max(names, default=0) + px(16), self._width() * 0.6)

    def _height(self) -> float:
        return QFontMetricsF(self._theme.font()).height() + self._theme.px(4)

    def _rects(self) -> list[QRectF]:
        """Places of the lines, down one column and on at the top of the next."""
        metrics, px = QFontMetricsF(self._theme.font()), self._theme.px
        width, beside, count = self._width(), self._beside(), self._columns()

        def tall(text: str, room: float) -> float:
            bound = QRectF(0, 0, max(room, 1), 10_000)
            return metrics.boundingRect(bound, int(Qt.TextFlag.TextWordWrap), text).height() + px(4)

        heights = []
        for line in self.lines:
            own = beside - px(8) - (px(19) if line.ink >= 0 else 0)
            both = max(tall(line.name, own), tall(line.text, width - beside)) if line.text else 0
            heights.append(max(self._height(), both))
        limit = sum(heights) / count
        y, column, used = float(px(4)), 0, 0.0
        found: list[QRectF] = []
        for at, (line, height) in enumerate(zip(self.lines, heights, strict=True)):
            heading = not line.text and line.ink < 0
            # No heading stands alone at the foot of a column.
            if (
                column < count - 1
                and used + height + (heights[at + 1] if heading and at + 1 < len(heights) else 0)
                > (column + 1) * limit + self._height()
            ):
                column, y = column + 1, float(px(4))
            elif heading and found:
                y += px(8)
            found.append(QRectF(px(16) + column * (width + px(24)), y, width, height))
            y += height
            used += height
        return found

    def _lay_out(self) -> None:
        bottom = max((rect.bottom() for rect in self._rects()), default=0)
        self.setMinimumHeight(int(bottom) + self._theme.px(8))
