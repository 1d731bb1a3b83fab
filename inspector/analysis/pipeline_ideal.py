"""What share of a pipeline would be bubbles if nothing were lost but by how unequal its cells are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from inspector.analysis.pipeline_cells import Cells
from inspector.analysis.sums import sum_by

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]


def unequal_bubble(found: Cells, row: Int, size: int) -> Float:
    """Bubble share of each of `size` iterations had every cell begun at once when its input and its stage were free.

    `row` is the iteration of each cell, all int64. Micro-batches go through all stages in the order in which they were
    begun, and one with stage times t ends on stage s at C(s, m) = max(C(s - 1, m), C(s, m - 1)) + t(s, m). With cells
    that do not overlap, the measured share of an iteration that has its stages for itself is never less. NaN where a
    cell does not tell its micro-batch.
    """
    stages = len(found.stages)
    if not len(found):
        return np.full(size, np.nan)
    width = int(found.micro_batch.max()) + 2
    _, unit = np.unique(row * width + found.micro_batch + 1, return_inverse=True)
    unit = unit.reshape(-1)
    count = int(unit.max()) + 1
    begun = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(begun, unit, found.start)
    owner = np.zeros(count, np.int64)
    owner[unit] = row
    order = np.lexsort((begun, owner))
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    unit, owner = place[unit], owner[order]
    first = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    length = found.end - found.start
    total, ends = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for stage in range(stages):
        mine = found.stage == stage
        work = sum_by(unit[mine], length[mine], count)
        total += work
        # Within an iteration C(s, m) = W(m) + the largest C(s - 1, j) - W(j - 1) of j <= m, W the work up to there.
        done = np.cumsum(work)
        ends = done + _running_highest(ends - (done - work), first)
    last = np.r_[first[1:], count] - 1
    share = np.full(size, np.nan)
    area = stages * (ends[last])
    busy = np.add.reduceat(total, first)
    share[owner[first]] = 1 - np.divide(busy, area, out=np.ones(len(first)), where=area > 0)
    share[row[found.micro_batch < 0]] = np.nan
    return share


def _running_highest(values: Int, first: Int) -> Int:
    """The highest value so far, anew from each row in `first` on."""
    low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    # Every part is lifted above the one before it, so that one pass over all of them keeps them apart.
    lift = np.cumsum(high - low) - (high - low) - low
    lifted = np.repeat(lift, np.diff(np.r_[first, len(values)]))
    highest: Int = np.maximum.accumulate(values + lifted) - lifted
    return highest
