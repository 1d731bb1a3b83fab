"""The launch path: what launching costs the host, and how long work waits between its launch and its start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.kernels import nearest_rank
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.work import Work, launch_calls

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Launches:
    """Launch path of one device. Times in ns; None where there is nothing to tell it from.

    `calls` launch calls, each counted once however many kernels it started, took `call_ns` together. `delay_*`: start
    of the work minus end of its call, 0 where it began before the call returned. `max_depth`: most records launched and
    not yet started at one moment. `short`: records shorter than their own launch call. `graph_launches` started
    `graph_nodes` nodes.
    """

    device: int
    calls: int
    call_ns: int
    call_median_ns: int | None
    delay_median_ns: int | None
    delay_p99_ns: int | None
    max_depth: int
    short: int
    unlinked: int
    graph_launches: int
    graph_nodes: int


def launches(trace: Trace, device: int, window: Window | None = None) -> Launches:
    """The launch path of a row of devices, for the work that started in `window`."""
    work = trace.index(Work).devices[device]
    calls = trace["host_calls"]
    rows = np.arange(len(work))
    if window is not None:
        rows = rows[np.searchsorted(work.start, window.start) : np.searchsorted(work.start, window.end)]
    call = launch_calls(trace, work, rows)
    node = work.pick(lambda table: trace[table].columns.get("graph_node"), rows, missing=0) != 0
    node |= work.table[rows] == WORK_TABLES.index("graphs")
    linked = np.flatnonzero(call >= 0)
    start, length = work.start[rows[linked]], (work.end - work.start)[rows[linked]]
    begun, returned = calls["start"][call[linked]], calls["end"][call[linked]]
    used = _distinct(call[linked], len(calls))
    cost = np.sort(calls["end"][used] - calls["start"][used])
    delay = np.sort(np.maximum(start - returned, 0))
    graphs = call[linked][node[linked]]
    return Launches(
        device=device,
        calls=len(used),
        call_ns=int(cost.sum()),
        call_median_ns=nearest_rank(cost, 50) if len(cost) else None,
        delay_median_ns=nearest_rank(delay, 50) if len(delay) else None,
        delay_p99_ns=nearest_rank(delay, 99) if len(delay) else None,
        max_depth=_deepest(returned, start),
        short=int(np.count_nonzero(length < returned - begun)),
        unlinked=len(rows) - len(linked),
        graph_launches=len(_distinct(graphs, len(calls))),
        graph_nodes=len(graphs),
    )


def _distinct(rows: npt.NDArray[np.int32], size: int) -> Int:
    seen = np.zeros(size, bool)
    seen[rows] = True
    return np.flatnonzero(seen)


def _deepest(launched: Int, started: Int) -> int:
    """Most records that were launched (call ended) and not yet started at the same time."""
    waits = started > launched
    if not waits.any():
        return 0
    up, down = np.sort(launched[waits]), np.sort(started[waits])
    return int((np.arange(1, len(up) + 1) - np.searchsorted(down, up, "right")).max())
