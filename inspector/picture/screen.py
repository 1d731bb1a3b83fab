"""From the columns of a picture to the pixels of a screen, at any zoom: exact shares, and nothing that is lost.

A picture is computed for columns of a power of two ns; a frame shows it moved and scaled. Shares come from the sums at
the column edges, so they stay exact; which ink a pixel gets is that of the column under it that holds most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.picture.curves import Curve, Samples
from inspector.picture.palette import Pattern, Theme, colours, rgb
from inspector.picture.viewport import Grid, Viewport
from inspector.trace.pyramid import Columns

Float = npt.NDArray[np.float32]
Values = npt.NDArray[np.float64]
Pixels = npt.NDArray[np.uint32]

LEVELS = 32
_LEAST = 0.34  # how strongly the slightest touch is inked, so that no event is hidden
_DIMMED = 0.22


@dataclass(frozen=True)
class Stack:
    """The columns of many lanes on one grid, as matrices: one row per lane."""

    grid: Grid
    until: npt.NDArray[np.float64]
    events: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, grid: Grid, lanes: Sequence[Columns]) -> Stack:
        """Stack them; sums below 2**53 ns are exact as float64, which frames interpolate."""
        if not lanes:
            none = np.zeros((0, grid.num))
            return cls(grid, np.zeros((0, grid.num + 1)), none.astype(np.int32), none.astype(np.uint8))
        return cls(
            grid,
            np.stack([lane.until for lane in lanes]).astype(np.float64),
            np.stack([lane.events for lane in lanes]),
            np.stack([lane.kind for lane in lanes]),
        )


@dataclass(frozen=True)
class Screen:
    """Per lane and pixel: the `share` of the pixel that is covered (0..1, float32), the `ink`, whether it is
    `touched`."""

    share: Float
    ink: npt.NDArray[np.uint8]
    touched: npt.NDArray[np.bool_]


def on_screen(stack: Stack, viewport: Viewport, rows: npt.NDArray[np.int64] | None = None) -> Screen:
    """The stack (or those rows of it) as pixels of the viewport; outside the grid there is nothing."""
    grid, width = stack.grid, viewport.width
    place = (viewport.window.start - grid.origin + np.arange(width + 1) * viewport.ns_per_px) / grid.step
    place = np.clip(place, 0, grid.num)
    low = np.minimum(place.astype(np.int64), grid.num - 1)
    # Only the columns on screen are looked at, a third of the picture.
    shown = slice(int(low[0]), int(low[-1]) + 1)
    until = stack.until[:, shown.start : shown.stop + 1]
    events, kind = stack.events[:, shown], stack.kind[:, shown]
    if rows is not None:
        until, events, kind = until[rows], events[rows], kind[rows]
    place, low = place - shown.start, low - shown.start
    part = place - low
    at = until[:, low] * (1 - part) + until[:, low + 1] * part
    share = np.clip(np.diff(at) / viewport.ns_per_px, 0, 1).astype(np.float32)
    first = low[:-1]
    last = np.maximum(np.ceil(place[1:]).astype(np.int64) - 1, first)
    # A pixel meets at most three columns; more only while an old picture is shown during a zoom: then it is sampled.
    reach = int(min((last - first).max(initial=0), 3))
    in_grid = place[1:] > place[:-1]
    ink = kind[:, first]
    touched = (events[:, first] > 0) & in_grid
    most = np.where(touched, until[:, first + 1] - until[:, first], -1)
    for step in range(1, reach + 1):
        column = np.minimum(first + step, last)
        here = (events[:, column] > 0) & in_grid
        length = np.where(here, until[:, column + 1] - until[:, column], -1)
        better = length > most
        ink = np.where(better, kind[:, column], ink)
        most = np.where(better, length, most)
        touched |= here
    return Screen(share, ink, touched)


@dataclass(frozen=True)
class Shades:
    """Colours of every ink at every level of cover, as 0xffRRGGBB: `full[ink, level]` and `dimmed[ink, level]`."""

    full: Pixels
    dimmed: Pixels
    ground: int

    @classmethod
    def of(cls, theme: Theme, surface: str) -> Shades:
        """The shades of a theme on a '#rrggbb' ground; level 0 is the ground, level 1 already shows."""
        ground = np.array(rgb(surface), np.float64)
        cover = np.r_[0, _LEAST + (1 - _LEAST) * np.arange(1, LEVELS + 1) / LEVELS]
        inks = colours(theme).astype(np.float64)
        grey = inks.mean(axis=1, keepdims=True) * np.ones(3)
        full = ground + (inks[:, None, :] - ground) * cover[None, :, None]
        dimmed = ground + (grey[:, None, :] - ground) * cover[None, :, None] * _DIMMED
        return cls(_packed(full), _packed(dimmed), int(_packed(ground[None])[0]))


def packed(colour: str) -> int:
    """0xffRRGGBB of '#rrggbb'."""
    red, green, blue = rgb(colour)
    return 0xFF000000 | red << 16 | green << 8 | blue


def _packed(values: npt.NDArray[np.float64]) -> Pixels:
    whole = np.round(values).astype(np.int64)
    return (0xFF000000 | whole[..., 0] << 16 | whole[..., 1] << 8 | whole[..., 2]).astype(np.uint32)


def levels(screen: Screen) -> npt.NDArray[np.uint8]:
    """Level of cover per pixel, 0 where untouched, else 1..LEVELS."""
    level = np.ceil(screen.share * LEVELS)
    return np.where(screen.touched, np.maximum(level, 1), 0).astype(np.uint8)


def band(screen: Screen, row: int, shades: Shades, matches: Screen | None = None) -> Pixels:
    """One lane as a line of pixels. With `matches` (the part that a filter lets through) the rest is greyed."""
    level = levels(Screen(screen.share[row], screen.ink[row], screen.touched[row]))
    if matches is None:
        return np.asarray(shades.full[screen.ink[row], level], np.uint32)
    chosen = levels(Screen(matches.share[row], matches.ink[row], matches.touched[row]))
    rest = shades.dimmed[screen.ink[row], level]
    return np.asarray(np.where(chosen > 0, shades.full[matches.ink[row], chosen], rest), np.uint32)


def histogram(share: Float, touched: npt.NDArray[np.bool_], height: int, ground: int, colour: int) -> Pixels:
    """(height, width) pixels in which the share is a column of that height, its top edge smoothed.

    Whatever is touched stands at least one pixel high.
    """
    filled = np.where(touched, np.maximum(share * height, 1.0), 0.0)
    above = (height - 1 - np.arange(height))[:, None]
    return blend(ground, colour, np.clip(filled[None, :] - above, 0, 1))


def curve_on_screen(curve: Curve, grid: Grid, viewport: Viewport) -> tuple[Values, Values]:
    """Lowest and highest value under every pixel, NaN where there is none; float64."""
    place = (viewport.window.start - grid.origin + np.arange(viewport.width + 1) * viewport.ns_per_px) / grid.step
    place = np.clip(place, 0, grid.num)
    first = np.minimum(place[:-1].astype(np.int64), grid.num - 1)
    last = np.maximum(np.minimum(np.ceil(place[1:]).astype(np.int64) - 1, grid.num - 1), first)
    low, high = curve.low[first], curve.high[first]
    for step in range(1, int(min((last - first).max(initial=0), 3)) + 1):
        column = np.minimum(first + step, last)
        low, high = np.fmin(low, curve.low[column]), np.fmax(high, curve.high[column])
    outside = place[1:] <= place[:-1]
    low[outside], high[outside] = np.nan, np.nan
    return low, high


def curve_block(low: Values, high: Values, samples: Samples, height: int, ground: int, colour: int) -> Pixels:
    """(height, width) pixels: a line that spans all that a pixel saw, fainter ones where it jumps, a faint filling."""
    span = samples.top - samples.bottom or 1.0
    known = np.isfinite(low)
    # One pixel stays free above the highest value and the line is 1.5 pixels strong.
    bottom, top = (
        np.where(known, (values - samples.bottom) / span * (height - 2), -2).astype(np.float32)
        for values in (low, high)
    )
    # Neighbours meet, so that steps are drawn as edges.
    both = known & np.r_[False, known[:-1]]
    before_top, before_bottom = np.r_[top[:1], top[:-1]], np.r_[bottom[:1], bottom[:-1]]
    low_reach = np.where(both, np.minimum(bottom, before_top), bottom)
    high_reach = np.where(both, np.maximum(top, before_bottom), top)
    level = (height - 1 - np.arange(height, dtype=np.float32))[:, None]

    def between(lowest: Float, highest: Float, strength: float) -> Float:
        return _ramp(highest + np.float32(1.4) - level, strength) * _ramp(level - (lowest - 1))

    alpha = between(bottom, top, 1)
    np.maximum(alpha, between(low_reach, high_reach, 0.5), out=alpha)
    np.maximum(alpha, _ramp(top + 1 - level, 0.2), out=alpha)
    alpha *= known
    return blend(ground, colour, alpha)


def _ramp(values: Float, strength: float = 1) -> Float:
    """Values cut to 0..1 and multiplied, in place: a run that goes on paints many of these, many times a second."""
    np.maximum(values, 0, out=values)
    np.minimum(values, 1, out=values)
    if strength != 1:
        values *= np.float32(strength)
    return values


def blend(ground: int, colour: int, alpha: npt.NDArray[np.floating]) -> Pixels:
    """`colour` over `ground` (0xffRRGGBB each), pixel by pixel."""
    return np.asarray(_shades(ground, colour)[(alpha * 255 + 0.5).astype(np.uint8)], np.uint32)


@lru_cache(maxsize=64)
def _shades(ground: int, colour: int) -> Pixels:
    """256 steps from one to the other."""
    ramp = np.arange(256)[:, None] / 255
    low, high = (np.array([value >> 16 & 255, value >> 8 & 255, value & 255]) for value in (ground, colour))
    return _packed(low + (high - low) * ramp)


def textured(block: Pixels, inks: npt.NDArray[np.uint8], marks: Mapping[int, tuple[Pattern, int]]) -> None:
    """Draw patterns into (height, width) pixels, in place, where the ink of the column asks for one: `marks` has the
    pattern of an ink and the colour (0xffRRGGBB) of its dots or lines.
    """
    height, width = block.shape
    x, y = np.arange(width)[None, :], np.arange(height)[:, None]
    for ink, (pattern, colour) in marks.items():
        columns = np.flatnonzero(inks == ink)
        if len(columns):
            at = _MARKED[pattern](x[:, columns], y)
            block[:, columns] = np.where(at, np.uint32(colour), block[:, columns])


_MARKED: Mapping[Pattern, Callable[[npt.NDArray[Any], npt.NDArray[Any]], npt.NDArray[np.bool_]]] = {
    "solid": lambda x, y: np.zeros((len(y), x.shape[1]), np.bool_),
    "dots": lambda x, y: ((x + 2 * (y // 3 % 2)) % 4 == 0) & (y % 3 == 1),
    "hatch": lambda x, y: (x + y) % 5 == 0,
    "diagonals": lambda x, y: (x - y) % 6 == 0,
    "lines": lambda x, y: (y % 4 == 2) & (x >= 0),
}
