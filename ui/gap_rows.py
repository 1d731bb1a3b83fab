"""What the idle gaps view asks: which gaps to list, in which order, and the sums that go with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inspector import units
from inspector.analysis.busy import busy
from inspector.analysis.calls import PAUSED
from inspector.analysis.causes import CAUSES, Causes, DeviceSlices
from inspector.analysis.gaps import Gaps
from inspector.analysis.hosts import HostGroups
from inspector.analysis.origins import at_work_meanwhile, by_pause, by_probe
from inspector.analysis.rollup import By, IdleRow, rollup
from inspector.analysis.sums import sum_by
from inspector.analysis.thread_states import PEER
from inspector.picture.navigate import costliest_gap, next_gap
from inspector.trace.selection import Window
from ui.gap_facts import GapFacts
from ui.gap_table import GapList, GroupList

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Options:
    """What the user asked of the table: grouping ('gap' is none), shortest length listed, order, and one group alone.

    `only` is a (grouping, key) as in IdleRow, for the gaps of that group.
    """

    by: str = "gap"
    min_ns: int = 0
    sort: str = "length"
    descending: bool = True
    only: tuple[str, int] | None = None


@dataclass(frozen=True)
class Answer:
    """Rows to list, and the sums that go with them: listed + shorter + apart = idle, exactly, in ns and in gaps.

    `notes` say more of some causes.
    """

    device: int
    window: Window | None
    content: GapList | GroupList
    by_cause: tuple[tuple[int, int], ...]
    idle_ns: int
    listed_ns: int
    listed: int
    shorter_ns: int
    shorter: int
    apart_ns: int
    notes: dict[int, str]


def gap_rows(trace: Trace, device: int, window: Window | None, options: Options) -> Answer:
    """What the idle gaps view shows of a row of devices; `window` cuts gaps."""
    slices = trace.index(Causes).devices[device]
    start, end = slices.start, slices.end
    if window is not None:
        start, end = np.clip(start, window.start, window.end), np.clip(end, window.start, window.end)
    sums = sum_by(slices.cause, end - start, len(CAUSES))
    by_cause = tuple((cause, int(sums[cause])) for cause in np.argsort(-sums, kind="stable").tolist() if sums[cause])
    idle = busy(trace, device, window).idle_ns
    notes = _notes(trace, slices, start, end)
    if options.by != "gap":
        by: By = options.by  # type: ignore[assignment]
        rows, rest = rollup(trace, device, by, window, options.min_ns)
        listed = sum(row.total_ns for row in rows)
        groups = GroupList(trace, by, _sorted_groups(rows, options), idle)
        return Answer(device, window, groups, by_cause, idle, listed, len(rows), rest.total_ns, rest.gaps, 0, notes)
    gaps = trace.index(Gaps).devices[device]
    low, high = gaps.start, gaps.end
    if window is not None:
        low, high = np.clip(low, window.start, window.end), np.clip(high, window.start, window.end)
    length = high - low
    inside = length > 0
    short = inside & (length < options.min_ns)
    kept = inside & ~short
    wanted = kept & _only(trace, device, options.only, end - start)
    listed_rows = np.flatnonzero(wanted)
    content = GapList(trace, device, window, listed_rows)
    order = content.order(options.sort)
    content = GapList(trace, device, window, listed_rows[order[::-1] if options.descending else order])
    return Answer(
        device,
        window,
        content,
        by_cause,
        idle,
        int(length[wanted].sum()),
        len(listed_rows),
        int(length[short].sum()),
        int(np.count_nonzero(short)),
        int(length[kept & ~wanted].sum()),
        notes,
    )


def _notes(trace: Trace, slices: DeviceSlices, start: Int, end: Int) -> dict[int, str]:
    """What a cause's name does not say of its time: a pause, the own probe, who was at work meanwhile."""
    length = end - start
    notes: dict[int, list[str]] = {}
    for mask, words in ((by_pause(trace, slices), PAUSED), (by_probe(trace, slices), "inflight's own probe")):
        sums = sum_by(slices.cause[mask], length[mask], len(CAUSES))
        for cause in np.flatnonzero(sums).tolist():
            notes.setdefault(cause, []).append(f"{words} {units.time(int(sums[cause]))}")
    told = [
        f"{trace.device_short(other).removeprefix('CPU ') if other >= 0 else 'no other device'} {units.time(ns)}"
        for other, ns in at_work_meanwhile(trace, slices, start, end)
    ]
    if told:
        notes.setdefault(PEER, []).append(f"meanwhile at work: {', '.join(told)}")
    return {cause: ", ".join(words) for cause, words in notes.items()}


def _only(trace: Trace, device: int, only: tuple[str, int] | None, lengths: Int) -> Mask:
    """Gaps that have time under a heading."""
    slices, facts = trace.index(Causes).devices[device], trace.index(GapFacts).devices[device]
    if only is None:
        return np.ones(len(facts.main), bool)
    by, key = only
    if by in ("kernel", "iteration"):
        same: Mask = (facts.next if by == "kernel" else facts.iteration) == key
        return same
    keys = slices.cause if by == "cause" else trace.index(HostGroups).keys(slices)
    hit = (keys == key) & (lengths > 0)
    found = np.zeros(len(facts.main), bool)
    found[slices.gap[hit]] = True
    return found


def _sorted_groups(rows: list[IdleRow], options: Options) -> tuple[IdleRow, ...]:
    keys: dict[str, Callable[[IdleRow], Any]] = {
        "label": lambda row: (row.key if options.by == "iteration" else 0, row.label.casefold()),
        "gaps": lambda row: row.gaps,
        "longest": lambda row: row.longest_ns,
    }
    return tuple(sorted(rows, key=keys.get(options.sort, lambda row: row.total_ns), reverse=options.descending))


@dataclass(frozen=True)
class FoundGap:
    """A gap to go to: where it lies, and the row of the thread that was late (-1 unknown)."""

    device: int
    span: Window
    thread: int


def find_gap(trace: Trace, device: int, selected: int | None, time: int, step: int) -> FoundGap | None:
    """The gap after (`step` 1) or before (-1) `time`; for 0 the longest, or the next in length after `selected`."""
    found = next_gap(trace, device, time, step) if step else costliest_gap(trace, device, selected)
    if found is None:
        return None
    gaps, facts = trace.index(Gaps).devices[device], trace.index(GapFacts).devices[device]
    gap = int(np.searchsorted(gaps.start, found[0]))
    thread = int(trace.index(Causes).devices[device].thread[facts.main[gap]])
    return FoundGap(device, Window(*found), thread)
