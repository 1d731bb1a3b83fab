"""Idle gaps: the maximal idle intervals of a device, with the work before and after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.work import DeviceWork, Work, launch_calls, launch_times

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class DeviceGaps:
    """Gaps of one device in time order. `previous` and `next` are positions in its DeviceWork; -1 none.

    `previous` ended at the gap's start (of several the one that started last); `next` starts at its end, and of several
    that start together it is the one that was launched last.
    """

    device: int
    start: Int
    end: Int
    previous: Rows
    next: Rows

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Gaps:
    """`devices[d]` holds the gaps of row d of devices. Their lengths sum to its idle time exactly."""

    devices: tuple[DeviceGaps, ...]

    @classmethod
    def build(cls, trace: Trace) -> Gaps:
        """All gaps of all devices, from the first work start to the last work end of each."""
        return cls(tuple(_of_device(trace, work) for work in trace.index(Work).devices))


def _of_device(trace: Trace, work: DeviceWork) -> DeviceGaps:
    real = np.flatnonzero(work.end > work.start)
    none = np.empty(0, np.int64)
    if not len(work):
        return DeviceGaps(work.device, none, none, none.astype(np.int32), none.astype(np.int32))
    start, end = work.start[real], work.end[real]
    reach = np.maximum.accumulate(end) if len(end) else end
    # Position of the record that reaches furthest so far.
    furthest = np.maximum.accumulate(np.where(end == reach, np.arange(len(end)), 0)) if len(end) else none
    after = np.flatnonzero(start[1:] > reach[:-1]) + 1
    starts, ends = reach[after - 1], start[after]
    previous, following = real[furthest[after - 1]], real[_launched_last(trace, work, real, after)]
    # Records without duration can lie outside all others: then the span begins or ends with a gap.
    first, last = int(work.start[0]), int(work.end.max())
    if len(start) and first < start[0]:
        starts, ends = np.r_[first, starts], np.r_[start[0], ends]
        previous, following = np.r_[0, previous], np.r_[real[0], following]
    if len(start) and last > reach[-1]:
        starts, ends = np.r_[starts, reach[-1]], np.r_[ends, last]
        previous, following = np.r_[previous, real[furthest[-1]]], np.r_[following, int(np.argmax(work.end))]
    if not len(start) and last > first:
        starts, ends, previous, following = (
            np.array([first]),
            np.array([last]),
            np.array([0]),
            np.array([len(work) - 1]),
        )
    return DeviceGaps(
        work.device,
        starts.astype(np.int64),
        ends.astype(np.int64),
        previous.astype(np.int32),
        following.astype(np.int32),
    )


def _launched_last(trace: Trace, work: DeviceWork, real: Int, after: Int) -> Int:
    """Of the records that start together at `after` (rows of `real`), the one whose launch call began last."""
    start = work.start[real]
    together = after[(after + 1 < len(real)) & (start[np.minimum(after + 1, len(real) - 1)] == start[after])]
    if not len(together):
        return after
    best = {}
    for first in together.tolist():
        last = int(np.searchsorted(start, start[first], "right"))
        launched = launch_times(trace, launch_calls(trace, work, real[first:last]))
        # The last of equals, as if the order of rows were that of launching.
        best[first] = last - 1 - int(np.argmax(launched[::-1]))
    return np.array([best.get(first, first) for first in after.tolist()], np.int64)
