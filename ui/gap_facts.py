"""What the table of gaps needs of every gap, gathered once per trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.causes import CAUSES, Causes
from inspector.analysis.gaps import Gaps
from inspector.analysis.rollup import iterations_of_gaps, next_names

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
    length = slices.end - slices.start
    main = np.zeros(count, np.int64)
    if count:
        key = slices.gap.astype(np.int64) * len(CAUSES) + slices.cause
        order = np.lexsort((length, key))
        ends = np.flatnonzero(np.r_[np.diff(key[order]) != 0, True])
        total = np.diff(np.r_[0, np.cumsum(length[order])[ends]])
        # The longest slice of each (gap, cause) is the last of its run; of the runs of a gap the heaviest counts.
        best = np.lexsort((total, slices.gap[order[ends]]))
        last = np.flatnonzero(np.r_[np.diff(slices.gap[order[ends]][best]) != 0, True])
        main = order[ends][best[last]]
    return Facts(first, main, next_names(trace, device), iterations_of_gaps(trace, device))
