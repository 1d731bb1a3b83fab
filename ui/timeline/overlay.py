"""What lies over the tracks: the selection, marks, launch arrows, the pointer and what it is over."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen

from inspector import units
from inspector.analysis.iterations import Iterations
from inspector.picture.changes import Changes
from inspector.picture.labels import moment
from inspector.picture.timeline import Hit
from inspector.trace.selection import Window
from ui.theme import Theme
from ui.timeline.scene import Scene
from ui.widgets.changes import paint_changes
from ui.widgets.tip_box import paint_tip_box


def paint_overlay(painter: QPainter, scene: Scene, theme: Theme) -> None:
    """Everything that is selected, marked or pointed at."""
    painter.save()
    painter.setClipRect(QRectF(scene.left, 0, scene.width - scene.left, scene.height))
    _iteration(painter, scene, theme)
    if scene.trace is not None:
        tracks = QRectF(scene.left, scene.ruler, scene.width - scene.left, scene.height - scene.ruler)
        changes = [(scene.x(time), text) for time, text in scene.trace.index(Changes).all]
        paint_changes(painter, tracks, changes, theme)
    for mark in scene.marks:
        _span(painter, scene, theme, Window(mark.start, mark.end), mark.label, theme.tokens.doubt, mark.kept)
    if scene.selection.window is not None and scene.dragged is None:
        _range(painter, scene, theme, scene.selection.window, theme.tokens.accent)
    if scene.dragged is not None:
        _range(painter, scene, theme, scene.dragged, theme.tokens.doubt if scene.zooming else theme.tokens.accent)
    _late(painter, scene, theme)
    _arrows(painter, scene, theme)
    accent = QColor(theme.tokens.accent)
    for linked in scene.linked:
        _outline(painter, scene, linked, QPen(accent, 1.2))
    if scene.hover is not None:
        _outline(painter, scene, scene.hover, QPen(QColor(theme.tokens.text), 1))
    if scene.selected is not None:
        _outline(painter, scene, scene.selected, QPen(accent, 2))
    _pointer(painter, scene, theme)
    painter.restore()


def _clip_to_tracks(painter: QPainter, scene: Scene, hit: Hit) -> None:
    pinned = any(row.identity == hit.track.identity for row in scene.layout.pinned)
    top = scene.ruler if pinned else scene.top
    painter.setClipRect(QRectF(scene.left, top, scene.width - scene.left, scene.height - top))


def _outline(painter: QPainter, scene: Scene, hit: Hit, pen: QPen) -> None:
    rect = scene.rect(hit)
    if rect is None:
        return
    painter.save()
    _clip_to_tracks(painter, scene, hit)
    painter.setPen(pen)
    # What is narrower than its outline would vanish beneath it: the frame then stands around it.
    around = 1.0 if rect.width() > 4 else 2.0
    painter.drawRect(rect.adjusted(-around + 0.5, -0.5, around - 0.5, 0.5))
    painter.restore()


def _range(painter: QPainter, scene: Scene, theme: Theme, window: Window, colour: str) -> None:
    left, right = scene.x(window.start), scene.x(window.end)
    wash = QColor(colour)
    wash.setAlpha(26)
    painter.fillRect(QRectF(left, scene.ruler, right - left, scene.height), wash)
    painter.setPen(QPen(QColor(colour), 1))
    for x in (left, right):
        painter.drawLine(QPointF(x, 0), QPointF(x, scene.height))
    text = units.time(window.length)
    painter.setFont(theme.font("small"))
    width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 10
    shown_left, shown_right = max(left, scene.left), min(right, scene.width)
    if shown_right < shown_left:
        return
    middle = min(max((shown_left + shown_right) / 2, scene.left + width / 2), scene.width - width / 2)
    place = QRectF(middle - width / 2, 3, width, scene.ruler - 7)
    painter.fillRect(place, QColor(colour))
    painter.setPen(QColor(theme.tokens.on_accent))
    painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), text)


def _span(painter: QPainter, scene: Scene, theme: Theme, window: Window, text: str, colour: str, kept: bool) -> None:
    left, right = scene.x(window.start), scene.x(window.end)
    painter.setPen(QPen(QColor(colour), 1, Qt.PenStyle.SolidLine if kept else Qt.PenStyle.DashLine))
    for x in {left, right}:
        painter.drawLine(QPointF(x, 0), QPointF(x, scene.height))
    if right > left:
        painter.fillRect(QRectF(left, scene.ruler - 4, right - left, 3), QColor(colour))
    if text:
        painter.setFont(theme.font("small"))
        painter.drawText(QPointF(left + 4, scene.ruler - 6), text)


def _iteration(painter: QPainter, scene: Scene, theme: Theme) -> None:
    number = scene.selection.iteration
    if number is None or scene.trace is None:
        return
    trace = next((made.trace for made in scene.pictures if "iterations" in made.tracks), scene.trace)
    found = trace.index(Iterations)
    wash = QColor(theme.tokens.accent)
    wash.setAlpha(20)
    for row in (found.number == number).nonzero()[0].tolist():
        left, right = scene.x(int(found.start[row])), scene.x(int(found.end[row]))
        painter.fillRect(QRectF(left, scene.ruler, right - left, scene.height), wash)


def _late(painter: QPainter, scene: Scene, theme: Theme) -> None:
    """The time of a selected gap on the tracks of the thread that was late."""
    if scene.selected is None or not scene.late:
        return
    wash = QColor(theme.tokens.accent)
    wash.setAlpha(46)
    left, right = scene.x(scene.selected.start), scene.x(scene.selected.end)
    for row, y in scene.rows():
        if row.identity in scene.late:
            painter.save()
            low = scene.ruler if row in scene.layout.pinned else scene.top
            painter.setClipRect(QRectF(scene.left, low, scene.width - scene.left, scene.height - low))
            painter.fillRect(QRectF(left, y, max(right - left, 1), row.height), wash)
            painter.restore()


def _arrows(painter: QPainter, scene: Scene, theme: Theme) -> None:
    """From each launch call to what it launched, for what is selected."""
    if scene.selected is None or not scene.linked:
        return
    painter.save()
    painter.setClipRect(QRectF(scene.left, scene.top, scene.width - scene.left, scene.height - scene.top))
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    pen = QPen(QColor(theme.tokens.accent), 1.5)
    for other in scene.linked:
        calls = scene.selected.source == "host_calls"
        call, work = (scene.selected, other) if calls else (other, scene.selected)
        from_, to = scene.rect(call), scene.rect(work)
        if from_ is None or to is None:
            continue
        # An end that is out of sight is taken to lie just beyond the edge, so that the arrow still shows where to.
        low, high = scene.left - 60.0, scene.width + 60.0
        start = QPointF(min(max(from_.right(), low), high), from_.center().y())
        end = QPointF(min(max(to.left(), low), high), to.center().y())
        reach = min(max(abs(end.x() - start.x()) * 0.4, 24), 160)
        path = QPainterPath(start)
        path.cubicTo(QPointF(start.x() + reach, start.y()), QPointF(end.x() - reach, end.y()), end)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(path)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.tokens.accent))
        painter.drawPolygon([end, QPointF(end.x() - 7, end.y() - 4), QPointF(end.x() - 7, end.y() + 4)])
    painter.restore()


def _pointer(painter: QPainter, scene: Scene, theme: Theme) -> None:
    if scene.pointer is None or scene.pointer[0] < scene.left:
        return
    x = round(scene.pointer[0]) + 0.5
    colour = QColor(theme.tokens.muted)
    colour.setAlpha(150)
    painter.setPen(QPen(colour, 1))
    painter.drawLine(QPointF(x, scene.ruler), QPointF(x, scene.height))
    if scene.dragged is not None:
        return
    text = moment(round(scene.time(scene.pointer[0])))
    painter.setFont(theme.font("small"))
    width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 10
    left = min(max(x - width / 2, scene.left), scene.width - width)
    place = QRectF(left, 3, width, scene.ruler - 7)
    painter.fillRect(place, QColor(theme.tokens.text))
    painter.setPen(QColor(theme.tokens.surface))
    painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), text)


def paint_tip(painter: QPainter, scene: Scene, theme: Theme, lines: list[tuple[str, str]]) -> None:
    """What is under the pointer, in a box beside it."""
    if scene.pointer is not None:
        paint_tip_box(painter, QRectF(0, 0, scene.width, scene.height), QPointF(*scene.pointer), lines, theme)
