"""One frame of the schedule, from a picture and where it lies now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from inspector import units
from inspector.analysis.latency import UNKNOWN
from inspector.picture.changes import Changes
from inspector.picture.palette import HUES
from inspector.picture.schedule import SchedulePicture
from inspector.picture.schedule_axis import Axis, Span
from inspector.trace.selection import Selection, Window
from ui.inks import color_of
from ui.raster import paint as paint_pixels
from ui.schedule.cells import pixels
from ui.schedule.geometry import Geometry
from ui.schedule.strips import Strip, paint_label, paint_strip
from ui.theme import Theme
from ui.widgets.changes import Change, paint_changes
from ui.widgets.ruler import ticks

_MIDDLE_LEFT = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
_MIDDLE_RIGHT = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)


@dataclass
class Frame:
    """What is painted: the picture, where it lies (`span`, `scroll` in pixels), and what is marked."""

    picture: SchedulePicture
    span: Span
    strips: list[Strip]
    scroll: int
    row_height: int
    selection: Selection
    dragged: tuple[float, float] | None
    hovered: int


class SchedulePainter:
    """Keeps the image of a picture, since rows scroll and columns move more often than they change."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._image: npt.NDArray[np.uint32] | None = None
        self._of: tuple[object, ...] = ()

    def paint(self, painter: QPainter, frame: Frame, place: Geometry, ratio: float) -> None:
        """Everything but the tip."""
        theme, picture = self._theme, frame.picture
        painter.fillRect(QRectF(0, 0, place.width, place.height), theme.color("surface"))
        if picture.axis is None:
            return
        area = place.rows(len(frame.strips))
        painter.save()
        painter.setClipRect(QRectF(place.left, 0, place.columns, place.height))
        self._ruler(painter, frame, place, picture.axis)
        for at, strip in enumerate(frame.strips):
            rect = place.strip(at, len(frame.strips))
            shifted = self._shifted(frame, rect)
            label = QRectF(theme.px(8), rect.top(), place.left - theme.px(16), rect.height())
            painter.setClipRect(rect)
            paint_strip(painter, shifted, strip, theme)
            painter.setClipRect(label)
            paint_label(painter, label, strip, theme)
        painter.setClipRect(area)
        self._cells(painter, frame, area, ratio)
        self._marks(painter, frame, place, area)
        painter.restore()
        painter.setClipRect(QRectF(0, area.top(), place.width, area.height()))
        self._names(painter, frame, area, place)
        self._latencies(painter, frame, area, place)
        painter.setClipping(False)
        self._heads(painter, place, 0 if picture.ask.waiting else picture.waiting)

    def _shifted(self, frame: Frame, rect: QRectF) -> QRectF:
        """Where columns of the picture lie now, while a newer picture is on its way."""
        old, now = frame.picture.ask.span, frame.span
        if old.by_time != now.by_time:
            return rect
        scale = rect.width() / now.length
        return QRectF(rect.left() + (old.low - now.low) * scale, rect.top(), old.length * scale, rect.height())

    def _cells(self, painter: QPainter, frame: Frame, area: QRectF, ratio: float) -> None:
        picture, tall = frame.picture, frame.row_height
        device = max(round(tall * ratio), 1)
        key = (picture, device, self._theme.dark)
        if self._of != key:
            self._of = key
            if picture.static is None:
                self._image = pixels(picture.cells, device, self._theme)
            else:
                self._image = _halves(picture, device, self._theme)
        if self._image is not None and self._image.size:
            top = area.top() + picture.top * tall - frame.scroll
            target = self._shifted(frame, QRectF(area.left(), top, area.width(), len(picture.rows) * tall))
            paint_pixels(painter, target, self._image)

    def _marks(self, painter: QPainter, frame: Frame, place: Geometry, area: QRectF) -> None:
        theme, picture, tall = self._theme, frame.picture, frame.row_height
        accent = theme.color("accent")
        axis = picture.axis
        if axis is None:
            return
        for at, row in self._visible(frame, area):
            if int(picture.trace["requests"]["request"][row]) == frame.selection.request:
                top = area.top() + at * tall - frame.scroll
                painter.setPen(QPen(accent, 1.5))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawRect(QRectF(area.left() + 1, top - 0.5, area.width() - 2, max(tall, 3)))
        painter.setClipRect(QRectF(place.left, 0, place.columns, place.height))
        wash = theme.color("accent")
        wash.setAlpha(40)
        window = frame.selection.window
        spans = [frame.dragged] if frame.dragged is not None else []
        if window is not None:
            spans.append(_places(axis, window))
        number = frame.selection.iteration
        if number is not None and (frame.selection.process in (None, axis.batches.process)):
            found = np.flatnonzero(axis.batches.number == number)
            if len(found):
                spans.append((float(axis.left(found)[0]), float(axis.right(found)[0])))
        rows = QRectF(place.left, area.top(), place.columns, place.height - area.top())
        paint_changes(painter, rows, shown_changes(picture, frame.span, place), theme)
        for low, high in spans:
            left = area.left() + _x(frame.span, low, area.width())
            right = max(area.left() + _x(frame.span, high, area.width()), left + 1)
            painter.fillRect(QRectF(left, 0, right - left, place.height), wash)
            painter.setPen(QPen(accent, 1))
            for x in (left, right):
                painter.drawLine(QLineF(x, 0, x, place.height))

    def _visible(self, frame: Frame, area: QRectF) -> Iterator[tuple[int, int]]:
        """(number among those alive, row of requests) of what is in sight."""
        picture, tall = frame.picture, frame.row_height
        first = max(frame.scroll // tall, picture.top)
        last = min(int((frame.scroll + area.height()) // tall) + 1, picture.top + len(picture.rows))
        for at in range(first, last):
            yield at, int(picture.rows[at - picture.top])

    def _names(self, painter: QPainter, frame: Frame, area: QRectF, place: Geometry) -> None:
        theme, tall, picture = self._theme, frame.row_height, frame.picture
        painter.setFont(theme.font("small"))
        metrics = QFontMetricsF(painter.font())
        every = max(-(-round(metrics.height()) // tall), 1)
        table, names = picture.trace["requests"], picture.trace.names
        group = table.get("group")
        seen = list(self._visible(frame, area))
        marked = [at for at, row in seen if int(table["request"][row]) == frame.selection.request]
        # What one points at has its name in any case, what is selected unless that is too near.
        pointed = [at for at, _ in seen if at == frame.hovered]
        kept = {*pointed, *(at for at in marked if all(abs(at - other) >= every for other in pointed))}
        for at, row in seen:
            number = int(table["request"][row])
            mine = at in kept
            # In full type at least: between rows that are lower some go without a name, and so do their neighbours.
            if not mine and (at % every != every // 2 or any(abs(at - other) < every for other in kept)):
                continue
            top = area.top() + at * tall - frame.scroll
            line = QRectF(
                theme.px(8), top + tall / 2 - metrics.height() / 2, place.left - theme.px(16), metrics.height()
            )
            painter.setPen(theme.color("accent" if number == frame.selection.request else "text"))
            painter.drawText(line, _MIDDLE_LEFT, f"{number:,}")
            if group[row] >= 0:
                text = names[int(group[row])]
                size = theme.px(7)
                width = min(metrics.horizontalAdvance(text), line.width() / 2)
                box = QRectF(line.right() - width - size - theme.px(4), line.center().y() - size / 2, size, size)
                painter.fillRect(box, color_of(HUES[picture.groups[int(group[row])] % len(HUES)], theme))
                painter.setPen(theme.color("muted"))
                painter.drawText(line, _MIDDLE_RIGHT, metrics.elidedText(text, Qt.TextElideMode.ElideRight, width + 1))

    def _latencies(self, painter: QPainter, frame: Frame, area: QRectF, place: Geometry) -> None:
        """Bars, the longest in the picture over the whole width, with their times where rows are tall enough."""
        if not place.side or not len(frame.picture.rows):
            return
        theme, tall, picture = self._theme, frame.row_height, frame.picture
        painter.setFont(theme.font("small"))
        told = tall >= QFontMetricsF(painter.font()).height() - theme.px(3)
        width, ids = place.side - theme.px(12), picture.trace["requests"]["request"]
        tpot = np.nan_to_num(picture.times.tpot, nan=UNKNOWN)
        for column, values in enumerate((picture.times.ttft.astype(np.float64), tpot)):
            left = place.right + theme.px(8) + column * place.side
            lengths = np.maximum(values, 0) * width / max(float(values.max(initial=0)), 1.0)
            bar = max(tall // 6, 1) if told else max(tall - 1, 1)
            image = np.full((len(values), tall, width), theme.color("surface").rgb(), np.uint32)
            filled = np.arange(width) < lengths[:, None]
            image[:, tall - 1 - bar : max(tall - 1, 1)][np.repeat(filled[:, None], bar, axis=1)] = theme.color(
                "edge"
            ).rgb()
            target = QRectF(left, area.top() + picture.top * tall - frame.scroll, width, len(values) * tall)
            paint_pixels(painter, target, image.reshape(-1, width))
            for at, row in self._visible(frame, area) if told else ():
                if values[at - picture.top] >= 0:
                    painter.setPen(theme.color("accent" if int(ids[row]) == frame.selection.request else "text"))
                    room = QRectF(left, area.top() + at * tall - frame.scroll, width, tall)
                    painter.drawText(room, _MIDDLE_RIGHT, units.time(float(values[at - picture.top])))

    def _heads(self, painter: QPainter, place: Geometry, waiting: int) -> None:
        """Over names and latencies; those that only wait have no rows and are told of here, where they cover none."""
        theme = self._theme
        painter.setFont(theme.font("small"))
        painter.setPen(theme.color("muted"))
        line = QRectF(theme.px(8), 0, place.left - theme.px(16), place.ruler)
        painter.drawText(line, _MIDDLE_LEFT, f"Request, +{waiting:,} waiting" if waiting else "Request")
        for column, text in enumerate(("TTFT", "TPOT") if place.side else ()):
            left = place.right + theme.px(8) + column * place.side
            painter.drawText(QRectF(left, 0, place.side - theme.px(12), place.ruler), _MIDDLE_RIGHT, text)

    def _ruler(self, painter: QPainter, frame: Frame, place: Geometry, axis: Axis) -> None:
        theme, span = self._theme, frame.span
        painter.setFont(theme.font("small"))
        drawn = frame.picture.ask.span
        for where, text in _labels(span, axis, place.columns):
            # What is in view now may reach further than the picture, which is on its way.
            if drawn.by_time == span.by_time and not drawn.low <= where < drawn.high:
                continue
            x = round(place.left + _x(span, where, place.columns)) + 0.5
            painter.setPen(QPen(theme.color("line"), 1))
            painter.drawLine(QPointF(x, place.ruler - theme.px(5)), QPointF(x, place.height))
            if x + theme.px(3) + painter.fontMetrics().horizontalAdvance(text) <= place.right:
                painter.setPen(theme.color("muted"))
                painter.drawText(QPointF(x + theme.px(3), place.ruler - theme.px(6)), text)


def _halves(picture: SchedulePicture, tall: int, theme: Theme) -> npt.NDArray[np.uint32]:
    """Above what was measured, below what the model says of static batching."""
    upper = max(tall - tall // 2, 1)
    lower = max(tall - upper, 1)
    assert picture.static is not None
    one, other = pixels(picture.cells, upper, theme), pixels(picture.static, lower, theme)
    rows, width = picture.cells.shape
    both = np.concatenate([one.reshape(rows, upper, width), other.reshape(rows, lower, width)], axis=1)
    return both.reshape(rows * (upper + lower), width)


def _labels(span: Span, axis: Axis, columns: int) -> list[tuple[float, str]]:
    if span.by_time:
        marks = ticks(Window(round(span.low), max(round(span.high), round(span.low) + 1)), columns)
        return [(time, text) for time, text in marks.major]
    step = next(
        factor * 10**power
        for power in range(12)
        for factor in (1, 2, 5)
        if factor * 10**power * columns >= span.length * 72
    )
    first = max(-(-int(span.low) // step) * step, 0)
    last = min(int(span.high), len(axis.batches) - 1)
    return [(at, f"{int(axis.batches.number[at]):,}") for at in range(first, last + 1, step)]


def _x(span: Span, place: float, columns: float) -> float:
    return (place - span.low) * columns / span.length


def shown_changes(picture: SchedulePicture, span: Span, place: Geometry) -> list[Change]:
    """What the user changed, and at which pixel: where the iteration begins that was the next one."""
    axis = picture.axis
    if axis is None or axis.span.by_time != span.by_time:
        return []
    changes = picture.trace.index(Changes).all
    places = axis.of_time(np.array([time for time, _ in changes], np.int64)).tolist()
    return [(place.left + _x(span, at, place.columns), text) for at, (_, text) in zip(places, changes, strict=True)]


def _places(axis: Axis, window: Window) -> tuple[float, float]:
    """A range of time in places of the axis."""
    if axis.span.by_time:
        return float(window.start), float(window.end)
    low = int(np.searchsorted(axis.batches.end, window.start, "right"))
    return float(low), float(max(int(np.searchsorted(axis.batches.start, window.end)), low))
