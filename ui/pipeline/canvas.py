"""Stages as rows over time: micro-batches as cells, bubbles hatched and named, and the bubble share per iteration."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QWidget

from inspector import units
from inspector.analysis.pipeline import IDLE
from inspector.picture.palette import HUES, ink, text_on
from inspector.picture.pipeline import IDLE_INKS, Pieces, PipelinePicture
from inspector.picture.viewport import Viewport
from inspector.trace.selection import Window
from ui.inks import color_of, fill
from ui.pipeline.hints import between_iterations, of_piece, of_span
from ui.pipeline.strip import paint_strip
from ui.stack import paint_stack
from ui.theme import Theme
from ui.widgets.hint import show_hint
from ui.widgets.ruler import ticks
from ui.widgets.wheel import Movement, read_wheel

_MIDDLE = int(Qt.AlignmentFlag.AlignCenter)
_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
_RULER, _STRIP, _HEADER, _ROW, _LEAST, _TALLEST = 20, 64, 176, 44, 18, 160
# A thread seldom has its processor all the time: less than this is not drawn into a cell.
_LEAST_LOST = 0.05
_INKS = (ink("busy"), *IDLE_INKS)
_STRIPED_FROM = 5
_NAMED_FROM = 12
_HIDES = 0.3


class PipelineCanvas(QWidget):
    """`looked(window, remember)` when one zooms or pans; `picked(iteration)` when a cell or a bar of the strip is
    clicked, None beside them; `entered(iteration)` on double click or Return; `stepped(direction)` by arrow keys.
    """

    looked = Signal(object, bool)
    resized = Signal()
    picked = Signal(object)
    entered = Signal(object)
    stepped = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._answer: PipelinePicture | None = None
        self._viewport = Viewport(Window(0, 1), 1)
        self._iteration: int | None = None
        self._pressed: QPoint | None = None
        self._from = Window(0, 1)
        self._movement = Movement()
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Pipeline stages")

    def sizeHint(self) -> QSize:
        """The place that there is decides."""
        return QSize(self._theme.px(480), self._theme.px(_RULER + _STRIP + 3 * _ROW))

    def minimumSizeHint(self) -> QSize:
        """Two small rows."""
        return QSize(self._theme.px(_HEADER + 120), self._theme.px(_RULER + _STRIP + 2 * _LEAST))

    def columns(self) -> int:
        """How many columns an answer should have."""
        return max(round((self.width() - self._left) * self.devicePixelRatioF()), 16)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Other columns."""
        super().resizeEvent(event)
        self.resized.emit()

    def show_picture(self, answer: PipelinePicture) -> None:
        """Paint that."""
        self._answer = answer
        self.setAccessibleDescription(self._words())
        self.update()

    def set_window(self, window: Window, iteration: int | None) -> None:
        """Show that span of time, with that iteration marked."""
        self._viewport = Viewport(window, max(self.width() - self._left, 1))
        self._iteration = iteration
        self.update()

    @property
    def _left(self) -> int:
        return self._theme.px(_HEADER)

    @property
    def _strip(self) -> int:
        px = self._theme.px
        num = max(self._answer.num_stages if self._answer is not None else 1, 1)
        # Where it is low the rows come first.
        left = max(self.height() - px(_RULER) - num * px(_LEAST) - px(6), px(_LEAST))
        return min(max(self.height() // 5, px(_STRIP)), px(_TALLEST), left)

    def _words(self) -> str:
        answer = self._answer
        if answer is None:
            return ""
        figures = answer.figures
        rows = []
        for row, name in enumerate(answer.names):
            busy, idle = int(figures.busy_ns[row]), figures.idle_ns[row]
            worst = int(np.argmax(idle))
            share = units.share(busy, figures.active_ns + figures.between_ns)
            cause = f", idle most by {IDLE[worst]}" if idle[worst] else ""
            rows.append(f"{name} busy {share} in view{cause}")
        return "; ".join(rows)

    def row_rect(self, stage: int) -> QRectF:
        """Where a stage's row is."""
        px = self._theme.px
        num = max(self._answer.num_stages if self._answer is not None else 1, 1)
        room = self.height() - px(_RULER) - self._strip - px(6)
        height = min(max(room / num, px(_LEAST)), px(_TALLEST))
        return QRectF(self._left, px(_RULER) + stage * height, self.width() - self._left, height - px(3))

    def strip_rect(self) -> QRectF:
        """Where the bubble shares are."""
        px = self._theme.px
        num = max(self._answer.num_stages if self._answer is not None else 1, 1)
        top = max(self.row_rect(num - 1).bottom() + px(8), 0)
        return QRectF(self._left, top, self.width() - self._left - px(4), self._strip - px(8))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Ruler, rows, strip."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("surface"))
        answer = self._answer
        if answer is None:
            return
        self._ruler(painter)
        for stage in range(answer.num_stages):
            self._header(painter, answer, stage)
            painter.fillRect(self.row_rect(stage), self._theme.color("sunken"))
        last = self.row_rect(answer.num_stages - 1).bottom() if answer.num_stages else 0
        painter.save()
        painter.setClipRect(QRectF(self._left, self._theme.px(_RULER), self.width() - self._left, last))
        if answer.pieces is not None:
            self._pieces(painter, answer.pieces)
        else:
            self._shares(painter, answer)
        self._marked(painter, answer)
        painter.restore()
        paint_strip(painter, self.strip_rect(), answer, self._viewport, self._iteration, self._theme)
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color("accent"), 1))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _x(self, time: float) -> float:
        return self._left + self._viewport.x(time)

    def _ruler(self, painter: QPainter) -> None:
        px = self._theme.px
        found = ticks(self._viewport.window, self._viewport.width)
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("muted"))
        if found.base:
            painter.drawText(QRectF(px(4), 0, self._left - px(8), px(_RULER)), _LEFT, found.base)
        metrics = painter.fontMetrics()
        for time, label in found.major:
            x = self._x(time)
            painter.drawLine(QPointF(x, px(_RULER) - px(4)), QPointF(x, px(_RULER)))
            room = QRectF(x + px(3), 0, metrics.horizontalAdvance(label) + 2, px(_RULER))
            if room.right() <= self.width():
                painter.drawText(room, _LEFT, label)

    def _header(self, painter: QPainter, answer: PipelinePicture, stage: int) -> None:
        px, row = self._theme.px, self.row_rect(stage)
        box = QRectF(px(4), row.top(), self._left - px(12), row.height())
        # Of the time in view, as the timeline says of a device: bubbles alone are shares of the iterations' time.
        figures = answer.figures
        share = units.share(int(figures.busy_ns[stage]), figures.active_ns + figures.between_ns)
        busy = f"busy {share} in view"
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("text"))
        room = box.width() - painter.fontMetrics().horizontalAdvance(busy) - px(4)
        name = painter.fontMetrics().elidedText(
            answer.names[stage], Qt.TextElideMode.ElideRight, int(max(room, px(40)))
        )
        painter.setFont(self._theme.font("text"))
        painter.drawText(box, _LEFT, name)
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("muted"))
        painter.drawText(box, _RIGHT, busy)

    def _pieces(self, painter: QPainter, pieces: Pieces) -> None:
        painter.setFont(self._theme.font("small"))
        order = np.argsort(pieces.kind < 0, kind="stable")  # bubbles first: a cell of a pixel stays visible
        scale = self._viewport.width / self._viewport.window.length
        start = self._left + (pieces.start[order] - self._viewport.window.start) * scale
        end = self._left + (pieces.end[order] - self._viewport.window.start) * scale
        left, right = np.maximum(start, self._left - 2.0), np.minimum(end, self.width() + 2.0)
        rows = [self.row_rect(stage) for stage in range(int(pieces.stage.max(initial=0)) + 1)]
        hues = [color_of(each, self._theme) for each in HUES]
        idle = [color_of(each, self._theme) for each in IDLE_INKS]
        numbers = (pieces.stage, pieces.kind, pieces.micro_batch, pieces.idle)
        columns = (left, np.maximum(right - left, 0.7), *(each[order] for each in numbers))
        for x, width, stage, kind, micro, lost in zip(*(each.tolist() for each in columns), strict=True):
            box = QRectF(x, rows[stage].top(), width, rows[stage].height())
            ground = idle[kind] if kind >= 0 else hues[max(micro, 0) % len(hues)]
            if kind >= 0 and width >= _STRIPED_FROM:
                fill(painter, box, IDLE_INKS[kind], self._theme)
            else:
                painter.fillRect(box, ground)
            if kind < 0:
                self._contention(painter, box, lost)
            if width > 4:
                painter.setPen(self._theme.color("surface"))
                painter.drawLine(box.topRight(), box.bottomRight())
            if width >= _NAMED_FROM:
                name = IDLE[kind] if kind >= 0 else f"{micro}" if micro >= 0 else ""
                self._name(painter, box, name, ground, plate=kind >= 0 or lost > _HIDES)

    def _name(self, painter: QPainter, box: QRectF, name: str, ground: QColor, plate: bool) -> None:
        """Its name where there is room, on a plate where stripes would run through it."""
        px = self._theme.px
        room = painter.fontMetrics().horizontalAdvance(name) + px(6)
        if not name or box.width() < room:
            return
        if plate:
            middle = box.center()
            painter.fillRect(QRectF(middle.x() - room / 2, middle.y() - px(8), room, px(16)), ground)
        painter.setPen(QColor(text_on(ground.name())))
        painter.drawText(box, _MIDDLE, name)

    def _contention(self, painter: QPainter, box: QRectF, share: float) -> None:
        """The upper part of a cell, pale and striped: the share of its time in which its thread had no processor."""
        if np.isfinite(share) and share >= _LEAST_LOST and box.width() >= _STRIPED_FROM:
            part = QRectF(box.left(), box.top(), box.width(), box.height() * min(share, 1))
            pale = self._theme.color("surface")
            pale.setAlpha(115)
            painter.fillRect(part, pale)
            painter.fillRect(part, QBrush(color_of(ink("no processor"), self._theme), Qt.BrushStyle.FDiagPattern))

    def _shares(self, painter: QPainter, answer: PipelinePicture) -> None:
        """Each column from below: busy, then idle by cause, as parts of the row."""
        left = self._x(answer.window.start)
        width = self._x(answer.window.end) - left
        for stage in range(answer.num_stages):
            row = self.row_rect(stage)
            box = QRectF(left, row.top(), width, row.height())
            paint_stack(painter, box, answer.shares[stage], _INKS, self._theme, self.devicePixelRatioF())

    def _marked(self, painter: QPainter, answer: PipelinePicture) -> None:
        """The selected iteration."""
        for row in (
            np.flatnonzero(answer.spans.iteration == self._iteration).tolist() if self._iteration is not None else ()
        ):
            left, right = self._x(int(answer.spans.start[row])), self._x(int(answer.spans.end[row]))
            top, last = self.row_rect(0), self.row_rect(max(answer.num_stages - 1, 0))
            wash = self._theme.color("accent")
            painter.setPen(QPen(wash, self._theme.px(2)))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(left, top.top() + 1, max(right - left, 2), last.bottom() - top.top() - 2))

    def piece_at(self, place: QPoint) -> int:
        """The cell or bubble at a place; -1 none."""
        answer = self._answer
        if answer is None or answer.pieces is None or place.x() < self._left:
            return -1
        pieces, time = answer.pieces, self._viewport.time(place.x() - self._left)
        stage = next((row for row in range(answer.num_stages) if self.row_rect(row).contains(QPointF(place))), -1)
        found = np.flatnonzero((pieces.stage == stage) & (pieces.start <= time) & (time < pieces.end))
        return int(found[0]) if len(found) else -1

    def iteration_at(self, place: QPoint) -> int | None:
        """The iteration at a place of the rows or the strip."""
        answer = self._answer
        if answer is None or place.x() < self._left:
            return None
        at = self.piece_at(place)
        if at >= 0 and answer.pieces is not None and int(answer.pieces.iteration[at]) >= 0:
            return int(answer.pieces.iteration[at])
        time = self._viewport.time(place.x() - self._left)
        row = int(np.searchsorted(answer.spans.start, time, "right")) - 1
        if row < 0 or time >= int(answer.spans.end[row]):
            return None
        number = int(answer.spans.iteration[row])
        return number if number >= 0 else None

    def hint(self, place: QPoint) -> list[tuple[str, str]]:
        """What the box beside the pointer says there."""
        answer, at = self._answer, self.piece_at(place)
        if answer is None or place.x() < self._left:
            return []
        if at >= 0 and answer.pieces is not None:
            return of_piece(answer, answer.pieces, at)
        time = round(self._viewport.time(place.x() - self._left))
        row = int(np.searchsorted(answer.spans.start, time, "right")) - 1
        if row < 0 or time >= int(answer.spans.end[row]):
            return between_iterations(time) if len(answer.spans) else []
        return of_span(answer, row)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Pan, or say what is there."""
        place = event.position().toPoint()
        if self._pressed is not None and abs(place.x() - self._pressed.x()) > 3:
            shift = round((place.x() - self._pressed.x()) * self._viewport.ns_per_px)
            self.looked.emit(Window(self._from.start - shift, self._from.end - shift), False)
            show_hint(self, place, ())
            return
        show_hint(self, place, self.hint(place))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Take hold of the time."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._from = event.position().toPoint(), self._viewport.window

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click selects the iteration."""
        place = event.position().toPoint()
        if self._pressed is not None and abs(place.x() - self._pressed.x()) <= 3:
            self.picked.emit(self.iteration_at(place))
        self._pressed = None

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Look at the iteration."""
        iteration = self.iteration_at(event.position().toPoint())
        if iteration is not None:
            self.entered.emit(iteration)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Ctrl zooms at the pointer, everything else pans: there are no rows to scroll."""
        turn, port = read_wheel(event, scrolls=False), self._viewport
        zoomed = turn.kind == "zoom"
        x = min(max(event.position().x() - self._left, 0), port.width)
        window = port.zoomed(turn.amount, x) if zoomed else port.panned(turn.amount)
        self.looked.emit(window, self._movement.begins())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and Right go from iteration to iteration, Return looks at it."""
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.stepped.emit(1 if event.key() == Qt.Key.Key_Right else -1)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._iteration is not None:
            self.entered.emit(self._iteration)
        else:
            super().keyPressEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        """Say nothing."""
        show_hint(self, QPoint(), ())
