"""Recorded time before the first work of a device and after its last: no gap, since nothing ends or begins it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inspector.analysis.busy import Unions
from inspector.analysis.calls import PAUSED
from inspector.trace.links import process_of
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

# A share of the span, and a length in ns: what is shorter than either is not worth a word. While a run goes on, the
# time from one iteration to the next is none of it.
_SHARE, _LEAST_NS, _LEAST_LIVE_NS = 0.01, 100_000, 1_000_000_000
# What the built-in engine marks when it is told to stand still, and when it is to go on.
_DOMAIN, _GOES_ON = "engine", "goes on"


@dataclass(frozen=True)
class Edges:
    """`before_ns` from the first record of the host to the first work, `after_ns` from the last work to the end of what
    is known, ns; 0 where work began first or ended last, or where it is too little to matter.

    `paused_ns` of `after_ns` the engine stood still because the user said so, and still does.
    """

    before_ns: int
    after_ns: int
    paused_ns: int = 0


def edges(trace: Trace, device: int) -> Edges:
    """Those of a row of devices. The host is the processes that gave it work; without any, all that were recorded."""
    span = trace.index(Unions).spans[device]
    if not len(trace.index(Work).devices[device]):
        return Edges(0, 0)
    first = _first_of_host(trace, device)
    before = 0 if first is None else span.start - first
    end = min(trace.end_ns, trace.settled_ns)
    least = _LEAST_LIVE_NS if trace.settled_ns < trace.end_ns or trace.generation else _LEAST_NS
    after = _worth(end - span.end, span.length, least)
    paused = _paused_since(trace) if after else None
    standing = 0 if paused is None else max(end - max(paused, span.end), 0)
    return Edges(_worth(before, span.length, _LEAST_NS), after, standing)


def _worth(length: int, span: int, least: int) -> int:
    return length if length >= least and length > _SHARE * span else 0


def _paused_since(trace: Trace) -> int | None:
    """When the engine was told to stand still, ns, if it has not been told to go on; None else."""
    marks, names = trace["marks"], trace.names
    paused, on, domain = names.find(PAUSED), names.find(_GOES_ON), names.find(_DOMAIN)
    if paused < 0 or domain < 0:
        return None
    rows = np.flatnonzero((marks["domain"] == domain) & np.isin(marks["name"], [paused, on]))
    if not len(rows) or int(marks["name"][rows[-1]]) != paused:
        return None
    return int(marks["time"][rows[-1]])


def _first_of_host(trace: Trace, device: int) -> int | None:
    streams = trace["streams"]
    owners = np.unique(streams["process"][streams["device"] == device])
    found = []
    for name in ("host_calls", "ranges"):
        start = trace[name]["start"]
        if not len(start):
            continue
        mine = np.isin(process_of(trace, name), owners)
        found.append(int(start[mine].min() if mine.any() else start.min()))
    return min(found, default=None)
