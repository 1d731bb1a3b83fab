"""Busy and idle of a device: the union of its work over all streams, contexts and processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inspector.analysis.categories import COLLECTIVES, Categories
from inspector.analysis.gaps import Gaps
from inspector.trace.intervals import EMPTY, Intervals, clip, intersection, measure, union
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

KINDS: tuple[str, ...] = ("all", "kernel", "copy", "communication", "compute")
_COPIES = (WORK_TABLES.index("memcpys"), WORK_TABLES.index("memsets"))


@dataclass(frozen=True)
class Unions:
    """For each row of devices, the busy intervals by kind (keys KINDS) and the span (start, end) of its work, ns."""

    devices: tuple[dict[str, Intervals], ...]
    spans: tuple[Window, ...]

    @classmethod
    def build(cls, trace: Trace) -> Unions:
        """All kinds of every device; `communication` is collectives, `compute` the other kernels and graphs."""
        work = trace.index(Work)
        categories = trace.index(Categories)
        devices, spans = [], []
        for mine in work.devices:
            copy = np.isin(mine.table, _COPIES)
            kinds = {"all": union(mine.start, mine.end), "kernel": EMPTY, "copy": EMPTY}
            if copy.any():
                kinds["copy"] = union(mine.start[copy], mine.end[copy])
                kinds["kernel"] = union(mine.start[~copy], mine.end[~copy])
            else:
                kinds["kernel"] = kinds["all"]
            talks = np.zeros(len(mine), bool)
            for code, table in enumerate(WORK_TABLES):
                rows = mine.table == code
                if rows.any():
                    talks[rows] = categories.of(trace, table)[mine.row[rows]] == COLLECTIVES
            talks &= ~copy
            if talks.any():
                kinds["communication"] = union(mine.start[talks], mine.end[talks])
                computes = ~talks & ~copy
                kinds["compute"] = union(mine.start[computes], mine.end[computes])
            else:
                kinds["communication"], kinds["compute"] = EMPTY, kinds["kernel"]
            devices.append(kinds)
            spans.append(Window(int(mine.start[0]), int(mine.end.max())) if len(mine) else Window(0, 0))
        return cls(tuple(devices), tuple(spans))


@dataclass(frozen=True)
class Busy:
    """Busy and idle of one device over `span`, ns. `span_ns` = `busy_ns` + `idle_ns` exactly.

    `work` is the number of records that enter the union, `gaps` that of maximal idle intervals. `overlap_ns` is the
    time in which a kernel and a copy ran together, `hidden_communication_ns` collectives that ran beside compute.
    """

    device: int
    span: Window
    busy_ns: int
    idle_ns: int
    work: int
    gaps: int
    kernel_ns: int
    copy_ns: int
    overlap_ns: int
    communication_ns: int
    hidden_communication_ns: int

    @property
    def span_ns(self) -> int:
        """Length of the span."""
        return self.span.length


def busy(trace: Trace, device: int, window: Window | None = None) -> Busy:
    """Busy and idle of a row of devices: from its first work start to its last work end, cut to `window`."""
    unions = trace.index(Unions)
    kinds = unions.devices[device]
    span = unions.spans[device]
    if window is not None:
        span = window.clipped(span.start, span.end)
    inside = {kind: clip(intervals, span.start, span.end) for kind, intervals in kinds.items()}
    busy_ns = measure(inside["all"])
    mine = trace.index(Work).devices[device]
    if window is None:
        count = len(mine)
    else:
        last = int(np.searchsorted(mine.start, span.end))
        count = int(np.count_nonzero(mine.end[:last] > span.start))
    gaps = trace.index(Gaps).devices[device]
    num_gaps = int(np.count_nonzero(np.minimum(gaps.end, span.end) > np.maximum(gaps.start, span.start)))
    return Busy(
        device=device,
        span=span,
        busy_ns=busy_ns,
        idle_ns=span.length - busy_ns,
        work=count,
        gaps=num_gaps,
        kernel_ns=measure(inside["kernel"]),
        copy_ns=measure(inside["copy"]),
        overlap_ns=measure(intersection(inside["kernel"], inside["copy"])),
        communication_ns=measure(inside["communication"]),
        hidden_communication_ns=measure(intersection(inside["communication"], inside["compute"])),
    )
