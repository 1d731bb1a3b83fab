"""The whole trace in one strip: how busy the devices were, from end to end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.busy import Unions
from inspector.trace.intervals import cover
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class Overview:
    """Share of `columns` equal stretches of `window` in which each device was busy; (devices, columns) float32.

    Devices without work are left out. `touched` says where there was any work at all.
    """

    window: Window
    share: npt.NDArray[np.float32]
    touched: npt.NDArray[np.bool_]


def overview(trace: Trace, columns: int) -> Overview:
    """Busy shares over all of the trace that is at hand, of a run up to where all has been read."""
    start = trace.whole.start
    window = Window(start, max(min(trace.whole.end, trace.settled_ns), start + 1))
    edges = np.linspace(window.start, window.end, columns + 1).astype(np.int64)
    width = np.maximum(np.diff(edges), 1)
    shares, touched = [], []
    for kinds in trace.index(Unions).devices:
        busy = kinds["all"]
        if not len(busy.starts):
            continue
        covered = cover(busy, edges)
        shares.append((covered / width).astype(np.float32))
        touched.append(covered > 0)
    if not shares:
        return Overview(window, np.zeros((0, columns), np.float32), np.zeros((0, columns), bool))
    return Overview(window, np.stack(shares), np.stack(touched))
