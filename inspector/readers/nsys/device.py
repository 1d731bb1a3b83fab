"""What ran on the devices: kernels, copies, sets, whole graphs, synchronisation, events, memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inspector.readers.nsys.chunk import Chunk, Mapping, stamped, times
from inspector.readers.nsys.context import Context, mapped
from inspector.readers.nsys.source import Batch, Bool, Int
from inspector.trace.schema import NEVER
from inspector.trace.table import Array

_KEY = ("globalPid", "deviceId", "streamId", "contextId", "correlationId")
_SPAN = ("start", "end", *_KEY)
_COPIES = {
    0: "unknown",
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "HtoD (unified memory)",
    12: "DtoH (unified memory)",
    13: "DtoD (unified memory)",
}
_WITH_HOST = (1, 2, 3, 4, 9)
_PAGEABLE = 0
# Kinds of memory in the export: pageable, pinned, device, array, managed, device static, managed static, unknown.
_MEMORY_KINDS = np.array([1, 2, 3, 4, 5, 3, 5, 0], np.int8)
_HOST_MEMORY = (1, 2)
_UNKNOWN_MEMORY = 7
_FREED = 1
_NO_EVENT = 0xFFFFFFFF


def correlations(batch: Batch) -> Int:
    """Correlation ids, 0 for none. They are 32 bits wide; anything else is counted as wrong."""
    found = batch.ints("correlationId")
    # As unsigned, a negative one is too large too.
    wrong = found.view(np.uint64) > 0xFFFFFFFF
    if wrong.any():
        batch.wrong("correlationId", int(np.count_nonzero(wrong)))
        found[wrong] = 0
    return found


def _work(batch: Batch, context: Context) -> tuple[dict[str, Array], Bool | None]:
    start, end, unstamped = times(batch)
    columns: dict[str, Array] = {
        "start": start,
        "end": end,
        "stream": context.streams(batch),
        "correlation": correlations(batch),
        "context": batch.ints("contextId").astype(np.int32),
    }
    if "graphNodeId" in batch:
        nodes = batch.ints("graphNodeId")
        # Most traces have none, and a column of zeros is 8 bytes a row.
        if nodes.any():
            columns["graph_node"] = nodes
    return columns, unstamped


def _kernels(batch: Batch, context: Context) -> Sequence[Chunk]:
    columns, unstamped = _work(batch, context)
    columns["name"] = context.names(batch, "demangledName", "shortName", "mangledName")
    return [Chunk("kernels", columns, unstamped)]


def _copy_name(kind: int | None) -> str:
    return f"Memcpy {_COPIES.get(kind or 0, f'kind {kind}')}"


def _memcpys(batch: Batch, context: Context) -> Sequence[Chunk]:
    columns, unstamped = _work(batch, context)
    columns["name"] = mapped(batch.codes("copyKind"), lambda kind: context.add_name(_copy_name(kind)))
    columns["bytes"] = batch.ints("bytes", -1)
    if "srcKind" in batch or "dstKind" in batch:
        pageable = (batch.ints("srcKind", -1) == _PAGEABLE) | (batch.ints("dstKind", -1) == _PAGEABLE)
        columns["pageable"] = (pageable & np.isin(batch.ints("copyKind"), _WITH_HOST)).astype(np.int8)
    return [Chunk("memcpys", columns, unstamped)]


def _memsets(batch: Batch, context: Context) -> Sequence[Chunk]:
    columns, unstamped = _work(batch, context)
    columns["name"] = np.full(len(batch), context.add_name("Memset"), np.int32)
    columns["bytes"] = batch.ints("bytes", -1)
    return [Chunk("memsets", columns, unstamped)]


def _graphs(batch: Batch, context: Context) -> Sequence[Chunk]:
    columns, _ = _work(batch, context)
    columns["name"] = mapped(
        batch.codes("graphId"), lambda graph: context.add_name(f"CUDA graph {graph or ''}".strip())
    )
    columns["graph"] = batch.ints("graphId")
    # CUPTI writes 0 where it could not time a graph.
    unstamped = (columns["start"] == 0) | (columns["end"] == 0)
    return [Chunk("graphs", columns, unstamped if unstamped.any() else None)]


def _syncs(batch: Batch, context: Context) -> Sequence[Chunk]:
    start, end, unstamped = times(batch)
    kind, event = batch.ints("syncType"), batch.ints("eventId")
    columns: dict[str, Array] = {
        "start": start,
        "end": end,
        "stream": context.streams(batch, work=False),
        "kind": np.where((kind >= 1) & (kind <= 4), kind, 0).astype(np.int8),
        "correlation": correlations(batch),
        "process": context.processes(batch),
        "event": np.where(event == _NO_EVENT, 0, event),
    }
    if "eventSyncId" in batch:
        columns["event_sync"] = batch.ints("eventSyncId")
    return [Chunk("syncs", columns, unstamped)]


def _event_records(batch: Batch, context: Context) -> Sequence[Chunk]:
    columns: dict[str, Array] = {
        "stream": context.streams(batch, work=False),
        "correlation": correlations(batch),
        "event": batch.ints("eventId"),
    }
    if "eventSyncId" in batch:
        columns["event_sync"] = batch.ints("eventSyncId")
    if "timestamp" in batch:
        time = batch.ints("timestamp")
        columns["time"] = np.where(time == 0, NEVER, time)
    return [Chunk("event_records", columns)]


def _allocations(batch: Batch, context: Context) -> Sequence[Chunk]:
    code = batch.ints("memKind", _UNKNOWN_MEMORY)
    kind = _MEMORY_KINDS[np.where((code >= 0) & (code <= _UNKNOWN_MEMORY), code, _UNKNOWN_MEMORY)]
    size = batch.ints("bytes")
    device = context.devices(batch)
    device[np.isin(kind, _HOST_MEMORY)] = -1
    columns: dict[str, Array] = {
        "time": batch.ints("start"),
        "process": context.processes(batch),
        "device": device,
        "address": batch.ints("address").view(np.uint64),
        "bytes": np.where(batch.ints("memoryOperationType") == _FREED, -size, size),
        "kind": kind,
    }
    return [stamped(Chunk("allocations", columns), batch, "start")]


_EVENT = ("eventId", "eventSyncId")
MAPPINGS: tuple[Mapping, ...] = (
    Mapping(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        (*_SPAN, "graphNodeId", "demangledName|shortName|mangledName"),
        _kernels,
    ),
    Mapping("CUPTI_ACTIVITY_KIND_MEMCPY", (*_SPAN, "graphNodeId", "copyKind", "bytes", "srcKind", "dstKind"), _memcpys),
    Mapping("CUPTI_ACTIVITY_KIND_MEMSET", (*_SPAN, "graphNodeId", "bytes"), _memsets),
    Mapping("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (*_SPAN, "graphId"), _graphs),
    Mapping("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", (*_SPAN, "syncType", *_EVENT), _syncs),
    Mapping("CUPTI_ACTIVITY_KIND_CUDA_EVENT", (*_KEY, "timestamp", *_EVENT), _event_records),
    Mapping(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        ("start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType"),
        _allocations,
    ),
)
