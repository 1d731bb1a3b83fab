"""The two tables of the idle gaps view: gaps one by one, and idle time under headings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inspector import units
from inspector.analysis.causes import CAUSES, EXPLANATIONS, Causes, of_host
from inspector.analysis.gaps import Gaps
from inspector.analysis.hosts import UNMARKED
from inspector.analysis.iterations import Iterations
from inspector.analysis.rollup import By, IdleRow
from inspector.picture.palette import cause_ink, ink
from inspector.trace.selection import Window
from ui.export import Cell
from ui.gap_facts import Facts, GapFacts
from ui.widgets.graphics import Graphic, Slices, Swatch
from ui.widgets.table import Column

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]

GAP_COLUMNS: tuple[Column, ...] = (
    Column("start", "Start", 15, "When the device fell idle, from the first record of the trace", "ns", True),
    Column("length", "Length", 8, "How long it was idle", "ns", True),
    Column("", "Causes", 18, "The gap cut by cause, to its own length", is_drawing=True),
    Column("cause", "Main cause", 18, "The cause with most time in the gap"),
    Column("host", "Host was in", 30, "The call or named range that the late host thread was in", is_name=True),
    Column("next", "Next on the device", 34, "The work that ended the gap", is_name=True),
    Column("iteration", "Iteration", 10, "The iteration of that work", "", True),
    Column("thread", "Late thread", 14, "The host thread that launched that work"),
)


@dataclass(frozen=True)
class GapList:
    """Gaps of one device, `rows` of DeviceGaps in the order to list."""

    trace: Trace
    device: int
    window: Window | None
    rows: Int
    columns: Sequence[Column] = GAP_COLUMNS

    def __len__(self) -> int:
        return len(self.rows)

    def span(self, row: int) -> Window:
        """Where the gap lies, cut to the window."""
        gaps, gap = self.trace.index(Gaps).devices[self.device], self.rows[row]
        span = Window(int(gaps.start[gap]), int(gaps.end[gap]))
        return span if self.window is None else span.clipped(self.window.start, self.window.end)

    def start_of(self, row: int) -> int:
        """Start of the whole gap, which names it in a selection."""
        return int(self.trace.index(Gaps).devices[self.device].start[self.rows[row]])

    def thread_of(self, row: int) -> int:
        """Row of the thread that was late; -1 unknown."""
        slices = self.trace.index(Causes).devices[self.device]
        return int(slices.thread[self._facts.main[self.rows[row]]])

    def row_of(self, start: int) -> int:
        """The row that lists the gap with that start; -1 when it is not listed."""
        starts = self.trace.index(Gaps).devices[self.device].start
        gap = int(np.searchsorted(starts, start))
        if gap == len(starts) or starts[gap] != start:
            return -1
        found = np.flatnonzero(self.rows == gap)
        return int(found[0]) if len(found) else -1

    def order(self, key: str) -> Int:
        """Positions that sort the rows upwards by a column, equal ones in time order."""
        gaps = self.trace.index(Gaps).devices[self.device]
        slices = self.trace.index(Causes).devices[self.device]
        main = self._facts.main[self.rows]
        if key == "start":
            keys: Int = gaps.start[self.rows]
        elif key == "length":
            low, high = gaps.start[self.rows], gaps.end[self.rows]
            if self.window is not None:
                low = np.clip(low, self.window.start, self.window.end)
                high = np.clip(high, self.window.start, self.window.end)
            keys = high - low
        elif key == "cause":
            keys = _ranks(slices.cause[main], lambda cause: CAUSES[cause])
        elif key == "host":
            hosts = np.where(of_host(slices.cause[main], slices.host[main]), slices.host[main], -2)
            keys = _ranks(hosts, self._host)
        elif key == "thread":
            keys = _ranks(slices.thread[main], self.trace.thread_name)
        elif key == "next":
            keys = _ranks(self._facts.next[self.rows], self._name)
        else:
            keys = self._facts.iteration[self.rows].astype(np.int64)
        return np.argsort(keys, kind="stable")

    def text(self, row: int, column: int) -> str:
        """The cell for reading."""
        key = self.columns[column].key
        if key == "start":
            span = self.span(row)
            return units.place(span.start, span.length)
        if key == "length":
            return units.time(self.span(row).length)
        if key == "":
            return ", ".join(f"{CAUSES[cause]} {units.time(ns)}" for cause, ns in self.causes(row))
        value = self.exact(row, column)
        return "" if value is None else str(value)

    def exact(self, row: int, column: int) -> Cell:
        """The cell for copying."""
        key = self.columns[column].key
        gap = self.rows[row]
        slices = self.trace.index(Causes).devices[self.device]
        main = self._facts.main[gap]
        if key == "start":
            return self.span(row).start
        if key == "length":
            return self.span(row).length
        if key == "":
            return self.text(row, column)
        if key == "cause":
            return CAUSES[int(slices.cause[main])]
        if key == "host":
            return self._host(int(slices.host[main]) if of_host(slices.cause[main], slices.host[main]) else -2)
        if key == "thread":
            return self.trace.thread_name(int(slices.thread[main]))
        if key == "next":
            return self._name(int(self._facts.next[gap]))
        iteration = int(self._facts.iteration[gap])
        return int(self.trace.index(Iterations).number[iteration]) if iteration >= 0 else None

    def causes(self, row: int) -> list[tuple[int, int]]:
        """(cause, ns) of the gap's slices in time order, neighbours of one cause together."""
        slices = self.trace.index(Causes).devices[self.device]
        span, gap = self.span(row), self.rows[row]
        found: list[tuple[int, int]] = []
        for at in range(int(self._facts.first[gap]), int(self._facts.first[gap + 1])):
            part = Window(int(slices.start[at]), int(slices.end[at])).clipped(span.start, span.end)
            cause = int(slices.cause[at])
            if found and found[-1][0] == cause:
                found[-1] = (cause, found[-1][1] + part.length)
            elif part.length:
                found.append((cause, part.length))
        return found

    def graphic(self, row: int, column: int) -> Graphic | None:
        """The gap's slices as a bar; the main cause with its colour."""
        key = self.columns[column].key
        if key == "":
            whole = max(self.span(row).length, 1)
            return Slices([(ns / whole, cause_ink(cause)) for cause, ns in self.causes(row)])
        if key == "cause":
            cause = int(self.trace.index(Causes).devices[self.device].cause[self._facts.main[self.rows[row]]])
            return Swatch(CAUSES[cause], cause_ink(cause))
        return None

    @property
    def _facts(self) -> Facts:
        return self.trace.index(GapFacts).devices[self.device]

    def _name(self, name: int) -> str:
        return self.trace.names[name]

    def _host(self, name: int) -> str:
        """-1 is unmarked code; -2 stands for what was launched in time, which is not the host's doing."""
        return self._name(name) or UNMARKED if name > -2 else ""


