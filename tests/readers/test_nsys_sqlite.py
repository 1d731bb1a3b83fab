"""Exports that are odd in one way each: old, edited, mixed up, damaged."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import Cancelled, Unreadable
from inspector.readers import nsys_sqlite, open_trace
from inspector.readers.reader import HEAD_BYTES, Progress, silent
from inspector.trace.links import Links
from inspector.trace.trace import Trace
from inspector.trace.work import Work
from tests.readers.nsys_export import CALL, KERNEL, STRINGS, global_pid, global_tid, write

Tables = dict[str, list[dict[str, Any]]]


def tables(kernels: int = 1) -> Tables:
    """Kernels of 100 ns every 200 ns, each with its launch call."""
    return {
        "StringIds": [dict(row) for row in STRINGS],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            {**KERNEL, "start": 100 + 200 * i, "end": 200 + 200 * i, "correlationId": i + 1} for i in range(kernels)
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            {**CALL, "start": 50 + 200 * i, "end": 90 + 200 * i, "correlationId": i + 1} for i in range(kernels)
        ],
    }


def opened(tmp_path: Path, content: Tables) -> Trace:
    path = tmp_path / "export.sqlite"
    path.unlink(missing_ok=True)
    return nsys_sqlite.read(write(path, content), silent)


def texts(trace: Trace, table: str, column: str = "name") -> list[str]:
    return [trace.names[name] for name in trace[table][column].tolist()]


def test_one_kernel_and_its_launch(tmp_path: Path) -> None:
    trace = opened(tmp_path, tables())
    assert texts(trace, "kernels") == ["void gemm<4>(float *)"]
    assert texts(trace, "host_calls") == ["cudaLaunchKernel"]
    assert trace.info.origin_ns == 50
    assert (trace["kernels"]["start"][0], trace["kernels"]["end"][0]) == (50, 150)
    assert trace.index(Links).launch["kernels"].tolist() == [0]
    assert trace.stream_name(0) == "stream 7"
    assert trace["processes"]["pid"].tolist() == [10]
    assert not trace.quality.notes


def test_correlation_ids_of_two_processes_do_not_mix(tmp_path: Path) -> None:
    content = tables()
    content["CUPTI_ACTIVITY_KIND_KERNEL"].append({**KERNEL, "globalPid": global_pid(11), "start": 300, "end": 400})
    content["CUPTI_ACTIVITY_KIND_RUNTIME"].append({**CALL, "globalTid": global_tid(11), "start": 10, "end": 20})
    trace = opened(tmp_path, content)
    starts = trace["host_calls"]["start"][trace.index(Links).launch["kernels"]] + trace.info.origin_ns
    assert starts.tolist() == [50, 10]


def test_one_process_id_on_two_machines_is_two_processes(tmp_path: Path) -> None:
    content = tables()
    content["CUPTI_ACTIVITY_KIND_KERNEL"].append({**KERNEL, "globalPid": global_pid(10, 2), "start": 300, "end": 400})
    trace = opened(tmp_path, content)
    assert len(trace["processes"]) == len(trace["streams"]) == 2
    assert trace.index(Links).launch["kernels"].tolist() == [0, -1]
    assert trace.quality.count("assumed") == 2


def test_hardware_ids_that_make_the_number_negative(tmp_path: Path) -> None:
    content = tables()
    pid = (200 << 56 | 10 << 24) - (1 << 64)
    content["CUPTI_ACTIVITY_KIND_KERNEL"][0]["globalPid"] = pid
    content["CUPTI_ACTIVITY_KIND_RUNTIME"][0]["globalTid"] = pid | 12
    content["PROCESSES"] = [{"globalPid": pid, "pid": 4711, "name": "server"}]
    trace = opened(tmp_path, content)
    assert trace.process_name(0) == "server 4711"
    assert trace["threads"]["tid"].tolist() == [12]
    assert trace.index(Links).launch["kernels"].tolist() == [0]


def test_tables_and_columns_that_somebody_added_and_moved_change_nothing(tmp_path: Path) -> None:
    plain = opened(tmp_path, tables(3))
    content = tables(3)
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"):
        content[table] = [{"name": "mine", **dict(reversed(row.items())), "extra": 1.5} for row in content[table]]
    content["cudaAPIStats"] = [{"ms": 1, "me": 2, "value": "x"}]
    content["my_ranges"] = [{"start": 1, "end": 2}]
    trace = opened(tmp_path, content)
    for name, table in plain.tables.items():
        for column, values in table.columns.items():
            assert trace[name][column].tolist() == values.tolist(), (name, column)
    assert [(note.code, note.text) for note in trace.quality.notes] == [("ignored", "my_ranges: not read")]


def test_columns_without_a_declared_type(tmp_path: Path) -> None:
    content = tables(3)
    content["NVTX_EVENTS"] = [
        {"start": i, "end": 9, "eventType": 59, "text": text, "globalTid": CALL["globalTid"], "doubleValue": value}
        for i, (text, value) in enumerate([("a", 0.5), (b"caf\xe9", None), ("c", 1 << 60)])
    ]
    content["CUPTI_ACTIVITY_KIND_KERNEL"][1]["correlationId"] = "2"
    trace = nsys_sqlite.read(write(tmp_path / "export.sqlite", content, typed=False), silent)
    assert texts(trace, "ranges") == ["a", "caf\ufffd", "c"]
    np.testing.assert_array_equal(trace["ranges"]["payload"], [0.5, np.nan, 2.0**60])
    assert trace["kernels"]["correlation"].tolist() == [1, 2, 3]
    assert texts(trace, "kernels") == ["void gemm<4>(float *)"] * 3


def test_rows_in_any_order(tmp_path: Path) -> None:
    content = tables(50)
    content["CUPTI_ACTIVITY_KIND_KERNEL"].reverse()
    content["CUPTI_ACTIVITY_KIND_RUNTIME"].sort(key=lambda row: row["start"] % 7)
    trace = opened(tmp_path, content)
    assert trace["kernels"]["start"].tolist() == [50 + 200 * i for i in range(50)]
    assert trace.index(Links).launch["kernels"].tolist() == list(range(50))


def test_an_export_of_2020(tmp_path: Path) -> None:
    content = tables()
    kernel = content["CUPTI_ACTIVITY_KIND_KERNEL"][0]
    for column in ("globalPid", "demangledName", "graphNodeId"):
        del kernel[column]
    content["TARGET_INFO_GPU"] = [{"deviceId": 0, "name": "Tesla V100"}]
    trace = opened(tmp_path, content)
    assert texts(trace, "kernels") == ["gemm"]
    assert trace.device_name(0) == "GPU 0 · Tesla V100"
    assert trace.index(Links).launch["kernels"].tolist() == [0]
    assert trace.info.schema_version == "pre-2.9"
    assert trace.info.start_epoch_ns is None
    assert trace.quality.count("assumed") == 1
    assert "graph_node" not in trace["kernels"]


def test_values_of_a_wrong_kind_are_counted_and_read_as_none(tmp_path: Path) -> None:
    content = tables(4)
    kernels = content["CUPTI_ACTIVITY_KIND_KERNEL"]
    kernels[0]["correlationId"] = "none"
    kernels[1]["start"] = 300.5
    kernels[2]["correlationId"] = -5
    trace = opened(tmp_path, content)
    assert trace["kernels"]["correlation"].tolist() == [0, 0, 4]
    assert trace.records("kernels") == 4
    assert trace.quality.count("unstamped") == 1
    assert {note.text.split(":")[0]: note.count for note in trace.quality.find("invalid")} == {
        "CUPTI_ACTIVITY_KIND_KERNEL.correlationId": 2,
        "CUPTI_ACTIVITY_KIND_KERNEL.start": 1,
    }


def test_numbers_kept_as_text_and_times_too_long_for_a_float_are_exact(tmp_path: Path) -> None:
    content = tables(2)
    base = 1_700_000_000_000_000_001
    for at, row in enumerate(content["CUPTI_ACTIVITY_KIND_KERNEL"]):
        row["start"], row["end"], row["deviceId"] = str(base + at * 10), base + at * 10 + 3, "0"
    content["CUPTI_ACTIVITY_KIND_KERNEL"].append({**KERNEL, "start": str(base), "end": 0.5})
    del content["CUPTI_ACTIVITY_KIND_RUNTIME"]
    trace = opened(tmp_path, content)
    assert trace.info.origin_ns == base
    assert trace["kernels"]["start"].tolist() == [0, 10]
    assert trace["kernels"]["end"].tolist() == [3, 13]
    assert trace.quality.count("unstamped") == 1


def test_a_wrong_value_far_down_the_table(tmp_path: Path) -> None:
    # The first batches have told ADBC that the column holds integers.
    content = tables(70_000)
    content["CUPTI_ACTIVITY_KIND_KERNEL"][69_000]["correlationId"] = "?"
    trace = opened(tmp_path, content)
    wanted = np.arange(1, 70_001)
    wanted[69_000] = 0
    np.testing.assert_array_equal(trace["kernels"]["correlation"], wanted)
    np.testing.assert_array_equal(trace["kernels"]["start"], 50 + 200 * np.arange(70_000))
    assert trace.quality.count("invalid") == 1


def test_row_ids_far_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "export.sqlite", tables(3))
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = 9000000000000000000 WHERE correlationId = 3")
        file.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = -5 WHERE correlationId = 2")
        file.execute("CREATE TABLE OSRT_API (start, end, globalTid, nameId, PRIMARY KEY (start)) WITHOUT ROWID")
        file.execute("INSERT INTO OSRT_API VALUES (1, 2, 3, 2)")
        file.commit()
    trace = nsys_sqlite.read(path, silent)
    assert trace["kernels"]["correlation"].tolist() == [1, 2, 3]
    assert texts(trace, "os_calls") == ["gemm"]


def test_text_that_is_not_utf8_is_shown_and_counted(tmp_path: Path) -> None:
    content = tables()
    content["StringIds"][1]["value"] = b"gemm \xff\xfe"
    content["NVTX_EVENTS"] = [
        {"start": 1, "end": 2, "eventType": 59, "text": text, "textId": None, "globalTid": global_tid(10)}
        for text in (b"caf\xe9", "ok")
    ]
    trace = opened(tmp_path, content)
    assert texts(trace, "kernels") == ["gemm \ufffd\ufffd"]
    assert sorted(texts(trace, "ranges")) == ["caf\ufffd", "ok"]
    assert trace.quality.count("encoding") == 2


def test_strings_that_the_export_was_told_to_leave_out(tmp_path: Path) -> None:
    content = tables()
    del content["StringIds"]
    content["META_DATA_EXPORT"] = [{"name": "EXPORT_PARAM_TABLES_TO_EXPORT", "value": "CUPTI.*"}]
    trace = opened(tmp_path, content)
    assert texts(trace, "kernels") == ["string 1"]
    assert trace.quality.count("absent") > 0
    assert trace.quality.count("filtered") == 1
    assert "--tables" in trace.info.missing["ranges"]


def test_times_before_the_session_and_graphs_without_time(tmp_path: Path) -> None:
    content = tables()
    content["CUPTI_ACTIVITY_KIND_KERNEL"].append({**KERNEL, "start": -50, "end": 10})
    content["CUPTI_ACTIVITY_KIND_KERNEL"].append({**KERNEL, "start": 500, "end": 400})
    graph = {**KERNEL, "graphId": 3}
    content["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [graph, {**graph, "start": 0}, {**graph, "end": 0}]
    trace = opened(tmp_path, content)
    assert len(trace["kernels"]) == 1
    assert trace.records("kernels") == 3
    assert texts(trace, "graphs") == ["CUDA graph 3"]
    assert trace.records("graphs") == 3
    counts = {code: trace.quality.count(code) for code in ("outside", "reversed", "unstamped", "graph-level")}
    assert counts == {"outside": 1, "reversed": 1, "unstamped": 2, "graph-level": 3}


def test_nodes_of_a_graph_and_the_graph_count_once(tmp_path: Path) -> None:
    content = tables()
    content["CUPTI_ACTIVITY_KIND_KERNEL"][0]["graphNodeId"] = 5 << 32 | 1
    content["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] = [{**KERNEL, "graphId": 3}]
    trace = opened(tmp_path, content)
    assert trace["kernels"]["graph_node"].tolist() == [5 << 32 | 1]
    assert [len(device) for device in trace.index(Work).devices] == [1]
    assert trace.quality.count("graph-level") == 0


def test_write_ahead_log(tmp_path: Path) -> None:
    path = write(tmp_path / "export.sqlite", tables())
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA wal_autocheckpoint=0")
        file.execute("UPDATE StringIds SET value = 'from the log' WHERE id = 1")
        file.commit()
        log = tmp_path / "export.sqlite-wal"
        before = [hashlib.sha256(part.read_bytes()).hexdigest() for part in (path, log)]
        trace = open_trace(path)
        assert [hashlib.sha256(part.read_bytes()).hexdigest() for part in (path, log)] == before
    assert texts(trace, "kernels") == ["from the log"]


def test_awkward_path(tmp_path: Path) -> None:
    path = write(tmp_path / "a b?c#d%41&é.sqlite", tables())
    assert len(open_trace(path)["kernels"]) == 1


def test_no_gpu_tables(tmp_path: Path) -> None:
    trace = opened(tmp_path, {"StringIds": tables()["StringIds"], "OSRT_API": [dict(CALL)]})
    assert trace.records("os_calls") == 1
    assert len(trace["devices"]) == 0
    assert "record with --trace=cuda" in trace.info.missing["kernels"]


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9])
def test_a_file_that_breaks_off(tmp_path: Path, share: float) -> None:
    data = write(tmp_path / "whole.sqlite", tables(2000)).read_bytes()
    path = tmp_path / "part.sqlite"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(Unreadable) as caught:
        open_trace(path)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export to damage copies of, alone in a folder of its own."""
    content = tables(40)
    content["META_DATA_EXPORT"] = [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.24.0"}]
    content["NVTX_EVENTS"] = [
        {"start": i, "end": 9 * i, "eventType": 59, "text": f"step {i}", "textId": None, "globalTid": CALL["globalTid"]}
        for i in range(40)
    ]
    return write(tmp_path_factory.mktemp("whole") / "whole.sqlite", content)


@given(st.lists(st.tuples(st.integers(16, 1 << 20), st.integers(0, 255)), min_size=1, max_size=12))
def test_a_damaged_file_is_read_or_refused(whole: Path, flips: list[tuple[int, int]]) -> None:
    data = bytearray(whole.read_bytes())
    for at, value in flips:
        data[at % len(data)] = value
    path = whole.with_name("damaged.sqlite")
    path.write_bytes(data)
    if nsys_sqlite.sniff(bytes(data[:HEAD_BYTES]), path) > 0:
        refused = ""
        try:
            nsys_sqlite.read(path, silent)
        except Unreadable as error:
            refused = str(error)
        assert "\n" not in refused


def test_progress_and_cancel(tmp_path: Path) -> None:
    path = write(tmp_path / "export.sqlite", tables(3000))
    seen: list[Progress] = []
    nsys_sqlite.read(path, seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert seen[-1].done == seen[-1].total == path.stat().st_size
    assert max(p.rows for p in seen) == 6000
    for at in range(len(seen)):
        left = at

        def report(progress: Progress) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Cancelled

        with pytest.raises(Cancelled):
            nsys_sqlite.read(path, report)


KERNELS = st.lists(
    st.tuples(
        st.integers(0, 3),  # process
        st.integers(0, 2),  # device
        st.integers(7, 9),  # stream
        st.integers(0, 500),  # start
        st.integers(0, 60),  # length
        st.integers(0, 6),  # correlation
    ),
    min_size=1,
    max_size=40,
)
CALLS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500), st.integers(0, 6)), min_size=1, max_size=40)


