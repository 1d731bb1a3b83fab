"""What the table of gaps needs of every gap, gathered once per trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.causes import CAUSES, Causes, DeviceSlices
from inspector.analysis.gaps import Gaps
from inspector.analysis.rollup import iterations_of_gaps, next_names
from inspector.trace.intervals import expand

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Facts:
    """Per gap of one device: the first of its slices (and one past the last gap's), the slice that says most.

    `main` is the longest slice of the cause with most time in the gap; `next` and `iteration` as in the roll-ups.
    """

    first: Int
    main: Int
    next: Rows
    iteration: Rows


@dataclass(frozen=True)
class GapFacts:
    """`devices[d]` for row d of devices."""

    devices: tuple[Facts, ...]

    @classmethod
    def build(cls, trace: Trace) -> GapFacts:
        """One pass over the slices of every device."""
        return cls(tuple(_facts(trace, device) for device in range(len(trace["devices"]))))


def _facts(trace: Trace, device: int) -> Facts:
    count = len(trace.index(Gaps).devices[device])
    slices = trace.index(Causes).devices[device]
    first = np.searchsorted(slices.gap, np.arange(count + 1)).astype(np.int64)
    return Facts(first, _main(slices, first), next_names(trace, device), iterations_of_gaps(trace, device))


def _main(slices: DeviceSlices, first: Int) -> Int:
    """For each gap the longest slice of the cause that has most time in it."""
    length = slices.end - slices.start
    each = np.diff(first)
    # Of one or two slices the longer one is it, whatever their causes; sorting is for the few gaps with more.
    main: Int = first[:-1].copy()
    second = np.flatnonzero(each == 2)
    main[second] += length[main[second] + 1] > length[main[second]]
    many = np.flatnonzero(each > 2)
    if len(many):
        at = expand(first[many], each[many])
        key = slices.gap[at].astype(np.int64) * len(CAUSES) + slices.cause[at]
        order = at[np.lexsort((length[at], key))]
        key = slices.gap[order].astype(np.int64) * len(CAUSES) + slices.cause[order]
        ends = np.flatnonzero(np.r_[np.diff(key) != 0, True])
        total = np.diff(np.r_[0, np.cumsum(length[order])[ends]])
        # The longest slice of each (gap, cause) is the last of its run; of the runs of a gap the heaviest counts.
        gap = slices.gap[order[ends]]
        best = np.lexsort((total, gap))
        last = np.flatnonzero(np.r_[np.diff(gap[best]) != 0, True])
        main[many] = order[ends][best[last]]
    return main
