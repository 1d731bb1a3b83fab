"""Strips of curves over one span of time: HBM bandwidth first, what goes with it below, iterations at the bottom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from inspector.picture.bandwidth import BandwidthPicture, Layer, Strip, value_text
from inspector.picture.labels import moment
from inspector.picture.palette import ink
from inspector.picture.viewport import Viewport
from inspector.trace.selection import Window
from ui.bandwidth.bars import bar_lines, has_bars, has_marks, paint_bar_label, paint_bars, paint_cut
from ui.inks import color_of
from ui.theme import Theme
from ui.widgets.hint import show_hint
from ui.widgets.ruler import ticks
from ui.widgets.wheel import Movement, read_wheel

Float = npt.NDArray[np.float64]
_INKS = ("memory read", "memory write", "counter", "counter, second", "counter, third")
_STYLES = (Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DotLine, Qt.PenStyle.DashDotLine)
_TALL, _LOW = 3, 1
# Beyond rounding of what is measured.
_BEYOND = 1.0005


class Strips(QWidget):
    """`looked(window, remember)` when the user zooms or pans, `ranged(window)` when a range was dragged (None: a click
    outside of iterations), `iteration(number)` when a bar was clicked."""

    looked = Signal(object, bool)
    resized = Signal()
    ranged = Signal(object)
    iteration = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.picture: BandwidthPicture | None = None
        self.selected: Window | None = None
        self._pressed: float | None = None
        self._dragged: Window | None = None
        self._panned: tuple[float, Window] | None = None
        self._movement = Movement()
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Memory bandwidth over time")

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other columns."""
        super().resizeEvent(event)
        self.resized.emit()

    @property
    def left(self) -> int:
        """Where the curves begin; names and scales stand before."""
        return self._theme.px(152)

    @property
    def columns(self) -> int:
        """Pixel columns that the curves have."""
        return max(self.width() - self.left - self._theme.px(8), 1)

    def sizeHint(self) -> QSize:
        """Room for some strips."""
        return QSize(self._theme.px(720), self._theme.px(260))

    def minimumSizeHint(self) -> QSize:
        """Room for the ruler and two strips."""
        return QSize(self._theme.px(320), self._theme.px(140))

    def show_picture(self, picture: BandwidthPicture, selected: Window | None) -> None:
        """Paint that."""
        self.picture, self.selected = picture, selected
        self.update()

    def places(self) -> list[tuple[QRectF, Strip | None]]:
        """Each strip and where its curves are; None stands for the iterations."""
        picture, px = self.picture, self._theme.px
        if picture is None:
            return []
        rows: list[Strip | None] = [*picture.strips]
        if has_bars(picture):
            rows.insert(1 if picture.bandwidth else 0, None)
        weights = [_LOW if at else _TALL for at in range(len(rows))]
        if has_marks(picture):
            # Room for a bar, its mark, and what both are.
            weights[rows.index(None)] += _LOW
        top, gap = float(px(24)), px(8)
        room = max(self.height() - top - gap * len(rows), px(16) * len(rows))
        places = []
        for strip, weight in zip(rows, weights, strict=True):
            height = room * weight / sum(weights)
            places.append((QRectF(self.left, top, self.columns, height), strip))
            top += height + gap
        return places

    def paintEvent(self, event: QPaintEvent) -> None:
        """Ruler, strips, iterations, the selected range."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        picture = self.picture
        if picture is None:
            return
        painter.setFont(self._theme.font("small"))
        self._ruler(painter, picture)
        for rect, strip in self.places():
            if strip is None:
                self._bars(painter, rect, picture)
            else:
                self._strip(painter, rect, strip, picture)
        for window, token in ((self.selected, "accent"), (self._dragged, "accent")):
            if window is not None:
                self._range(painter, picture, window, token)

    def _x(self, time: float, picture: BandwidthPicture) -> float:
        return self.left + Viewport(picture.window, self.columns).x(time)

    def _ruler(self, painter: QPainter, picture: BandwidthPicture) -> None:
        marks = ticks(picture.window, self.columns)
        px = self._theme.px
        painter.setPen(self._theme.color("muted"))
        if marks.base:
            painter.drawText(
                QRectF(px(8), 0, self.left - px(16), px(20)), int(Qt.AlignmentFlag.AlignVCenter), marks.base
            )
        for time, label in marks.major:
            x = self._x(time, picture)
            painter.setPen(self._theme.color("line"))
            painter.drawLine(QPointF(x, px(16)), QPointF(x, self.height()))
            if x + px(3) + painter.fontMetrics().horizontalAdvance(label) <= self.width():
                painter.setPen(self._theme.color("muted"))
                painter.drawText(QPointF(x + px(3), px(14)), label)

    def _strip(self, painter: QPainter, rect: QRectF, strip: Strip, picture: BandwidthPicture) -> None:
        theme, px = self._theme, self._theme.px
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(rect.topLeft(), rect.topRight())
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.setPen(theme.color("text"))
        label = QRectF(px(8), rect.top(), self.left - px(16), rect.height())
        line = QFontMetricsF(painter.font()).height()
        painter.drawText(label, int(Qt.AlignmentFlag.AlignTop), strip.title)
        painter.setPen(theme.color("muted"))
        top = value_text(strip.top, strip.unit)
        painter.drawText(label, int(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignRight), top)
        if label.height() >= 2 * QFontMetricsF(painter.font()).height():
            painter.drawText(label, int(Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignRight), "0")
        below = np.zeros(picture.width)
        for at, layer in enumerate(strip.layers):
            colour = self._colour(strip, at)
            under = below if layer.stacked else np.zeros(picture.width)
            painter.save()
            painter.setClipRect(rect)
            if strip is picture.strips[0] and picture.bandwidth is not None:
                self._area(painter, rect, strip, layer, under, colour)
                below = under + np.nan_to_num(layer.high)
            else:
                self._line(painter, rect, strip, layer, QPen(colour, 1.2, _STYLES[at % len(_STYLES)]), picture)
            total = layer.high + under if layer.stacked else layer.high
            scale = rect.width() / len(total)
            for first, last in _runs(np.nan_to_num(total) > strip.top * _BEYOND):
                paint_cut(painter, rect, rect.left() + first * scale, rect.left() + last * scale, self._theme)
            painter.restore()
            y = label.top() + line * (at + 1)
            if y + line <= label.bottom() + 1:
                painter.setPen(QPen(colour, px(2), _STYLES[0] if layer.stacked else _STYLES[at % len(_STYLES)]))
                painter.drawLine(QPointF(label.left(), y + line / 2), QPointF(label.left() + px(12), y + line / 2))
                painter.setPen(theme.color("muted"))
                room = QRectF(label.left() + px(16), y, label.width() - px(16), line)
                name = QFontMetricsF(painter.font()).elidedText(layer.name, Qt.TextElideMode.ElideRight, room.width())
                painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), name)

    def _colour(self, strip: Strip, at: int) -> QColor:
        bandwidth = self.picture is not None and self.picture.bandwidth is not None and strip is self.picture.strips[0]
        name = _INKS[at] if bandwidth else _INKS[2 + at % 3]
        return color_of(ink(name), self._theme)

    def _area(self, painter: QPainter, rect: QRectF, strip: Strip, layer: Layer, under: Float, colour: QColor) -> None:
        """A filled layer; columns without a sample stay bare."""
        scale = rect.height() / strip.top
        known = np.isfinite(layer.high)
        for first, last in _runs(known):
            lows = rect.bottom() - under[first:last] * scale
            highs = lows - layer.high[first:last] * scale
            xs = rect.left() + np.arange(first, last) * rect.width() / len(known)
            end = rect.left() + last * rect.width() / len(known)
            outline = [QPointF(x, y) for x, y in zip(xs, highs, strict=True)] + [QPointF(end, highs[-1])]
            outline += [QPointF(end, lows[-1])] + [QPointF(x, y) for x, y in zip(xs[::-1], lows[::-1], strict=True)]
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colour)
            painter.drawPolygon(QPolygonF(outline))
        painter.setBrush(Qt.BrushStyle.NoBrush)

    def _line(
        self, painter: QPainter, rect: QRectF, strip: Strip, layer: Layer, pen: QPen, picture: BandwidthPicture
    ) -> None:
        scale = rect.height() / strip.top
        painter.setPen(pen)
        known = np.isfinite(layer.high)
        for first, last in _runs(known):
            xs = rect.left() + np.arange(first, last) * rect.width() / len(known)
            points: list[QPointF] = []
            for x, low, high in zip(xs, layer.low[first:last], layer.high[first:last], strict=True):
                points.append(QPointF(x, rect.bottom() - high * scale))
                if high > low:
                    points.append(QPointF(x, rect.bottom() - low * scale))
            painter.drawPolyline(QPolygonF(points))

    def _bars(self, painter: QPainter, rect: QRectF, picture: BandwidthPicture) -> None:
        label = QRectF(self._theme.px(8), rect.top(), self.left - self._theme.px(16), rect.height())
        painter.save()
        painter.setClipRect(rect)
        paint_bars(painter, rect, picture, lambda time: self._x(time, picture), self._theme)
        painter.restore()
        paint_bar_label(painter, label, picture, self._theme)
        painter.setPen(QPen(self._theme.color("line"), 1))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())

    def _range(self, painter: QPainter, picture: BandwidthPicture, window: Window, token: str) -> None:
        left = max(self._x(window.start, picture), self.left)
        right = min(self._x(window.end, picture), self.left + self.columns)
        if right < left:
            return
        wash = self._theme.color(token)
        wash.setAlpha(26)
        painter.fillRect(QRectF(left, 0, right - left, self.height()), wash)
        painter.setPen(QPen(self._theme.color(token), 1))
        for x in (left, right):
            painter.drawLine(QPointF(x, 0), QPointF(x, self.height()))

    def tip_at(self, x: float, y: float) -> list[tuple[str, str]]:
        """What is there, exactly: a title, then label and value."""
        picture = self.picture
        found = [strip for rect, strip in self.places() if rect.contains(x, y)]
        if picture is None or not found:
            return []
        time = Viewport(picture.window, self.columns).time(x - self.left)
        strip = found[0]
        if strip is None:
            at = self._bar_at(time)
            return bar_lines(picture, at) if at >= 0 else []
        lines = [("", f"{strip.title}, {picture.basis}"), ("time", moment(round(time)))]
        for layer in strip.layers:
            # A sample tells of the time before it.
            row = int(np.searchsorted(layer.samples.time, time))
            inside = 0 < row < len(layer.samples.time) or (row == 0 and time == layer.samples.time[0])
            value = value_text(float(layer.samples.value[row]) * layer.scale, strip.unit) if inside else "not sampled"
            lines.append((layer.name, value))
        return lines

    def _bar_at(self, time: float) -> int:
        bars = self.picture.bars if self.picture is not None else None
        if bars is None or not len(bars.start):
            return -1
        at = int(np.searchsorted(bars.start, time, "right")) - 1
        return at if at >= 0 and time < bars.end[at] else -1

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Ctrl zooms at the pointer, everything else pans: there are no rows to scroll."""
        if self.picture is None:
            return
        turn, port = read_wheel(event, scrolls=False), Viewport(self.picture.window, self.columns)
        zoomed = turn.kind == "zoom"
        x = min(max(event.position().x() - self.left, 0), self.columns)
        window = port.zoomed(turn.amount, x) if zoomed else port.panned(turn.amount)
        self.looked.emit(window, self._movement.begins())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A drag selects a range; with the middle button it pans."""
        if self.picture is None or event.position().x() < self.left:
            return
        if event.button() == Qt.MouseButton.MiddleButton:
            self._panned = (event.position().x(), self.picture.window)
        elif event.button() == Qt.MouseButton.LeftButton:
            self._pressed = event.position().x()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow a drag; else say what is under the pointer."""
        if self.picture is None:
            return
        x, y = event.position().x(), event.position().y()
        if self._panned is not None:
            start, window = self._panned
            self.looked.emit(Viewport(window, self.columns).panned(start - x), False)
        elif self._pressed is not None and abs(x - self._pressed) >= 4:
            port = Viewport(self.picture.window, self.columns)
            ends = sorted(round(port.time(at - self.left)) for at in (self._pressed, x))
            self._dragged = Window(*ends)
            self.update()
        elif not event.buttons():
            show_hint(self, event.position().toPoint(), self.tip_at(x, y))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """The range is taken, or it was a click on an iteration."""
        pressed, dragged = self._pressed, self._dragged
        self._pressed = self._dragged = self._panned = None
        if dragged is not None:
            self.ranged.emit(dragged)
        elif pressed is not None and self.picture is not None:
            at = self._bar_at(Viewport(self.picture.window, self.columns).time(pressed - self.left))
            over = next((rect for rect, strip in self.places() if strip is None), QRectF())
            if at >= 0 and over.contains(event.position()):
                self.iteration.emit(int(self.picture.bars.number[at]))
            else:
                self.ranged.emit(None)
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        """Say nothing."""
        show_hint(self, QPoint(), ())


def _runs(known: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """[first, last) of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], known, [False]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
