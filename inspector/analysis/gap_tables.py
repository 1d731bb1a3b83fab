"""The gap analysis of one trace as small tables, to be laid beside those of many others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from inspector.analysis.busy import busy
from inspector.analysis.causes import CAUSES, LAUNCH_OVERHEAD, DeviceSlices
from inspector.analysis.completeness import verdict
from inspector.analysis.gaps import Gaps
from inspector.analysis.hosts import UNMARKED
from inspector.analysis.iterations import Iterations
from inspector.analysis.rollup import clipped, iterations_of_gaps, next_names, previous_names, rollup
from inspector.analysis.sums import sum_by
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.selection import Window
    from inspector.trace.trace import Trace

GapTable = dict[str, list[Any]]
"""A column of equal length for each heading, in the order of showing; times in ns."""

DEVICES = ("GPU", "Name", "Span", "Busy", "Idle", "Gaps", "Work", "Figures", "Why")
BY_CAUSE = ("GPU", "Cause", "Idle", "Gaps", "Longest")
LARGEST = ("GPU", "Start", "Duration", "Cause", "Cause Time", "Host", "Previous", "Next", "Iteration")


def gap_tables(trace: Trace, largest: int, min_ns: int = 0, window: Window | None = None) -> dict[str, GapTable]:
    """Tables 'devices', 'causes' and 'largest' of the devices that have work.

    The idle times of 'causes' sum to those of 'devices' exactly: gaps shorter than `min_ns` are a row of their own.
    'largest' holds the `largest` longest gaps of the trace, longest first, each with its main cause, what the host did
    then, and the iteration of the work after it (None outside). Starts are in the file's own time.
    """
    found = {"devices": _empty(DEVICES), "causes": _empty(BY_CAUSE), "largest": _empty(LARGEST)}
    numbers, names = trace["devices"]["number"], trace["devices"]["name"]
    gaps: list[tuple[int, int, int, int]] = []
    for device, work in enumerate(trace.index(Work).devices):
        if not len(work):
            continue
        number, figures, trust = int(numbers[device]), busy(trace, device, window), verdict(trace, device)
        _add(
            found["devices"],
            (
                *(number, trace.names[int(names[device])], figures.span_ns, figures.busy_ns, figures.idle_ns),
                *(figures.gaps, figures.work, trust.level, "; ".join(trust.reasons)),
            ),
        )
        rows, rest = rollup(trace, device, "cause", window, min_ns)
        for row in [*rows, *([rest] if rest.gaps else [])]:
            _add(found["causes"], (number, row.label, row.total_ns, row.gaps, row.longest_ns))
        gaps += _longest(trace, device, largest, min_ns, window)
    for length, start, device, gap in sorted(gaps, key=lambda each: (-each[0], *each[1:]))[:largest]:
        words = _in_words(trace, device, gap, window)
        _add(found["largest"], (int(numbers[device]), start + trace.info.origin_ns, length, *words))
    return found


def _empty(heads: tuple[str, ...]) -> GapTable:
    return {head: [] for head in heads}


def _add(table: GapTable, row: tuple[Any, ...]) -> None:
    for column, value in zip(table.values(), row, strict=True):
        column.append(value)


def _longest(
    trace: Trace, device: int, largest: int, min_ns: int, window: Window | None
) -> list[tuple[int, int, int, int]]:
    """(length, start, row of devices, row of its gaps) of the longest ones, cut to the window."""
    gaps = trace.index(Gaps).devices[device]
    start, end = gaps.start, gaps.end
    if window is not None:
        start, end = np.clip(start, window.start, window.end), np.clip(end, window.start, window.end)
    length = end - start
    usable = np.flatnonzero((length > 0) & (length >= min_ns))
    order = usable[np.argsort(-length[usable], kind="stable")][:largest]
    return [(int(length[gap]), int(start[gap]), device, gap) for gap in order.tolist()]


def _in_words(trace: Trace, device: int, gap: int, window: Window | None) -> tuple[Any, ...]:
    """Main cause, its ns, what the host did, the work before and after, and the number of the iteration."""
    slices, start, end = clipped(trace, device, window)
    first, last = np.searchsorted(slices.gap, [gap, gap + 1]).tolist()
    length = end[first:last] - start[first:last]
    sums = sum_by(slices.cause[first:last], length, len(CAUSES))
    cause = int(np.argmax(sums))
    mine = np.flatnonzero(slices.cause[first:last] == cause)
    longest = first + int(mine[np.argmax(length[mine])])
    iteration = int(iterations_of_gaps(trace, device)[gap])
    number = int(trace.index(Iterations).number[iteration]) if iteration >= 0 else None
    before, after = previous_names(trace, device)[gap], next_names(trace, device)[gap]
    return (
        *(CAUSES[cause], int(length[mine].sum()), _host(trace, slices, longest)),
        *(trace.names[int(before)], trace.names[int(after)], number),
    )


def _host(trace: Trace, slices: DeviceSlices, at: int) -> str:
    if slices.host[at] >= 0:
        return trace.names[int(slices.host[at])]
    return UNMARKED if slices.cause[at] < LAUNCH_OVERHEAD else ""
