"""The strip at the top: the whole trace, with the span in view as a handle to drag."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QWheelEvent
from PySide6.QtWidgets import QWidget

from inspector import units
from inspector.picture import screen
from inspector.picture.overview import Overview
from inspector.picture.palette import INKS, ink
from inspector.trace.selection import Window
from ui import raster
from ui.session import Session
from ui.theme import Theme
from ui.timeline.scene import HEADER_WIDTH
from ui.widgets.wheel import Movement, read_wheel, zoom_of

HEIGHT = 34
_EDGE_PX = 6


class OverviewStrip(QWidget):
    """`looked(window, remember)` when the handle is moved, its edges are dragged, or a new span is drawn."""

    looked = Signal(object, bool)

    def __init__(self, theme: Theme, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme, self._session = theme, session
        self._answer: Overview | None = None
        self._drag = ""
        self._from = Window(0, 1)
        self._pressed = 0.0
        self._movement = Movement()
        self.setMouseTracking(True)
        self.setAccessibleName("Overview of the whole trace")
        session.window_changed.connect(self.update)
        session.selection_changed.connect(self.update)
        session.marks_changed.connect(self.update)
        theme.changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        """As wide as there is room."""
        return QSize(400, self._theme.px(HEIGHT))

    def minimumSizeHint(self) -> QSize:
        """Its height is fixed."""
        return QSize(100, self._theme.px(HEIGHT))

    def show_answer(self, answer: Overview | None) -> None:
        """Paint those shares; None while they are not known."""
        self._answer = answer
        self.update()

    @property
    def _left(self) -> int:
        return self._theme.px(HEADER_WIDTH)

    def _x(self, time: float) -> float:
        whole = self._session.whole
        return self._left + (time - whole.start) / max(whole.length, 1) * (self.width() - self._left)

    def _time(self, x: float) -> int:
        room = max(self.width() - self._left, 1)
        whole = self._session.whole
        return whole.start + round(min(max((x - self._left) / room, 0), 1) * whole.length)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Shares of all devices averaged, what is not in view faded, and the handle."""
        painter = QPainter(self)
        tokens = self._theme.tokens
        painter.fillRect(self.rect(), QColor(tokens.raised))
        area = QRectF(self._left, 4, self.width() - self._left, self.height() - 8)
        self._density(painter, area)
        window = self._session.window
        left, right = self._x(window.start), max(self._x(window.end), self._x(window.start) + 3)
        fade = QColor(tokens.raised)
        fade.setAlpha(150)
        painter.fillRect(QRectF(self._left, 0, left - self._left, self.height()), fade)
        painter.fillRect(QRectF(right, 0, self.width() - right, self.height()), fade)
        selected = self._session.selection.window
        if selected is not None:
            wash = QColor(tokens.accent)
            wash.setAlpha(90)
            x = self._x(selected.start)
            painter.fillRect(QRectF(x, 0, max(self._x(selected.end) - x, 1), self.height()), wash)
        for mark in self._session.marks:
            painter.fillRect(QRectF(self._x(mark.start), 0, 1.5, self.height()), QColor(tokens.doubt))
        painter.setPen(QPen(QColor(tokens.text), 1))
        painter.drawRect(QRectF(round(left) + 0.5, 1.5, max(round(right - left) - 1, 2), self.height() - 3))
        self._text(painter)
        painter.setPen(QColor(tokens.line))
        low = self.height() - 0.5
        painter.drawLine(QPointF(0, low), QPointF(self.width(), low))
        painter.end()

    def _density(self, painter: QPainter, area: QRectF) -> None:
        answer = self._answer
        if answer is None or area.width() < 1:
            return
        if not len(answer.share):
            painter.setFont(self._theme.font("small"))
            painter.setPen(QColor(self._theme.tokens.muted))
            painter.drawText(area, int(Qt.AlignmentFlag.AlignCenter), "no device work in this trace")
            return
        # Of a run there may be more by now.
        left = self._x(answer.window.start)
        area = QRectF(left, area.top(), max(self._x(answer.window.end) - left, 1), area.height())
        painter.setClipRect(QRectF(self._left, 0, self.width() - self._left, self.height()))
        width = round(area.width() * self.devicePixelRatioF())
        # Every pixel takes the mean of the stretches under it; there are more of these than pixels.
        columns = answer.share.shape[1]
        edges = np.linspace(0, columns, width + 1).astype(np.int64)
        first = np.minimum(edges[:-1], columns - 1)
        many = np.maximum(np.diff(edges), 1)
        share = (np.add.reduceat(answer.share.mean(axis=0), first) / many).astype(np.float32)
        touched = np.logical_or.reduceat(answer.touched.any(axis=0), first)
        scheme = "dark" if self._theme.dark else "light"
        colour = screen.packed(INKS[ink("busy")].colour(scheme))  # type: ignore[arg-type]
        ground = screen.packed(self._theme.tokens.sunken)
        raster.paint(painter, area, screen.histogram(share, touched, int(area.height()), ground, colour))
        painter.setClipping(False)

    def _text(self, painter: QPainter) -> None:
        flags = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        indent = self._theme.px(22)
        painter.setFont(self._theme.font("small"))
        painter.setPen(QColor(self._theme.tokens.text))
        painter.drawText(QRectF(indent, 0, self._left, self.height()), flags, self._session.whole_words)
        painter.setPen(QColor(self._theme.tokens.muted))
        flags = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
        text = units.time(self._session.whole.length)
        painter.drawText(QRectF(indent, 0, self._left - indent - self._theme.px(8), self.height()), flags, text)

    def _part(self, x: float) -> str:
        """Which part of the handle is at x: 'start', 'end', 'all', or 'new' outside of it."""
        window = self._session.window
        left, right = self._x(window.start), self._x(window.end)
        if window != self._session.whole:
            if abs(x - left) <= _EDGE_PX and right - left > 3 * _EDGE_PX:
                return "start"
            if abs(x - right) <= _EDGE_PX and right - left > 3 * _EDGE_PX:
                return "end"
            if left - _EDGE_PX <= x <= right + _EDGE_PX:
                return "all"
        return "new"

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold of the handle, of one of its edges, or begin a new one."""
        if event.button() == Qt.MouseButton.LeftButton and event.position().x() >= self._left:
            self._pressed, self._from = event.position().x(), self._session.window
            self._drag = self._part(self._pressed)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Drag it."""
        x = event.position().x()
        if not self._drag:
            shapes = {"start": Qt.CursorShape.SizeHorCursor, "end": Qt.CursorShape.SizeHorCursor}
            self.setCursor(shapes.get(self._part(x), Qt.CursorShape.ArrowCursor))
            return
        first = self._session.window == self._from
        now, origin = self._time(x), self._time(self._pressed)
        if self._drag == "all":
            moved = Window(self._from.start + now - origin, self._from.end + now - origin)
        elif self._drag == "start":
            moved = Window(min(now, self._from.end - 1), self._from.end)
        elif self._drag == "end":
            moved = Window(self._from.start, max(now, self._from.start + 1))
        else:
            if abs(x - self._pressed) < 3:
                return
            moved = Window(min(now, origin), max(now, origin))
        self.looked.emit(moved, first)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click outside of the handle brings it there."""
        if self._drag == "new" and abs(event.position().x() - self._pressed) < 3:
            half = self._from.length // 2
            middle = self._time(event.position().x())
            self.looked.emit(Window(middle - half, middle - half + self._from.length), True)
        self._drag = ""

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """The whole trace."""
        self.looked.emit(self._session.whole, True)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """The wheel zooms about the pointer, here also without Ctrl; sideways pans."""
        turn, window = read_wheel(event), self._session.window
        if turn.kind == "pan":
            shift = round(turn.amount * window.length / max(self.width() - self._left, 1))
            moved = Window(window.start + shift, window.end + shift)
        else:
            factor = turn.amount if turn.kind == "zoom" else zoom_of(turn)
            length = max(round(window.length * factor), 1)
            middle = self._time(event.position().x())
            share = (middle - window.start) / max(window.length, 1) if window.start <= middle <= window.end else 0.5
            start = round(middle - length * share)
            moved = Window(start, start + length)
        self.looked.emit(moved, self._movement.begins())
        event.accept()
