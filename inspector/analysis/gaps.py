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
    start, end = work.start, work.end
    # A record without a duration (formats that round to microseconds have them) is work too: it ends one gap and begins
    # the next.
    reach = np.maximum.accumulate(end)
    after = np.flatnonzero(start[1:] > reach[:-1]) + 1
    # Position of the record that reaches furthest so far.
    furthest = np.maximum.accumulate(np.where(end == reach, np.arange(len(end)), 0)) if len(end) else after
    return DeviceGaps(
        work.device,
        reach[after - 1].astype(np.int64),
        start[after].astype(np.int64),
        furthest[after - 1].astype(np.int32),
        _launched_last(trace, work, after).astype(np.int32),
    )


def _launched_last(trace: Trace, work: DeviceWork, after: Int) -> Int:
    """Of the records that start together with those at positions `after`, the one whose launch call began last."""
    start = work.start
    together = after[start[np.minimum(after + 1, len(start) - 1)] == start[after]]
    together = together[together + 1 < len(start)]
    if not len(together):
        return after
    best = {}
    for first in together.tolist():
        last = int(np.searchsorted(start, start[first], "right"))
        launched = launch_times(trace, launch_calls(trace, work, np.arange(first, last)))
        # The last of equals, as if the order of rows were that of launching.
        best[first] = last - 1 - int(np.argmax(launched[::-1]))
    return np.array([best.get(first, first) for first in after.tolist()], np.int64)
