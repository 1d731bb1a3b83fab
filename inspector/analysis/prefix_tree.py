"""Which pages continue which: the cached pages as a tree of prefixes, and how many requests share each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_replay import KEPT, Replay
from inspector.analysis.pages import Pages

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class PrefixTree:
    """Distinct contents, every parent before its children, siblings side by side.

    `hash` (uint64) names the tokens up to the page's end. `parent` is a row of this tree; -1 for a root. A root is
    `cut` where the page before it is not there any more. `depth` counts pages from the root. `blocks` pages on the
    device hold it (`block` is one of them, -1 none) and `host` pages in host memory; `sharing` requests have
    references to them. `leaves` is the number of ends below (itself where it has no children).

    `unnamed` pages are known to have contents but not which.
    """

    hash: npt.NDArray[np.uint64]
    parent: Int
    cut: npt.NDArray[np.bool_]
    depth: Int
    block: Int
    blocks: Int
    host: Int
    sharing: Int
    leaves: Int
    unnamed: int

    def __len__(self) -> int:
        return len(self.hash)


def prefix_tree(trace: Trace, pages: Pages) -> PrefixTree:
    """The tree of all contents that are there at the moment of `pages`."""
    log = trace.index(Replay).log
    hashes, parents = log.column(trace, "hash"), log.column(trace, "parent")
    device = np.flatnonzero(pages.content >= 0)
    hosted = np.flatnonzero(pages.host_content >= 0)
    events = np.r_[pages.content[device], pages.host_content[hosted]]
    named = hashes[events] != 0
    places = np.r_[device, np.full(len(hosted), -1)][named]
    events = events[named]
    unique, first, row = np.unique(hashes[events], return_index=True, return_inverse=True)
    row = row.reshape(-1)
    on_device = places >= 0
    block = np.full(len(unique), -1, np.int64)
    block[row[on_device]] = places[on_device]
    blocks = np.bincount(row[on_device], minlength=len(unique))
    host = np.bincount(row[~on_device], minlength=len(unique))
    sharing = np.zeros(len(unique), np.int64)
    np.add.at(sharing, row[on_device], pages.refs[places[on_device]])
    above = parents[events[first]] if len(unique) else parents[:0]
    place = np.minimum(np.searchsorted(unique, above), max(len(unique) - 1, 0))
    found = (above != 0) & (unique[place] == above) if len(unique) else np.zeros(0, bool)
    parent = _without_circles(np.where(found, place, -1))
    order, depth, leaves = _ordered(parent, sharing)
    now = np.empty(len(unique) + 1, np.int64)
    now[order], now[-1] = np.arange(len(unique)), -1
    unnamed = int(np.count_nonzero((pages.status == KEPT) & (pages.content < 0)))
    unnamed += int(np.count_nonzero((pages.host_status == KEPT) & (pages.host_content < 0)))
    return PrefixTree(
        unique[order],
        now[parent[order]],
        ((above != 0) & (parent < 0))[order],
        depth[order],
        block[order],
        blocks[order],
        host[order],
        sharing[order],
        leaves[order],
        unnamed + int(np.count_nonzero(~named)),
    )


def _without_circles(parent: Int) -> Int:
    """Damaged hashes may name each other as parents: who is on the way back to itself becomes a root."""
    top = parent.copy()
    # After n doublings top is 2**n steps up; what is not out at the root by then walks in a circle.
    for _ in range(max(len(parent), 1).bit_length() + 1):
        top = np.where(top >= 0, np.append(top, -1)[top], -1)
    return np.where(top >= 0, -1, parent)


def _ordered(parent: Int, sharing: Int) -> tuple[Int, Int, Int]:
    """Rows with parents before children and subtrees together (most shared first), depths, and leaves below."""
    above = parent.tolist()
    children: dict[int, list[int]] = {}
    for row in np.argsort(sharing, kind="stable").tolist():
        children.setdefault(above[row], []).append(row)
    order: list[int] = []
    depth, leaves = [0] * len(above), [0] * len(above)
    stack = list(children.get(-1, []))
    while stack:
        row = stack.pop()
        order.append(row)
        if above[row] >= 0:
            depth[row] = depth[above[row]] + 1
        below = children.get(row)
        if below is None:
            leaves[row] = 1
        else:
            stack.extend(below)
    for row in reversed(order):
        if above[row] >= 0:
            leaves[above[row]] += leaves[row]
    return np.array(order, np.int64), np.array(depth, np.int64), np.array(leaves, np.int64)