def _ranks(ids: npt.NDArray[Any], text: Callable[[int], str]) -> Int:
    """For each id its rank by text."""
    values, inverse = np.unique(ids, return_inverse=True)
    order = sorted(range(len(values)), key=lambda at: text(int(values[at])).casefold())
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values))
    return ranks[inverse]


_HEADS = {"cause": "Cause", "host": "Host was in", "kernel": "Next on the device", "iteration": "Iteration"}


def _group_columns(by: str) -> tuple[Column, ...]:
    return (
        Column("label", _HEADS[by], 34, "What the idle time stands under", is_name=True),
        Column("total", "Idle", 9, "Idle time under this heading", "ns", True),
        Column("share", "Share", 8, "Of all idle time of the device in the range", "%", True),
        Column("", "", 16, "Its share as a bar", is_drawing=True),
        Column("gaps", "Gaps", 9, "In how many gaps", "", True),
        Column("longest", "Longest", 9, "The most of it in one gap", "ns", True),
        Column("why", "What it means", 60, "") if by == "cause" else Column("", "", 1, "", is_drawing=True),
    )


@dataclass(frozen=True)
class GroupList:
    """Idle time under headings."""

    trace: Trace
    by: By
    groups: tuple[IdleRow, ...]
    idle_ns: int

    @property
    def columns(self) -> Sequence[Column]:
        """By what it is grouped decides."""
        return _group_columns(self.by)

    def __len__(self) -> int:
        return len(self.groups)

    def text(self, row: int, column: int) -> str:
        """The cell for reading."""
        group, key = self.groups[row], self.columns[column].key
        if key in ("total", "longest"):
            return units.time(group.total_ns if key == "total" else group.longest_ns)
        if key == "share":
            return units.share(group.total_ns, self.idle_ns)
        value = self.exact(row, column)
        return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    def exact(self, row: int, column: int) -> Cell:
        """The cell for copying."""
        group, key = self.groups[row], self.columns[column].key
        if key == "label":
            return group.label
        if key == "total":
            return group.total_ns
        if key == "share":
            return 100 * group.total_ns / self.idle_ns if self.idle_ns else None
        if key == "gaps":
            return group.gaps
        if key == "longest":
            return group.longest_ns
        return EXPLANATIONS[group.label] if key == "why" else None

    def graphic(self, row: int, column: int) -> Graphic | None:
        """The share as a bar; causes with their colour."""
        group, key = self.groups[row], self.columns[column].key
        color = cause_ink(group.key) if self.by == "cause" else ink("busy")
        if column == 3 and self.idle_ns:
            return Slices([(group.total_ns / self.idle_ns, color)])
        return Swatch(group.label, color) if key == "label" and self.by == "cause" else None
