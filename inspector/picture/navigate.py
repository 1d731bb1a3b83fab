"""From one record to the next: along a track, along the device, along launches, from gap to gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inspector.analysis.gaps import Gaps
from inspector.picture.rows import Content
from inspector.picture.timeline import Hit, hit
from inspector.picture.tracks import HOST_TABLES, Track, Tracks, spans
from inspector.trace.links import Links
from inspector.trace.schema import WORK_TABLES
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


def along(content: Content, track: Track, start: int, lane: int, by: int) -> Hit | None:
    """The record after (`by` 1) or before (-1) the one that starts at `start` in `lane`, by (start, lane)."""
    best: tuple[int, int, int] | None = None
    for number, other in enumerate(content.lanes):
        starts = other.pyramid.start
        # Of records that start together the one in the lower lane comes later.
        passed = number <= lane if by > 0 else number < lane
        at = int(np.searchsorted(starts, start, "right" if passed else "left"))
        if by < 0:
            at -= 1
        if not 0 <= at < len(starts):
            continue
        key = (int(starts[at]) * by, number * by, at)
        if best is None or key < best:
            best = key
    return None if best is None else hit(track, best[1] * by, content.lanes[best[1] * by], best[2])


def next_work(
    trace: Trace, device: int, time: int, table: str | None, row: int | None, by: int
) -> tuple[str, int] | None:
    """(table, row) of the work that starts next on a row of devices, on whatever stream; None at the end."""
    work = trace.index(Work).devices[device]
    low, high = (int(np.searchsorted(work.start, time, side)) for side in ("left", "right"))
    here = [at for at in range(low, high) if WORK_TABLES[int(work.table[at])] == table and int(work.row[at]) == row]
    at = here[0] + by if here else (high if by > 0 else low - 1)
    return (WORK_TABLES[int(work.table[at])], int(work.row[at])) if 0 <= at < len(work) else None


def next_gap(trace: Trace, device: int, time: int, by: int) -> tuple[int, int] | None:
    """(start, end) of the first gap that starts after `time`, or of the last that starts before it."""
    gaps = trace.index(Gaps).devices[device]
    at = int(np.searchsorted(gaps.start, time, "right")) if by > 0 else int(np.searchsorted(gaps.start, time)) - 1
    return (int(gaps.start[at]), int(gaps.end[at])) if 0 <= at < len(gaps) else None


def costliest_gap(trace: Trace, device: int, current: int | None) -> tuple[int, int] | None:
    """(start, end) of the longest gap, or of the next in length when the one that starts at `current` is given."""
    gaps = trace.index(Gaps).devices[device]
    if not len(gaps):
        return None
    order = np.lexsort((gaps.start, gaps.start - gaps.end))
    rank = 0
    if current is not None:
        found = np.flatnonzero(gaps.start[order] == current)
        rank = (int(found[0]) + 1) % len(order) if len(found) else 0
    at = int(order[rank])
    return int(gaps.start[at]), int(gaps.end[at])


def launch_of(trace: Trace, table: str, row: int) -> int:
    """Row of the host call that launched a record of a work table; -1 when the trace has none."""
    return int(trace.index(Links).launch[table][row]) if table in WORK_TABLES else -1


def launched_by(trace: Trace, call: int) -> list[tuple[str, int]]:
    """(table, row) of the work that a host call launched, by start."""
    found = [(table, int(row)) for table, rows in trace.index(Links).started_by(trace, call) for row in rows]
    return sorted(found, key=lambda each: int(trace[each[0]]["start"][each[1]]))


def place_of(trace: Trace, table: str, row: int) -> tuple[Track, int, int] | None:
    """(track, start, end) of a record of the schema; None when it has no track of its own."""
    if table in WORK_TABLES:
        kind, column = "stream", "stream"
    elif table in HOST_TABLES:
        kind, column = HOST_TABLES[table], "thread"
    else:
        return None
    columns = trace[table]
    if not 0 <= row < len(columns):
        return None
    key = int(columns[column][row])
    for track in trace.index(Tracks).tracks:
        if track.kind == kind and track.key == key:
            start, end = spans(trace, table)
            return track, int(start[row]), int(end[row])
    return None
