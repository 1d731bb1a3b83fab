"""The rows of the kernels view: statistics by name or category, with how their time lies over the range."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from inspector import units
from inspector.analysis.categories import CATEGORIES, Categories
from inspector.analysis.kernels import KernelRow, kernels
from inspector.picture.palette import category_ink, category_label
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.work import Work
from ui.export import Cell
from ui.widgets.graphics import Graphic, Slices, Spark, Spread, Swatch
from ui.widgets.table import Column

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

STEPS = 48
By = Literal["name", "category"]
Int = npt.NDArray[np.int64]

COLUMNS: tuple[Column, ...] = (
    Column("name", "Name", 38, "Kernel, copy or graph", is_name=True),
    Column("category", "Category", 18, "What kind of work it is, told from its name"),
    Column("count", "Count", 9, "Executions that started in the range", "", True),
    Column("total", "Total", 9, "Their durations added up; streams run side by side", "ns", True),
    Column("share", "Share", 8, "Of the durations of all work in the range", "%", True),
    Column("", "", 8, "Its share as a bar", is_drawing=True),
    Column("median", "Median", 9, "Half of them took no longer (nearest rank)", "ns", True),
    Column("mean", "Mean", 9, "Total by count", "ns", True),
    Column("p99", "p99", 9, "99 % of them took no longer (nearest rank)", "ns", True),
    Column("max", "Longest", 9, "The longest one", "ns", True),
    Column("", "Spread", 12, "Shortest, median, p99 and longest, on one logarithmic axis for all", is_drawing=True),
    Column("delay", "Launch delay", 12, "Median of its start minus the end of its launch call", "ns", True),
    Column("", "Over time", 24, "Its time over the range, each row to its own highest", is_drawing=True),
)


@dataclass(frozen=True)
class Options:
    """What the user asked: by name or category, and of which device (a row of devices)."""

    by: By = "name"
    device: int = 0


@dataclass(frozen=True)
class KernelList:
    """Rows in the order to list; `steps[i]` is time per step of the range for the i-th row, in shares of its highest.

    `shortest` and `longest` (ns, over all rows) are the ends of the axis of spreads.
    """

    rows: tuple[KernelRow, ...]
    steps: npt.NDArray[np.float32]
    shortest: int
    longest: int
    by: By = "name"
    columns: Sequence[Column] = COLUMNS

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total_ns(self) -> int:
        """All durations of these rows, ns."""
        return sum(row.total_ns for row in self.rows)

    def arranged(self, sort: str, descending: bool, pattern: re.Pattern[str] | None) -> KernelList:
        """Those whose name `pattern` finds, sorted by a column."""
        kept = [at for at, row in enumerate(self.rows) if pattern is None or pattern.search(row.name)]
        kept.sort(key=lambda at: _KEYS[sort](self.rows[at]), reverse=descending)
        return replace(self, rows=tuple(self.rows[at] for at in kept), steps=self.steps[kept])

    def text(self, row: int, column: int) -> str:
        """The cell for reading."""
        key, value = self.columns[column].key, self.exact(row, column)
        if value is None:
            return "–" if key == "delay" else ""
        if key == "share":
            return f"{value:.1f} %"
        if key == "category" or self.by == "category":
            value = category_label(value) if isinstance(value, str) else value
        if isinstance(value, int | float):
            return f"{value:,}" if key == "count" else units.time(value)
        return value

    def exact(self, row: int, column: int) -> Cell:
        """The cell for copying."""
        key = self.columns[column].key
        if not key:
            return None
        if key == "share":
            return 100 * self.rows[row].share
        value: Cell = getattr(self.rows[row], _FIELDS.get(key, f"{key}_ns"))
        return value

    def graphic(self, row: int, column: int) -> Graphic | None:
        """The drawings: category, share, spread and time line."""
        entry, heading = self.rows[row], self.columns[column]
        ink = category_ink(CATEGORIES.index(entry.category))
        if heading.key == "category":
            return Swatch(category_label(entry.category), ink)
        if not heading.is_drawing:
            return None
        if heading.title == "Over time":
            return Spark(self.steps[row].tolist(), ink)
        if heading.title == "Spread":
            return Spread(*(self._place(ns) for ns in (entry.min_ns, entry.median_ns, entry.p99_ns, entry.max_ns)))
        return Slices([(entry.share, ink)])

    def _place(self, ns: int) -> float:
        low, high = math.log(max(self.shortest, 1)), math.log(max(self.longest, 2))
        return min(max((math.log(max(ns, 1)) - low) / max(high - low, 1e-9), 0.0), 1.0)


_FIELDS = {"name": "name", "category": "category", "count": "count", "delay": "launch_delay_ns"}
_KEYS: dict[str, Callable[[KernelRow], Any]] = {
    "name": lambda row: row.name.casefold(),
    "category": lambda row: row.category.casefold(),
    "count": lambda row: row.count,
    "total": lambda row: row.total_ns,
    "share": lambda row: row.share,
    "median": lambda row: row.median_ns,
    "mean": lambda row: row.mean_ns,
    "p99": lambda row: row.p99_ns,
    "max": lambda row: row.max_ns,
    "delay": lambda row: -1 if row.launch_delay_ns is None else row.launch_delay_ns,
}


def kernel_rows(trace: Trace, window: Window | None, options: Options) -> KernelList:
    """Statistics of a device's work that started in `window`, longest total first."""
    rows = kernels(trace, options.by, window, options.device)
    span = window or trace.whole
    keys = [row.name_id if options.by == "name" else CATEGORIES.index(row.category) for row in rows]
    return KernelList(
        tuple(rows),
        _over_time(trace, span, options, np.array(keys, np.int64)),
        min((row.min_ns for row in rows), default=1),
        max((row.max_ns for row in rows), default=1),
        options.by,
    )


def _over_time(trace: Trace, span: Window, options: Options, keys: Int) -> npt.NDArray[np.float32]:
    """(keys, STEPS) float32: time of the work that began in each step, in shares of the key's highest step."""
    place = np.zeros(max(len(CATEGORIES), len(trace.names)), np.int64)
    place[keys] = np.arange(len(keys))
    work = trace.index(Work).devices[options.device]
    part = slice(*np.searchsorted(work.start, [span.start, span.end]))
    step = (work.start[part] - span.start) * STEPS // max(span.length, 1)
    length = (work.end[part] - work.start[part]).astype(np.float64)
    key = np.zeros(len(step), np.int64)
    of_name = trace.index(Categories).of_name
    for code, table in enumerate(WORK_TABLES):
        at = np.flatnonzero(work.table[part] == code)
        names = trace[table]["name"][work.row[part][at]]
        key[at] = names if options.by == "name" else of_name[names]
    # Through floats: these are heights of a drawing, a few pixels tall.
    sums = np.bincount(place[key] * STEPS + step, weights=length, minlength=len(keys) * STEPS)
    sums = sums.reshape(len(keys), STEPS)
    highest: npt.NDArray[np.float64] = np.maximum(sums.max(axis=1, initial=0, keepdims=True), 1)
    shares: npt.NDArray[np.float32] = (sums / highest).astype(np.float32)
    return shares
