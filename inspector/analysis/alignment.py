"""How well the clocks of several files agree: all ranks leave a collective together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.categories import COLLECTIVES, Categories
from inspector.trace.schema import WORK_TABLES
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class Alignment:
    """What is known of the clocks of the devices of a trace.

    `files` were opened together; `shared` says that they have a wall clock in common (one file always has). Collectives
    of the same name and number on every device were `matched`: on `device` (a row) they end `offset_ns` (median) after
    those of the first device, 9 in 10 of them within `spread_ns` of that; the device is that with the largest offset.
    """

    files: int
    shared: bool
    matched: int
    device: int
    offset_ns: int
    spread_ns: int

    @classmethod
    def build(cls, trace: Trace) -> Alignment:
        """Over all collectives. Nothing is matched where their numbers differ between devices; one file has one clock,
        of which there is nothing to say.
        """
        files = len(trace.info.paths)
        worst = cls(files, not trace.quality.count("unaligned"), 0, -1, 0, 0)
        if files < 2:
            return worst
        ends = [(device, found) for device in range(len(trace["devices"])) if (found := _ends(trace, device))]
        for device, found in ends[1:]:
            first = ends[0][1]
            pairs = [(first[at], found[at]) for at in found if at in first and len(first[at]) == len(found[at])]
            if not pairs:
                continue
            late = np.concatenate([b - a for a, b in pairs])
            offset = int(np.median(late))
            if worst.device < 0 or abs(offset) > abs(worst.offset_ns):
                spread = int(np.quantile(np.abs(late - offset), 0.9))
                worst = cls(files, worst.shared, len(late), device, offset, spread)
        return worst


def _ends(trace: Trace, device: int) -> dict[int, npt.NDArray[np.int64]]:
    """When the collectives of a device ended, sorted, by the id of their name."""
    work = trace.index(Work).devices[device]
    rows = np.flatnonzero(work.table == WORK_TABLES.index("kernels"))
    rows = rows[trace.index(Categories).of(trace, "kernels")[work.row[rows]] == COLLECTIVES]
    names = trace["kernels"]["name"][work.row[rows]]
    return {name: np.sort(work.end[rows[names == name]]) for name in np.unique(names).tolist()}
