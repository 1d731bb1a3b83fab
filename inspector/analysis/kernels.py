"""Kernel statistics, by name or by category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from inspector.analysis.categories import CATEGORIES, Categories
from inspector.trace.links import Links
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
WORK_NAMES: tuple[str, ...] = ("kernel", "copy", "set", "graph")


@dataclass(frozen=True)
class KernelRow:
    """Statistics of the records with one name (or category), times in ns.

    Median and p99 are nearest-rank: a duration that occurred. `share` is of the summed durations of all rows (streams
    run side by side, so the sum can exceed the busy time). `launch_delay_ns` is the median of start minus the launch
    call's end, 0 where the work began before the call returned; None without launch calls.
    """

    name: str
    name_id: int
    category: str
    kind: str
    count: int
    total_ns: int
    share: float
    min_ns: int
    median_ns: int
    mean_ns: float
    p99_ns: int
    max_ns: int
    launch_delay_ns: int | None


def kernels(
    trace: Trace,
    by: Literal["name", "category"] = "name",
    window: Window | None = None,
    device: int | None = None,
) -> list[KernelRow]:
    """One row per name (or category), longest total first. `window` takes the work that started in it, at full length.

    `device` is a row of devices; None takes all. Graphs that were recorded as a whole are rows of kind 'graph'.
    """
    of_name = trace.index(Categories).of_name
    keys, lengths, delays, kinds = _gather(trace, window, device)
    if not len(keys):
        return []
    names = keys if by == "name" else of_name[keys].astype(np.int64)
    rows = []
    everything = int(lengths.sum())
    size = int(names.max()) + 2
    first, ranked = _ranked(names + 1, lengths, size)
    waits_first, waits = _ranked(names[delays >= 0] + 1, delays[delays >= 0], size)
    kind_of = np.zeros(size, np.int8)
    kind_of[names + 1] = kinds
    for key in np.flatnonzero(np.diff(first)).tolist():
        mine = ranked[first[key] : first[key + 1]]
        late = waits[waits_first[key] : waits_first[key + 1]]
        total = int(mine.sum())
        name = key - 1
        category = CATEGORIES[int(of_name[name])] if by == "name" else CATEGORIES[name]
        rows.append(
            KernelRow(
                name=trace.names[name] if by == "name" else category,
                name_id=name if by == "name" else -1,
                category=category,
                kind=WORK_NAMES[kind_of[key]] if by == "name" else "",
                count=len(mine),
                total_ns=total,
                share=total / everything if everything else 0.0,
                min_ns=int(mine[0]),
                median_ns=nearest_rank(mine, 50),
                mean_ns=total / len(mine),
                p99_ns=nearest_rank(mine, 99),
                max_ns=int(mine[-1]),
                launch_delay_ns=nearest_rank(late, 50) if len(late) else None,
            )
        )
    return sorted(rows, key=lambda row: -row.total_ns)


def nearest_rank(ordered: Int, percent: int) -> int:
    """The smallest of `ordered` (ascending, not empty) that at least `percent` % of them do not exceed."""
    return int(ordered[(len(ordered) * percent + 99) // 100 - 1])


def _gather(trace: Trace, window: Window | None, device: int | None) -> tuple[Int, Int, Int, npt.NDArray[np.int8]]:
    """Name ids, durations, launch delays (-1 unknown) and table codes of the work asked for."""
    launch, calls = trace.index(Links).launch, trace["host_calls"]["end"]
    counted = trace.index(Work).counted
    parts = []
    for code, table in enumerate(WORK_TABLES):
        mine = trace[table]
        rows = np.flatnonzero(counted[table])
        if device is not None:
            rows = rows[trace.device_of(mine["stream"][rows]) == device]
        if window is not None:
            rows = rows[(mine["start"][rows] >= window.start) & (mine["start"][rows] < window.end)]
        start = mine["start"][rows]
        call = launch[table][rows]
        delay = np.maximum(start - calls[np.maximum(call, 0)], 0) if len(calls) else np.full(len(rows), -1)
        parts.append(
            (
                mine["name"][rows].astype(np.int64),
                mine["end"][rows] - start,
                np.where(call >= 0, delay, -1),
                np.full(len(rows), code, np.int8),
            )
        )
    keys, lengths, delays, kinds = (np.concatenate(column) for column in zip(*parts, strict=True))
    return keys, lengths, delays, kinds


def _ranked(keys: Int, values: Int, size: int) -> tuple[Int, Int]:
    """`values` sorted within each key, and where each key begins (size + 1 positions)."""
    first = np.r_[0, np.cumsum(np.bincount(keys, minlength=size))]
    bits = int(values.max(initial=0)).bit_length()
    if size << bits < 1 << 62:
        # One sort of plain integers is several times faster than a sort by two keys.
        packed = np.sort(keys << bits | values)
        return first, packed & ((1 << bits) - 1)
    return first, values[np.lexsort((values, keys))]