@given(KERNELS, CALLS)
def test_any_kernels_and_calls_against_plain_loops(
    whole: Path, kernels: list[tuple[int, int, int, int, int, int]], calls: list[tuple[int, int, int]]
) -> None:
    content: Tables = {
        "StringIds": [dict(row) for row in STRINGS],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            {
                **KERNEL,
                "globalPid": global_pid(100 + process),
                "deviceId": device,
                "streamId": stream,
                "start": start,
                "end": start + length,
                "correlationId": correlation,
                # Keeps a kernel from being taken for one whose end is wrong.
                "contextId": at,
            }
            for at, (process, device, stream, start, length, correlation) in enumerate(kernels)
        ],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            {**CALL, "globalTid": global_tid(100 + process, 7), "start": start, "end": start + 5, "correlationId": c}
            for process, start, c in calls
        ],
    }
    trace = opened(whole.parent, content)
    assert len(trace["kernels"]) == len(kernels)
    work, origin = trace.index(Work), trace.info.origin_ns
    for row, number in enumerate(trace["devices"]["number"].tolist()):
        mine = [(start, start + length) for _, device, _, start, length, _ in kernels if device == number]
        found = work.devices[row]
        assert sorted(zip((found.start + origin).tolist(), (found.end + origin).tolist(), strict=True)) == sorted(mine)
    first: dict[tuple[int, int], int] = {}
    for process, start, correlation in calls:
        if correlation:
            first[process, correlation] = min(start, first.get((process, correlation), start))
    called = trace["host_calls"]["start"] + origin
    got = sorted(
        (start + origin, int(called[call]) if call >= 0 else -1)
        for start, call in zip(
            trace["kernels"]["start"].tolist(), trace.index(Links).launch["kernels"].tolist(), strict=True
        )
    )
    assert got == sorted((start, first.get((process, c), -1)) for process, _, _, start, _, c in kernels)
