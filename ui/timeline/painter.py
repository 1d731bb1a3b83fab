"""Painting the tracks: one image for everything that has columns, then the names of what is wide enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter

from inspector import units
from inspector.analysis.causes import CAUSES, Causes
from inspector.analysis.iterations import Iterations
from inspector.picture import screen
from inspector.picture.labels import fit, short
from inspector.picture.palette import INKS, Pattern, ink, mark_on, text_on
from inspector.picture.palette import Theme as Scheme
from inspector.picture.timeline import LongEvents, Picture, TrackPicture
from inspector.picture.tracks import Track
from inspector.picture.viewport import Viewport
from inspector.trace.trace import Trace
from ui import raster
from ui.theme import Theme
from ui.timeline.layout import Row
from ui.timeline.scene import Scene
from ui.widgets.ruler import LEAST_PX, ticks

Pixels = npt.NDArray[np.uint32]
_LABEL_PX = 30
_EDGE_PX = 5
_PATTERNED = [number for number, entry in enumerate(INKS) if entry.pattern != "solid"]
_IS_PATTERNED = np.isin(np.arange(256), _PATTERNED)
_STROKES = 6
_BUSY, _COUNTER, _BRACKET = ink("busy"), ink("counter"), ink("graph launch")


@dataclass(frozen=True)
class _Colours:
    scheme: Scheme
    shades: screen.Shades
    text: tuple[str, ...]
    packed: npt.NDArray[np.uint32]
    surface: int
    line: int
    marks: dict[int, tuple[Pattern, int]]


@lru_cache(maxsize=4)
def _colours(scheme: Scheme, surface: str, line: str, pattern: str) -> _Colours:
    return _Colours(
        scheme,
        screen.Shades.of(scheme, surface),
        tuple(text_on(entry.colour(scheme)) for entry in INKS),
        np.array([screen.packed(entry.colour(scheme)) for entry in INKS], np.uint32),
        screen.packed(surface),
        screen.packed(line),
        {number: (INKS[number].pattern, screen.packed(_mark(number, scheme, pattern))) for number in _PATTERNED},
    )


def _mark(number: int, scheme: Scheme, neutral: str) -> str:
    """Light greys take a neutral mark, colours one of their own."""
    entry = INKS[number]
    return neutral if entry.pattern in ("dots", "hatch") else mark_on(entry.colour(scheme))


class TrackPainter:
    """Paints the rows of a scene right of the headers."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._elided: dict[tuple[tuple[str, ...], int, int], str] = {}

    def paint(self, painter: QPainter, scene: Scene, ratio: float) -> None:
        """One frame; `ratio` device pixels to a unit."""
        tokens = self._theme.tokens
        scheme: Scheme = "dark" if self._theme.dark else "light"
        colours = _colours(scheme, tokens.surface, tokens.line, tokens.faint)
        rows = [(row, y) for row, y in scene.rows() if row.shown is not None]
        width = scene.width - scene.left
        height = scene.height - scene.ruler
        if width <= 0 or height <= 0:
            return
        wide = Viewport(scene.viewport.window, max(round(width * ratio), 1))
        pixels = np.full((height, wide.width), colours.surface, np.uint32)
        for picture in scene.pictures:
            mine = []
            for row, y in rows:
                found = None if row.shown is None else scene.picture_of(row.shown)
                if found is not None and found[0] is picture:
                    mine.append((row, y, found[1]))
            _Frame(scene, picture, wide, colours, pixels).draw(mine)
        _rules(scene, rows, pixels, colours)
        _grid(scene, wide, pixels, colours)
        raster.paint(painter, QRectF(scene.left, scene.ruler, width, height), pixels)
        painter.setFont(self._theme.font("small"))
        painter.save()
        painter.setClipRect(QRectF(scene.left, scene.ruler, width, height))
        self._labels(painter, scene, rows, colours)
        painter.restore()

    def _labels(self, painter: QPainter, scene: Scene, rows: list[tuple[Row, int]], colours: _Colours) -> None:
        font = painter.font()
        metrics = QFontMetricsF(font)
        muted = QColor(self._theme.tokens.muted)
        for row, y in rows:
            if row.track is None or row.folded:
                continue
            found = scene.picture_of(row.track)
            if found is None:
                if row.identity in scene.waiting:
                    painter.setPen(muted)
                    place = QRectF(scene.left + 8, y, scene.width, row.height)
                    painter.drawText(place, int(Qt.AlignmentFlag.AlignVCenter), "working…")
                continue
            if row.track.kind in ("busy", "counter"):
                continue
            if not found[1].content.lanes:
                painter.setPen(muted)
                place = QRectF(scene.left + 8, y, scene.width, row.height)
                painter.drawText(place, int(Qt.AlignmentFlag.AlignVCenter), _nothing(row))
            low = scene.ruler if row in scene.layout.pinned else scene.top
            for number, (top, bottom) in enumerate(scene.spans(row)[: len(found[1].content.lanes)]):
                if bottom - top < metrics.ascent() or y + bottom <= low:
                    continue
                if y + top < low:
                    painter.save()
                    painter.setClipRect(QRectF(scene.left, low, scene.width, scene.height))
                    self._lane_labels(painter, scene, found[1], number, y + top, bottom - top, metrics, colours)
                    painter.restore()
                else:
                    self._lane_labels(painter, scene, found[1], number, y + top, bottom - top, metrics, colours)

    def _lane_labels(
        self,
        painter: QPainter,
        scene: Scene,
        made: TrackPicture,
        number: int,
        top: float,
        height: float,
        metrics: QFontMetricsF,
        colours: _Colours,
    ) -> None:
        trace = scene.trace_of(made.track)
        assert trace is not None
        long, lane = made.long[number], made.content.lanes[number]
        left, right = _pixels(long, scene)
        for at in np.flatnonzero(right - left >= _LABEL_PX * scene.scale).tolist():
            position = int(long.at[at])
            kind = int(lane.pyramid.kind[position])
            texts = labels(trace, made.track, lane.source(position), int(lane.row[position]))
            room = float(right[at] - left[at]) - 8
            shown = self._fitted(texts, room, metrics, painter.font())
            if not shown:
                continue
            greyed = long.wanted is not None and not long.wanted[at]
            painter.setPen(QColor(self._theme.tokens.faint if greyed else colours.text[kind]))
            place = QRectF(float(left[at]) + 4, top, room + 2, height)
            painter.drawText(place, int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine), shown)

    def _fitted(self, texts: tuple[str, ...], room: float, metrics: QFontMetricsF, font: QFont) -> str:
        key = (texts, int(room), font.pixelSize())
        found = self._elided.get(key)
        if found is None:
            if len(self._elided) > 20_000:
                self._elided.clear()

            def fits(form: str) -> bool:
                return metrics.horizontalAdvance(form) <= room

            whole = next((text for text in texts[:-1] if fits(text)), "")
            found = self._elided[key] = whole or fit(texts[-1], fits)
        return found


