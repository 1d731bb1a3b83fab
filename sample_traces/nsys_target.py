"""Who and where, as an Nsight Systems export tells it: GPUs, processes, threads, streams, session, metadata."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sample_traces.host import Run
from sample_traces.metrics import Sample
from sample_traces.nsys_schema import FAMILIES, version_of

SENTENCE = "Simulated by sample_traces of Inflight Inspector: no GPU ran any of this."
# 2026-01-15 09:00:00 UTC.
EPOCH_NS = 1_768_467_600 * 10**9
VM = 1 << 48
_MEMORY, _BANDWIDTH, _CLOCK, _SMS = 150_754_820_096, 4_800_000_000_000, 1_980_000_000, 132

Row = dict[str, Any]
Rows = Iterator[tuple[str, Row]]


@dataclass(frozen=True)
class Shape:
    """How a run is written: schema family, granularity of CUDA graphs, metric samples.

    `processes` are the pids to write (None all): ranks are recorded into a file each. A session that began `shift_ns`
    later than the run counts its times from then on.
    """

    family: str = "3.24.14"
    whole_graphs: bool = False
    samples: Sequence[Sample] = ()
    processes: frozenset[int] | None = None
    rank: int = -1
    shift_ns: int = 0
    page_size: int = 4_096


class Strings:
    """Texts and their ids in StringIds."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {"": 0}

    def __getitem__(self, text: str) -> int:
        """The id of a text, a new one at its first use."""
        return self.ids.setdefault(text, len(self.ids))


def is_written(shape: Shape, pid: int) -> bool:
    """Whether the rows of that process go into the file."""
    return shape.processes is None or pid in shape.processes


def global_pid(pid: int) -> int:
    """A process as it stands in the upper bits of globalPid and globalTid."""
    return VM | pid << 24


def target(run: Run, shape: Shape, strings: Strings) -> Rows:
    """GPUs, processes, threads, contexts and streams."""
    processes = [process for process in run.processes.values() if is_written(shape, process.pid)]
    for number in sorted({gpu for process in processes for gpu in process.gpus}):
        row = {"vmId": VM, "id": number, "deviceId": number, "name": "NVIDIA H200 (simulated)", "isDiscrete": 1}
        row |= {"busLocation": f"0000:{26 + 17 * number:02x}:00.0", "l2CacheSize": 62_914_560, "totalMemory": _MEMORY}
        row |= {"memoryBandwidth": _BANDWIDTH, "clockRate": _CLOCK, "smCount": _SMS, "uuid": _uuid(number)}
        row |= {"chipName": "GH100", "cuDevice": number, "computeMajor": 9, "computeMinor": 0, "smMajor": 9}
        row |= {"smMinor": 0, "threadsPerWarp": 32, "maxWarpsPerSm": 64, "asyncEngines": 3, "pwGpuId": number}
        yield "TARGET_INFO_GPU", row
    for process in processes:
        yield "PROCESSES", ({"globalPid": global_pid(process.pid), "pid": process.pid, "name": process.name})
        for tid, name in process.threads.items():
            yield "ThreadNames", ({"nameId": strings[name], "priority": 10, "globalTid": global_pid(process.pid) | tid})
        for ordinal, gpu in enumerate(process.gpus):
            row = {"gpuId": gpu, "cudaId": ordinal, "pid": process.pid, "uuid": _uuid(gpu), "numMultiprocessors": _SMS}
            yield "TARGET_INFO_CUDA_DEVICE", row
            row = {"hwId": 0, "vmId": 1, "processId": process.pid, "deviceId": ordinal, "contextId": 1 + ordinal}
            yield "TARGET_INFO_CUDA_NULL_STREAM", row | {"streamId": 7}
            row |= {"nullStreamId": 7, "parentContextId": 0, "isGreenContext": 0, "numMultiprocessors": _SMS}
            yield "TARGET_INFO_CUDA_CONTEXT_INFO", row
    for stream in run.streams:
        if is_written(shape, stream.process):
            row = {"streamId": stream.number, "hwId": 0, "vmId": 1, "processId": stream.process, "priority": 0}
            row |= {"contextId": stream.context, "flag": 3 if stream.number == 7 else 2}
            yield "TARGET_INFO_CUDA_STREAM", row


def _uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def metadata(run: Run, shape: Shape) -> Rows:
    """What the export says of itself and of its session."""
    version, product = shape.family, FAMILIES[shape.family]
    major, minor, micro = (str(part) for part in version_of(version))
    end = max(moments[-1].end for moments in run.moments.values() if moments)
    start = datetime.datetime.fromtimestamp((EPOCH_NS + shape.shift_ns) // 10**9, tz=datetime.timezone.utc)
    exported = {
        "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
        "EXPORT_PRODUCT_VERSION": product,
        "EXPORT_SCHEMA_VERSION": version,
        "EXPORT_SCHEMA_VERSION_MAJOR": major,
        "EXPORT_SCHEMA_VERSION_MINOR": minor,
        "EXPORT_SCHEMA_VERSION_MICRO": micro,
        "EXPORT_PLATFORM": "linux-desktop",
        "EXPORT_ARCH": "x64",
        "EXPORT_PARAM_LAZY": "true",
        "EXPORT_PARAM_TIME_NORMALIZE": "false",
        "EXPORT_PARAM_TABLES_TO_EXPORT": "",
        "EXPORT_PARAM_TIMES_TO_EXPORT": "",
        "SIMULATED": SENTENCE,
    }
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        for name, value in exported.items():
            yield table, {"name": name, "value": value}
    mode = "CUDA_GRAPH_TRACE_OPTIONS:MODE"
    prefix = "" if version_of(version) >= (3, 24, 7) else "PROCESS_0:"
    captured = {
        prefix + mode: "Graph" if shape.whole_graphs else "Node",
        "OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS": "1000",
    }
    if shape.rank >= 0:
        captured["PROCESS_0:ENVIRONMENT_VARIABLE"] = f"OMPI_COMM_WORLD_RANK={shape.rank}"
    for name, value in captured.items():
        yield "META_DATA_CAPTURE", {"name": name, "value": value}
    text = start.strftime("%Y-%m-%dT%H:%M:%S")
    row: Row = {"utcEpochNs": EPOCH_NS + shape.shift_ns, "utcTime": text, "localTime": text, "systemClockNs": 10**12}
    yield "TARGET_INFO_SESSION_START_TIME", row | {"sessionStartCntVctNs": 10**12}
    yield (
        "ANALYSIS_DETAILS",
        ({"globalVid": VM, "duration": end + 10**6, "startTime": 10**12, "stopTime": 10**12 + end + 10**6}),
    )
    yield (
        "TARGET_INFO_SYSTEM_ENV",
        ({"globalVid": VM, "devStateName": "Simulation", "name": "Simulated", "nameEnum": 0, "value": SENTENCE}),
    )
