"""Idle time added up: by cause, by what the host did, by the kernel that came late, by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from inspector.analysis.causes import CAUSES, LAUNCH_OVERHEAD, UNATTRIBUTED, Causes, DeviceSlices
from inspector.analysis.gaps import Gaps
from inspector.analysis.hosts import HostGroups
from inspector.analysis.iterations import Iterations
from inspector.analysis.sums import sum_by
from inspector.trace.selection import Window
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

By = Literal["cause", "host", "kernel", "iteration", "class"]
Int = npt.NDArray[np.int64]
# The three classes of Holistic Trace Analysis, so that figures can be held against its own.
CLASSES: tuple[str, ...] = ("host wait", "kernel wait", "other")


@dataclass(frozen=True)
class IdleRow:
    """Idle under one heading: its label, total ns, in how many gaps, and the longest share of one gap, ns.

    `key` is the cause index, the key of HostGroups, the name id or the row of Iterations behind the label; -1 none.
    """

    label: str
    key: int
    total_ns: int
    gaps: int
    longest_ns: int


def clipped(trace: Trace, device: int, window: Window | None) -> tuple[DeviceSlices, Int, Int]:
    """The slices of a row of devices with starts and ends cut to `window`; those outside have no length."""
    slices = trace.index(Causes).devices[device]
    if window is None:
        return slices, slices.start, slices.end
    start = np.clip(slices.start, window.start, window.end)
    return slices, start, np.clip(slices.end, window.start, window.end)


def idle_by_cause(trace: Trace, device: int, window: Window | None = None) -> dict[str, int]:
    """Idle ns by cause name, largest first, those with nothing left out; sums to `busy(...).idle_ns` exactly."""
    slices, start, end = clipped(trace, device, window)
    sums = sum_by(slices.cause, end - start, len(CAUSES))
    order = np.argsort(-sums, kind="stable")
    return {CAUSES[cause]: int(sums[cause]) for cause in order.tolist() if sums[cause]}


def rollup(
    trace: Trace, device: int, by: By = "cause", window: Window | None = None, min_ns: int = 0
) -> tuple[list[IdleRow], IdleRow]:
    """Idle of a row of devices under headings, largest first, and the row of all gaps shorter than `min_ns`.

    A gap is as long as the part of it inside `window`. The rows and that last one sum to all idle in the window.
    """
    slices, start, end = clipped(trace, device, window)
    length = end - start
    count = len(trace.index(Gaps).devices[device])
    of_gap = sum_by(slices.gap, length, count)
    short = of_gap < min_ns
    listed = np.flatnonzero(~short[slices.gap] & (length > 0)) if len(slices) else np.empty(0, np.int64)
    keys = _keys(trace, device, slices, by)[listed] if len(listed) else np.empty(0, np.int64)
    values, group = np.unique(keys, return_inverse=True)
    total = sum_by(group, length[listed], len(values))
    # The share of one gap under one heading may stand in several slices.
    pair = group * max(count, 1) + slices.gap[listed]
    pairs, inverse = np.unique(pair, return_inverse=True)
    together = sum_by(inverse, length[listed], len(pairs))
    owner = pairs // max(count, 1)
    gaps = np.bincount(owner, minlength=len(values))
    longest = np.zeros(len(values), np.int64)
    np.maximum.at(longest, owner, together)
    rows = [
        IdleRow(_label(trace, by, int(values[at])), int(values[at]), int(total[at]), int(gaps[at]), int(longest[at]))
        for at in np.argsort(-total, kind="stable").tolist()
    ]
    shorter = of_gap[short & (of_gap > 0)]
    rest = IdleRow(f"shorter than {min_ns} ns", -1, int(shorter.sum()), len(shorter), int(shorter.max(initial=0)))
    return rows, rest


def next_names(trace: Trace, device: int) -> npt.NDArray[np.int32]:
    """Name id of the work after each gap of a row of devices; -1 none."""
    return _names_at(trace, device, trace.index(Gaps).devices[device].next)


def previous_names(trace: Trace, device: int) -> npt.NDArray[np.int32]:
    """Name id of the work before each gap of a row of devices; -1 none."""
    return _names_at(trace, device, trace.index(Gaps).devices[device].previous)


def _names_at(trace: Trace, device: int, positions: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    work = trace.index(Work).devices[device]
    return work.pick(lambda table: trace[table]["name"], positions).astype(np.int32)


def iterations_of_gaps(trace: Trace, device: int) -> npt.NDArray[np.int32]:
    """Row of Iterations of each gap: that of the work after it; -1 none."""
    gaps, found = trace.index(Gaps).devices[device], trace.index(Iterations)
    if not len(found) or not len(gaps):
        return np.full(len(gaps), -1, np.int32)
    owner = found.of_work(trace, trace.index(Work).devices[device])
    return np.where(gaps.next >= 0, owner[gaps.next], -1).astype(np.int32)


def _keys(trace: Trace, device: int, slices: DeviceSlices, by: By) -> Int:
    if by == "cause":
        return slices.cause.astype(np.int64)
    if by == "class":
        before = (slices.cause < LAUNCH_OVERHEAD) | ((slices.cause > LAUNCH_OVERHEAD) & (slices.host >= 0))
        kernel_wait = ~before & (slices.cause < UNATTRIBUTED)
        return np.where(slices.cause == UNATTRIBUTED, 2, kernel_wait).astype(np.int64)
    if by == "host":
        return trace.index(HostGroups).keys(slices)
    of_gap = next_names(trace, device) if by == "kernel" else iterations_of_gaps(trace, device)
    return of_gap[slices.gap].astype(np.int64)


def _label(trace: Trace, by: By, key: int) -> str:
    if by == "cause":
        return CAUSES[key]
    if by == "class":
        return CLASSES[key]
    if by == "iteration":
        return f"iteration {trace.index(Iterations).number[key]:,}" if key >= 0 else "outside iterations"
    if by == "host":
        return trace.index(HostGroups).label(key)
    return trace.names[key] if key >= 0 else "end of the trace"
