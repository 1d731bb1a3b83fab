"""Idle time by cause: one bar, and under it what each colour is, how long, and which share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from inspector import units
from inspector.analysis.causes import CAUSES, EXPLANATIONS
from inspector.picture.palette import cause_ink
from ui.inks import fill
from ui.theme import Theme


class CauseBar(QWidget):
    """`chosen(cause)` when a part or its label is clicked, -1 when the one that is chosen is clicked again."""

    chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._parts: Sequence[tuple[int, int]] = ()
        self._idle = 0
        self._notes: Mapping[int, str] = {}
        self._places: list[tuple[QRectF, int]] = []
        self.selected = -1
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Idle time by cause")

    def set_parts(
        self, parts: Sequence[tuple[int, int]], idle_ns: int, selected: int, notes: Mapping[int, str] | None = None
    ) -> None:
        """(cause, ns), largest first; their sum is `idle_ns`. `selected` is a cause or -1; `notes` say more of some."""
        self._parts, self._idle, self.selected, self._notes = parts, idle_ns, selected, notes or {}
        self.setAccessibleDescription(self.text())
        self._lay_out()
        self.update()

    def text(self) -> str:
        """What the bar says, in words."""
        return ", ".join(
            f"{CAUSES[cause]} {units.time(ns)} ({'; '.join([units.share(ns, self._idle), *self._note(cause)])})"
            for cause, ns in self._parts
        )

    def sizeHint(self) -> QSize:
        """As tall as its lines."""
        return QSize(self._theme.px(480), self.heightForWidth(max(self.width(), self._theme.px(480))))

    def hasHeightForWidth(self) -> bool:
        """Narrow, the legend takes more lines."""
        return True

    def heightForWidth(self, width: int) -> int:
        """Bar and lines of the legend."""
        places = self._labels(width)
        bottom = places[-1][0].bottom() if places else self._theme.px(20)
        return int(bottom + self._theme.px(4))

    def resizeEvent(self, event: object) -> None:
        """The legend flows anew."""
        self._lay_out()

    def paintEvent(self, event: QPaintEvent) -> None:
        """The bar, then swatch, name, time and share of each cause."""
        painter = QPainter(self)
        px = self._theme.px
        for rect, cause in self._places[: len(self._parts)]:
            fill(painter, rect, cause_ink(cause), self._theme)
            if cause == self.selected:
                painter.setPen(QPen(self._theme.color("text"), px(2)))
                painter.drawRect(rect.adjusted(1, 1, -1, -1))
        if not self._parts:
            painter.fillRect(QRectF(0, 0, self.width(), px(14)), self._theme.color("sunken"))
        painter.setFont(self._theme.font("small"))
        metrics = painter.fontMetrics()
        for (rect, cause), (_, ns) in zip(self._places[len(self._parts) :], self._parts, strict=True):
            size = px(9)
            fill(painter, QRectF(rect.left(), rect.center().y() - size / 2, size, size), cause_ink(cause), self._theme)
            room = rect.adjusted(size + px(6), 0, 0, 0)
            painter.setPen(self._theme.color("text"))
            painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), CAUSES[cause])
            if cause == self.selected:
                below = rect.bottom() - px(2)
                painter.fillRect(QRectF(rect.left(), below, rect.width(), px(2)), self._theme.color("accent"))
            room.setLeft(room.left() + metrics.horizontalAdvance(CAUSES[cause]) + px(6))
            painter.setPen(self._theme.color("muted"))
            painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), self._figures(cause, ns))
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color("accent"), 2))
            painter.drawRect(QRectF(0, 0, self.width(), px(14)).adjusted(1, 1, -1, -1))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Choose the cause under the pointer."""
        cause = self._at(event.position().x(), event.position().y())
        if cause >= 0 and event.button() == Qt.MouseButton.LeftButton:
            self.chosen.emit(-1 if cause == self.selected else cause)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right go through the causes."""
        step = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1}.get(Qt.Key(event.key()), 0)
        if not step or not self._parts:
            super().keyPressEvent(event)
            return
        causes = [-1, *(cause for cause, _ in self._parts)]
        at = causes.index(self.selected) if self.selected in causes else 0
        self.chosen.emit(causes[(at + step) % len(causes)])

    def event(self, event: QEvent) -> bool:
        """The sentence that explains a cause, as a tool tip."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            cause = self._at(event.pos().x(), event.pos().y())
            if cause >= 0:
                ns = dict(self._parts)[cause]
                text = (
                    f"{CAUSES[cause]}: {ns:,} ns, {units.share(ns, self._idle)} of idle. {EXPLANATIONS[CAUSES[cause]]}"
                )
                QToolTip.showText(event.globalPos(), text, self)
                return True
        return super().event(event)

    def _figures(self, cause: int, ns: int) -> str:
        return " · ".join([units.time(ns), units.share(ns, self._idle), *self._note(cause)])

    def _note(self, cause: int) -> list[str]:
        return [self._notes[cause]] if cause in self._notes else []

    def _at(self, x: float, y: float) -> int:
        return next((cause for rect, cause in self._places if rect.contains(x, y)), -1)

    def _lay_out(self) -> None:
        left, total = 0.0, max(self._idle, 1)
        self._places = []
        for cause, ns in self._parts:
            width = ns / total * self.width()
            self._places.append((QRectF(left, 0, width, self._theme.px(14)), cause))
            left += width
        self._places += self._labels(self.width())
        # A layout asks for the height that a width needs only as a wish; here all lines are to be read.
        self.setMinimumHeight(self.heightForWidth(self.width()))

    def _labels(self, width: int) -> list[tuple[QRectF, int]]:
        metrics, px = QFontMetricsF(self._theme.font("small")), self._theme.px
        x, y, line = 0.0, float(px(20)), metrics.height() + px(4)
        places = []
        for cause, ns in self._parts:
            room = px(9 + 6 + 6) + metrics.horizontalAdvance(CAUSES[cause] + self._figures(cause, ns)) + 2
            if x and x + room > width:
                x, y = 0.0, y + line
            places.append((QRectF(x, y, room, line), cause))
            x += room + px(16)
        return places
