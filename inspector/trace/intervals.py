"""The algebra that every figure rests on: half-open integer intervals, exact to the nanosecond.

A *set* is a pair of int64 arrays (starts, ends), sorted, disjoint, not touching: starts[i] < ends[i] < starts[i + 1].
`union` makes one from any intervals; everything else takes and gives sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]


class Intervals(NamedTuple):
    """A set of half-open intervals."""

    starts: Int
    ends: Int


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> Intervals:
    """The union of intervals in any order, overlapping or not; empty ones (end <= start) add nothing.

    ```
    [0, 4) [2, 6) [6, 8) [9, 9)   ->   [0, 8)
    ```
    """
    real = ends > starts
    if not real.all():
        starts, ends = starts[real], ends[real]
    if len(starts) == 0:
        return EMPTY
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    first = np.flatnonzero(np.r_[True, starts[1:] > reach[:-1]])
    return Intervals(starts[first].astype(np.int64), reach[np.r_[first[1:] - 1, len(reach) - 1]].astype(np.int64))


def measure(intervals: Intervals) -> int:
    """Total length, ns."""
    return int((intervals.ends - intervals.starts).sum())


def clip(intervals: Intervals, start: int, end: int) -> Intervals:
    """The part inside [start, end)."""
    starts, ends = intervals
    low, high = np.searchsorted(ends, start, "right"), np.searchsorted(starts, end, "left")
    if low >= high or start >= end:
        return EMPTY
    return Intervals(np.maximum(starts[low:high], start), np.minimum(ends[low:high], end))


def gaps(intervals: Intervals, start: int, end: int) -> Intervals:
    """The part of [start, end) that is in none of `intervals`."""
    if start >= end:
        return EMPTY
    inside = clip(intervals, start, end)
    starts, ends = np.r_[start, inside.ends], np.r_[inside.starts, end]
    real = ends > starts
    return Intervals(starts[real], ends[real])


def intersection(a: Intervals, b: Intervals) -> Intervals:
    """What is in both."""
    if len(a.starts) == 0 or len(b.starts) == 0:
        return EMPTY
    # Each interval of a meets a run of b's intervals, found by two searches.
    first = np.searchsorted(b.ends, a.starts, "right")
    last = np.searchsorted(b.starts, a.ends, "left")
    times = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(times)), times)
    others = expand(first, times)
    return Intervals(np.maximum(a.starts[rows], b.starts[others]), np.minimum(a.ends[rows], b.ends[others]))


def difference(a: Intervals, b: Intervals) -> Intervals:
    """What is in `a` and not in `b`."""
    if len(a.starts) == 0:
        return EMPTY
    return intersection(a, gaps(b, int(a.starts[0]), int(a.ends[-1])))


def expand(first: npt.NDArray[Any], times: npt.NDArray[Any]) -> Int:
    """The concatenation of first[i], first[i] + 1, ... (times[i] of them) for every i, int64."""
    total = int(times.sum())
    starts = np.cumsum(times) - times
    rows: Int = np.arange(total, dtype=np.int64) - np.repeat(starts - first, times)
    return rows


def covered_until(intervals: Intervals, at: npt.NDArray[Any]) -> Int:
    """How much of (-inf, t) is covered, ns, for every t in `at`; exact."""
    starts, ends = intervals
    if len(starts) == 0:
        return np.zeros(len(at), np.int64)
    before = np.r_[0, np.cumsum(ends - starts)]
    row = np.searchsorted(starts, at, "right")
    last = np.maximum(row - 1, 0)
    inside = np.clip(at - starts[last], 0, ends[last] - starts[last])
    return np.where(row > 0, before[last] + inside, 0)


def cover(intervals: Intervals, edges: npt.NDArray[Any]) -> Int:
    """How much of each [edges[i], edges[i + 1]) is covered, ns; len(edges) - 1 values."""
    return np.diff(covered_until(intervals, edges))
