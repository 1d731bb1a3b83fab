"""What an export says of itself: clocks, ranks, capture settings, why something is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.readers import nsys_sqlite
from inspector.readers.reader import silent
from inspector.trace.trace import Trace
from tests.readers.nsys_export import CALL, KERNEL, STRINGS, global_pid, global_tid, write

Tables = dict[str, list[dict[str, Any]]]


def opened(tmp_path: Path, content: Tables) -> Trace:
    path = tmp_path / "export.sqlite"
    strings = [dict(row) for row in STRINGS]
    return nsys_sqlite.read(write(path, {"StringIds": strings, **content}), silent)


def pairs(**values: str) -> list[dict[str, Any]]:
    return [{"name": name.replace("__", ":"), "value": value} for name, value in values.items()]


EPOCH = 1_785_620_044_423_518_993


def test_wall_clock_of_a_session(tmp_path: Path) -> None:
    start = {"TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": EPOCH}]}
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], **start})
    assert (trace.info.origin_ns, trace.info.start_epoch_ns) == (100, EPOCH + 100)


def test_an_export_with_times_in_utc(tmp_path: Path) -> None:
    content: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            {**KERNEL, "start": EPOCH + 100, "end": EPOCH + 200},
            {**KERNEL, "start": EPOCH - 10, "end": EPOCH + 20},
        ],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": EPOCH}],
        "META_DATA_EXPORT": pairs(EXPORT_PARAM_TIME_NORMALIZE="true"),
    }
    trace = opened(tmp_path, content)
    assert (trace.info.origin_ns, trace.info.start_epoch_ns) == (EPOCH + 100, EPOCH + 100)
    assert trace.quality.count("outside") == 1


def test_an_export_whose_times_were_moved(tmp_path: Path) -> None:
    content: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [{**KERNEL, "start": -900, "end": -800}],
        "META_DATA_EXPORT": pairs(EXPORT_PARAM_TIME_SHIFT="-1000"),
    }
    trace = opened(tmp_path, content)
    assert trace.info.origin_ns == -900
    assert len(trace["kernels"]) == 1
    assert trace.quality.count("clock") == 1


def test_rank_from_the_table_the_thread_name_and_the_environment(tmp_path: Path) -> None:
    kernels: Tables = {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL]}
    trace = opened(tmp_path, {**kernels, "MPI_RANKS": [{"globalTid": global_tid(10), "rank": 5}]})
    assert trace["processes"]["rank"].tolist() == [5]
    (tmp_path / "export.sqlite").unlink()
    strings = [*STRINGS, {"id": 9, "value": "MPI Rank 3"}]
    trace = opened(
        tmp_path, {**kernels, "StringIds": strings, "ThreadNames": [{"nameId": 9, "globalTid": global_tid(10)}]}
    )
    assert trace["processes"]["rank"].tolist() == [3]
    (tmp_path / "export.sqlite").unlink()
    variables = ["API_KEY=secret", "LOCAL_RANK=1", "SLURM_PROCID=4", "RANK=2", "RANK_FILE=x"]
    capture = [{"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": value} for value in variables]
    trace = opened(tmp_path, {**kernels, "META_DATA_CAPTURE": capture})
    assert trace["processes"]["rank"].tolist() == [2]
    assert trace.quality.count("assumed") == 1
    assert "secret" not in repr(trace.info)
    (tmp_path / "export.sqlite").unlink()
    # Of several processes with GPU work, nothing says which one has the command's rank.
    kernels["CUPTI_ACTIVITY_KIND_KERNEL"].append({**KERNEL, "globalPid": global_pid(11), "deviceId": 1})
    trace = opened(tmp_path, {**kernels, "META_DATA_CAPTURE": capture})
    assert trace["processes"]["rank"].tolist() == [-1, -1]


def test_why_there_are_no_kernels(tmp_path: Path) -> None:
    def why(content: Tables) -> str:
        (tmp_path / "export.sqlite").unlink(missing_ok=True)
        return opened(tmp_path, {"OSRT_API": [dict(CALL)], **content}).info.missing["kernels"]

    traced = [{"name": "CAPTURE_EVENT_TYPE", "value": value} for value in ("OSRuntime", "Cuda")]
    said = [{"severity": 3, "text": "CUDA profiling might have not\nbeen started correctly", "timestamp": 0}]
    assert why({}) == "no kernels in this export: none happened, or they were not traced; record with --trace=cuda"
    assert why({"META_DATA_CAPTURE": traced[:1]}) == "kernels were not traced: record with --trace=cuda"
    assert "although they were traced" in why({"META_DATA_CAPTURE": traced})
    assert "have not been started correctly" in why({"META_DATA_CAPTURE": traced, "DIAGNOSTIC_EVENT": said})
    assert "--cuda-graph-trace=node" in why({"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [{**KERNEL, "graphId": 1}]})
    limited = pairs(EXPORT_PARAM_TABLES_TO_EXPORT="OSRT_API")
    assert "without --tables" in why({"META_DATA_EXPORT": limited, "META_DATA_CAPTURE": traced})


def test_why_there_are_no_memory_events(tmp_path: Path) -> None:
    content: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL],
        "META_DATA_CAPTURE": pairs(PROCESS_0__COLLECT_GPU_MEMORY_USAGE="false"),
    }
    wanted = "memory events were not traced: record with --cuda-memory-usage=true"
    assert opened(tmp_path, content).info.missing["allocations"] == wanted


def test_messages_of_the_profiler(tmp_path: Path) -> None:
    said = [
        {"severity": severity, "text": text, "timestamp": 0}
        for severity, text in [
            (1, "Profiling has started."),
            (2, "Not all NVTX events might have been collected."),
            (3, "Reached the size limit on recording trace events."),
            (2, "Installed CUDA driver version is not supported."),
        ]
    ]
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], "DIAGNOSTIC_EVENT": said})
    assert trace.quality.count("profiler-loss") == 2
    assert trace.quality.count("profiler") == 1


@pytest.mark.parametrize("table", ["META_DATA_EXPORT", "META_DATA_CAPTURE"])
def test_a_simulated_export_says_so(tmp_path: Path, table: str) -> None:
    trace = opened(tmp_path, {"CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL], table: pairs(SIMULATED="true")})
    assert trace.info.basis == "simulated"
    assert trace.quality.count("simulated") == 1


def test_details_for_people(tmp_path: Path) -> None:
    content: Tables = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [KERNEL],
        "META_DATA_EXPORT": pairs(EXPORT_PRODUCT_VERSION="2025.5.2.266", EXPORT_SCHEMA_VERSION="3.24.0"),
        "META_DATA_CAPTURE": pairs(
            PROCESS_0__COMMAND="python3",
            PROCESS_0__ARGUMENT_0="serve.py",
            PROCESS_0__CUDA_GRAPH_TRACE_OPTIONS__MODE="Node",
        ),
        "TARGET_INFO_SYSTEM_ENV": pairs(NvDriverVersion="5303002", CudaDriverVersion="12040", Hostname="node17"),
    }
    info = opened(tmp_path, content).info
    assert info.producer == "Nsight Systems 2025.5.2"
    assert info.details["Command"] == "python3 serve.py"
    assert info.details["CUDA graphs"] == "Node"
    assert info.details["Driver"] == "530.30.02"
    assert info.details["CUDA of the driver"] == "12.4"
    assert "node17" not in repr(info)
