"""The widget that shows a schedule: it paints, scrolls, and says where the user looks and points. It asks nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QNativeGestureEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QScrollBar, QWidget

from inspector.picture.schedule import SchedulePicture
from inspector.picture.schedule_axis import Span
from inspector.picture.schedule_tip import Place, place_at
from inspector.trace.selection import NOTHING, Selection
from ui.schedule.geometry import Geometry
from ui.schedule.painter import Frame, SchedulePainter, shown_changes
from ui.schedule.strips import Strip, strips_of
from ui.theme import Theme
from ui.widgets.changes import change_at
from ui.widgets.tip_box import paint_tip_box
from ui.widgets.wheel import Movement, read_wheel

_DRAG_PX = 4


class ScheduleCanvas(QWidget):
    """`looked(span, remember)` when the user zooms or pans, `scrolled()` when other rows are in sight, `picked(place)`
    on a click (None: beside everything), `opened(place)` on a double click, `ranged(low, high)` in places of the axis.
    """

    looked = Signal(object, bool)
    scrolled = Signal()
    picked = Signal(object)
    opened = Signal(object)
    ranged = Signal(float, float)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._painter = SchedulePainter(theme)
        self.picture: SchedulePicture | None = None
        self.span = Span(False, 0, 1, 1)
        self.selection: Selection = NOTHING
        self.strips: list[Strip] = []
        self._all_strips: list[Strip] = []
        self._pointer: QPointF | None = None
        self._pressed: QPointF | None = None
        self._dragged: tuple[float, float] | None = None
        self._panned: Span | None = None
        self._movement = Movement()
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._bar.setAccessibleName("Scroll the requests")
        self._bar.valueChanged.connect(self._bar_moved)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Schedule: requests by iterations")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    @property
    def place(self) -> Geometry:
        """Where things are now."""
        return Geometry(self._theme, self.width() - self._bar.sizeHint().width(), self.height())

    @property
    def columns(self) -> int:
        """Pixels across, of the screen."""
        return max(round(self.place.columns * self.devicePixelRatioF()), 1)

    @property
    def row_height(self) -> int:
        """Of the rows that are there."""
        picture = self.picture
        if picture is None:
            return self.place.row_height(1, len(self.strips))
        return self.place.row_height(picture.alive, len(self.strips), picture.static is not None)

    def rows_wanted(self) -> tuple[int, int]:
        """[top, bottom) of the rows in sight, with as many again before and after, in steps of half of them."""
        seen = int(self.place.rows(len(self.strips)).height()) // self.row_height + 1
        half = max(seen // 2, 1)
        top = self._bar.value() // self.row_height // half * half
        return max(top - seen, 0), top + 2 * seen + half

    def show_picture(self, picture: SchedulePicture) -> None:
        """Paint that."""
        self.picture = picture
        self._all_strips = strips_of(picture.strips) if picture.strips is not None else []
        self._measure()
        self.update()

    def look(self, span: Span) -> None:
        """Show that span, from what picture there is."""
        self.span = span
        self.update()

    def select(self, selection: Selection) -> None:
        """Mark that."""
        self.selection = selection
        self.update()

    def scroll_to(self, row: int) -> None:
        """Bring a row (a number among those alive) into sight."""
        self._scroll_to(row, row)

    def bring(self, number: int) -> bool:
        """Bring the requests of an iteration into sight; False where its picture is not there yet."""
        picture = self.picture
        if picture is None or picture.axis is None or picture.steps is None:
            return False
        axis = picture.axis
        at = np.flatnonzero(axis.batches.number == number)
        if not len(at) or not axis.span.low <= float(axis.left(at)[0]) < axis.span.high:
            return False
        steps = picture.trace["steps"]
        mine = steps["request"][steps["iteration"] == axis.batches.row[at[0]]]
        places = np.flatnonzero(np.isin(picture.everyone, mine[mine >= 0]))
        if len(places):
            self._scroll_to(int(places[0]), int(places[-1]))
        return True

    def _scroll_to(self, first: int, last: int) -> None:
        """Bring rows into sight, the first of them where not all fit."""
        tall, room = self.row_height, int(self.place.rows(len(self.strips)).height())
        value = max(self._bar.value(), (last + 1) * tall - room)
        self._bar.setValue(min(value, first * tall))

    def overflows(self, rows: int) -> bool:
        """Whether so many rows would have to scroll."""
        area = self.place.rows(len(self.strips)).height()
        return rows * self.place.row_height(rows, len(self.strips)) > area

    def scroll_by(self, pixels: int) -> None:
        """Scroll the rows down."""
        self._bar.setValue(self._bar.value() + pixels)

    def scroll_to_end(self) -> None:
        """The newest requests."""
        self._bar.setValue(self._bar.maximum())

    def zoom(self, factor: float, x: float | None = None) -> None:
        """Zoom by a factor around a pixel of the columns; around the pointer, or the middle, where none is given."""
        if x is None:
            inside = self._pointer is not None and self.place.left <= self._pointer.x() <= self.place.right
            x = self._pointer.x() - self.place.left if inside and self._pointer is not None else self.place.columns / 2
        self._look(self._span_here().zoomed(factor, x))

    def pan(self, pixels: float) -> None:
        """Move to later ones by so many pixels."""
        self._look(self._span_here().moved(pixels))

    def tip(self) -> Place | None:
        """What is under the pointer."""
        if self.picture is None or self._pointer is None or self._pressed is not None:
            return None
        return self.place_at(self._pointer)

    def place_at(self, point: QPointF) -> Place | None:
        """What is at a point of the widget."""
        picture, place = self.picture, self.place
        if picture is None or picture.ask.span.by_time != self.span.by_time:
            return None
        area = place.rows(len(self.strips))
        inside = min(max(point.x() - place.left, 0), place.columns - 1)
        span = picture.ask.span
        x = span.x(self.span.at(inside * self.span.width / place.columns))
        if point.y() < place.ruler or not span.low <= span.at(x) < span.high:
            return None
        if point.y() < area.top():
            return place_at(picture, x, -1) if place.left <= point.x() < place.right else None
        row = int(point.y() - area.top() + self._bar.value()) // self.row_height - picture.top
        return place_at(picture, x, row) if row >= 0 else None

    def sizeHint(self) -> QSize:
        """Room for strips and some rows."""
        return QSize(self._theme.px(720), self._theme.px(320))

    def minimumSizeHint(self) -> QSize:
        """Strips and a few rows."""
        return QSize(self._theme.px(320), self._theme.px(120))

    def paintEvent(self, event: QPaintEvent) -> None:
        """One frame."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        if self.picture is None:
            return
        hovered = self._hovered()
        frame = Frame(
            self.picture,
            self.span,
            self.strips,
            self._bar.value(),
            self.row_height,
            self.selection,
            self._dragged,
            hovered,
        )
        self._painter.paint(painter, frame, self.place, self.devicePixelRatioF())
        found = self.tip()
        if found is not None and self._pointer is not None:
            lines = [*found.lines, *change_at(self._pointer.x(), shown_changes(self.picture, self.span, self.place))]
            paint_tip_box(painter, QRectF(self.rect()), self._pointer, lines, self._theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More or less is in sight."""
        super().resizeEvent(event)
        self._measure()
        self.scrolled.emit()

    def retheme(self) -> None:
        """Type sizes and colours anew."""
        self._measure()
        self.update()
        self.scrolled.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Ctrl zooms at the pointer, Shift and sideways pans, plain scrolls the rows."""
        turn = read_wheel(event)
        if turn.kind == "zoom":
            self.zoom(turn.amount, event.position().x() - self.place.left)
        elif turn.kind == "pan":
            self.pan(turn.amount)
        else:
            self.scroll_by(round(turn.amount))
        event.accept()

    def event(self, event: QEvent) -> bool:
        """Pinches arrive here."""
        if isinstance(event, QNativeGestureEvent) and event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture:
            self.zoom(1 / max(1 + event.value(), 0.1), event.position().x() - self.place.left)
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A drag selects a range; with the middle button it pans."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        self._pressed = event.position()
        if event.button() == Qt.MouseButton.MiddleButton:
            self._panned = self.span

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Follow a drag; else say what is under the pointer."""
        self._pointer = event.position()
        if self._pressed is not None and event.buttons():
            far = event.position().x() - self._pressed.x()
            if self._panned is not None:
                scaled = replace(self._panned, width=self.place.columns)
                self.looked.emit(replace(scaled.moved(-far), width=self.span.width), False)
            elif abs(far) >= _DRAG_PX and self._pressed.x() >= self.place.left:
                here = self._span_here()
                ends = sorted(here.at(x - self.place.left) for x in (self._pressed.x(), self._pointer.x()))
                self._dragged = (ends[0], ends[1])
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """The drag takes effect, or it was a click."""
        pressed, dragged, panned = self._pressed, self._dragged, self._panned
        self._pressed = self._dragged = self._panned = None
        if dragged is not None:
            if event.modifiers() & Qt.KeyboardModifier.AltModifier:
                self.looked.emit(replace(self.span, low=dragged[0], high=dragged[1]), True)
            else:
                self.ranged.emit(*dragged)
        elif panned is None and pressed is not None and event.button() == Qt.MouseButton.LeftButton:
            self.picked.emit(self.place_at(pressed))
        self.update()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Go there."""
        found = self.place_at(event.position())
        if found is not None:
            self.opened.emit(found)

    def leaveEvent(self, event: QEvent) -> None:
        """Nothing is under the pointer."""
        self._pointer = None
        self.update()

    def _hovered(self) -> int:
        area = self.place.rows(len(self.strips))
        if self._pointer is None or not area.top() <= self._pointer.y():
            return -1
        return int(self._pointer.y() - area.top() + self._bar.value()) // self.row_height

    def _span_here(self) -> Span:
        """In pixels of the widget, which may be fewer than those of the screen."""
        return replace(self.span, width=self.place.columns)

    def _look(self, span: Span) -> None:
        self.looked.emit(replace(span, width=self.span.width), self._movement.begins())

    def _measure(self) -> None:
        place = self.place
        self.strips = self._all_strips[: place.strips_that_fit(len(self._all_strips))]
        area = place.rows(len(self.strips))
        alive = self.picture.alive if self.picture is not None else 0
        needed = alive * self.row_height
        width = self._bar.sizeHint().width()
        self._bar.setGeometry(self.width() - width, round(area.top()), width, max(round(area.height()), 0))
        self._bar.setPageStep(max(round(area.height()), 1))
        self._bar.setSingleStep(self._theme.px(24))
        blocked = self._bar.blockSignals(True)
        self._bar.setRange(0, max(needed - round(area.height()), 0))
        self._bar.blockSignals(blocked)
        self._bar.setVisible(needed > area.height())

    def _bar_moved(self) -> None:
        self.update()
        self.scrolled.emit()
