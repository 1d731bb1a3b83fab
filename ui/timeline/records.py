"""The records in view as rows of a table, each with what it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from inspector.analysis.causes import CAUSES, Causes
from inspector.analysis.iterations import Iterations
from inspector.picture.palette import INKS
from inspector.picture.rows import TrackRows
from inspector.picture.timeline import Hit, hit
from inspector.picture.tracks import HOST_TABLES, Track
from inspector.trace.selection import Window
from inspector.trace.trace import Trace
from ui.export import Cell, Rows
from ui.timeline.painter import labels

_HEADS = ("device", "process", "thread_or_stream", "track", "lane", "kind", "name", "start_ns", "end_ns", "duration_ns")


def records(trace: Trace, tracks: Iterable[Track], window: Window) -> Rows:
    """All records of those tracks that touch the window; slices of idle time have a column per cause, in ns."""
    chosen = [track for track in tracks if track.kind != "counter"]
    found = _causes_of(trace, chosen, window)
    return Rows((*_HEADS, *(f"{CAUSES[cause]}_ns" for cause in found)), _lines(trace, chosen, window, found))


def _causes_of(trace: Trace, tracks: list[Track], window: Window) -> list[int]:
    """The causes that occur in the window on the tracks of causes."""
    seen: set[int] = set()
    for track in tracks:
        if track.kind == "causes":
            slices = trace.index(Causes).devices[track.key]
            seen.update(np.unique(slices.cause[(slices.end > window.start) & (slices.start < window.end)]).tolist())
    return sorted(seen)


def _lines(trace: Trace, tracks: list[Track], window: Window, causes: list[int]) -> Iterator[tuple[Cell, ...]]:
    for track in tracks:
        for number, lane in enumerate(trace.index(TrackRows).of(track).lanes):
            inside = lane.pyramid.window(window.start, window.end)
            for at in range(inside.start, inside.stop):
                found = hit(track, number, lane, at)
                name = labels(trace, track, found.source, found.row)[-1] or track.kind
                length = found.end - found.start
                line: tuple[Cell, ...] = (
                    *_belongs(trace, found),
                    track.title,
                    number,
                    INKS[found.ink].name,
                    name,
                    found.start,
                    found.end,
                    length,
                )
                mine = -1
                if track.kind == "causes":
                    mine = int(trace.index(Causes).devices[track.key].cause[found.row])
                yield (*line, *(length if cause == mine else None for cause in causes))


def _belongs(trace: Trace, found: Hit) -> tuple[str, str, str]:
    """Device, process, and thread or stream of a record, '' for what it has not."""
    track = found.track
    if track.kind in ("busy", "causes"):
        return trace.device_name(track.key), "", ""
    if track.kind == "stream":
        streams = trace["streams"]
        device, process = int(streams["device"][track.key]), int(streams["process"][track.key])
        return (
            trace.device_name(device) if device >= 0 else "",
            trace.process_name(process) if process >= 0 else "",
            trace.stream_name(track.key),
        )
    if track.kind == "iterations":
        process = int(trace.index(Iterations).process[found.row])
        return "", trace.process_name(process) if process >= 0 else "", ""
    if track.kind in HOST_TABLES.values():
        process = int(trace["threads"]["process"][track.key])
        return "", trace.process_name(process) if process >= 0 else "", trace.thread_name(track.key)
    return "", "", ""
