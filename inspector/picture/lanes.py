"""Overlapping work side by side: the fewest lanes such that no two records of one lane overlap.

Most overlaps are slight (a dependent kernel that starts while its predecessor drains): runs of them alternate between
two lanes, found with whole-array steps; longer pile-ups are filled event by event, many pile-ups at a time.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.int32]

# Pile-ups up to this length advance together, one event each per step; longer ones are swept one by one.
_TOGETHER = 2048


def lanes(start: Int, end: Int) -> Lanes:
    """Lane of each record, int32, for records sorted by start: the lowest lane that is free when it starts.

    ```
    aaaaa  ccccc        lane 0
        bbbbb  ddd      lane 1
    ```
    """
    size = len(start)
    lane = np.zeros(size, np.int32)
    if size < 2 or not np.any(start[1:] < end[:-1]):
        return lane
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.r_[True, start[1:] >= reach[:-1]])
    length = np.diff(np.r_[first, size])
    piled = length > 1
    first, length = first[piled], length[piled]
    # A pile-up alternates if nobody overlaps the one after the next, and everybody the next.
    crowded = np.zeros(size + 1, np.int64)
    crowded[1:-2] = np.cumsum((start[2:] < end[:-2]) | (start[1:-1] >= end[:-2]))
    crowded[-2:] = crowded[-3]
    simple = crowded[np.maximum(first + length - 2, first)] == crowded[first]
    inside = _positions(length[simple])
    lane[np.repeat(first[simple], length[simple]) + inside] = inside & 1
    first, length = first[~simple], length[~simple]
    short = length <= _TOGETHER
    _fill_together(start, end, first[short], length[short], lane)
    for low, many in zip(first[~short].tolist(), length[~short].tolist(), strict=True):
        _sweep(start, end, low, low + many, lane)
    return lane


def _positions(length: npt.NDArray[Any]) -> Int:
    """0, 1, ... length[0] - 1, 0, 1, ... length[1] - 1, ..."""
    rows: Int = np.arange(int(length.sum()), dtype=np.int64) - np.repeat(np.cumsum(length) - length, length)
    return rows


def _fill_together(start: Int, end: Int, first: Int, length: Int, lane: Lanes) -> None:
    order = np.argsort(-length, kind="stable")
    first, length = first[order], length[order]
    never = np.iinfo(np.int64).min
    busy_until = np.full((len(first), 2), never)
    for step in range(int(length.max(initial=0))):
        going = int(np.searchsorted(-length, -step, "left"))
        at = first[:going] + step
        free = busy_until[:going] <= start[at, None]
        if not free.any(axis=1).all():
            busy_until = np.column_stack((busy_until, np.full((len(first), busy_until.shape[1]), never)))
            free = busy_until[:going] <= start[at, None]
        chosen = free.argmax(axis=1)
        busy_until[np.arange(going), chosen] = end[at]
        lane[at] = chosen


def _sweep(start: Int, end: Int, low: int, high: int, lane: Lanes) -> None:
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    count = 0
    chosen = []
    for begin, stop in zip(start[low:high].tolist(), end[low:high].tolist(), strict=True):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            mine = heapq.heappop(free)
        else:
            mine, count = count, count + 1
        chosen.append(mine)
        heapq.heappush(busy, (stop, mine))
    lane[low:high] = chosen
