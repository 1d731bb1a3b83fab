"""The page table of a request: logical to physical, how full, and how many share it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from inspector.analysis.pages import PageTable
from inspector.picture.palette import ink
from ui.export import Cell
from ui.widgets.graphics import Graphic, Slices
from ui.widgets.table import Column

COLUMNS: tuple[Column, ...] = (
    Column("", "Logical", 5, "place in the request's block table", is_number=True),
    Column("", "Physical", 6, "number of the page on the device", is_number=True),
    Column("", "Tokens", 5, "tokens in the page after the last step that had ended", "tokens", is_number=True),
    Column("", "Filled", 6, "share of the page that holds tokens", is_drawing=True),
    Column("", "Holders", 5, "requests that hold this page", is_number=True),
)


@dataclass(frozen=True)
class PageRows:
    """Rows for a TableView. `size` are the tokens of a page, -1 unknown."""

    table: PageTable
    size: int

    @property
    def columns(self) -> Sequence[Column]:
        """From left to right."""
        return COLUMNS

    def __len__(self) -> int:
        return len(self.table)

    def text(self, row: int, column: int) -> str:
        """What stands in the cell."""
        value = self.exact(row, column)
        return "–" if value is None or value == -1 else f"{value:,}"

    def exact(self, row: int, column: int) -> Cell:
        """The number; -1 unknown."""
        table = self.table
        columns = (table.index, table.block, table.filled, None, table.refs)
        values = columns[column]
        return None if values is None else int(values[row])

    def graphic(self, row: int, column: int) -> Graphic | None:
        """How full."""
        filled = int(self.table.filled[row])
        if column != 3 or filled < 0:
            return None
        share = filled / self.size
        return Slices([(share, ink("page in use")), (1 - share, ink("free page"))])

    def row_of(self, page: int) -> int:
        """The row of a physical page; -1 none."""
        return next((row for row, block in enumerate(self.table.block.tolist()) if block == page), -1)
