"""The tree of prefixes as a drawing: depth in pages to the right, one line per way through the tree from top to bottom.

```
system prompt        question 1   answer
                     question 2
other prompt   ...
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.analysis.prefix_tree import PrefixTree
from inspector.picture.palette import INKS, RAMP, Ink, ink

Int = npt.NDArray[np.int64]
Cells = npt.NDArray[np.int32]

INKS_OF_TREE: tuple[Ink, ...] = (INKS[ink("host page")], INKS[ink("cached page")], *RAMP[1:])
_STEPS = np.array([1, 2, 4])
LEGEND: tuple[tuple[str, tuple[Ink, ...]], ...] = (
    ("cached, held by none", (INKS_OF_TREE[1],)),
    ("1 request", (RAMP[1],)),
    ("2", (RAMP[2],)),
    ("3 to 4", (RAMP[3],)),
    ("5 or more", (RAMP[4],)),
    ("in host memory only", (INKS_OF_TREE[0],)),
)


@dataclass(frozen=True)
class PrefixPicture:
    """`node[line, depth]` is the row of `tree` there, -1 none; `lines` ways of `leaves` are drawn, `columns` pages of
    `deepest`. `colour` is a number into INKS_OF_TREE for every row of the tree."""

    tree: PrefixTree
    node: Cells
    colour: npt.NDArray[np.uint8]
    leaves: int
    deepest: int

    @property
    def lines(self) -> int:
        """Ways that are drawn."""
        return int(self.node.shape[0])

    @property
    def columns(self) -> int:
        """Pages in depth that are drawn."""
        return int(self.node.shape[1])


def prefix_picture(tree: PrefixTree, most_lines: int = 1024, most_columns: int = 2048) -> PrefixPicture:
    """All ways where they are at most `most_lines`, else so many of them, evenly taken; the first pages of each."""
    ends = np.flatnonzero(np.isin(np.arange(len(tree)), tree.parent, invert=True))
    lines = min(len(ends), most_lines)
    at = ends[(np.arange(lines) * len(ends)) // max(lines, 1)]
    deepest = int(tree.depth.max(initial=-1)) + 1
    columns = min(deepest, most_columns)
    node = np.full((lines, columns), -1, np.int32)
    line = np.arange(lines)
    while len(line):
        drawn = tree.depth[at] < columns
        node[line[drawn], tree.depth[at[drawn]]] = at[drawn]
        up = tree.parent[at]
        line, at = line[up >= 0], up[up >= 0]
    held = np.searchsorted(_STEPS, np.maximum(tree.sharing, 1)) + 2
    colour = np.where(tree.sharing > 0, held, np.where(tree.blocks > 0, 1, 0)).astype(np.uint8)
    return PrefixPicture(tree, node, colour, len(ends), deepest)
