"""The widget that shows a scene: it paints, scrolls, and passes on what the pointer does. It asks nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QScrollBar, QWidget

from inspector.picture.timeline import Hit
from inspector.picture.viewport import Viewport
from ui.theme import Theme
from ui.timeline.gestures import Gestures
from ui.timeline.headers import paint_headers, paint_ruler
from ui.timeline.layout import Layout
from ui.timeline.overlay import paint_overlay, paint_tip
from ui.timeline.painter import TrackPainter
from ui.timeline.scene import Scene

_SOON_MS = 100
Tip = Callable[[Hit], list[tuple[str, str]]]


class Canvas(QWidget):
    """Headers, ruler and tracks. `looked(window, remember)`, `ranged(window or None)`, `picked(hit or None)`,
    `opened(hit)`, `folded(identity)`, `moved(identity, before)`, `made_current(identity)`, `asked_menu(position, hit,
    identity)`, `scrolled()`, `scrolled_by_hand()`, `resized()`.
    """

    looked = Signal(object, bool)
    ranged = Signal(object)
    picked = Signal(object)
    opened = Signal(object)
    folded = Signal(str)
    moved = Signal(str, str)
    made_current = Signal(str)
    asked_menu = Signal(QPoint, object, str)
    scrolled = Signal()
    scrolled_by_hand = Signal()
    resized = Signal()

    def __init__(self, theme: Theme, tip: Tip, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._tip = tip
        self.scene = Scene()
        self.gestures = Gestures(self)
        self._tracks = TrackPainter(theme)
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._bar.setAccessibleName("Scroll the tracks")
        self._bar.valueChanged.connect(self._scrolled)
        self._bar.actionTriggered.connect(self.scrolled_by_hand)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_SOON_MS)
        self._soon.timeout.connect(self.update)
        self.setAccessibleName("Timeline tracks")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    def set_layout(self, layout: Layout) -> None:
        """Show rows there; what stands at the top stays there where it can."""
        kept = next(iter(self.scene.layout.visible(self.scene.scroll, self.scene.scroll + 1)), None)
        offset = self.scene.scroll - kept.top if kept is not None else 0
        self.scene.layout = layout
        again = None if kept is None else layout.find(kept.identity)
        self._measure()
        if again is not None and self.scene.scroll:
            self._bar.setValue(again.top + offset)
        self.update()

    def set_window(self, viewport: Viewport, soon: bool = False) -> None:
        """Show that span of time, at once or `soon`."""
        self.scene.viewport = viewport
        if soon:
            self.update_soon()
        else:
            self.update()

    def update_soon(self) -> None:
        """Repaint with the next thing that changes, or else in a while: of a run many things change at a time."""
        if not self._soon.isActive():
            self._soon.start()

    def hover(self, hit: Hit | None) -> None:
        """The pointer is over that."""
        self.scene.hover = hit
        self.update()

    def scroll_by(self, pixels: int) -> None:
        """Scroll the tracks down."""
        self.scrolled_by_hand.emit()
        self._bar.setValue(self._bar.value() + pixels)

    def scroll_to_top(self) -> None:
        """Show the first track."""
        self._bar.setValue(0)

    def scroll_to(self, identity: str) -> None:
        """Bring a row into view, if it is in the scrolling part and out of sight."""
        row = self.scene.layout.find(identity)
        if row is None:
            return
        room = self.scene.height - self.scene.top
        if row.top < self.scene.scroll:
            self._bar.setValue(row.top)
        elif row.top + row.height > self.scene.scroll + room:
            self._bar.setValue(row.top + row.height - room + 16)

    def scroll_to_all(self, first: str, others: Sequence[str]) -> list[str]:
        """Bring a row into view, and of the others as many, in their order, as fit in beside it. Those that are in
        view then, the first one among them.
        """
        layout, room = self.scene.layout, self.scene.height - self.scene.top
        pinned = {row.identity for row in layout.pinned}
        shown = [identity for identity in (first, *others) if identity in pinned]
        top = bottom = -1
        for identity in (first, *others):
            row = layout.find(identity)
            if row is None:
                continue
            higher, lower = row.top, row.top + row.height
            if bottom >= 0:
                higher, lower = min(higher, top), max(lower, bottom)
                if lower - higher > room:
                    continue
            top, bottom = higher, lower
            shown.append(identity)
        if bottom < 0:
            return shown
        # In one step, or a row that is taller than the room would be sought for ever: each place asks a question.
        self._bar.setValue(min(max(self.scene.scroll, bottom - room), top))
        return shown

    def _measure(self) -> None:
        scene = self.scene
        scene.scale = self._theme.scale
        bar = self._bar.sizeHint().width()
        room = self.height() - scene.top
        needed = scene.layout.height > room
        # The bar's place is kept free, so that nothing moves sideways when it comes.
        scene.width, scene.height = self.width() - bar, self.height()
        self._bar.setVisible(needed)
        self._bar.setGeometry(self.width() - bar, scene.top, bar, max(room, 0))
        self._bar.setPageStep(max(room, 1))
        self._bar.setSingleStep(24)
        self._bar.setRange(0, max(scene.layout.height - room, 0))
        scene.scroll = self._bar.value()
        scene.viewport = Viewport(scene.viewport.window, max(scene.width - scene.left, 1))

    def _scrolled(self, value: int) -> None:
        self.scene.scroll = value
        self.update()
        self.scrolled.emit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """More or less is in view."""
        super().resizeEvent(event)
        self._measure()
        self.resized.emit()

    def paintEvent(self, event: QPaintEvent) -> None:
        """One frame, from whatever pictures there are."""
        self._soon.stop()
        painter = QPainter(self)
        self.render_scene(painter)
        painter.end()

    def render_scene(self, painter: QPainter) -> None:
        """Paint everything."""
        scene = self.scene
        painter.fillRect(self.rect(), self._theme.color("raised"))
        if scene.trace is None:
            return
        self._tracks.paint(painter, scene, self.devicePixelRatioF())
        paint_ruler(painter, scene, self._theme)
        paint_headers(painter, scene, self._theme)
        paint_overlay(painter, scene, self._theme)
        if scene.hover is not None:
            paint_tip(painter, scene, self._theme, self._tip(scene.hover))

    def event(self, event: QEvent) -> bool:
        """Pinches arrive here."""
        if isinstance(event, QNativeGestureEvent) and self.gestures.native(event):
            return True
        return super().event(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """See Gestures."""
        self.gestures.wheel(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """See Gestures."""
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        self.gestures.press(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """See Gestures."""
        self.gestures.move(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """See Gestures."""
        self.gestures.release(event)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """See Gestures."""
        self.gestures.double(event)

    def leaveEvent(self, event: QEvent) -> None:
        """See Gestures."""
        self.gestures.leave(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The menu of what is under the pointer."""
        place = event.pos()
        row = self.scene.row_at(place.y())
        hit = self.scene.hit(place.x(), place.y())
        self.asked_menu.emit(event.globalPos(), hit, "" if row is None else row[0].identity)
