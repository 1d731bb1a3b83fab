"""Why a table has no rows: 'not in this export' with the capture setting that brings it, never a silent zero."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inspector.readers.nsys.metadata import Metadata
from inspector.readers.nsys.source import Source

_ENGINE = "an Nsight Systems export knows nothing of the engine: record with `inflight record`"


@dataclass(frozen=True)
class _Origin:
    """Where the rows of one of our tables come from.

    `event` is the kind of event that a capture asks for, '' when its metadata do not tell; `hint` is a word of the
    profiler's messages about it; `setting` the capture setting that turns it on.
    """

    what: str
    tables: tuple[str, ...]
    option: str
    event: str = ""
    hint: str = ""
    setting: str = ""


_CUPTI = "CUPTI_ACTIVITY_KIND_"
_CUDA = ("--trace=cuda", "Cuda", "CUDA")
_NVTX = ("--trace=nvtx", "NvtxEvents", "NVTX")
_ORIGINS: dict[str, _Origin] = {
    "kernels": _Origin("kernels", (f"{_CUPTI}KERNEL",), *_CUDA),
    "memcpys": _Origin("copies", (f"{_CUPTI}MEMCPY",), *_CUDA),
    "memsets": _Origin("memory sets", (f"{_CUPTI}MEMSET",), *_CUDA),
    "graphs": _Origin("whole CUDA graphs", (f"{_CUPTI}GRAPH_TRACE",), "--cuda-graph-trace=graph", "Cuda"),
    "syncs": _Origin("synchronisation records", (f"{_CUPTI}SYNCHRONIZATION",), *_CUDA),
    "event_records": _Origin("CUDA event records", (f"{_CUPTI}CUDA_EVENT",), "--cuda-event-trace=true"),
    "host_calls": _Origin("CUDA calls", (f"{_CUPTI}RUNTIME",), *_CUDA),
    "os_calls": _Origin("operating system calls", ("OSRT_API",), "--trace=osrt", "OSRuntime", "OS runtime"),
    "overheads": _Origin("times that the profiler took", ("PROFILER_OVERHEAD", f"{_CUPTI}OVERHEAD"), *_CUDA),
    "schedulings": _Origin("thread switches", ("SCHED_EVENTS",), "--cpuctxsw=process-tree", "", "cheduling"),
    "ranges": _Origin("NVTX ranges", ("NVTX_EVENTS",), *_NVTX),
    "marks": _Origin("NVTX marks", ("NVTX_EVENTS",), *_NVTX),
    "counters": _Origin(
        "GPU metrics", ("GPU_METRICS", "GENERIC_EVENTS"), "--gpu-metrics-devices=all", "", "GPU metric"
    ),
    "allocations": _Origin(
        "memory events",
        ("CUDA_GPU_MEMORY_USAGE_EVENTS",),
        "--cuda-memory-usage=true",
        setting="COLLECT_GPU_MEMORY_USAGE",
    ),
}


def missing(source: Source, metadata: Metadata, said: Sequence[str], empty: Iterable[str]) -> dict[str, str]:
    """For each of our tables in `empty`, one sentence that says why it has no rows and what would bring them.

    `said` is what the profiler warned of.
    """
    found: dict[str, str] = {}
    for table in empty:
        origin = _ORIGINS.get(table)
        if origin is not None:
            found[table] = _why(source, metadata, origin, said)
        elif table in ("iterations", "requests", "steps", "page_events"):
            found[table] = _ENGINE
    return found


def _why(source: Source, metadata: Metadata, origin: _Origin, warnings: Sequence[str]) -> str:
    what, option = origin.what, f"record with {origin.option}"
    said = next((f" (the profiler said: {text})" for text in warnings if origin.hint and origin.hint in text), "")
    if what == "kernels" and source.count(f"{_CUPTI}GRAPH_TRACE"):
        return "all kernels ran inside CUDA graphs that were recorded as a whole: record with --cuda-graph-trace=node"
    if any(source.columns(table) for table in origin.tables):
        return f"no {what} in this export, which has the table for them{said}: {option} if there should be some"
    if metadata.export.get("EXPORT_PARAM_TABLES_TO_EXPORT"):
        return f"no {what} in this export, which was limited to some tables: export again without --tables"
    if set(metadata.settings(origin.setting)) == {"false"}:
        return f"{what} were not traced: {option}"
    if metadata.traced and origin.event:
        if origin.event not in metadata.traced:
            return f"{what} were not traced: {option}"
        return f"no {what} in this export although they were traced{said}: none happened, or none could be recorded"
    return f"no {what} in this export{said}: none happened, or they were not traced; {option}"
