"""From a selection, which any view may have made, to the place on the canvas that stands for it."""

from __future__ import annotations

import numpy as np

from inspector.picture.navigate import place_of
from inspector.picture.rows import TrackRows
from inspector.picture.timeline import Hit, find, hit
from inspector.picture.tracks import Kind, Track, Tracks
from inspector.trace.selection import Selection
from inspector.trace.trace import Trace


def resolve(trace: Trace, selection: Selection) -> Hit | None:
    """The record, gap or iteration that is selected; None for none, and for what no track that was made so far has."""
    if selection.table is not None and selection.row is not None:
        return record(trace, selection.table, selection.row)
    if selection.gap is not None and selection.device is not None:
        return _first(trace, "causes", selection.device, selection.gap)
    return None


def record(trace: Trace, table: str, row: int) -> Hit | None:
    """Where a record of the schema stands; in the first lane until its track was made."""
    place = place_of(trace, table, row)
    if place is None:
        return None
    track, start, end = place
    content = trace.index(TrackRows).ready(track)
    found = None if content is None else find(content, track, table, row, start)
    return found or Hit(track, 0, table, row, start, end, 0)


def _first(trace: Trace, kind: Kind, key: int, start: int) -> Hit | None:
    """The record that begins at `start` in the only lane of a track."""
    track = _track(trace, kind, key)
    content = None if track is None else trace.index(TrackRows).ready(track)
    if track is None or content is None or not content.lanes:
        return None
    lane = content.lanes[0]
    at = int(np.searchsorted(lane.pyramid.start, start))
    return hit(track, 0, lane, at) if at < len(lane) and int(lane.pyramid.start[at]) == start else None


def _track(trace: Trace, kind: Kind, key: int) -> Track | None:
    return next((track for track in trace.index(Tracks).tracks if track.kind == kind and track.key == key), None)
