"""From codes to pixels: the cells of a schedule as one image, with the patterns of their inks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from inspector.picture.palette import INKS, mark_on, rgb
from inspector.picture.schedule import CELL_INKS, NOTHING
from ui.theme import Theme

Codes = npt.NDArray[np.uint8]
Pixels = npt.NDArray[np.uint32]

_TILE = 6
_LEAST_PX = 4
"""Rows lower than this have no room for a pattern."""


def _tiles() -> dict[str, npt.NDArray[np.bool_]]:
    y, x = np.mgrid[0:_TILE, 0:_TILE]
    return {
        "solid": np.zeros((_TILE, _TILE), bool),
        "dots": (x % 3 == 0) & (y % 3 == 1),
        "hatch": (x + y) % _TILE == 0,
        "diagonals": (x - y) % _TILE == 0,
        "lines": y % 3 == 1,
    }


_MARKS = _tiles()


def pixels(cells: Codes, tall: int, theme: Theme, ground: str = "surface") -> Pixels:
    """(rows x tall, width) pixels; a row of the ground between rows where they are tall enough for it."""
    plain, marked = np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    patterned = np.zeros((256, _TILE, _TILE), bool)
    plain[NOTHING] = marked[NOTHING] = _packed(getattr(theme.tokens, ground))
    for code, number in enumerate(CELL_INKS):
        colour = INKS[number].colour("dark" if theme.dark else "light")
        plain[code], marked[code] = _packed(colour), _packed(mark_on(colour))
        patterned[code] = _MARKS[INKS[number].pattern]
    rows, width = cells.shape
    out = np.empty((rows, tall, width), np.uint32)
    out[:] = plain[cells][:, None, :]
    if tall >= _LEAST_PX:
        column = np.arange(width) % _TILE
        has_pattern = np.array([tile.any() for tile in patterned], bool)
        some = np.flatnonzero(np.any(has_pattern[cells], axis=1))
        for line in range(tall):
            kept = cells[some]
            # Tiles follow each other down the rows, so that a pattern does not begin anew in each of them.
            phase = (some * tall + line) % _TILE
            mark = patterned[kept, phase[:, None], column[None, :]]
            out[some, line] = np.where(mark, marked[kept], out[some, line])
    if tall >= 3:
        out[:, -1, :] = plain[NOTHING]
    return out.reshape(rows * tall, width)


def _packed(colour: str) -> int:
    red, green, blue = rgb(colour)
    return 0xFF000000 | red << 16 | green << 8 | blue
