"""What the first three figures say: how busy, why idle, where to look next. Pure; the strip only paints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.busy import Busy, busy
from inspector.analysis.causes import CAUSES, LAUNCH_OVERHEAD, DeviceSlices
from inspector.analysis.completeness import Verdict, verdict
from inspector.analysis.gaps import Gaps
from inspector.analysis.hosts import HostGroups, is_host
from inspector.analysis.pipeline import contention_of
from inspector.analysis.rollup import clipped, next_names
from inspector.analysis.sums import sum_by
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
NO_REQUESTS = CAUSES.index("no requests")


@dataclass(frozen=True)
class Cause:
    """The cause with most idle time: its index, ns, and what the host was in for most of that (with its ns).

    `host` is '' where it was not the host's doing.
    """

    cause: int
    total_ns: int
    host: str
    host_ns: int


@dataclass(frozen=True)
class Next:
    """The costliest gap: its whole span, the cause with most time in it, that time in ns (inside the range), the thread
    that was late (a row, -1 unknown) and the work that ended it.
    """

    span: Window
    cause: int
    cause_ns: int
    thread: int
    before: str


@dataclass(frozen=True)
class Figures:
    """The three figures of a device over a range; no cause and no next where there is no idle time.

    `whole_graphs`: kernels inside graphs are not in the file.
    """

    device: int
    busy: Busy
    cause: Cause | None
    next: Next | None
    verdict: Verdict
    whole_graphs: bool
    worked_ns: int
    """Of the work of a processor, wall time of which it is known how much of it the thread had that processor; and
    `waited_ns`, how much of it it had not."""
    waited_ns: int


def figures(trace: Trace, device: int, window: Window | None) -> Figures:
    """For a row of devices; `window` None is the whole trace."""
    slices, start, end = clipped(trace, device, window)
    length = end - start
    sums = sum_by(slices.cause, length, len(CAUSES))
    found = bool(sums.any())
    used = busy(trace, device, window)
    return Figures(
        device,
        used,
        _largest(trace, slices, length, sums) if found else None,
        _costliest(trace, slices, length) if found else None,
        verdict(trace, device),
        trace.quality.count("graph-level") > 0,
        *contention_of(trace, device, used.span),
    )


def _largest(trace: Trace, slices: DeviceSlices, length: Int, sums: Int) -> Cause:
    top = int(np.argmax(sums))
    mine = np.flatnonzero((slices.cause == top) & (length > 0))
    groups = trace.index(HostGroups)
    keys, inverse = np.unique(groups.keys(slices)[mine], return_inverse=True)
    totals = sum_by(inverse, length[mine], len(keys))
    host = int(np.argmax(totals))
    if not is_host(int(keys[host])):
        return Cause(top, int(sums[top]), "", 0)
    return Cause(top, int(sums[top]), groups.label(int(keys[host])), int(totals[host]))


def _costliest(trace: Trace, slices: DeviceSlices, length: Int) -> Next:
    """The gap with most time of one cause that a change of the program could save; without any, of any cause."""
    inside = length > 0
    ours = inside & (slices.cause != NO_REQUESTS) & (slices.cause <= LAUNCH_OVERHEAD)
    rows = np.flatnonzero(ours if ours.any() else inside)
    pieces, inverse = np.unique(
        slices.gap[rows].astype(np.int64) * len(CAUSES) + slices.cause[rows], return_inverse=True
    )
    together = sum_by(inverse, length[rows], len(pieces))
    gaps = trace.index(Gaps).devices[slices.device]
    best = np.flatnonzero(together == together.max())
    whole = (gaps.end - gaps.start)[pieces[best] // len(CAUSES)]
    piece = int(best[np.argmax(whole)])
    gap, cause = divmod(int(pieces[piece]), len(CAUSES))
    parts = rows[inverse == piece]
    thread = int(slices.thread[parts[np.argmax(length[parts])]])
    name = trace.names[int(next_names(trace, slices.device)[gap])]
    return Next(Window(int(gaps.start[gap]), int(gaps.end[gap])), cause, int(together[piece]), thread, name)