class _Frame:
    """The tracks of one picture, put into the pixels of one frame."""

    def __init__(self, scene: Scene, picture: Picture, wide: Viewport, colours: _Colours, pixels: Pixels) -> None:
        self.scene, self.picture, self.wide, self.colours, self.pixels = scene, picture, wide, colours, pixels

    def draw(self, rows: list[tuple[Row, int, TrackPicture]]) -> None:
        needed = [made.first + at for _, _, made in rows for at in range(len(made.long))]
        index = np.array(needed, np.int64)
        shown = screen.on_screen(self.picture.stack, self.wide, index)
        chosen = None if self.picture.matches is None else screen.on_screen(self.picture.matches, self.wide, index)
        at = 0
        for row, y, made in rows:
            top = y - self.scene.ruler
            clip = 0 if row in self.scene.layout.pinned else self.scene.layout.pinned_height
            if row.group is not None:
                self._summary(row, top, clip, made, shown, at)
            elif made.curve is not None:
                self._curve(row, top, clip, made)
            elif made.track.kind == "busy":
                if made.long:
                    self._busy(row, top, clip, shown.share[at], shown.touched[at])
            else:
                self._lanes(row, top, clip, made, shown, chosen, at)
            if made.track.kind in ("busy", "causes"):
                self._not_yet(row, top, clip)
            at += len(made.long)

    def _block(self, top: int, bottom: int, clip: int) -> tuple[Pixels, int]:
        """The visible part of the pixel rows [top, bottom), and how many of its rows are cut off above."""
        first = max(top, clip, 0)
        return self.pixels[first : max(bottom, first)], first - top

    def _summary(self, row: Row, top: int, clip: int, made: TrackPicture, shown: screen.Screen, at: int) -> None:
        """A curve, or the first lane, in the bar of a folded group."""
        if made.curve is not None:
            self._curve(row, top, clip, made)
        if not made.long:
            return
        if made.track.kind == "busy":
            self._busy(row, top, clip, shown.share[at], shown.touched[at])
            return
        block, _ = self._block(top + 5, top + row.height - 5, clip)
        if len(block):
            block[:] = screen.band(shown, at, self.colours.shades)

    def _curve(self, row: Row, top: int, clip: int, made: TrackPicture) -> None:
        assert made.curve is not None
        low, high = screen.curve_on_screen(made.curve, self.picture.grid, self.wide)
        height = row.height - 4
        ground, colour = self.colours.surface, int(self.colours.packed[_COUNTER])
        block = screen.curve_block(low, high, made.curve.samples, height, ground, colour)
        target, cut = self._block(top + 2, top + 2 + height, clip)
        target[:] = block[cut : cut + len(target)]

    def _busy(self, row: Row, top: int, clip: int, share: screen.Float, touched: npt.NDArray[np.bool_]) -> None:
        height = row.height - 5
        colour = int(self.colours.packed[_BUSY])
        block = screen.histogram(share, touched, height, self.colours.surface, colour)
        target, cut = self._block(top + 4, top + 4 + height, clip)
        target[:] = block[cut : cut + len(target)]

    def _not_yet(self, row: Row, top: int, clip: int) -> None:
        """Of a run: thin strokes over what was not read yet when the picture was made, so that it looks not idle."""
        trace = self.picture.trace
        first = math.ceil((trace.settled_ns - self.wide.window.start) / self.wide.ns_per_px)
        if not trace.generation or first >= self.wide.width:
            return
        block, cut = self._block(top + 4, top + row.height - 1, clip)
        down, across = np.arange(len(block))[:, None] + cut, np.arange(max(first, 0), self.wide.width)[None, :]
        block[:, max(first, 0) :][(across + down) % _STROKES == 0] = self.colours.line

    def _lanes(
        self,
        row: Row,
        top: int,
        clip: int,
        made: TrackPicture,
        shown: screen.Screen,
        chosen: screen.Screen | None,
        first: int,
    ) -> None:
        spans = self.scene.spans(row)
        lanes = len(made.content.lanes)
        for number in range(len(made.long)):
            bracket = number >= lanes
            if bracket:
                if row.folded:
                    continue
                low, high = 2, max((spans[0][0] if spans else 5) - 1, 4)
            elif number < len(spans):
                low, high = spans[number]
            else:
                continue
            block, _ = self._block(top + low, top + high, clip)
            if not len(block):
                continue
            line = screen.band(shown, first + number, self.colours.shades, None if bracket else chosen)
            if bracket:
                self._bracket(block, line, made.long[number])
                continue
            block[:] = line
            inks = np.where(shown.touched[first + number], shown.ink[first + number], 255)
            if chosen is None and _IS_PATTERNED[inks].any():
                screen.textured(block, inks, self.colours.marks)
            self._edges(block, made.long[number])

    def _edges(self, block: Pixels, long: LongEvents) -> None:
        """A line of ground where an event begins right after another one."""
        left, right = self._columns(long)
        wide = (right - left >= _EDGE_PX) & (left >= 0) & (left < block.shape[1])
        block[:, left[wide].astype(np.int64)] = self.colours.surface

    def _bracket(self, block: Pixels, line: Pixels, long: LongEvents) -> None:
        """A beam with a foot at each end."""
        block[0] = line
        left, right = self._columns(long)
        for ends in (left, right - 1):
            inside = (ends >= 0) & (ends < block.shape[1]) & (right - left >= _EDGE_PX)
            block[:, ends[inside].astype(np.int64)] = self.colours.packed[_BRACKET]

    def _columns(self, long: LongEvents) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        start = self.wide.window.start
        left = np.floor((long.start - start) / self.wide.ns_per_px)
        return left, np.ceil((long.end - start) / self.wide.ns_per_px)


