"""A simulated run as the JSON that torch's profiler (Kineto) writes: no operating system calls, no metrics."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sample_traces.device import Call, Work
from sample_traces.host import Run
from sample_traces.nsys_target import EPOCH_NS, SENTENCE
from sample_traces.truth import records

Event = dict[str, Any]


def counts(run: Run) -> dict[str, int]:
    """How many records of each kind the file holds, by the names of `summary --format json`."""
    work = [work for device in run.devices.values() for work in device.work]
    return {
        "kernels": sum(not item.copy_kind for item in work),
        "memcpys": sum(item.copy_kind > 0 for item in work),
        "memsets": sum(item.copy_kind < 0 for item in work),
        "host_calls": sum(call.recorded for call in run.calls),
        "ranges": len(run.ranges),
    }


def write(path: Path, run: Run) -> None:
    """Write the file anew, compressed when it is named .gz. Times are in microseconds with three decimals."""
    head = {
        "schemaVersion": 1,
        "SIMULATED": SENTENCE,
        "deviceProperties": [
            {"id": number, "name": "NVIDIA H200 (simulated)", "totalGlobalMem": 150_754_820_096, "numSms": 132}
            for number in run.devices
        ],
        "baseTimeNanoseconds": EPOCH_NS,
        "displayTimeUnit": "ms",
    }
    text = json.dumps(head, indent=1)[:-2] + ',\n "traceEvents": [\n' + ",\n".join(_events(run)) + "\n]}\n"
    data = text.encode()
    # Without a time stamp in it, the same run gives the same bytes.
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def _events(run: Run) -> Iterator[str]:
    for process in run.processes.values():
        yield _plain("M", "process_name", process.pid, 0, {"name": process.name})
        for tid, name in process.threads.items():
            yield _plain("M", "thread_name", process.pid, tid, {"name": f"thread {tid} ({name})"})
    for device in run.devices:
        yield _plain("M", "process_name", device, 0, {"name": "python3"})
        yield _plain("M", "process_labels", device, 0, {"labels": f"GPU {device}"})
    for item in run.ranges:
        yield _span("user_annotation", item.text, item.process, item.thread, item.start, item.end, {})
    for call in run.calls:
        if call.recorded:
            yield from _call(call)
    yield from _waits(run)
    for device, held in run.devices.items():
        for busy in records(held.work, whole_graphs=False):
            yield from _work(device, busy.work)


def _call(call: Call) -> Iterator[str]:
    category = "cuda_driver" if call.driver else "cuda_runtime"
    name = call.name.split("_v")[0]
    arguments = {"correlation": call.correlation}
    yield _span(category, name, call.process, call.thread, call.start, call.end, arguments)
    yield _flow("s", call.correlation, call.process, call.thread, call.start)


def _waits(run: Run) -> Iterator[str]:
    """Waits of a stream for an event, as the profiler writes them when it is told to (enable_cuda_sync_events)."""
    recorded = {record.event: record for record in run.event_records}
    for sync in run.syncs:
        if sync.kind == 2 and sync.stream and sync.event in recorded:
            source = recorded[sync.event]
            arguments: Event = {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": source.stream.number}
            arguments |= {"wait_on_cuda_event_record_corr_id": source.call.correlation}
            arguments |= {"wait_on_cuda_event_id": sync.event, "stream": sync.stream.number}
            arguments |= {"correlation": sync.call.correlation, "device": sync.ordinal, "context": sync.context}
            number = sync.stream.number
            yield _span("cuda_sync", "Stream Wait Event", sync.ordinal, number, sync.start, sync.end, arguments)


def _work(device: int, work: Work) -> Iterator[str]:
    stream, kernel = work.stream.number, work.kernel
    arguments: Event = {"device": device, "context": work.stream.context, "stream": stream}
    arguments["correlation"] = work.call.correlation
    if work.copy_kind:
        arguments["bytes"] = work.size
        category, name = _copy_name(work)
    else:
        category, name = "kernel", kernel.name
        arguments |= {"grid": [kernel.grid, 1, 1], "block": [kernel.block, 1, 1], "registers per thread": 96}
    yield _span(category, name, device, stream, work.start, work.end, arguments)
    yield _flow("f", work.call.correlation, device, stream, work.start)


def _copy_name(work: Work) -> tuple[str, str]:
    if work.copy_kind < 0:
        return "gpu_memset", "Memset (Device)"
    host = "Pageable" if work.pageable else "Pinned"
    sides = {1: f"HtoD ({host} -> Device)", 2: f"DtoH (Device -> {host})", 10: "PtoP (Device -> Device)"}
    return "gpu_memcpy", f"Memcpy {sides[work.copy_kind]}"


def _span(category: str, name: str, pid: int, tid: int, start: int, end: int, arguments: Event) -> str:
    event = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "args": arguments}
    return f'{json.dumps(event)[:-1]}, "ts": {_us(start)}, "dur": {_us(end - start)}}}'


def _flow(phase: str, number: int, pid: int, tid: int, time: int) -> str:
    event: Event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "cat": "ac2g", "name": "ac2g"}
    if phase == "f":
        event["bp"] = "e"
    return f'{json.dumps(event)[:-1]}, "ts": {_us(time)}}}'


def _plain(phase: str, name: str, pid: int, tid: int, arguments: Event) -> str:
    return json.dumps({"ph": phase, "name": name, "pid": pid, "tid": tid, "ts": 0, "args": arguments})


def _us(ns: int) -> str:
    return f"{ns // 1_000}.{ns % 1_000:03d}"
