"""What the first three figures say: how busy, why idle, where to look next. Pure; the strip only paints it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.busy import Busy, busy
from inspector.analysis.calls import PAUSED
from inspector.analysis.causes import CAUSES, UNCHANGED, DeviceSlices
from inspector.analysis.completeness import Verdict, verdict
from inspector.analysis.edges import Edges, edges
from inspector.analysis.gaps import Gaps
from inspector.analysis.hosts import HostGroups, is_host
from inspector.analysis.origins import at_work_meanwhile, by_pause, by_probe
from inspector.analysis.pipeline import contention_of
from inspector.analysis.rollup import clipped, next_names
from inspector.analysis.sums import sum_by
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
NO_REQUESTS = CAUSES.index("no requests")
_PEER = CAUSES.index("waiting for a peer")
_FIXED = np.array([cause in UNCHANGED for cause in CAUSES])


@dataclass(frozen=True)
class Cause:
    """The cause with most idle time: its index, ns, and what the host was in for most of that (with its ns).

    `host` is '' where it was not the host's doing. With `is_pause` it is the part of `no requests` in which the user
    had paused the engine. `meanwhile`: for a wait for a peer what was at work, (row of devices or -1 for none, ns).
    """

    cause: int
    total_ns: int
    host: str
    host_ns: int
    is_pause: bool = False
    meanwhile: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        """As it is to be called."""
        return PAUSED if self.is_pause else CAUSES[self.cause]


@dataclass(frozen=True)
class Next:
    """The gap with most time of one cause that can be changed (`can_change`; without any, of any cause).

    Its whole span, that cause, that time in ns (inside the range), the thread that was late (a row, -1 unknown) and the
    work that ended it. Time of this program's own probe is left out.
    """

    span: Window
    cause: int
    cause_ns: int
    thread: int
    before: str
    can_change: bool


@dataclass(frozen=True)
class Figures:
    """The three figures of a device over a range; no cause and no next where there is no idle time.

    `whole_graphs`: kernels inside graphs are not in the file. `probe_ns` of the idle time are of this program's own
    probe.
    """

    device: int
    busy: Busy
    cause: Cause | None
    next: Next | None
    verdict: Verdict
    whole_graphs: bool
    probe_ns: int
    edges: Edges
    worked_ns: int
    """Of the work of a processor, wall time of which it is known how much of it the thread had that processor; and
    `waited_ns`, how much of it it had not."""
    waited_ns: int


def figures(trace: Trace, device: int, window: Window | None) -> Figures:
    """For a row of devices; `window` None is the whole trace."""
    slices, start, end = clipped(trace, device, window)
    length = end - start
    found = bool(length.any())
    used = busy(trace, device, window)
    own = by_probe(trace, slices)
    cause = _largest(trace, slices, start, end) if found else None
    return Figures(
        device,
        used,
        cause,
        _costliest(trace, slices, length, own) if found else None,
        verdict(trace, device),
        trace.quality.count("graph-level") > 0,
        int(length[own].sum()),
        edges(trace, device),
        *contention_of(trace, device, used.span),
    )


def _largest(trace: Trace, slices: DeviceSlices, start: Int, end: Int) -> Cause:
    length = end - start
    # A pause is a cause of its own here: that no request came says something else.
    paused = by_pause(trace, slices)
    headings = np.where(paused, len(CAUSES), slices.cause)
    sums = sum_by(headings, length, len(CAUSES) + 1)
    top = int(np.argmax(sums))
    total = int(sums[top])
    if top == len(CAUSES):
        return Cause(NO_REQUESTS, total, PAUSED, total, is_pause=True)
    mine = np.flatnonzero((headings == top) & (length > 0))
    groups = trace.index(HostGroups)
    keys, inverse = np.unique(groups.keys(slices)[mine], return_inverse=True)
    totals = sum_by(inverse, length[mine], len(keys))
    host = int(np.argmax(totals))
    meanwhile = tuple(at_work_meanwhile(trace, slices, start, end)) if top == _PEER else ()
    if not is_host(int(keys[host])):
        return Cause(top, total, "", 0, meanwhile=meanwhile)
    return Cause(top, total, groups.label(int(keys[host])), int(totals[host]), meanwhile=meanwhile)


def _costliest(trace: Trace, slices: DeviceSlices, length: Int, own: npt.NDArray[np.bool_]) -> Next:
    inside = length > 0
    ours = inside & ~_FIXED[slices.cause] & ~own
    can_change = bool(ours.any())
    rows = np.flatnonzero(ours if can_change else inside)
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
    return Next(Window(int(gaps.start[gap]), int(gaps.end[gap])), cause, int(together[piece]), thread, name, can_change)