def _rules(scene: Scene, rows: list[tuple[Row, int]], pixels: Pixels, colours: _Colours) -> None:
    """A hair line under every row."""
    for row, y in rows:
        at = y + row.height - 1 - scene.ruler
        if (0 if row in scene.layout.pinned else scene.layout.pinned_height) <= at < len(pixels):
            pixels[at] = colours.line


def _grid(scene: Scene, wide: Viewport, pixels: Pixels, colours: _Colours) -> None:
    """Lines of ground under the major ticks, behind everything, so that far rows can be read against the ruler."""
    major = ticks(scene.viewport.window, scene.viewport.width, LEAST_PX * scene.scale).major
    at = np.array([wide.x(time) for time, _ in major]).astype(np.int64)
    for column in at[(at >= 0) & (at < wide.width)].tolist():
        line = pixels[:, column]
        line[line == colours.surface] = colours.line


def _pixels(long: LongEvents, scene: Scene) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Visible left and right edge of each event, in pixels of the canvas."""
    start, per_px = scene.viewport.window.start, scene.viewport.ns_per_px
    left = np.maximum(scene.left + (long.start - start) / per_px, scene.left)
    return left, np.minimum(scene.left + (long.end - start) / per_px, scene.width)


def _nothing(row: Row) -> str:
    assert row.track is not None
    texts = {"iterations": "no iterations found in this trace", "causes": "never idle"}
    return texts.get(row.track.kind, "")


def labels(trace: Trace, track: Track, source: str, row: int) -> tuple[str, ...]:
    """What is written on a record, from the fullest to the shortest, which may be cut."""
    if source == "causes":
        slices = trace.index(Causes).devices[track.key]
        cause, time = CAUSES[int(slices.cause[row])], units.time(int(slices.end[row] - slices.start[row]))
        host = int(slices.host[row])
        more = (f"{cause} · {short(trace.names[host])} · {time}",) if host >= 0 else ()
        return (*more, f"{cause} {time}", cause)
    if source == "iterations":
        found = trace.index(Iterations)
        number, kind = str(int(found.number[row])), found.kind(row)
        requests = f"{number} · {int(found.context[row])} context, {int(found.generation[row])} generation"
        return (requests, number) if kind else (number,)
    return (trace.names[int(trace[source]["name"][row])] if source in trace.tables else "",)
