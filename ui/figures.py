"""What the first three figures say: how busy, why idle, where to look next. Pure; the strip only paints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inspector.analysis.busy import Busy, busy
from inspector.analysis.causes import CAUSES
from inspector.analysis.completeness import Verdict, verdict
from inspector.analysis.gaps import Gaps
from inspector.analysis.rollup import UNMARKED, clipped, next_names
from inspector.analysis.sums import sum_by
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class Cause:
    """The cause with most idle time: its index, ns, and what the host was in for most of that (with its ns)."""

    cause: int
    total_ns: int
    host: str
    host_ns: int


@dataclass(frozen=True)
class Next:
    """The gap with most time of that cause: its span, that time in ns, the thread that was late (a row, -1 unknown)
    and the work that ended it.
    """

    span: Window
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


def figures(trace: Trace, device: int, window: Window | None) -> Figures:
    """For a row of devices; `window` None is the whole trace."""
    slices, start, end = clipped(trace, device, window)
    length = end - start
    sums = sum_by(slices.cause, length, len(CAUSES))
    cause, following = None, None
    if sums.any():
        top = int(np.argmax(sums))
        mine = np.flatnonzero((slices.cause == top) & (length > 0))
        hosts = sum_by(slices.host[mine] + 1, length[mine], len(trace.names) + 1)
        host = int(np.argmax(hosts))
        cause = Cause(top, int(sums[top]), trace.names[host - 1] or UNMARKED, int(hosts[host]))
        gaps = trace.index(Gaps).devices[device]
        of_gap = sum_by(slices.gap[mine], length[mine], len(gaps))
        gap = int(np.argmax(of_gap))
        parts = mine[slices.gap[mine] == gap]
        thread = int(slices.thread[parts[np.argmax(length[parts])]])
        name = trace.names[int(next_names(trace, device)[gap])]
        span = Window(int(gaps.start[gap]), int(gaps.end[gap]))
        following = Next(span, int(of_gap[gap]), thread, name)
    return Figures(
        device,
        busy(trace, device, window),
        cause,
        following,
        verdict(trace, device),
        trace.quality.count("graph-level") > 0,
    )
