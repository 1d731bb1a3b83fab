"""Pages over time: what a pool held in every column of a picture, at the moment in it when most were in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_figures import Pressure, pressure
from inspector.analysis.page_replay import Replay
from inspector.analysis.pages import counts_of, settled_use, use_times
from inspector.analysis.told_pages import ToldPages
from inspector.picture.changes import Changes
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Occupancy:
    """Per column of `window`: pages `used`, `kept` (cached), `unknown`, and of the pool (`blocks`); host pages `host`.
    Where it `is_told` by records of iterations, `unknown` pages are cached or free, which of both is not told.
    `holes` are the times of missing events in the window; `changes` what the user told the engine at any time.
    """

    window: Window
    blocks: Int
    used: Int
    kept: Int
    unknown: Int
    host: Int
    host_blocks: int
    holes: Int
    pressure: Pressure
    changes: Changes
    is_told: bool


def occupancy(trace: Trace, window: Window, columns: int) -> Occupancy:
    """The window cut into `columns` equal parts."""
    replay = trace.index(Replay)
    log, moments = replay.log, use_times(trace)
    edges = window.start + (window.length * np.arange(columns + 1, dtype=np.int64)) // columns
    times = edges[:-1].copy()
    after = np.searchsorted(moments, edges, "left")
    some = np.flatnonzero(after[1:] > after[:-1])
    if len(some):
        used = settled_use(trace, slice(int(after[0]), int(after[-1])))
        first = after[some] - after[0]
        most = np.maximum.reduceat(used, first)
        column = np.repeat(np.arange(len(some)), np.diff(np.r_[first, len(used)]))
        tops = np.flatnonzero(used == most[column])
        top = tops[np.unique(column[tops], return_index=True)[1]]
        # What held when the column began may be more than all that came in it.
        held = counts_of(trace, edges[some])[1]
        times[some] = np.where(held >= most, times[some], moments[after[0] + top])
    blocks, in_use, kept, unknown, host_blocks, host, _ = counts_of(trace, times)
    holes = log.time[np.maximum(log.holes, 0)] if len(log.time) else log.time
    return Occupancy(
        window,
        blocks,
        in_use,
        kept,
        unknown,
        host,
        int(host_blocks.max(initial=0)),
        holes[(holes >= window.start) & (holes < window.end)],
        pressure(trace),
        trace.index(Changes),
        trace.index(ToldPages).applies,
    )
