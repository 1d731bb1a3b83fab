"""Tables and columns of Nsight Systems' SQLite exports, per schema version.

A column is written `name:TYPE`, TYPE being I(nteger), T(ext) or R(eal), with `!` where it may not be NULL, `@3.7.2` for
the first schema that has it and `<3.24` for the first that has it no more. `2020` stands for the exports of before
2021, which name no version; they are (2, 0, 0) here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Version = tuple[int, int, int]

# Schema and the product that writes it.
FAMILIES: dict[str, str] = {
    "2020": "2020.4.3.7",
    "2.9.1": "2022.2.1.31",
    "3.0.0": "2022.4.2.18",
    "3.1.7": "2023.2.3.1001",
    "3.4.0": "2023.3.1.92",
    "3.7.2": "2023.4.4.54",
    "3.11.2": "2024.4.1.61",
    "3.13.2": "2024.5.1.113",
    "3.16.1": "2024.6.2.225",
    "3.17.2": "2025.1.3.140",
    "3.20.3": "2025.3.2.474",
    "3.24.0": "2025.5.2.266",
    "3.24.14": "2026.1.1.204",
    "3.25.0": "2026.2.1.210",
    "3.27.0": "2026.3.1.157",
    "3.28.1": "2026.4.1.121",
}


def version_of(family: str) -> Version:
    """The schema version as numbers."""
    if family == "2020":
        return (2, 0, 0)
    major, minor, micro = (int(part) for part in family.split("."))
    return (major, minor, micro)


_PLACE = "deviceId:I! contextId:I! greenContextId:I@3.7.2 streamId:I! correlationId:I globalPid:I"
_VALUES = "uint64Value:I int64Value:I doubleValue:R uint32Value:I int32Value:I floatValue:R jsonTextId:I jsonText:T"

_TABLES: dict[str, str] = {
    "StringIds": "id:I! value:T!",
    "META_DATA_EXPORT@3.4": "name:T! value:T",
    "META_DATA_CAPTURE@3.4": "name:T! value:T",
    "EXPORT_META_DATA@2.9<3.4": "name:T! value:T",
    "PROCESSES@2.9": "globalPid:I pid:I name:T",
    "ThreadNames": "nameId:I! priority:I globalTid:I",
    "ANALYSIS_DETAILS@2.9": "globalVid:I! duration:I! startTime:I! stopTime:I!",
    "TARGET_INFO_SESSION_START_TIME@2.9": "utcEpochNs:I utcTime:T localTime:T systemClockNs:I@3.24.7 "
    "sessionStartCntVctNs:I@3.28",
    "TARGET_INFO_SYSTEM_ENV@2.9": "globalVid:I devStateName:T! name:T! nameEnum:I! value:T!",
    "TARGET_INFO_GPU": "vmId:I! deviceId:I!<2.1 id:I!@2.1 name:T busLocation:T isDiscrete:I l2CacheSize:I@2.1 "
    "totalMemory:I@2.1 memoryBandwidth:I@2.1 clockRate:I@2.1 smCount:I@2.1 pwGpuId:I@2.1 uuid:T@2.1 luid:I@2.1 "
    "chipName:T@2.1 cuDevice:I@2.1 maxWarpsPerSm:I@2.1 threadsPerWarp:I@2.1 asyncEngines:I@2.1 computeMajor:I@2.1 "
    "computeMinor:I@2.1 smMajor:I@2.1 smMinor:I@2.1 numaNodeId:I@3.28",
    "TARGET_INFO_CUDA_DEVICE@3.17.2": "gpuId:I cudaId:I! pid:I! uuid:T@3.24.7 numMultiprocessors:I@3.24.7",
    "TARGET_INFO_CUDA_NULL_STREAM<3.7.2": "streamId:I! hwId:I! vmId:I! processId:I! deviceId:I! contextId:I!",
    "TARGET_INFO_CUDA_CONTEXT_INFO@3.7.2": "nullStreamId:I! hwId:I! vmId:I! processId:I! deviceId:I! contextId:I! "
    "parentContextId:I isGreenContext:I numMultiprocessors:I@3.24.7 numTpcs:I@3.24.18 tpcMask:T@3.24.18",
    "TARGET_INFO_CUDA_STREAM": "streamId:I! hwId:I! vmId:I! processId:I! contextId:I! priority:I! flag:I!",
    "CUPTI_ACTIVITY_KIND_KERNEL": f"start:I! end:I! {_PLACE} demangledName:I! shortName:I! mangledName:I@2.9 "
    "launchType:I cacheConfig:I registersPerThread:I! gridX:I! gridY:I! gridZ:I! blockX:I! blockY:I! blockZ:I! "
    "staticSharedMemory:I! dynamicSharedMemory:I! localMemoryPerThread:I! localMemoryTotal:I! gridId:I! "
    "sharedMemoryExecuted:I graphNodeId:I sharedMemoryLimitConfig:I qmdBulkReleaseDone:I@3.24 qmdPreexitDone:I@3.24 "
    "qmdLastCtaDone:I@3.24 graphId:I@3.24 clusterX:I@3.24 clusterY:I@3.24 clusterZ:I@3.24 "
    "clusterSchedulingPolicy:I@3.24 maxPotentialClusterSize:I@3.24 maxActiveClusters:I@3.24 "
    "sharedMemoryRequestedPercentage:I@3.24.14 tensorSizeMinusOneElements:T!@3.24.18",
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"start:I! end:I! {_PLACE} bytes:I! copyKind:I! deprecatedSrcId:I srcKind:I "
    "dstKind:I srcDeviceId:I srcContextId:I dstDeviceId:I dstContextId:I migrationCause:I graphNodeId:I "
    "virtualAddress:I@2.9 copyCount:I@3.17.2",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"start:I! end:I! {_PLACE} value:I! bytes:I! graphNodeId:I memKind:I",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE@2.9": f"start:I! end:I! {_PLACE} graphId:I! graphExecId:I!",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"start:I! end:I! {_PLACE} deprecatedSyncType:I@3.17.2 syncType:I! "
    "eventId:I! eventSyncId:I@3.17.2",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": f"timestamp:I@3.24 {_PLACE} eventId:I! eventSyncId:I@3.24",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start:I! end:I! eventClass:I! globalTid:I correlationId:I nameId:I! returnValue:I! "
    "callchainId:I",
    "NVTX_EVENTS": "start:I! end:I eventType:I! rangeId:I category:I color:I text:T globalTid:I endGlobalTid:I "
    f"textId:I domainId:I {_VALUES} binaryData:T@3.16.1 eventId:I@3.28",
    "OSRT_API": "start:I! end:I! eventClass:I! globalTid:I correlationId:I<2.9 nameId:I! returnValue:I! nestingLevel:I "
    "callchainId:I! argumentsId:I@3.24",
    "TARGET_INFO_GPU_METRICS@3.1": "typeId:I! sourceId:I! typeName:T! metricId:I! metricName:T!",
    "GPU_METRICS@3.1": "rawTimestamp:I@3.24 timestamp:I typeId:I! metricId:I! value:I!",
    "ENUM_CUDA_MEMCPY_OPER@2.9": "id:I! name:T label:T",
    "ENUM_CUDA_MEM_KIND@2.9": "id:I! name:T label:T",
    "ENUM_CUPTI_SYNC_TYPE@2.9": "id:I! name:T label:T",
    "ENUM_NSYS_EVENT_TYPE@2.9": "id:I! name:T label:T",
}

ENUMS: dict[str, tuple[tuple[int, str, str], ...]] = {
    "ENUM_CUDA_MEMCPY_OPER": (
        (0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"),
        (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        (10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"),
    ),
    "ENUM_CUDA_MEM_KIND": (
        (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
    ),
    "ENUM_CUPTI_SYNC_TYPE": (
        (1, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE", "Event sync"),
        (2, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT", "Stream wait sync"),
        (3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
    ),
    "ENUM_NSYS_EVENT_TYPE": (
        (34, "NvtxMark", "NvtxMark"),
        (59, "NvtxPushPopRange", "NvtxPushPopRange"),
        (75, "NvtxDomainCreate", "NvtxDomainCreate"),
    ),
}

_PIECE = re.compile(
    r"(?P<name>\w+)(?::(?P<type>[ITR]))?(?P<required>!?)(?:@(?P<since>[\d.]+))?(?:<(?P<until>[\d.]+))?$"
)
_TYPES = {"I": "INTEGER", "T": "TEXT", "R": "REAL"}


class Column(NamedTuple):
    """A column of a table in one schema."""

    name: str
    type: str
    required: bool


def tables_of(version: Version) -> dict[str, tuple[Column, ...]]:
    """The tables that an export of that schema has, with their columns in order."""
    found = {}
    for head, columns in _TABLES.items():
        table = _piece(head)
        if _holds(table, version):
            pieces = [_piece(text) for text in columns.split()]
            found[table["name"]] = tuple(
                Column(piece["name"], _TYPES[piece["type"]], bool(piece["required"]))
                for piece in pieces
                if _holds(piece, version)
            )
    return found


def _piece(text: str) -> dict[str, str]:
    match = _PIECE.match(text)
    if match is None:
        raise ValueError(text)
    return {key: value or "" for key, value in match.groupdict().items()}


def _holds(piece: dict[str, str], version: Version) -> bool:
    since, until = (
        tuple(int(part) for part in piece[key].split(".")) if piece[key] else None for key in ("since", "until")
    )
    return (since is None or version >= since) and (until is None or version < until)
