"""What each table of an export becomes, and what the export says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.readers import nsys_sqlite
from inspector.readers.nsys.metrics import name_and_unit
from inspector.readers.reader import silent
from inspector.trace.schema import NEVER, RANGE_KINDS
from inspector.trace.trace import Trace
from tests.readers.nsys_export import CALL, KERNEL, STRINGS, global_pid, global_tid, write

Tables = dict[str, list[dict[str, Any]]]
RANGE: dict[str, Any] = {
    "start": 10,
    "end": 20,
    "eventType": 59,
    "category": None,
    "text": None,
    "textId": None,
    "globalTid": global_tid(10),
    "domainId": 0,
    "uint64Value": None,
    "int64Value": None,
    "doubleValue": None,
}
COPY: dict[str, Any] = {
    **{column: KERNEL[column] for column in ("start", "end", "deviceId", "contextId", "streamId", "correlationId")},
    "globalPid": global_pid(10),
    "bytes": 4096,
    "copyKind": 1,
    "srcKind": 0,
    "dstKind": 2,
}
SYNC: dict[str, Any] = {**KERNEL, "syncType": 3, "eventId": 0, "eventSyncId": 0}


def opened(tmp_path: Path, content: Tables) -> Trace:
    path = tmp_path / "export.sqlite"
    strings = [dict(row) for row in STRINGS]
    return nsys_sqlite.read(write(path, {"StringIds": strings, **content}), silent)


def texts(trace: Trace, table: str, column: str = "name") -> list[str]:
    return [trace.names[name] for name in trace[table][column].tolist()]


def test_copies_are_named_by_direction_and_pageable_by_the_side_on_the_host(tmp_path: Path) -> None:
    copies = [
        COPY,
        {**COPY, "copyKind": 2, "srcKind": 2, "dstKind": 1},
        {**COPY, "copyKind": 8, "srcKind": 0, "dstKind": 2},
        {**COPY, "copyKind": 12, "streamId": None, "correlationId": None, "bytes": None},
        {**COPY, "copyKind": 99},
    ]
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_MEMCPY": copies})
    assert texts(trace, "memcpys") == [
        "Memcpy HtoD",
        "Memcpy DtoH",
        "Memcpy DtoD",
        "Memcpy DtoH (unified memory)",
        "Memcpy kind 99",
    ]
    table = trace["memcpys"]
    assert table["pageable"].tolist() == [1, 0, 0, 0, 0]
    assert table["bytes"].tolist() == [4096, 4096, 4096, -1, 4096]
    assert table["correlation"].tolist() == [1, 1, 1, 0, 1]
    assert trace["streams"]["number"][table["stream"]].tolist() == [7, 7, 7, -1, 7]


def test_memory_sets(tmp_path: Path) -> None:
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_MEMSET": [{**COPY, "bytes": 12}]})
    assert texts(trace, "memsets") == ["Memset"]
    assert trace["memsets"]["bytes"].tolist() == [12]


def test_waits_and_event_records(tmp_path: Path) -> None:
    event = {column: KERNEL[column] for column in ("deviceId", "contextId", "streamId", "correlationId", "globalPid")}
    content: Tables = {
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
            SYNC,
            {**SYNC, "streamId": 0xFFFFFFFF, "syncType": 4, "eventId": 0xFFFFFFFF},
            {**SYNC, "syncType": 2, "eventId": 77, "eventSyncId": 5},
        ],
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": [
            {**event, "eventId": 77, "eventSyncId": 5, "timestamp": 130},
            {**event, "eventId": 78, "eventSyncId": 6, "timestamp": 0},
        ],
    }
    trace = opened(tmp_path, content)
    syncs, records = trace["syncs"], trace["event_records"]
    assert syncs["kind"].tolist() == [3, 4, 2]
    assert syncs["stream"].tolist() == [0, -1, 0]
    assert syncs["process"].tolist() == [0, 0, 0]
    assert syncs["event"].tolist() == [0, 0, 77]
    assert syncs["event_sync"].tolist() == [0, 0, 5]
    assert records["stream"].tolist() == [0, 0]
    assert records["event_sync"].tolist() == [5, 6]
    assert records["time"].tolist() == [130 - trace.info.origin_ns, NEVER]


def test_nvtx_ranges_marks_domains_and_categories(tmp_path: Path) -> None:
    other = global_tid(11)
    rows = [
        {**RANGE, "eventType": 75, "domainId": 1, "text": "NCCL"},
        {**RANGE, "eventType": 75, "domainId": 1, "text": "cuBLAS", "globalTid": other},
        {**RANGE, "eventType": 33, "category": 4, "text": "prefill"},
        {**RANGE, "text": "plain"},
        {**RANGE, "textId": 2, "domainId": 1, "start": 11},
        {**RANGE, "text": "b", "domainId": 1, "start": 12, "globalTid": other, "eventType": 60},
        {**RANGE, "text": "c", "category": 4, "start": 13},
        {**RANGE, "text": "d", "domainId": 9, "start": 14},
        {**RANGE, "text": "mark", "eventType": 34, "end": None, "start": 15},
        {**RANGE, "text": "raw", "eventType": 35, "start": 16},
    ]
    trace = opened(tmp_path, {"NVTX_EVENTS": rows})
    assert texts(trace, "ranges") == ["plain", "gemm", "b", "c", "d"]
    assert texts(trace, "ranges", "domain") == ["", "NCCL", "cuBLAS", "prefill", "domain 9"]
    assert trace["ranges"]["domain"][0] == -1
    assert [RANGE_KINDS[kind] for kind in trace["ranges"]["kind"].tolist()].count("nvtx start/end") == 1
    assert trace["processes"]["pid"][trace["threads"]["process"][trace["ranges"]["thread"]]].tolist()[2] == 11
    assert texts(trace, "marks") == ["mark"]
    assert "payload" not in trace["ranges"]
    assert [(note.text, note.count) for note in trace.quality.find("ignored")] == [
        ("NVTX_EVENTS: events of type 35", 1)
    ]


def test_nvtx_payloads(tmp_path: Path) -> None:
    rows = [
        {**RANGE, "text": "a", "uint64Value": 7},
        {**RANGE, "text": "b", "int64Value": -3, "start": 11},
        {**RANGE, "text": "c", "doubleValue": 0.25, "start": 12},
        {**RANGE, "text": "d", "start": 13},
        {**RANGE, "text": "e", "uint64Value": -1, "start": 14},
    ]
    trace = opened(tmp_path, {"NVTX_EVENTS": rows})
    np.testing.assert_array_equal(trace["ranges"]["payload"], [7, -3, 0.25, np.nan, 2.0**64])
    assert trace.quality.count("repaired") == 1


def test_a_range_that_was_never_closed_lasts_to_the_end_of_the_session(tmp_path: Path) -> None:
    rows = [
        {**RANGE, "text": "open", "end": None},
        {**RANGE, "text": "closed"},
        {**RANGE, "text": "late", "start": 900},
    ]
    rows[2]["end"] = 950
    trace = opened(tmp_path, {"NVTX_EVENTS": rows})
    ends = dict(zip(texts(trace, "ranges"), (trace["ranges"]["end"] + trace.info.origin_ns).tolist(), strict=True))
    assert ends == {"open": 950, "closed": 20, "late": 950}
    assert trace.quality.count("unclosed") == 1
    assert trace.records("ranges") == 3
    (tmp_path / "export.sqlite").unlink()
    trace = opened(tmp_path, {"NVTX_EVENTS": rows, "ANALYSIS_DETAILS": [{"duration": 2000}]})
    ends = dict(zip(texts(trace, "ranges"), (trace["ranges"]["end"] + trace.info.origin_ns).tolist(), strict=True))
    assert ends["open"] == 2000


def test_a_range_that_was_open_when_the_capture_began_is_kept(tmp_path: Path) -> None:
    rows = [{**RANGE, "text": "open", "start": -40}, {**RANGE, "text": "gone", "start": -40, "end": -10}]
    trace = opened(tmp_path, {"NVTX_EVENTS": rows})
    assert texts(trace, "ranges") == ["open"]
    assert trace.records("ranges") == 2
    assert trace.quality.count("outside") == 2


def test_host_tables(tmp_path: Path) -> None:
    thread = global_tid(10, 13)
    content: Tables = {
        "OSRT_API": [{**CALL, "nameId": 2}],
        "SCHED_EVENTS": [{"start": 5 + i, "cpu": 3, "isSchedIn": i % 2, "globalTid": thread} for i in range(2)],
        "PROFILER_OVERHEAD": [{**CALL, "nameId": 2, "overheadType": 3}],
        "CUPTI_ACTIVITY_KIND_OVERHEAD": [{**CALL, "nameId": 0, "overheadType": 7}],
        "ThreadNames": [{"nameId": i, "priority": 1, "globalTid": thread} for i in (1, 2)],
        "PROCESSES": [
            {"globalPid": global_pid(pid), "pid": pid + 7000, "name": f"process {pid}"} for pid in range(9, 12)
        ],
    }
    trace = opened(tmp_path, content)
    assert texts(trace, "os_calls") == ["gemm"]
    assert sorted(texts(trace, "overheads")) == ["gemm", "lazy function load"]
    assert trace["schedulings"]["on"].tolist() == [0, 1]
    assert trace["schedulings"]["cpu"].tolist() == [3, 3]
    assert trace.thread_name(int(trace["schedulings"]["thread"][0])) == "gemm 13"
    assert [trace.process_name(row) for row in range(len(trace["processes"]))] == ["process 10 7010"]


def test_failed_calls_keep_their_error_code(tmp_path: Path) -> None:
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_RUNTIME": [CALL, {**CALL, "start": 60, "returnValue": 700}]})
    assert trace["host_calls"]["result"].tolist() == [0, 700]


def test_gpu_metrics(tmp_path: Path) -> None:
    of_gpu_1 = (1 << 56) | 1
    content: Tables = {
        "TARGET_INFO_GPU": [{"id": i, "name": f"H{i}", "cuDevice": 1 - i} for i in range(2)],
        "TARGET_INFO_GPU_METRICS": [
            {"typeId": type_id, "metricId": metric, "metricName": name}
            for type_id in (1 << 56, of_gpu_1)
            for metric, name in enumerate(["SMs Active [Throughput %]", "GPC Clock Frequency"])
        ],
        "GPU_METRICS": [
            {"timestamp": time, "typeId": of_gpu_1, "metricId": metric, "value": value}
            for time, metric, value in [(5, 0, 40), (5, 1, 1_410_000_000), (-1, 0, 3), (9, 0, -2)]
        ],
    }
    trace = opened(tmp_path, content)
    series = trace["series"]
    assert texts(trace, "series") == ["SMs Active", "GPC Clock Frequency"]
    assert texts(trace, "series", "unit") == ["%", "Hz"]
    # The GPU that the machine numbers 1 is device 0 of the process.
    assert trace["devices"]["number"][series["device"]].tolist() == [0, 0]
    assert trace.device_name(0) == "GPU 0 · H1"
    assert trace["counters"]["value"].tolist() == [40, 1_410_000_000, 0]
    assert trace["counters"]["series"].tolist() == [0, 1, 0]
    assert trace.quality.count("repaired") == 1
    assert trace.quality.count("ignored") == 1


def test_gpu_metrics_as_json(tmp_path: Path) -> None:
    sample = {"SM Active [%]": "55", "GR Active": 12.5, "unit": "none"}
    content: Tables = {
        "GENERIC_EVENT_TYPES": [{"typeId": 2, "sourceId": 1, "data": json.dumps({"Name": "GPU Metrics"})}],
        "GENERIC_EVENTS": [
            {"timestamp": 3, "typeId": 2, "data": json.dumps(sample)},
            {"timestamp": 4, "typeId": 2, "data": "broken {"},
        ],
    }
    trace = opened(tmp_path, content)
    assert texts(trace, "series") == ["SM Active", "GR Active"]
    assert trace["counters"]["value"].tolist() == [55, 12.5]
    assert trace["devices"]["number"].tolist() == [2]
    assert trace.quality.count("ignored") == 1


@pytest.mark.parametrize(
    ("text", "name", "unit"),
    [
        ("SMs Active [Throughput %]", "SMs Active", "%"),
        ("PCIe RX [MB/s]", "PCIe RX", "MB/s"),
        ("SYS Clock Frequency", "SYS Clock Frequency", "Hz"),
        ("Warps", "Warps", ""),
    ],
)
def test_metric_names_carry_their_unit(text: str, name: str, unit: str) -> None:
    assert name_and_unit(text) == (name, unit)


def test_memory_events(tmp_path: Path) -> None:
    event: dict[str, Any] = {
        "start": 5,
        "globalPid": global_pid(10),
        "deviceId": 1,
        "address": -4096,
        "bytes": 100,
        "memKind": 2,
        "memoryOperationType": 0,
    }
    rows = [event, {**event, "start": 6, "memoryOperationType": 1}, {**event, "start": 7, "memKind": 1}]
    trace = opened(tmp_path, {"CUDA_GPU_MEMORY_USAGE_EVENTS": rows})
    table = trace["allocations"]
    assert table["bytes"].tolist() == [100, -100, 100]
    assert table["kind"].tolist() == [3, 3, 2]
    assert table["device"].tolist() == [0, 0, -1]
    assert table["address"].tolist() == [2**64 - 4096] * 3
    assert trace["devices"]["number"].tolist() == [1]


def test_one_device_number_that_is_two_gpus(tmp_path: Path) -> None:
    kernels = [KERNEL, {**KERNEL, "globalPid": global_pid(11)}]
    told = [{"gpuId": gpu, "cudaId": 0, "pid": pid} for gpu, pid in ((4, 10), (6, 11))]
    gpus = [{"id": gpu, "name": f"GPU {gpu}", "cuDevice": 0, "totalMemory": 80 << 30, "smCount": 132} for gpu in (4, 6)]
    content: Tables = {"CUPTI_ACTIVITY_KIND_KERNEL": kernels, "TARGET_INFO_CUDA_DEVICE": told, "TARGET_INFO_GPU": gpus}
    trace = opened(tmp_path, content)
    assert trace["devices"]["number"].tolist() == [4, 6]
    assert texts(trace, "devices") == ["GPU 4", "GPU 6"]
    assert trace["devices"]["memory"].tolist() == [80 << 30] * 2
    assert trace["devices"]["sm_count"].tolist() == [132, 132]
    assert trace.quality.count("assumed") == 1


def test_one_device_number_of_two_processes_without_a_word_on_gpus(tmp_path: Path) -> None:
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL, {**KERNEL, "globalPid": global_pid(11)}]})
    assert trace["devices"]["number"].tolist() == [0]
    assert len(trace["streams"]) == 2
    assert trace.quality.count("assumed") == 1
