"""Recorded time before the first work of a device and after its last: no gap, since nothing ends or begins it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inspector.analysis.busy import Unions
from inspector.trace.links import process_of
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

# A share of the span, and a length in ns: what is shorter than either is not worth a word.
_SHARE, _LEAST_NS = 0.01, 100_000


@dataclass(frozen=True)
class Edges:
    """`before_ns` from the first record of the host to the first work, `after_ns` from the last work to the end of the
    trace, ns; 0 where work began first or ended last, or where it is too little to matter."""

    before_ns: int
    after_ns: int


def edges(trace: Trace, device: int) -> Edges:
    """Those of a row of devices. The host is the processes that gave it work; without any, all that were recorded."""
    span = trace.index(Unions).spans[device]
    if not len(trace.index(Work).devices[device]):
        return Edges(0, 0)
    first = _first_of_host(trace, device)
    before = 0 if first is None else span.start - first
    return Edges(_worth(before, span.length), _worth(trace.end_ns - span.end, span.length))


def _worth(length: int, span: int) -> int:
    return length if length >= _LEAST_NS and length > _SHARE * span else 0


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
