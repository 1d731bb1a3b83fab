"""The rows of the layers view: the table of an engine, searched and in order, with each layer's share as a bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from inspector.analysis.categories import CATEGORIES, OTHER, category_of
from inspector.analysis.layers import LayersOf, LayerTables
from inspector.picture.palette import category_ink
from inspector.trace.layers import Layer
from inspector.trace.table import Array
from inspector.trace.trace import Trace
from ui.export import Cell
from ui.result_rows import ResultList, Wanted, columns_of, result_rows
from ui.widgets.graphics import Graphic, Slices
from ui.widgets.table import Column

_BAR = Column(
    "",
    "",
    9,
    "Its share as a bar, which the longest layer fills; the colour is what kind of work it is",
    is_drawing=True,
)
_BEHIND = "Share"
_HOLDS = "Holds"
_NAME = "Layer"
_TEXTS = ("Tactic", "Layers of the network", "Input formats", "Output formats", "Input shapes", "Output shapes")
_WIDEST = 22
_NAME_WIDTH = 34


class LayerList:
    """Those rows of `of.table` that `found` lists, as a Content; all engines of the trace come with it in `engines`."""

    def __init__(self, engines: Sequence[LayersOf], at: int, found: ResultList) -> None:
        self.engines, self.at, self.found = engines, at, found
        self.of = engines[at]

    @cached_property
    def _places(self) -> list[int]:
        """The column of the table behind each of ours; -1 the bar."""
        names = [column.name for column in self.of.table.columns]
        return [place for at, name in enumerate(names) for place in ((at, -1) if name == _BEHIND else (at,))]

    @cached_property
    def columns(self) -> Sequence[Column]:
        """Those of the table, and the bar behind the share."""
        return [_BAR if place < 0 else _narrow(self._headings[place]) for place in self._places]

    @cached_property
    def _headings(self) -> Sequence[Column]:
        return columns_of(self.of.table)

    def __len__(self) -> int:
        return len(self.found)

    def layer(self, row: int) -> Layer:
        """The layer in that row."""
        return self.of.engine.layers[int(self.found.order[row])]

    def text(self, row: int, column: int) -> str:
        """Short, with its unit; a dash where the files do not tell."""
        place = self._places[column]
        if place < 0:
            return ""
        said = self.found.text(row, place)
        if self._headings[place].key == _HOLDS and self.layer(row).has_more:
            return f"{said}+" if said else "–"
        return said or "–"

    def exact(self, row: int, column: int) -> Cell:
        """Every digit; None where the files do not tell."""
        place = self._places[column]
        return None if place < 0 else self.found.exact(row, place)

    def graphic(self, row: int, column: int) -> Graphic | None:
        """The bar."""
        if self._places[column] >= 0:
            return None
        shares, most = self._shares
        share = float(shares[self.found.order[row]])
        return Slices([(share / most, _ink(self.layer(row)))]) if share else None

    @cached_property
    def _shares(self) -> tuple[Array, float]:
        """Those of all layers of the engine, and the largest; 0 for what is not known."""
        column = next(column for column in self.of.table.columns if column.name == _BEHIND)
        return column.values, float(column.values.max(initial=0))


def layer_rows(trace: Trace, at: int, wanted: Wanted) -> LayerList:
    """Layers of the `at`-th engine of `trace`. Raises re.error for a pattern that is none."""
    engines = trace.index(LayerTables).engines
    return LayerList(engines, at, result_rows(engines[at].table, wanted))


def _narrow(column: Column) -> Column:
    """Names take the room that is left, not a fixed one each."""
    if column.key == _NAME:
        return replace(column, width=_NAME_WIDTH, is_name=True)
    if column.key in _TEXTS:
        return replace(column, width=min(column.width, _WIDEST), is_name=False)
    return replace(column, is_name=False)


def _ink(layer: Layer) -> int:
    if layer.is_reformat:
        return category_ink(CATEGORIES.index("memory"))
    # A matrix product of an attention block is called after the block: the kernel says what it is.
    found = (category_of(text) for text in (layer.tactic, layer.type, layer.name))
    return category_ink(next((category for category in found if category != OTHER), OTHER))
