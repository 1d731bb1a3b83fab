"""All that the canvas shows at one moment, and where on it things stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from PySide6.QtCore import QRectF

from inspector.picture.rows import Content
from inspector.picture.timeline import Hit, Picture, TrackPicture
from inspector.picture.tracks import Track
from inspector.picture.viewport import Viewport
from inspector.trace.selection import NOTHING, Selection, Window
from inspector.trace.trace import Trace
from ui.kept import Mark
from ui.timeline.layout import Layout, Row, lane_spans

RULER_HEIGHT = 26
HEADER_WIDTH = 216
# Ruler, the strip that tells why a device was idle, and the calls of the thread that was late.
LEAST_HEIGHT = RULER_HEIGHT + 64
_NEAR_PX = 3.0


@dataclass
class Scene:
    """Changed by the view between frames, read by the painters. Pixels are those of the canvas.

    `pictures` are the newest answers; `waiting` the tracks whose picture is being made for the first time,
    `late` those of the host thread that a selected gap waited for.
    """

    trace: Trace | None = None
    viewport: Viewport = field(default_factory=lambda: Viewport(Window(0, 1), 1))
    layout: Layout = field(default_factory=lambda: Layout((), (), 0, 0))
    scroll: int = 0
    width: int = 1
    height: int = 1
    scale: float = 1.0
    pictures: tuple[Picture, ...] = ()
    selection: Selection = NOTHING
    selected: Hit | None = None
    linked: tuple[Hit, ...] = ()
    marks: tuple[Mark, ...] = ()
    hover: Hit | None = None
    pointer: tuple[float, float] | None = None
    dragged: Window | None = None
    zooming: bool = False
    current: str = ""
    dropping: str | None = None
    waiting: frozenset[str] = field(default_factory=frozenset)
    late: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        """Where the tracks begin, right of the headers."""
        return round(HEADER_WIDTH * self.scale)

    @property
    def ruler(self) -> int:
        """Height of the ruler."""
        return round(RULER_HEIGHT * self.scale)

    @property
    def top(self) -> int:
        """Where the scrolling rows begin, below ruler and pinned rows."""
        return self.ruler + self.layout.pinned_height

    def rows(self) -> Iterator[tuple[Row, int]]:
        """The rows in view with the y of each, pinned ones last (they are painted over the others)."""
        for row in self.layout.visible(self.scroll, self.scroll + self.height - self.top):
            yield row, self.top + row.top - self.scroll
        for row in self.layout.pinned:
            yield row, self.ruler + row.top

    def picture_of(self, track: Track) -> tuple[Picture, TrackPicture] | None:
        """The newest picture that has the track."""
        for picture in self.pictures:
            found = picture.tracks.get(track.identity)
            if found is not None:
                return picture, found
        return None

    def trace_of(self, track: Track) -> Trace | None:
        """The trace whose analyses stand in the picture of a track; the open one where there is no picture."""
        found = self.picture_of(track)
        return self.trace if found is None else found[0].trace

    def content(self, track: Track) -> Content | None:
        """What stands in a track; None until its picture was made."""
        found = self.picture_of(track)
        return None if found is None else found[1].content

    def row_at(self, y: float) -> tuple[Row, int] | None:
        """The row under a height of the canvas, and its y."""
        if y < self.ruler:
            return None
        for row in self.layout.pinned:
            if row.top <= y - self.ruler < row.top + row.height:
                return row, self.ruler + row.top
        if y < self.top:
            return None
        place = y - self.top + self.scroll
        for row in self.layout.visible(int(place), int(place) + 1):
            return row, self.top + row.top - self.scroll
        return None

    def place(self, track: Track) -> tuple[Row, int] | None:
        """Row and y of a track, in view or not; None where it is folded away."""
        for row in self.layout.pinned:
            if row.identity == track.identity:
                return row, self.ruler + row.top
        row_ = self.layout.find(track.identity)
        return None if row_ is None else (row_, self.top + row_.top - self.scroll)

    def lanes(self, track: Track) -> tuple[int, bool]:
        """How many lanes a track has and whether brackets; (1, False) until that is known."""
        content = self.content(track)
        return (1, False) if content is None else (max(len(content.lanes), 1), bool(content.brackets))

    def spans(self, row: Row) -> list[tuple[int, int]]:
        """(top, bottom) of the lanes inside a row of a track."""
        if row.track is None:
            return []
        lanes, brackets = self.lanes(row.track)
        return lane_spans(row, lanes, brackets, self.scale)

    def x(self, time: float) -> float:
        """x of a time on the canvas."""
        return self.left + self.viewport.x(time)

    def time(self, x: float) -> float:
        """Time of an x of the canvas."""
        return self.viewport.time(x - self.left)

    def hit(self, x: float, y: float) -> Hit | None:
        """What stands under a point: in the lane there, else within a few pixels."""
        found = self.row_at(y)
        if found is None or found[0].track is None or x < self.left:
            return None
        row, top = found
        made = self.picture_of(row.track) if row.track is not None else None
        if made is None or row.track is None or row.track.kind == "counter":
            return None
        time, slack = self.time(x), self.viewport.ns_per_px * _NEAR_PX
        spans = self.spans(row)
        if made[1].content.brackets and spans and y - top < spans[0][0]:
            return made[1].at(-1, time, slack)
        lane = next((number for number, (_, bottom) in enumerate(spans) if y - top < bottom + 1), len(spans) - 1)
        exact = made[1].at(lane, time, 0)
        if exact is not None or row.track.kind == "busy":
            return exact
        return made[1].at(lane, time, slack)

    def rect(self, hit: Hit) -> QRectF | None:
        """Where a record is painted; None where its track is folded away. May lie outside of the canvas."""
        found = self.place(hit.track)
        if found is None:
            return None
        row, y = found
        spans = self.spans(row)
        if hit.lane < 0:
            top, bottom = round(2 * self.scale), spans[0][0] if spans else row.height
        elif hit.lane < len(spans):
            top, bottom = spans[hit.lane]
        else:
            return None
        left, right = self.x(hit.start), self.x(hit.end)
        left, right = max(left, -1e5), min(right, 1e5)
        return QRectF(left, y + top, max(right - left, 1.0), bottom - top)
