"""What would go if a cause of idle time went: an estimate, with the sentence that says from what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.causes import CAUSES, LAUNCH_OVERHEAD
from inspector.analysis.gaps import Gaps
from inspector.analysis.iterations import Iterations
from inspector.analysis.rollup import clipped
from inspector.analysis.sums import sum_by
from inspector.analysis.thread_states import NO_REQUESTS, SYNC
from inspector.trace.selection import Window
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_FROM_SYNC = "return latency of the waits, and the launching after them that they kept from being done ahead"
_FROM_LAUNCHES = "launch overhead between work of one generation iteration, which one graph launch would close"
_FROM_ALL_LAUNCHES = "launch overhead between work of one iteration, which one graph launch would close"
_FROM_WHOLE = "all idle time of this cause"
_FROM_NOTHING = "nothing: only more requests would fill it"


@dataclass(frozen=True)
class Recoverable:
    """An estimate for one cause: ns of idle time that would go, and what it was estimated from."""

    cause: str
    total_ns: int
    basis: str


def recoverable(trace: Trace, device: int, window: Window | None = None) -> list[Recoverable]:
    """Estimates for a row of devices, largest first. They overlap: launching after a wait may count under both."""
    slices, start, end = clipped(trace, device, window)
    length = end - start
    sums = sum_by(slices.cause, length, len(CAUSES))
    found = [
        Recoverable(cause, int(sums[code]), _FROM_WHOLE)
        for code, cause in enumerate(CAUSES)
        if sums[code] and code not in (NO_REQUESTS, SYNC, LAUNCH_OVERHEAD)
    ]
    if sums[NO_REQUESTS]:
        found.append(Recoverable(CAUSES[NO_REQUESTS], 0, _FROM_NOTHING))
    if sums[SYNC]:
        returning = (slices.cause == SYNC) & slices.return_latency & (length > 0)
        # From the first such wait of a gap on, the gap would have been bridged by work launched ahead.
        first = np.full(len(trace.index(Gaps).devices[device]), np.iinfo(np.int64).max, np.int64)
        np.minimum.at(first, slices.gap[returning], start[returning])
        after = start >= first[slices.gap]
        found.append(Recoverable(CAUSES[SYNC], int(length[after].sum()), _FROM_SYNC))
    if sums[LAUNCH_OVERHEAD]:
        inside, kinds = _inside_iterations(trace, device)
        mine = (slices.cause == LAUNCH_OVERHEAD) & inside[slices.gap]
        basis = _FROM_LAUNCHES if kinds else _FROM_ALL_LAUNCHES
        found.append(Recoverable(CAUSES[LAUNCH_OVERHEAD], int(length[mine].sum()), basis))
    return sorted(found, key=lambda each: -each.total_ns)


def _inside_iterations(trace: Trace, device: int) -> tuple[npt.NDArray[np.bool_], bool]:
    """Which gaps lie between work of one iteration, generation-only where the trace tells kinds (second value)."""
    iterations, gaps = trace.index(Iterations), trace.index(Gaps).devices[device]
    if not len(iterations):
        return np.zeros(len(gaps), bool), False
    owner = iterations.of_work(trace, trace.index(Work).devices[device])
    before = np.where(gaps.previous >= 0, owner[gaps.previous], -1)
    after = np.where(gaps.next >= 0, owner[gaps.next], -2)
    inside = before == after
    kinds = bool((iterations.generation >= 0).any())
    if kinds:
        decode = (iterations.context == 0) & (iterations.generation > 0)
        inside &= decode[np.maximum(after, 0)]
    return inside, kinds
