"""From a selection, which any view may have made, to the place on the canvas that stands for it."""

from __future__ import annotations

import numpy as np

from inspector.analysis.causes import Causes, of_host
from inspector.analysis.gaps import Gaps
from inspector.analysis.iterations import Iterations
from inspector.picture.navigate import place_of
from inspector.picture.timeline import Hit, find
from inspector.picture.tracks import HOST_TABLES, Track, Tracks
from inspector.trace.selection import Selection
from inspector.trace.trace import Trace
from ui.timeline.scene import Scene


def resolve(scene: Scene, selection: Selection) -> Hit | None:
    """The record, gap or iteration that is selected; None for none, and for what no track that was made so far has."""
    if selection.table is not None and selection.row is not None:
        return record(scene, selection.table, selection.row)
    if selection.gap is not None and selection.device is not None:
        return _gap(scene, selection.device, selection.gap)
    return None if selection.iteration is None else _iteration(scene, selection.iteration, selection.process)


def record(scene: Scene, table: str, row: int) -> Hit | None:
    """Where a record of the schema stands; in the first lane until its track was made."""
    place = None if scene.trace is None else place_of(scene.trace, table, row)
    if place is None:
        return None
    track, start, end = place
    content = scene.content(track)
    found = None if content is None else find(content, track, table, row, start)
    return found or Hit(track, 0, table, row, start, end, 0)


def gap_tracks(trace: Trace, selection: Selection) -> list[Track]:
    """The strip of causes of the device whose gap is selected, then its busy strip; none where no gap is."""
    if selection.gap is None or selection.device is None:
        return []
    tracks = trace.index(Tracks).tracks
    return [each for kind in ("causes", "busy") for each in tracks if (each.kind, each.key) == (kind, selection.device)]


def late_thread(scene: Scene) -> list[Track]:
    """Tracks of the host thread that kept the device waiting in a selected gap; none for anything else."""
    selected = scene.selected
    trace = None if selected is None else scene.trace_of(selected.track)
    if trace is None or selected is None or selected.source != "gaps":
        return []
    slices = trace.index(Causes).devices[selected.track.key]
    # Where the device held itself up, the thread that launched was in time.
    mine = (slices.gap == selected.row) & (slices.thread >= 0) & of_host(slices.cause, slices.host)
    threads = slices.thread[mine]
    kinds = HOST_TABLES.values()
    tracks = trace.index(Tracks).tracks
    return [track for track in tracks if track.kind in kinds and len(threads) and track.key == int(threads[0])]


def device_of(trace: Trace, track: Track) -> int:
    """The row of devices that a track is about; -1 for those of the host."""
    if track.kind in ("busy", "causes"):
        return track.key
    if track.kind in ("stream", "counter"):
        return int(trace["streams" if track.kind == "stream" else "series"]["device"][track.key])
    return -1


def _gap(scene: Scene, device: int, start: int) -> Hit | None:
    """The gap that begins at `start`, over the strip of causes; None until that was made."""
    if scene.trace is None:
        return None
    track = next(
        (each for each in scene.trace.index(Tracks).tracks if (each.kind, each.key) == ("causes", device)), None
    )
    trace = None if track is None else scene.trace_of(track)
    if track is None or trace is None or scene.content(track) is None:
        return None
    gaps = trace.index(Gaps).devices[device]
    at = int(np.searchsorted(gaps.start, start))
    if at >= len(gaps) or int(gaps.start[at]) != start:
        return None
    return Hit(track, 0, "gaps", at, start, int(gaps.end[at]), 0)


def _iteration(scene: Scene, number: int, process: int | None) -> Hit | None:
    """The iteration of that number (of a process, where one is given) on its track; None until that was made."""
    if scene.trace is None:
        return None
    track = next((each for each in scene.trace.index(Tracks).tracks if each.kind == "iterations"), None)
    trace = None if track is None else scene.trace_of(track)
    content = None if track is None else scene.content(track)
    if track is None or trace is None or content is None:
        return None
    found = trace.index(Iterations)
    rows = np.flatnonzero((found.number == number) & ((found.process == process) | (process is None)))
    return find(content, track, "iterations", int(rows[0]), int(found.start[rows[0]])) if len(rows) else None
