"""Pages over time, and the moment that is looked at as a line to be dragged through it."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QStyle, QWidget

from inspector.picture.labels import moment as moment_text
from inspector.picture.occupancy import Occupancy
from inspector.picture.palette import ink
from inspector.trace.selection import Window
from ui.stack import paint_stack
from ui.theme import Theme
from ui.widgets.changes import Change, change_at, paint_changes
from ui.widgets.hint import show_hint
from ui.widgets.ruler import ticks

LEAST, TALL = 52, 92
_PLAYS_MS = 15_000  # one window, from its start to its end
_STEP_MS = 66
_CALM_STEP_MS = 1000


class Scrubber(QWidget):
    """`sought(time)` while the line is dragged or a place is clicked; `stepped(direction, far)` by arrow and page keys;
    `play_changed(bool)`."""

    sought = Signal(int)
    resized = Signal()
    stepped = Signal(int, bool)
    play_changed = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._answer: Occupancy | None = None
        self._window = Window(0, 1)
        self._time = 0
        self._dragged = False
        self._timer = QTimer(self)
        self._timer.timeout.connect(self._played)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Moment, in pages in use over time")
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        """As wide as there is room."""
        return QSize(self._theme.px(400), self._theme.px(TALL))

    def minimumSizeHint(self) -> QSize:
        """Its height is what the view gives it."""
        return QSize(self._theme.px(100), self._theme.px(LEAST))

    @property
    def playing(self) -> bool:
        """Whether time goes on by itself."""
        return self._timer.isActive()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other columns."""
        super().resizeEvent(event)
        self.resized.emit()

    def columns(self) -> int:
        """How many columns an answer should have."""
        return max(round(self._area().width()), 16)

    def set_window(self, window: Window) -> None:
        """The span of time from left to right."""
        self._window = window
        self.update()

    def show_occupancy(self, answer: Occupancy) -> None:
        """Paint that."""
        self._answer = answer
        self.update()

    def set_time(self, time: int, words: str) -> None:
        """The line stands there; `words` say it."""
        self._time = time
        self.setAccessibleDescription(words)
        self.update()

    def play(self, on: bool) -> None:
        """Let time go on from the line, at its end from the start of the window; where motion is to be reduced, in few
        steps."""
        if on == self.playing:
            return
        if on:
            calm = self.style().styleHint(QStyle.StyleHint.SH_Widget_Animation_Duration) == 0
            self._timer.start(_CALM_STEP_MS if calm else _STEP_MS)
            if not self._window.start <= self._time < self._window.end - self._window.length // 100:
                self.sought.emit(self._window.start)
        else:
            self._timer.stop()
        self.play_changed.emit(on)

    def _played(self) -> None:
        time = self._time + max(self._window.length * self._timer.interval() // _PLAYS_MS, 1)
        if time >= self._window.end or not self.isVisible():
            time = min(time, self._window.end)
            self.play(False)
        self.sought.emit(time)

    def _area(self) -> QRectF:
        """Where the curve is: beside the scale, above the time axis."""
        px = self._theme.px
        return QRectF(px(56), px(6), max(self.width() - px(56) - px(8), 1), max(self.height() - px(6) - px(20), 1))

    def x_of(self, time: int) -> float:
        """Pixel of a time."""
        area = self._area()
        return area.left() + (time - self._window.start) * area.width() / max(self._window.length, 1)

    def time_at(self, x: float) -> int:
        """Time of a pixel, inside the window."""
        area = self._area()
        share = min(max((x - area.left()) / area.width(), 0.0), 1.0)
        return self._window.start + round(share * self._window.length)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The stack of used, cached and unknown pages, what went wrong above it, the axes, and the line."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        area = self._area()
        painter.fillRect(area, self._theme.color("sunken"))
        if self._answer is not None:
            painter.save()
            painter.setClipRect(area)
            self._stack(painter, area, self._answer)
            painter.restore()
            self._warn(painter, area, self._answer)
            paint_changes(painter, area, self._changes(self._answer), self._theme)
        self._axes(painter, area)
        self._line(painter, area)
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color("accent"), 1))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _stack(self, painter: QPainter, area: QRectF, answer: Occupancy) -> None:
        top = max(int(answer.blocks.max(initial=1)), 1)
        shares = np.stack([answer.used, answer.kept, answer.unknown]) / top
        left, right = self.x_of(answer.window.start), self.x_of(answer.window.end)
        box = QRectF(left, area.top(), right - left, area.height())
        paint_stack(painter, box, shares, _LAYERS, self._theme, self.devicePixelRatioF())

    def _changes(self, answer: Occupancy) -> list[Change]:
        return [(self.x_of(time), text) for time, text in answer.changes.all]

    def _warn(self, painter: QPainter, area: QRectF, answer: Occupancy) -> None:
        thick = self._theme.px(3)
        found = answer.pressure
        for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
            left, right = max(self.x_of(start), area.left()), min(self.x_of(end), area.right())
            if right > left - 1:
                painter.fillRect(QRectF(left, area.top(), max(right - left, 1), thick), self._theme.color("wrong"))
        for stall in found.stalls:
            left, right = (
                max(self.x_of(stall.window.start), area.left()),
                min(self.x_of(stall.window.end), area.right()),
            )
            if right > left:
                wash = self._theme.color("wrong")
                wash.setAlpha(50)
                painter.fillRect(QRectF(left, area.top(), right - left, area.height()), wash)
                painter.setFont(self._theme.font("small"))
                painter.setPen(self._theme.color("text"))
                painter.drawText(QRectF(left, area.top(), right - left, area.height()), _MIDDLE, "stall")
        painter.setPen(QPen(self._theme.color("doubt"), self._theme.px(1), Qt.PenStyle.DashLine))
        for time in answer.holes.tolist():
            painter.drawLine(QPointF(self.x_of(time), area.top()), QPointF(self.x_of(time), area.bottom()))

    def _axes(self, painter: QPainter, area: QRectF) -> None:
        px = self._theme.px
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("muted"))
        if self._answer is not None:
            top = int(self._answer.blocks.max(initial=0))
            for value, y in ((top, area.top()), (0, area.bottom())):
                box = QRectF(0, y - px(8), area.left() - px(6), px(16))
                box.moveTop(min(max(box.top(), 0), self.height() - px(16)))
                painter.drawText(box, _RIGHT, f"{value:,}")
        last = area.left() - 1
        metrics = painter.fontMetrics()
        for time, label in ticks(self._window, round(area.width())).major:
            x, width = self.x_of(time), metrics.horizontalAdvance(label)
            painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + px(3)))
            left = min(max(x - width / 2, area.left()), area.right() - width)
            if left > last:
                painter.drawText(QRectF(left, area.bottom() + px(3), width + 1, px(16)), _MIDDLE, label)
                last = left + width + px(8)

    def _line(self, painter: QPainter, area: QRectF) -> None:
        x = self.x_of(self._time)
        px, accent = self._theme.px, self._theme.color("accent")
        if not area.left() - 1 <= x <= area.right() + 1:
            # It is out of the window: an arrow says on which side.
            right = x > area.right()
            tip = area.right() if right else area.left()
            back = tip - px(7) if right else tip + px(7)
            middle = area.center().y()
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(accent)
            painter.drawPolygon([QPointF(tip, middle), QPointF(back, middle - px(5)), QPointF(back, middle + px(5))])
            return
        painter.setPen(QPen(accent, px(2)))
        painter.drawLine(QPointF(x, area.top() - px(4)), QPointF(x, area.bottom()))
        painter.setPen(QPen(QColor(self._theme.tokens.surface), 1))
        painter.setBrush(accent)
        painter.drawEllipse(QPointF(x, area.top()), px(5), px(5))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows step, Space plays."""
        steps = {
            Qt.Key.Key_Left: (-1, False),
            Qt.Key.Key_Right: (1, False),
            Qt.Key.Key_PageUp: (-1, True),
            Qt.Key.Key_PageDown: (1, True),
        }
        step = steps.get(Qt.Key(event.key()))
        if step is not None:
            self.stepped.emit(*step)
        elif event.key() == Qt.Key.Key_Space:
            self.play(not self.playing)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold of the line."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._dragged = True
            self.play(False)
            self.sought.emit(self.time_at(event.position().x()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag it, or say what stands there."""
        if self._dragged:
            self.sought.emit(self.time_at(event.position().x()))
        place = event.position().toPoint()
        show_hint(self, place, self.hint(event.position().x()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Let go."""
        self._dragged = False

    def leaveEvent(self, event: QEvent) -> None:
        """Say nothing."""
        show_hint(self, self.rect().topLeft(), ())

    def hint(self, x: float) -> list[tuple[str, str]]:
        """What the box beside the pointer says at that pixel."""
        answer, area = self._answer, self._area()
        if answer is None or not area.left() <= x <= area.right() or not answer.window.length:
            return []
        time = self.time_at(x)
        at = (time - answer.window.start) * len(answer.used) // answer.window.length
        if not 0 <= at < len(answer.used):
            return []
        blocks = int(answer.blocks[at])
        lines = [("", moment_text(time)), ("in use", f"{int(answer.used[at]):,} of {blocks:,}")]
        lines.append(("cached", f"{int(answer.kept[at]):,}"))
        lines.append(("free", f"{blocks - int(answer.used[at] + answer.kept[at] + answer.unknown[at]):,}"))
        if answer.unknown[at]:
            label = "cached or free" if answer.is_told and answer.unknown[at] < blocks else "unknown"
            lines.append((label, f"{int(answer.unknown[at]):,}"))
        if answer.host_blocks:
            lines.append(("in host memory", f"{int(answer.host[at]):,} of {answer.host_blocks:,}"))
        pressed = (answer.pressure.starts <= time) & (time < answer.pressure.ends)
        if pressed.any():
            lines.append(("pressure", "no page to be had while requests wait"))
        lines += change_at(x, self._changes(answer))
        for stall in answer.pressure.stalls:
            if stall.window.start <= time < stall.window.end:
                lines.append(("stall", f"{stall.iterations:,} iterations in which none finished and none was admitted"))
        return lines


_LAYERS = tuple(ink(name) for name in ("page in use", "cached page", "unknown page"))
_MIDDLE = int(Qt.AlignmentFlag.AlignCenter)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
