"""Parents and depth of intervals on a thread, and what is innermost at every moment."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]


class Nest(NamedTuple):
    """For each interval, in the order given: row of the smallest enclosing one (-1 none), and how many enclose it.

    Where intervals cross: of those open when it starts, the one that started last, and the lowest depth that none of
    them has.
    """

    parent: npt.NDArray[np.int32]
    depth: npt.NDArray[np.int32]


class Pieces(NamedTuple):
    """A partition of time: from starts[i] to starts[i + 1] holds owners[i]; before starts[0] and where -1 nobody."""

    starts: Int
    owners: npt.NDArray[np.int32]


def nest(starts: Int, ends: Int) -> Nest:
    """Nesting of the intervals of one thread (any order). Where they cross, the one that starts later lies inside.

    Equal starts: the longer one is outside; equal in both: the earlier row.
    """
    size = len(starts)
    parent = np.full(size, -1, np.int32)
    depth = np.zeros(size, np.int32)
    if size == 0:
        return Nest(parent, depth)
    order, low, high = _ordered(starts, ends)
    # An interval is inside as many others as have started before it and not ended: with proper nesting they enclose it.
    level = np.arange(size) - np.searchsorted(np.sort(high), low, "right")
    up = np.full(size, -1, np.int64)
    for step in range(1, int(level.max()) + 1):
        above, here = np.flatnonzero(level == step - 1), np.flatnonzero(level == step)
        if len(here):
            at = np.searchsorted(above, here) - 1
            up[here] = np.where(at >= 0, above[np.maximum(at, 0)], -1) if len(above) else -1
    inner = level > 0
    if (up[inner] < 0).any() or (high[up[inner]] < high[inner]).any():
        up, level = _nest_crossing(low, high)
    parent[order] = np.where(up >= 0, order[np.maximum(up, 0)], -1)
    depth[order] = level
    return Nest(parent, depth)


def innermost(starts: Int, ends: Int) -> Pieces:
    """Who is innermost at every moment: of those open then, the one that started last (ties as in `nest`)."""
    order, _, _ = _ordered(starts, ends)
    order = order[ends[order] > starts[order]]
    if len(order) == 0:
        return Pieces(np.empty(0, np.int64), np.empty(0, np.int32))
    low, high = starts[order], ends[order]
    edges = np.unique(np.r_[low, high])
    up, _ = _sorted_nest(low, high)
    # At an edge where something starts, the last that starts there owns it; else the innermost that is still open.
    last = np.searchsorted(low, edges, "right") - 1
    owner = last.copy()
    while True:
        over = owner >= 0
        over[over] = high[owner[over]] <= edges[over]
        if not over.any():
            break
        owner[over] = up[owner[over]]
    owners = np.where(owner >= 0, order[np.maximum(owner, 0)], -1).astype(np.int32)
    keep = np.r_[True, owners[1:] != owners[:-1]]
    return Pieces(edges[keep], owners[keep])


def _ordered(starts: Int, ends: Int) -> tuple[Int, Int, Int]:
    order = np.lexsort((-ends, starts))
    # Doubled times give an empty interval a length of one half, so that it lies inside what begins where it does.
    low = starts[order] * 2
    return order, low, np.maximum(ends[order] * 2, low + 1)


def _sorted_nest(low: Int, high: Int) -> tuple[Int, Int]:
    found = nest(low, high)
    # For crossing intervals "parent" must be what was open before, even if it ends earlier.
    if (high[found.parent[found.parent >= 0]] < high[found.parent >= 0]).any():
        return _nest_crossing(low, high)
    return found.parent.astype(np.int64), found.depth.astype(np.int64)


def _nest_crossing(low: Int, high: Int) -> tuple[Int, Int]:
    """Sweep for intervals that cross; plain Python, since files that need it are rare and small."""
    size = len(low)
    up = np.full(size, -1, np.int64)
    level = np.zeros(size, np.int64)
    open_: list[int] = []
    ends: list[tuple[int, int]] = []
    closed: set[int] = set()
    for row, (start, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        while ends and ends[0][0] <= start:
            closed.add(heapq.heappop(ends)[1])
        while open_ and open_[-1] in closed:
            closed.discard(open_.pop())
        if open_:
            up[row] = open_[-1]
            used = {int(level[other]) for other in open_ if other not in closed}
            level[row] = next(free for free in range(len(used) + 1) if free not in used)
        open_.append(row)
        heapq.heappush(ends, (end, row))
    return up, level
