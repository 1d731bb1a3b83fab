"""The column of names on the left, the bars of groups, and the ruler."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF

from inspector import units
from inspector.analysis.iterations import Iterations
from inspector.picture.labels import short
from inspector.picture.tracks import Track, Tracks
from ui.theme import Theme
from ui.timeline.layout import SEPARATOR, Row
from ui.timeline.scene import Scene
from ui.widgets.ruler import LEAST_PX, ticks

_LEFT = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine)


def paint_headers(painter: QPainter, scene: Scene, theme: Theme) -> None:
    """Names of all rows in view, then the ruler over them."""
    painter.fillRect(QRectF(0, scene.ruler, scene.left, scene.height), QColor(theme.tokens.raised))
    pinned = scene.layout.pinned
    for row, y in scene.rows():
        painter.save()
        painter.setClipRect(QRectF(0, scene.ruler if row in pinned else scene.top, scene.width, scene.height))
        if row.group is not None:
            _group(painter, scene, theme, row, y)
        elif row.track is not None:
            _track(painter, scene, theme, row, y, row.track)
        painter.restore()
    if pinned:
        high = SEPARATOR * scene.scale
        painter.fillRect(QRectF(0, scene.top - high, scene.width, high), QColor(theme.tokens.edge))


def _group(painter: QPainter, scene: Scene, theme: Theme, row: Row, y: int) -> None:
    assert row.group is not None
    # What stands for a folded group is seen right of its name.
    summed = row.summary is not None
    bar = QRectF(0, y, scene.left if summed else scene.width, row.height)
    painter.fillRect(bar, QColor(theme.tokens.sunken))
    painter.setPen(QColor(theme.tokens.line))
    painter.drawLine(QPointF(0, y + row.height - 0.5), QPointF(scene.width, y + row.height - 0.5))
    middle = y + row.height / 2
    _chevron(painter, 12 * scene.scale, middle, scene.scale, row.folded, theme.tokens.muted)
    painter.setFont(theme.font("strong"))
    painter.setPen(QColor(theme.tokens.text))
    metrics = QFontMetricsF(painter.font())
    text = row.group.title
    if row.summary is not None:
        room = scene.left - 28 * scene.scale
        text = f"{text} · {row.summary.title}" if row.summary.kind == "counter" else text
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
    painter.drawText(QRectF(22 * scene.scale, y, scene.width, row.height), _LEFT, text)
    if summed:
        return
    after = 22 * scene.scale + metrics.horizontalAdvance(text) + 12 * scene.scale
    painter.setFont(theme.font("small"))
    painter.setPen(QColor(theme.tokens.muted))
    note = " · ".join(part for part in (row.group.note, busy_note(scene, row)) if part)
    painter.drawText(QRectF(after, y, scene.width, row.height), _LEFT, note)


def busy_note(scene: Scene, row: Row) -> str:
    """How much of the span in view the device was busy, exact to a column of the picture."""
    share = busy_share(scene, row.identity)
    return "" if share is None else f"busy {100 * share:.1f} % of the view"


def busy_share(scene: Scene, group: str) -> float | None:
    """Share of the window in which the device of a group was busy; None where no picture tells.

    Of a run only of what had been read when the picture was made: what came later is not idle.
    """
    for picture in scene.pictures:
        for made in picture.tracks.values():
            if made.track.kind == "busy" and made.track.group == group and made.content.lanes:
                pyramid = made.content.lanes[0].pyramid
                window = scene.viewport.window.clipped(scene.viewport.window.start, picture.trace.settled_ns)
                if not window.length:
                    return None
                covered = pyramid.columns(window.start, window.length, 1)
                return int(covered.until[1] - covered.until[0]) / window.length
    return None


def _track(painter: QPainter, scene: Scene, theme: Theme, row: Row, y: int, track: Track) -> None:
    tokens = theme.tokens
    header = QRectF(0, y, scene.left, row.height)
    if scene.current == row.identity:
        painter.fillRect(header, QColor(tokens.wash))
        painter.fillRect(QRectF(0, y, 3, row.height), QColor(tokens.accent))
    if scene.dropping == row.identity:
        painter.fillRect(QRectF(0, y - 1, scene.left, 2), QColor(tokens.accent))
    indent = 22 * scene.scale
    right = scene.left - 8 * scene.scale
    title, note = _texts(scene, track)
    most = (right - indent) * 0.5
    if row.lifted or row in scene.layout.pinned:
        # Out of its group, so it says where it belongs.
        title = " · ".join(part for part in (owner_of(scene, track), title) if part)
        most = max(right - indent - QFontMetricsF(theme.font("small")).horizontalAdvance(title) - 8, most * 0.4)
    small = theme.font("small")
    painter.setFont(small)
    metrics = QFontMetricsF(small)
    line = metrics.height()
    if row.height >= 2 * line + 2:
        top = y + (row.height - 2 * line) / 2 if row.height < 3 * line else y + 3
        places = (QRectF(indent, top, right - indent, line), QRectF(indent, top + line, right - indent, line))
        align = (_LEFT, _LEFT)
    else:
        room = min(metrics.horizontalAdvance(note), most)
        middle = min(row.height, 24 * scene.scale)
        places = (
            QRectF(indent, y, right - indent - room - 6, middle),
            QRectF(right - room, y, room, middle),
        )
        align = (_LEFT, _RIGHT)
    for text, place, flags, colour in zip((title, note), places, align, (tokens.text, tokens.muted), strict=True):
        painter.setPen(QColor(colour))
        mode = Qt.TextElideMode.ElideMiddle if colour == tokens.text else Qt.TextElideMode.ElideRight
        painter.drawText(place, flags, metrics.elidedText(text, mode, place.width()))
    if track.kind == "iterations":
        _processes(painter, scene, theme, row, y, track)
    sign = QPointF(12 * scene.scale, places[0].center().y())
    if row in scene.layout.pinned:
        painter.setBrush(QColor(tokens.accent))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.drawEllipse(sign, 3 * scene.scale, 3 * scene.scale)
    elif scene.lanes(track)[0] > 1:
        _chevron(painter, sign.x(), sign.y(), scene.scale, row.folded, tokens.muted)
    painter.setPen(QColor(tokens.line))
    painter.drawLine(QPointF(0, y + row.height - 0.5), QPointF(scene.left, y + row.height - 0.5))
    painter.drawLine(QPointF(scene.left - 0.5, y), QPointF(scene.left - 0.5, y + row.height))


def _processes(painter: QPainter, scene: Scene, theme: Theme, row: Row, y: int, track: Track) -> None:
    """Beside its lanes of iterations the process that ran them, where there are several."""
    painter.setPen(QColor(theme.tokens.muted))
    metrics = QFontMetricsF(painter.font())
    room = scene.left * 0.55
    for number, name in iteration_owners(scene, track).items():
        top, bottom = scene.spans(row)[number]
        place = QRectF(scene.left - 8 * scene.scale - room, y + top, room, max(bottom - top, metrics.height()))
        painter.drawText(place, _RIGHT, metrics.elidedText(name, Qt.TextElideMode.ElideRight, room))


def iteration_owners(scene: Scene, track: Track) -> dict[int, str]:
    """The first lane of each process whose iterations are shown, and its name; empty where there is one only."""
    trace, content = scene.trace_of(track), scene.content(track)
    if trace is None or content is None:
        return {}
    process = trace.index(Iterations).process
    found: dict[int, int] = {}
    for number, lane in enumerate(content.lanes):
        found.setdefault(int(process[lane.row[0]]), number)
    if len(found) < 2:
        return {}
    return {
        number: trace.process_name(each).split(" · ")[0] if each >= 0 else "process unknown"
        for each, number in found.items()
    }


def owner_of(scene: Scene, track: Track) -> str:
    """Short name of the device or process that a track belongs to."""
    return "" if scene.trace is None else scene.trace.index(Tracks).owner(track)


def _texts(scene: Scene, track: Track) -> tuple[str, str]:
    """Title and note of a track; a counter's note is its value under the pointer."""
    if track.kind != "counter":
        return track.title, track.note
    found = scene.picture_of(track)
    if found is None or found[1].curve is None:
        return track.title, track.note
    samples = found[1].curve.samples
    over = scene.pointer is not None and scene.pointer[0] >= scene.left
    value = samples.at(scene.time(scene.pointer[0])) if over and scene.pointer is not None else samples.top
    if value != value:
        return track.title, track.note
    text = quantity(value, track.note)
    return short(track.title), text if over else f"max {text}"


