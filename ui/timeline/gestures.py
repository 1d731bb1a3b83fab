"""Mouse, wheel and pinch as the field expects them: what a movement means, told to the canvas's listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QNativeGestureEvent, QWheelEvent

from inspector.picture.viewport import Viewport
from inspector.trace.selection import Window
from ui.timeline.scene import Scene
from ui.widgets.wheel import Movement, read_wheel

if TYPE_CHECKING:
    from ui.timeline.canvas import Canvas

_DRAG_PX = 4
_SNAP_PX = 5


class Gestures:
    """Reads the events of a canvas. One drag at a time: `mode` is 'range', 'zoom', 'pan', 'move', or '' for none."""

    def __init__(self, canvas: Canvas) -> None:
        self._canvas = canvas
        self.mode = ""
        self._pressed: QPointF | None = None
        self._anchor = 0
        self._from: Window | None = None
        self._movement = Movement()

    @property
    def _scene(self) -> Scene:
        return self._canvas.scene

    def look(self, window: Window) -> None:
        """Look there; the steps of one movement are one step for going back."""
        self._canvas.looked.emit(window, self._movement.begins())

    def zoom(self, factor: float, x: float) -> None:
        """Zoom by a factor at an x of the canvas."""
        scene = self._scene
        self.look(scene.viewport.zoomed(factor, min(max(x - scene.left, 0), scene.viewport.width)))

    def pan(self, pixels: float) -> None:
        """Move to later times by that many pixels."""
        self.look(self._scene.viewport.panned(pixels))

    def wheel(self, event: QWheelEvent) -> None:
        """Ctrl zooms at the pointer, Shift pans, plain scrolls the tracks; sideways always pans."""
        turn = read_wheel(event)
        if turn.kind == "zoom":
            self.zoom(turn.amount, event.position().x())
        elif turn.kind == "pan":
            self.pan(turn.amount)
        else:
            self._canvas.scroll_by(round(turn.amount))
        event.accept()

    def native(self, event: QNativeGestureEvent) -> bool:
        """Pinch zooms at the pointer; True when it was one."""
        if event.gestureType() != Qt.NativeGestureType.ZoomNativeGesture:
            return False
        self.zoom(1 / max(1 + event.value(), 0.1), event.position().x())
        return True

    def press(self, event: QMouseEvent) -> None:
        """A button went down: what the drag will be follows from where and with which keys."""
        place, scene = event.position(), self._scene
        self._pressed, self._from, self.mode = place, scene.viewport.window, ""
        if event.button() == Qt.MouseButton.MiddleButton:
            self.mode = "pan"
            self._canvas.setCursor(Qt.CursorShape.ClosedHandCursor)
        elif event.button() == Qt.MouseButton.LeftButton and place.x() >= scene.left:
            self._anchor = self._snapped(place)
        elif event.button() == Qt.MouseButton.RightButton:
            self._pressed = None

    def move(self, event: QMouseEvent) -> None:
        """The pointer moved, with a button down or not."""
        place, scene = event.position(), self._scene
        scene.pointer = (place.x(), place.y())
        if self._pressed is None or not event.buttons():
            self._canvas.hover(scene.hit(place.x(), place.y()))
            return
        far = (place - self._pressed).manhattanLength() >= _DRAG_PX
        if self.mode == "pan" and self._from is not None:
            moved = Viewport(self._from, scene.viewport.width).panned(self._pressed.x() - place.x())
            self._canvas.looked.emit(moved, scene.viewport.window == self._from)
            return
        if not self.mode and far:
            if self._pressed.x() < scene.left:
                row = scene.row_at(self._pressed.y())
                if row is not None and row[0].track is not None and row[0] not in scene.layout.pinned:
                    self.mode = "move"
            else:
                self.mode = "zoom" if event.modifiers() & Qt.KeyboardModifier.AltModifier else "range"
        if self.mode in ("range", "zoom"):
            now = self._snapped(place)
            scene.dragged = Window(min(self._anchor, now), max(self._anchor, now))
            scene.zooming = self.mode == "zoom"
        elif self.mode == "move":
            scene.dropping = self._drop_target(place.y())
        self._canvas.hover(None)

    def release(self, event: QMouseEvent) -> None:
        """The button went up: the drag takes effect, or it was a click."""
        scene, mode, pressed = self._scene, self.mode, self._pressed
        dragged, scene.dragged = scene.dragged, None
        dropping, scene.dropping = scene.dropping, None
        self.mode, self._pressed = "", None
        self._canvas.unsetCursor()
        if pressed is None:
            return
        if mode == "range" and dragged is not None:
            begun = scene.row_at(pressed.y())
            if begun is not None and begun[0].track is not None:
                self._canvas.made_current.emit(begun[0].identity)
            self._canvas.ranged.emit(dragged if dragged.length else None)
        elif mode == "zoom" and dragged is not None and dragged.length:
            self._canvas.looked.emit(dragged, True)
        elif mode == "move":
            row = scene.row_at(pressed.y())
            if row is not None and dropping is not None and dropping != row[0].identity:
                self._canvas.moved.emit(row[0].identity, dropping)
        elif not mode and event.button() == Qt.MouseButton.LeftButton:
            self._click(pressed, event)
        self._canvas.update()

    def _click(self, place: QPointF, event: QMouseEvent) -> None:
        scene = self._scene
        found = scene.row_at(place.y())
        if found is None:
            return
        row = found[0]
        many = row.track is not None and scene.lanes(row.track)[0] > 1
        if row.group is not None or (many and place.x() < 20 * scene.scale):
            self._canvas.folded.emit(row.identity)
            return
        self._canvas.made_current.emit(row.identity)
        if place.x() >= scene.left:
            self._canvas.picked.emit(scene.hit(place.x(), place.y()))

    def double(self, event: QMouseEvent) -> None:
        """A double click goes to the record."""
        found = self._scene.hit(event.position().x(), event.position().y())
        if found is not None:
            self._canvas.opened.emit(found)

    def leave(self, event: QEvent) -> None:
        """The pointer is gone."""
        self._scene.pointer = None
        self._canvas.hover(None)

    def cancel(self) -> bool:
        """End a drag without effect; True when there was one."""
        going = bool(self.mode)
        self.mode, self._pressed = "", None
        self._scene.dragged, self._scene.dropping = None, None
        return going

    def _snapped(self, place: QPointF) -> int:
        """The time under a point, or the edge of a record that is within a few pixels."""
        scene = self._scene
        at = scene.time(place.x())
        near = scene.hit(place.x(), place.y())
        if near is not None:
            for edge in (near.start, near.end):
                if abs(scene.x(edge) - place.x()) <= _SNAP_PX:
                    return edge
        return round(at)

    def _drop_target(self, y: float) -> str | None:
        found = self._scene.row_at(y)
        return found[0].identity if found is not None and found[0].track is not None else None
