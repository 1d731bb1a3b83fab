"""The picture of a timeline: the columns of each track, the events that are long enough to be named, hit testing."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inspector.picture.curves import CounterSamples, Curve, curve
from inspector.picture.lane import Lane
from inspector.picture.rows import Content, TrackRows
from inspector.picture.screen import Stack
from inspector.picture.search import Filter
from inspector.picture.tracks import Track
from inspector.picture.viewport import Grid
from inspector.trace.pyramid import Columns

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_LONG = 4  # columns that an event must span to be looked at on its own


@dataclass(frozen=True)
class Hit:
    """What stands at a place: `source` and `row` as in Lane; [start, end) ns; `lane` from the top, -1 a bracket."""

    track: Track
    lane: int
    source: str
    row: int
    start: int
    end: int
    ink: int


@dataclass(frozen=True)
class LongEvents:
    """Events of one lane that span at least a few columns, in time order: the ones with edges and labels.

    `at` are positions in the lane; `wanted` says which a filter lets through, None without one.
    """

    at: npt.NDArray[Any]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    wanted: npt.NDArray[np.bool_] | None


@dataclass(frozen=True)
class TrackPicture:
    """One track: `first` is the row of its first lane in the stack, brackets come after the lanes."""

    track: Track
    content: Content
    first: int
    long: tuple[LongEvents, ...]
    curve: Curve | None = None

    @property
    def num_lanes(self) -> int:
        """Lanes, brackets not counted; at least 1."""
        return max(len(self.content.lanes), 1)

    def at(self, lane: int, time: float, slack: float) -> Hit | None:
        """The record in a lane (-1: the brackets) at `time` or within `slack` ns of it; None when there is none."""
        if lane < 0:
            chosen = self.content.brackets[0] if self.content.brackets else None
        else:
            chosen = self.content.lanes[lane] if lane < len(self.content.lanes) else None
        if chosen is None:
            return None
        position = chosen.pyramid.at(time, slack)
        return None if position < 0 else hit(self.track, lane, chosen, position)


@dataclass(frozen=True)
class Picture:
    """Tracks of `trace` on a grid. `matches` is the part that the filter lets through, None without a filter."""

    trace: Trace
    grid: Grid
    wanted: Filter
    tracks: dict[str, TrackPicture]
    stack: Stack
    matches: Stack | None


def hit(track: Track, lane: int, chosen: Lane, position: int) -> Hit:
    """The record at a position of a lane."""
    pyramid = chosen.pyramid
    start = int(pyramid.start[position])
    end = start + int(pyramid.before[position + 1] - pyramid.before[position])
    source, row = chosen.source(position), int(chosen.row[position])
    return Hit(track, lane, source, row, start, end, int(pyramid.kind[position]))


def find(content: Content, track: Track, source: str, row: int, start: int) -> Hit | None:
    """Where a record stands in a track, looked up by its start; None when it is not there."""
    for number, lane in [*enumerate(content.lanes), *((-1, lane) for lane in content.brackets)]:
        low, high = (int(np.searchsorted(lane.pyramid.start, start, side)) for side in ("left", "right"))
        for position in range(low, high):
            if int(lane.row[position]) == row and lane.source(position) == source:
                return hit(track, number, lane, position)
    return None


@dataclass
class FilteredRows:
    """What the newest filter lets through of each lane, made when a track is first looked at under it."""

    _trace: weakref.ref[Trace]
    _wanted: Filter = field(default_factory=Filter)
    _names: npt.NDArray[np.bool_] | None = None
    _lanes: dict[str, tuple[Lane, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def trace(self) -> Trace:
        """The trace that has this index."""
        found = self._trace()
        assert found is not None
        return found

    @classmethod
    def build(cls, trace: Trace) -> FilteredRows:
        """Nothing yet."""
        return cls(weakref.ref(trace))

    def of(self, track: Track, content: Content, wanted: Filter) -> tuple[Lane, ...]:
        """The matching part of every lane and then of the brackets, of which nothing matches."""
        with self._lock:
            if wanted != self._wanted or self._names is None:
                names = wanted.names(self.trace)
                self._wanted, self._names, self._lanes = wanted, names, {}
            found = self._lanes.get(track.identity)
            if found is None:
                found = tuple(self._part(lane, self._names, wanted) for lane in content.lanes)
                found += tuple(lane.take(np.empty(0, np.int64)) for lane in content.brackets)
                self._lanes[track.identity] = found
            return found

    def _part(self, lane: Lane, names: npt.NDArray[np.bool_], wanted: Filter) -> Lane:
        fits = np.diff(lane.pyramid.before) >= wanted.least_ns
        if wanted.by_name:
            fits &= names[lane.names(self.trace)]
        return lane if fits.all() else lane.take(np.flatnonzero(fits))


def picture(trace: Trace, grid: Grid, tracks: tuple[Track, ...], wanted: Filter) -> Picture:
    """Those tracks on that grid. Raises Usage when the filter's pattern is no regular expression."""
    rows, filtered = trace.index(TrackRows), trace.index(FilteredRows)
    made: dict[str, TrackPicture] = {}
    columns: list[Columns] = []
    matching: list[Columns] = []
    for track in tracks:
        if track.kind == "counter":
            found = curve(trace.index(CounterSamples).of(track.key), grid)
            made[track.identity] = TrackPicture(track, Content(()), len(columns), (), found)
            continue
        content = rows.of(track)
        parts = filtered.of(track, content, wanted) if wanted and track.kind not in ("busy", "causes") else None
        long = []
        first = len(columns)
        for number, lane in enumerate((*content.lanes, *content.brackets)):
            all_of_it = lane.pyramid.columns(grid.origin, grid.step, grid.num)
            columns.append(all_of_it)
            at = lane.pyramid.long(grid.origin, grid.end, grid.step * _LONG)
            fits = None
            if wanted:
                part = lane if parts is None else parts[number]
                matching.append(all_of_it if part is lane else part.pyramid.columns(grid.origin, grid.step, grid.num))
                fits = _isin(lane, part, at)
            long.append(LongEvents(at, lane.pyramid.start[at], lane.pyramid.ends(at), fits))
        made[track.identity] = TrackPicture(track, content, first, tuple(long))
    return Picture(trace, grid, wanted, made, Stack.of(grid, columns), Stack.of(grid, matching) if wanted else None)


def _isin(lane: Lane, part: Lane, at: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which of the lane's positions `at` are in its part: both are sorted by start, and disjoint."""
    if part is lane:
        return np.ones(len(at), bool)
    if not len(part):
        return np.zeros(len(at), bool)
    # Of several that start together only the last is not empty, and long events are not.
    start = lane.pyramid.start[at]
    row = np.minimum(np.searchsorted(part.pyramid.start, start, "right") - 1, len(part) - 1)
    known = row >= 0
    row = np.maximum(row, 0)
    same = (part.pyramid.start[row] == start) & (part.pyramid.ends(row) == lane.pyramid.ends(at))
    return np.asarray(known & same, np.bool_)
