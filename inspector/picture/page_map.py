"""The map of KV pages: one cell per page, coloured by who holds it, its age, its references, or where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from inspector import units
from inspector.analysis.page_replay import FREE, KEPT, UNKNOWN, USED
from inspector.analysis.pages import Pages
from inspector.analysis.told_pages import ToldPages
from inspector.picture.hues import RequestHues
from inspector.picture.palette import HUES, INKS, RAMP, Ink, Theme, ink, rgb, text_on
from inspector.trace.schema import NEVER

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

By = Literal["request", "age", "references", "tier"]
Cells = npt.NDArray[np.uint8]
Pixels = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

_GAP_FROM = 5  # cells this large have a line of ground between them
_PATTERN_FROM = 2
LARGEST = 44
_DIMMED = 0.25
_QUIET, _CLEAR = 0.16, 0.4
_AT_REST = tuple(INKS[ink(name)] for name in ("free page", "cached page", "unknown page", "host page"))
_FREE, _CACHED, _UNKNOWN, _HOST = range(len(_AT_REST))
_STATUS_CELLS = np.array([_FREE, len(_AT_REST), _CACHED, _UNKNOWN], np.uint8)[[FREE, USED, KEPT, UNKNOWN]]
_REFS = ((1, "1"), (2, "2"), (4, "3 to 4"), (None, "5 or more"))


@dataclass(frozen=True)
class PageMap:
    """The colour of every page as a number into `inks`, device pages and host pages apart. `legend` says what they
    mean: a label and its inks."""

    by: By
    cells: Cells
    host: Cells
    inks: tuple[Ink, ...]
    legend: tuple[tuple[str, tuple[Ink, ...]], ...]


def page_map(trace: Trace, pages: Pages, by: By) -> PageMap:
    """Colours of all pages at their moment."""
    cells = _STATUS_CELLS[pages.status]
    host = np.where(pages.host_status == KEPT, _HOST, _STATUS_CELLS[pages.host_status]).astype(np.uint8)
    used = pages.status == USED
    first = len(_AT_REST)
    held: tuple[tuple[str, tuple[Ink, ...]], ...]
    if by == "request":
        shared = INKS[ink("shared page")]
        hues = (shared, *HUES)
        owner = pages.owner[used].astype(np.int64)
        colour = np.append(trace.index(RequestHues).hue, 0)[owner] + 1
        cells[used] = first + np.where(pages.refs[used] > 1, 0, colour)
        held = (("one request (hues in turn)", HUES), ("shared by several", (shared,)))
    elif by == "references":
        # Without the faintest: what one request holds stands out more than what none does.
        hues = RAMP[1:]
        steps = np.array([most for most, _ in _REFS if most is not None])
        cells[used] = first + np.searchsorted(steps, pages.refs[used])
        held = tuple((label, (hues[step],)) for step, (_, label) in enumerate(_REFS))
    elif by == "age":
        hues = RAMP[::-1]
        edges = ages(pages.time)
        age = np.where(pages.since == NEVER, 0, pages.time - pages.since)
        aged = used | (pages.status == KEPT)
        cells[aged] = first + np.searchsorted(edges, age[aged], "right")
        below = [f"under {units.time(int(edge))}" for edge in edges]
        held = tuple((label, (hues[step],)) for step, label in enumerate((*below, "older")))
    else:
        hues = (INKS[ink("page in use")],)
        held = (("in use", hues),)
    if trace.index(ToldPages).applies and by != "age":
        # No cell is in use as far as is told; the curve below the map is.
        held = (("in use (curve)", (INKS[ink("page in use")],)),)
    legend = [*held]
    rest = (("cached", _CACHED), ("free", _FREE), ("in host memory", _HOST), ("unknown", _UNKNOWN))
    there = set(np.unique(cells).tolist()) | set(np.unique(host).tolist())
    legend += [(label, (_AT_REST[at],)) for label, at in rest if at in there or at == _FREE]
    return PageMap(by, cells, host, (*_AT_REST, *hues), tuple(legend))


def ages(time: int) -> npt.NDArray[np.int64]:
    """Four bounds of ages, ns, each ten times the one before; the largest is the decade of `time`."""
    decade = 10 ** max(len(str(max(time, 1))) - 1, 3)
    return np.array([decade // 1000, decade // 100, decade // 10, decade], np.int64)


@dataclass(frozen=True)
class MapLayout:
    """`count` cells of `cell` pixels in rows of `columns`."""

    count: int
    cell: int
    columns: int

    @classmethod
    def fitting(cls, count: int, width: int, height: int, cell: int = 0) -> MapLayout:
        """The largest cells with which all fit into the pixels, at least one pixel each; or of `cell` pixels."""
        width = max(width, 1)
        if not cell:
            low, high = 1, LARGEST
            while low < high:
                middle = (low + high + 1) // 2
                columns = width // middle
                fits = columns > 0 and -(-count // columns) * middle <= height
                low, high = (middle, high) if fits else (low, middle - 1)
            cell = low
        return cls(count, cell, max(width // cell, 1))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return -(-self.count // self.columns)

    @property
    def height(self) -> int:
        """Pixels from top to bottom."""
        return self.rows * self.cell

    def at(self, x: float, y: float) -> int:
        """The cell at a pixel; -1 none."""
        column, row = int(x // self.cell), int(y // self.cell)
        page = row * self.columns + column
        return page if 0 <= column < self.columns and row >= 0 and page < self.count else -1

    def place(self, page: int) -> tuple[int, int]:
        """Left and top of a cell, pixels."""
        row, column = divmod(page, self.columns)
        return column * self.cell, row * self.cell


def map_pixels(
    cells: Cells,
    inks: Sequence[Ink],
    layout: MapLayout,
    theme: Theme,
    ground: str,
    rows: tuple[int, int],
    bright: Mask | None = None,
) -> Pixels:
    """Those rows of the map, 0xffRRGGBB each; with `bright` all other pages are dimmed."""
    size, columns = layout.cell, layout.columns
    low, high = max(rows[0], 0), min(rows[1], layout.rows)
    many = max(high - low, 0)
    colours = np.array([rgb(each.colour(theme)) for each in inks], np.float64)
    marks = np.array([rgb(text_on(each.colour(theme))) for each in inks], np.float64)
    # What nobody holds is quiet: its pattern too.
    strength = np.array([_QUIET if each in _AT_REST else _CLEAR for each in inks])[:, None]
    marks = colours + (marks - colours) * strength
    back = np.array(rgb(ground), np.float64)
    table = np.stack([colours, marks])
    table = np.stack([table, back + (table - back) * _DIMMED])
    # Bright and plain, bright and marked, dimmed and plain, dimmed and marked; the last of each is the ground.
    shades = np.concatenate([_packed(table).reshape(4, -1), np.full((4, 1), _packed(back[None])[0])], axis=1)
    per_plane = shades.shape[1]
    shown = np.full(many * columns, len(inks), np.uint8)
    part = cells[low * columns : high * columns]
    shown[: len(part)] = part
    if bright is not None:
        shown[: len(part)] += np.where(bright[low * columns : high * columns], 0, 2 * per_plane).astype(np.uint8)
    grid = _enlarged(shown, many, columns, size)
    if size >= _PATTERN_FROM and grid.size:
        of_ink = [0 if each.pattern == "solid" else 1 + list(_MARKS).index(each.pattern) for each in inks]
        kinds = np.tile(np.array([*of_ink, 0], np.uint8), 4)[shown]
        grid += _marked(_enlarged(kinds, many, columns, size), kinds, low * size) * np.uint8(per_plane)
    pixels: Pixels = np.take(shades.reshape(-1), grid)
    if size >= _GAP_FROM and grid.size:
        pixels[size - 1 :: size, :] = shades[0, -1]
        pixels[:, size - 1 :: size] = shades[0, -1]
    return pixels


def _enlarged(values: Cells, rows: int, columns: int, size: int) -> Cells:
    """A value per cell as one per pixel."""
    found: Cells = np.repeat(np.repeat(values.reshape(rows, columns), size, axis=0), size, axis=1)
    return found


_MARKS: Mapping[str, Callable[[Any, Any], Any]] = {
    "hatch": lambda x, y: (x + y) % 4 == 0,
    "diagonals": lambda x, y: (x - y) % 6 == 0,
    "lines": lambda x, y: (y % 4 == 0) & (x >= 0),
    "dots": lambda x, y: (x % 4 == 1) & (y % 4 == 1),
}
# After so many pixels all patterns begin again.
_PERIOD = 12


def _marked(grid: Cells, kinds: Cells, top: int) -> Mask:
    """Where the pattern of a pixel (1 + its place in _MARKS; 0 none) has a mark; patterns go on from cell to cell.
    `kinds` are the patterns in `grid`."""
    marked = np.zeros(grid.shape, bool)
    for kind in np.flatnonzero(np.bincount(kinds)).tolist():
        if kind:
            marked |= (grid == kind) & _marks(list(_MARKS)[kind - 1], top % _PERIOD, *grid.shape)
    return marked


@lru_cache(maxsize=16)
def _marks(pattern: str, top: int, height: int, width: int) -> Mask:
    """Kept, since a run paints the same size again and again."""
    y, x = np.arange(top, top + height)[:, None], np.arange(width)[None, :]
    found: Mask = _MARKS[pattern](x, y)
    return found


def _packed(colours: npt.NDArray[np.float64]) -> Pixels:
    parts = np.rint(colours).astype(np.uint32)
    packed: Pixels = np.uint32(0xFF000000) | parts[..., 0] << 16 | parts[..., 1] << 8 | parts[..., 2]
    return packed