def quantity(value: float, unit: str) -> str:
    """A counter's value with its unit: bytes as data sheets give them, hertz with a prefix, the rest in thousands.

    What is counted has no decimals; a share has them even where they are zeros, so that it keeps its width.
    """
    if unit in ("bytes", "B"):
        return units.size(value)
    if unit in ("bytes/s", "B/s"):
        return units.rate(value)
    if unit == "Hz" and abs(value) >= 1000:
        return f"{units.count(value)}Hz"
    if abs(value) >= 10_000:
        return f"{units.count(value)} {unit}".strip()
    counted = float(value).is_integer() and not unit.startswith("%")
    return f"{units.exact(int(value)) if counted else units.three_digits(value)} {unit}".strip()


def _chevron(painter: QPainter, x: float, y: float, scale: float, folded: bool, colour: str) -> None:
    size = 3.5 * scale
    if folded:
        points = [QPointF(x - size / 2, y - size), QPointF(x + size / 2, y), QPointF(x - size / 2, y + size)]
    else:
        points = [QPointF(x - size, y - size / 2), QPointF(x, y + size / 2), QPointF(x + size, y - size / 2)]
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(colour), 1.5 * scale))
    painter.drawPolyline(QPolygonF(points))
    painter.restore()


def paint_ruler(painter: QPainter, scene: Scene, theme: Theme) -> None:
    """Times along the top; left of them how long the span in view is, or from where the labels count."""
    tokens = theme.tokens
    area = QRectF(0, 0, scene.width, scene.ruler)
    painter.fillRect(area, QColor(tokens.raised))
    painter.setFont(theme.font("small"))
    metrics = QFontMetricsF(painter.font())
    found = ticks(scene.viewport.window, scene.viewport.width, LEAST_PX * scene.scale)
    painter.setPen(QColor(tokens.text))
    right = scene.left - 8 * scene.scale
    indent = 22 * scene.scale
    span = units.time(scene.viewport.window.length)
    painter.drawText(QRectF(indent, 0, right - indent, scene.ruler), _LEFT, span)
    painter.setPen(QColor(tokens.muted))
    place = QRectF(indent, 0, right - indent, scene.ruler)
    painter.drawText(place, _RIGHT, found.base or "in view")
    painter.save()
    painter.setClipRect(QRectF(scene.left, 0, scene.width, scene.ruler))
    painter.setPen(QColor(tokens.line))
    low = scene.ruler - 0.5
    for time in found.minor:
        x = round(scene.x(time)) + 0.5
        painter.drawLine(QPointF(x, low - 4), QPointF(x, low))
    for time, text in found.major:
        x = round(scene.x(time)) + 0.5
        painter.setPen(QColor(tokens.edge))
        painter.drawLine(QPointF(x, low - 9), QPointF(x, low))
        if x + 4 + metrics.horizontalAdvance(text) <= scene.width:
            painter.setPen(QColor(tokens.muted))
            painter.drawText(QPointF(x + 4, low - 9 + metrics.ascent() / 2), text)
    painter.restore()
    painter.setPen(QColor(tokens.line))
    painter.drawLine(QPointF(0, low), QPointF(scene.width, low))
