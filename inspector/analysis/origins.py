"""What stands behind idle time beside its cause: a pause, this program's own probe, who was at work meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis import calls
from inspector.analysis.busy import Unions
from inspector.analysis.causes import DeviceSlices
from inspector.analysis.thread_states import NO_REQUESTS, PEER
from inspector.trace.intervals import difference, intersection, measure, union
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def by_pause(trace: Trace, slices: DeviceSlices) -> Mask:
    """Slices in which the user had told the engine to stand still; requests may have been there all the same."""
    name = trace.names.find(calls.PAUSED)
    found: Mask = (slices.cause == NO_REQUESTS) & (slices.host == name) & (name >= 0)
    return found


def by_probe(trace: Trace, slices: DeviceSlices) -> Mask:
    """Slices in which the late host thread was in this program's own probe."""
    found: Mask = calls.by_name(trace.names.texts, slices.host, calls.is_own_probe)[slices.host] > 0
    return found


def at_work_meanwhile(trace: Trace, slices: DeviceSlices, start: Int, end: Int) -> list[tuple[int, int]]:
    """What other devices did while this one waited for a peer: (row of devices, ns), most first; -1 is no other.

    `start` and `end` are those of the slices, cut to a range. A moment counts for the first device that was busy in it,
    in the order of their rows, so that all of them add up to the time of the cause.
    """
    mine = (slices.cause == PEER) & (end > start)
    left = union(start[mine], end[mine])
    found = []
    for other, work in enumerate(trace.index(Work).devices):
        if other == slices.device or not len(work):
            continue
        busy = intersection(left, trace.index(Unions).devices[other]["all"])
        found.append((other, measure(busy)))
        left = difference(left, busy)
    found.append((-1, measure(left)))
    return sorted((each for each in found if each[1]), key=lambda each: -each[1])
