"""What ran on the host: CUDA and operating system calls, scheduling, and the profiler's own time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inspector.readers.nsys.chunk import Chunk, Mapping, stamped, times
from inspector.readers.nsys.context import Context, mapped
from inspector.readers.nsys.device import correlations
from inspector.readers.nsys.source import Batch
from inspector.trace.table import Array

_CALL = ("start", "end", "globalTid", "nameId")
_OVERHEADS = {
    2: "driver JIT compilation",
    3: "profiler's buffer flush",
    4: "profiler's instrumentation",
    5: "profiler's resource creation",
    6: "module load",
    7: "lazy function load",
    8: "command buffer full",
}


def _host_calls(batch: Batch, context: Context) -> Sequence[Chunk]:
    start, end, unstamped = times(batch)
    columns: dict[str, Array] = {
        "start": start,
        "end": end,
        "thread": context.threads(batch),
        "name": context.names(batch, "nameId", versioned=True),
        "correlation": correlations(batch),
    }
    if "returnValue" in batch:
        result = batch.ints("returnValue")
        if result.any():
            columns["result"] = result.astype(np.int32)
    return [Chunk("host_calls", columns, unstamped)]


def _os_calls(batch: Batch, context: Context) -> Sequence[Chunk]:
    start, end = batch.ints("start"), batch.ints("end")
    unstamped, unclosed = batch.null("start"), batch.null("end")
    columns: dict[str, Array] = {
        "start": start,
        "end": end,
        "thread": context.threads(batch),
        "name": context.names(batch, "nameId"),
    }
    return [Chunk("os_calls", columns, unstamped, unclosed & ~unstamped)]


def _overheads(batch: Batch, context: Context) -> Sequence[Chunk]:
    start, end, unstamped = times(batch)
    names = context.names(batch, "nameId")
    kinds = mapped(batch.codes("overheadType"), lambda kind: context.add_name(_OVERHEADS.get(kind or 0, "overhead")))
    nameless = names == context.add_name("")
    columns: dict[str, Array] = {
        "start": start,
        "end": end,
        "thread": context.threads(batch),
        "name": np.where(nameless, kinds, names),
    }
    return [Chunk("overheads", columns, unstamped)]


def _schedulings(batch: Batch, context: Context) -> Sequence[Chunk]:
    columns: dict[str, Array] = {
        "time": batch.ints("start"),
        "thread": context.threads(batch),
        "cpu": batch.ints("cpu", -1).astype(np.int32),
        "on": (batch.ints("isSchedIn") != 0).astype(np.int8),
    }
    return [stamped(Chunk("schedulings", columns), batch, "start")]


MAPPINGS: tuple[Mapping, ...] = (
    Mapping("CUPTI_ACTIVITY_KIND_RUNTIME", (*_CALL, "correlationId", "returnValue"), _host_calls),
    Mapping("OSRT_API", _CALL, _os_calls),
    Mapping("SCHED_EVENTS", ("start", "cpu", "isSchedIn", "globalTid"), _schedulings),
    Mapping("PROFILER_OVERHEAD", (*_CALL, "overheadType"), _overheads),
    Mapping("CUPTI_ACTIVITY_KIND_OVERHEAD", (*_CALL, "overheadType"), _overheads),
)
