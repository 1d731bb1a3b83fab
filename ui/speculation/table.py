"""Requests by how well their drafts did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from inspector.picture.palette import ink
from inspector.picture.speculation import SpeculationPicture
from ui.export import Cell
from ui.widgets.graphics import Graphic, Slices
from ui.widgets.table import Column

_COLUMNS = (
    Column("request", "Request", 7, "the engine's own number", is_number=True),
    Column("group", "Group", 7, "kind of prompt", is_name=True),
    Column("rate", "Accepted", 10, "accepted / drafted", "%", is_number=True),
    Column("", "", 6, is_drawing=True),
    Column("per_pass", "Per pass", 8, "tokens per pass of the target: 1 + accepted / passes", is_number=True),
    Column("drafted", "Drafted", 7, "draft tokens that the target checked", is_number=True),
    Column("accepted", "Taken", 6, "draft tokens accepted, before an end token cut any", is_number=True),
    Column("passes", "Passes", 6, "passes of the target in the generation phase", is_number=True),
    Column("emitted", "Given out", 9, "tokens that these passes gave out", is_number=True),
)


@dataclass(frozen=True)
class _Row:
    request: int
    group: str
    passes: int
    drafted: int
    accepted: int
    emitted: int

    @property
    def rate(self) -> float | None:
        return 100 * self.accepted / self.drafted if self.drafted else None

    @property
    def per_pass(self) -> float:
        return 1 + self.accepted / self.passes


class RequestList:
    """A Content of the table."""

    columns = _COLUMNS

    def __init__(self, rows: list[_Row]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def text(self, row: int, column: int) -> str:
        """The cell for reading."""
        value, key = self.exact(row, column), _COLUMNS[column].key
        if value is None:
            return "" if _COLUMNS[column].is_drawing else "–"
        if key == "rate":
            return f"{value:.1f} %"
        if key == "per_pass":
            return f"{value:.2f}"
        return f"{value:,}" if isinstance(value, int) else str(value)

    def exact(self, row: int, column: int) -> Cell:
        """The cell for copying."""
        key = _COLUMNS[column].key
        if not key:
            return None
        value: Cell = getattr(self.rows[row], key)
        return None if key == "emitted" and value == -1 else value

    def graphic(self, row: int, column: int) -> Graphic | None:
        """The share as a bar."""
        rate = self.rows[row].rate
        if not _COLUMNS[column].is_drawing or rate is None:
            return None
        return Slices([(rate / 100, ink("accepted")), (1 - rate / 100, ink("rejected"))])


def request_list(picture: SpeculationPicture, sort: str, descending: bool) -> RequestList:
    """The requests of the picture, sorted."""
    found, table, names = picture.by_request, picture.trace["requests"], picture.trace.names
    rows: list[_Row] = []
    if found is not None:
        group, ids = table.get("group")[found.row], table["request"][found.row]
        numbers = np.stack([found.passes, found.drafted, found.accepted, found.emitted], axis=1).tolist()
        for number, kind, counted in zip(ids.tolist(), group.tolist(), numbers, strict=True):
            rows.append(_Row(number, names[kind] if kind >= 0 else "", *counted))
    rows.sort(key=_KEYS[sort], reverse=descending)
    return RequestList(rows)


def _rate(row: _Row) -> float:
    return -1.0 if row.rate is None else row.rate


_KEYS: dict[str, Callable[[_Row], Any]] = {
    "request": lambda row: row.request,
    "group": lambda row: row.group,
    "rate": _rate,
    "drafted": lambda row: row.drafted,
    "accepted": lambda row: row.accepted,
    "per_pass": lambda row: row.per_pass,
    "passes": lambda row: row.passes,
    "emitted": lambda row: row.emitted,
}
