"""How well the clocks of several files agree: all ranks leave a collective together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

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


def alignment(trace: Trace) -> Alignment:
    """Over all collectives. Where their numbers differ between devices nothing is matched."""
    files = len(trace.info.paths)
    shared = not trace.quality.count("unaligned")
    work, categories = trace.index(Work), trace.index(Categories)
    ends: list[tuple[int, dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]]]] = []
    for device, mine in enumerate(work.devices):
        code = WORK_TABLES.index("kernels")
        rows = np.flatnonzero(mine.table == code)
        rows = rows[categories.of(trace, "kernels")[mine.row[rows]] == COLLECTIVES] if len(rows) else rows
        names = trace["kernels"]["name"][mine.row[rows]]
        if len(rows):
            ends.append((device, {int(name): np.sort(mine.end[rows[names == name]]) for name in np.unique(names)}))
    worst = Alignment(files, shared, 0, -1, 0, 0)
    for device, found in ends[1:]:
        first = ends[0][1]
        pairs = [(first[name], found[name]) for name in found if name in first and len(first[name]) == len(found[name])]
        if not pairs:
            continue
        late = np.concatenate([b - a for a, b in pairs])
        offset = int(np.median(late))
        spread = int(np.quantile(np.abs(late - offset), 0.9))
        if worst.device < 0 or abs(offset) > abs(worst.offset_ns):
            worst = Alignment(files, shared, len(late), device, offset, spread)
    return worst
