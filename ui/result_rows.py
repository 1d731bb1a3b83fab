"""The rows of a table of results: filtered, in order, with a unit to every number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from inspector import units
from inspector.trace.results import ResultColumn, ResultTable
from ui.export import Cell
from ui.widgets.graphics import Graphic
from ui.widgets.table import Column

Rows = npt.NDArray[np.int64]
_SAMPLE = 200
_WIDEST = 48
_NARROWEST = 6
# Numbers that name something: no one adds or compares them.
_NAMING = re.compile(r"^(pid|tid|rank|gpu|lvl|row#?|.*[ _]?id|device( id)?|stack level|thread|process)$", re.IGNORECASE)
_BRACKET = re.compile(r"[(\[](ns|bytes|B|%|Hz)[)\]]$")


@dataclass(frozen=True)
class Wanted:
    """Which rows, and in which order: those of `report` (-1 all) in which `pattern` is found, by `sort` ('' as in the
    file).
    """

    report: int = -1
    pattern: str = ""
    sort: str = ""
    descending: bool = False


class ResultList:
    """Those rows of `table`, as a Content; `order` holds their rows there."""

    def __init__(self, table: ResultTable, order: Rows) -> None:
        self.table, self.order = table, order

    @cached_property
    def columns(self) -> Sequence[Column]:
        """As the file has them, with its own names."""
        return columns_of(self.table)

    def __len__(self) -> int:
        return len(self.order)

    def text(self, row: int, column: int) -> str:
        """Short, with its unit; nothing where the file has nothing."""
        return shown(self.table.columns[column], int(self.order[row]))

    def exact(self, row: int, column: int) -> Cell:
        """As the file has it."""
        return self.table.columns[column].at(int(self.order[row]))

    def graphic(self, row: int, column: int) -> Graphic | None:
        """None: all is text."""
        return None


def result_rows(table: ResultTable, wanted: Wanted) -> ResultList:
    """The rows that are wanted. Raises re.error for a pattern that is none."""
    keep = np.ones(len(table), bool)
    if wanted.report >= 0 and table.report >= 0:
        keep &= table.columns[table.report].values == wanted.report
    if wanted.pattern:
        keep &= _matching(table, re.compile(wanted.pattern, re.IGNORECASE))
    order: Rows = np.flatnonzero(keep).astype(np.int64)
    keys = [column.key for column in columns_of(table)]
    if wanted.sort in keys:
        order = _sorted(table.columns[keys.index(wanted.sort)], order, wanted.descending)
    return ResultList(table, order)


def columns_of(table: ResultTable) -> tuple[Column, ...]:
    """A heading for every column: its name, and what we take it for."""
    found: list[Column] = []
    taken: set[str] = set()
    for at, column in enumerate(table.columns):
        key = column.name or ("row" if not at else f"column {at + 1}")
        while key in taken:
            key += "'"
        taken.add(key)
        unit = "" if _BRACKET.search(column.name) else column.unit
        tip = column.meaning[:1].upper() + column.meaning[1:]
        if column.unit:
            tip = f"{tip}\nIn {column.unit}" if tip else f"In {column.unit}"
        is_text = column.texts is not None
        cells = max((len(shown(column, row)) for row in range(min(len(column), _SAMPLE))), default=0)
        width = min(max(cells, len(key) + 2, _NARROWEST), _WIDEST)
        found.append(Column(key, key, width, tip, unit, not is_text and not _is_naming(column), False, is_text))
    return tuple(found)


def shown(column: ResultColumn, row: int) -> str:
    """A cell for people."""
    value = column.at(row)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if column.is_moment:
        return _moment(value)
    if column.unit == "ns":
        return units.time(value)
    if column.unit == "bytes":
        return units.size(value)
    if column.unit == "%":
        return f"{value:.1f} %"
    if _is_naming(column):
        return f"{value:.15g}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _moment(ns: float) -> str:
    """Every digit: rows that lie a microsecond apart in a minute are not the same."""
    seconds, rest = divmod(abs(round(ns)), 1_000_000_000)
    return f"{'−' if ns < 0 else ''}{seconds:,}.{rest:09} s"


def unsorted(wanted: Wanted, table: ResultTable) -> Wanted:
    """`wanted` without an order that `table` has no column for."""
    keys = [column.key for column in columns_of(table)]
    return wanted if wanted.sort in keys else replace(wanted, sort="", descending=False)


def _is_naming(column: ResultColumn) -> bool:
    return bool(_NAMING.match(column.name)) and not column.unit


def _matching(table: ResultTable, pattern: re.Pattern[str]) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(table), bool)
    for column in table.columns:
        if column.texts is None:
            continue
        # One more at the end answers for -1.
        hits = np.array([pattern.search(text) is not None for text in column.texts] + [False], bool)
        found |= hits[column.values]
    return found


def _sorted(column: ResultColumn, order: Rows, descending: bool) -> Rows:
    """In the order of a column, equal ones as they were; what has no value comes last either way."""
    absent = np.zeros(len(column), bool) if column.absent is None else column.absent
    values = column.values
    texts = column.texts
    if texts is not None:
        folded = [text.casefold() for text in texts]
        by_text = sorted(range(len(folded)), key=folded.__getitem__)
        place = np.empty(len(by_text) + 1, np.int64)
        place[by_text] = np.arange(len(by_text))
        place[-1] = -1
        absent = absent | (values < 0)
        values = place[values]
    there, rest = order[~absent[order]], order[absent[order]]
    ranks = np.unique(values[there], return_inverse=True)[1] if len(there) else there
    there = there[np.argsort(-ranks if descending else ranks, kind="stable")]
    return np.concatenate([there, rest]).astype(np.int64)
