"""Where in time a quality note points to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inspector.trace.quality import Note
from inspector.trace.schema import REJECTIONS, TABLES
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_AT_THE_END = frozenset(("truncated", "recovered"))


def place_of(trace: Trace, note: Note) -> Window | None:
    """The first thing that the note speaks of, inside the trace; None where it speaks of no time in it."""
    if note.code in _AT_THE_END:
        return Window(max(trace.end_ns - 1, 0), trace.end_ns) if trace.end_ns else None
    if note.code == "profiler-loss":
        return _first_loss(trace)
    table, _, reason = note.text.partition(": ")
    names = [schema.name for schema in TABLES]
    if reason not in REJECTIONS or table not in names:
        return None
    wrong = trace["rejected"]
    mine = (wrong["reason"] == REJECTIONS.index(reason)) & (wrong["table"] == names.index(table))
    inside = mine & (wrong["start"] >= 0) & (wrong["start"] < trace.end_ns)
    if not inside.any():
        return None
    row = int(np.flatnonzero(inside)[np.argmin(wrong["start"][inside])])
    start, end = int(wrong["start"][row]), int(wrong["end"][row])
    return Window(start, min(max(end, start + 1), trace.end_ns))


def _first_loss(trace: Trace) -> Window | None:
    """Between the two accounts of a probe of which the later one was the first to tell a loss."""
    probes, found = trace["probes"], []
    for process, name in {*zip(probes["process"].tolist(), probes["name"].tolist(), strict=True)}:
        rows = np.flatnonzero((probes["process"] == process) & (probes["name"] == name))
        lost = np.flatnonzero(probes["lost"][rows] > 0)
        if len(lost):
            before = probes["time"][rows[lost[0] - 1]] if lost[0] else 0
            found.append(Window(int(before), int(max(probes["time"][rows[lost[0]]], before + 1))))
    return min(found, key=lambda window: window.end, default=None)
