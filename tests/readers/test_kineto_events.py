"""What events mean: processes and launches, arrows, halves of ranges, times of 0, instants, memory."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.links import Links
from inspector.trace.trace import Trace
from tests.readers.kineto_events import Json, call, kernel, opened


def launchers(trace: Trace) -> list[tuple[int, float | None]]:
    """(pid, start of the launch call in us) of every kernel; None where it has none."""
    owners = trace["processes"]["pid"][trace["streams"]["process"][trace["kernels"]["stream"]]]
    starts = trace["host_calls"]["start"] + trace.info.origin_ns
    rows = trace.index(Links).launch["kernels"].tolist()
    return [
        (pid, float(starts[row]) / 1000 if row >= 0 else None) for pid, row in zip(owners.tolist(), rows, strict=True)
    ]


def intervals(trace: Trace, table: str = "ranges") -> set[tuple[str, int, int]]:
    origin = trace.info.origin_ns
    columns = (trace[table][key].tolist() for key in ("name", "start", "end"))
    return {(trace.names[name], start + origin, end + origin) for name, start, end in zip(*columns, strict=True)}


def test_processes_that_share_correlation_ids_keep_their_work(tmp_path: Path) -> None:
    # Ids 1 and 2 are used by both; 3 and 4 tell whose device it is.
    events = [call(50, 10, 1), call(60, 11, 1), call(50, 20, 2), call(60, 21, 2), call(50, 30, 3), call(60, 31, 4)]
    events += [
        kernel(0, 12, 1),
        kernel(1, 13, 1),
        kernel(0, 22, 2),
        kernel(1, 23, 2),
        kernel(0, 32, 3),
        kernel(1, 33, 4),
    ]
    random.Random(1).shuffle(events)
    trace = opened(tmp_path, events)
    assert launchers(trace) == [(50, 10), (60, 11), (50, 20), (60, 21), (50, 30), (60, 31)]
    assert trace.quality.count("assumed") == 4


def test_where_every_id_is_shared_the_last_call_before_the_work_counts(tmp_path: Path) -> None:
    events = [call(50, 10, 1), kernel(0, 12, 1), call(60, 20, 1), kernel(0, 22, 1), kernel(0, 5, 1)]
    assert launchers(opened(tmp_path, events)) == [(50, 10), (50, 10), (60, 20)]


def test_work_without_a_call_stays_with_the_process_of_its_device(tmp_path: Path) -> None:
    events = [call(50, 10, 1), call(50, 11, 2), call(60, 12, 3), kernel(0, 13, 1), kernel(1, 13, 3), kernel(1, 16, 99)]
    assert launchers(opened(tmp_path, events)) == [(50, 10), (60, 12), (60, None)]


def test_a_file_of_a_device_alone(tmp_path: Path) -> None:
    trace = opened(tmp_path, [kernel(3, 10, 1), kernel(3, 20, 2)])
    assert launchers(trace) == [(3, None), (3, None)]
    assert trace["devices"]["number"].tolist() == [3]


def test_arrows_link_what_has_no_correlation_id(tmp_path: Path) -> None:
    events: list[Json] = []
    for n in range(3):
        arrow = {"cat": "ac2g", "name": "ac2g", "id": n + 5}
        events += [call("9", 10 * n, None), kernel(0, 10 * n + 4, None)]
        events += [{**arrow, "ph": "s", "pid": 9, "tid": 1, "ts": 10 * n}]
        events += [{**arrow, "ph": "f", "pid": 0, "tid": 7, "ts": 10 * n + 4, "bp": "e"}]
    events.append(kernel(0, 40, None))
    trace = opened(tmp_path, events)
    assert launchers(trace) == [(9, 0), (9, 10), (9, 20), (9, None)]
    assert trace.quality.count("assumed") == 3
    assert len(trace["flows"]) == 0


def test_nodes_of_a_graph_have_numbers_of_their_own(tmp_path: Path) -> None:
    copy = {**kernel(0, 14, 1), "cat": "gpu_memcpy", "name": "Memcpy DtoD (Device -> Device)"}
    events = [call(9, 10, 1, "cudaGraphLaunch"), call(9, 20, 2, "cudaGraphLaunch"), call(9, 30, 3)]
    events += [kernel(0, 16, 1), kernel(0, 12, 1), copy, kernel(0, 25, 2), kernel(0, 22, 2), kernel(0, 33, 3)]
    trace = opened(tmp_path, events)
    assert trace["kernels"]["graph_node"].tolist() == [1, 3, 1, 2, 0]
    assert trace["memcpys"]["graph_node"].tolist() == [2]
    assert trace.quality.count("assumed") == 5


def test_node_ids_of_the_file_are_kept(tmp_path: Path) -> None:
    events = [call(9, 10, 1, "cudaGraphLaunch"), kernel(0, 12, 1, **{"graph node id": 70}), kernel(0, 15, 1)]
    assert opened(tmp_path, events)["kernels"]["graph_node"].tolist() == [70, 71]


def test_begins_and_ends_at_one_time_keep_the_order_of_the_file(tmp_path: Path) -> None:
    def half(ph: str, ts: int, name: str = "") -> Json:
        return {"ph": ph, "ts": ts, "pid": 1, "tid": 1, **({"name": name, "cat": "c"} if name else {})}

    events = [
        half("B", 1, "a"),
        half("E", 5),
        half("B", 5, "b"),
        half("B", 5, "c"),
        half("E", 5),
        half("E", 9),
        half("E", 9),
    ]
    trace = opened(tmp_path, events)
    assert intervals(trace) == {("a", 1000, 5000), ("b", 5000, 9000), ("c", 5000, 5000)}
    assert {trace.names[row] for row in trace["ranges"]["domain"].tolist()} == {"c"}
    (note,) = trace.quality.find("invalid")
    assert (note.count, note.text) == (1, "ends of ranges that never began")


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 6), st.booleans()), max_size=20))
def test_begin_and_end_pairs_equal_a_stack(
    tmp_path_factory: pytest.TempPathFactory, halves: list[tuple[int, int, bool]]
) -> None:
    halves = sorted(halves, key=lambda half: half[1])
    events = [
        {"ph": "B" if begins else "E", "name": f"n{n}", "pid": 1, "tid": tid, "ts": ts + 1}
        for n, (tid, ts, begins) in enumerate(halves)
    ]
    events.append({"ph": "X", "name": "last", "pid": 2, "tid": 2, "ts": 1, "dur": 20})
    stacks: dict[int, list[tuple[str, int]]] = defaultdict(list)
    expected, wrong = {("last", 1000, 21000)}, 0
    for n, (tid, ts, begins) in enumerate(halves):
        at = 1000 * (ts + 1)
        if begins:
            stacks[tid].append((f"n{n}", at))
        elif stacks[tid]:
            expected.add((*stacks[tid].pop(), at))
        else:
            wrong += 1
    unclosed = [(*half, 21000) for stack in stacks.values() for half in stack]
    trace = opened(tmp_path_factory.mktemp("halves"), events)
    assert intervals(trace) == expected | set(unclosed)
    assert trace.quality.count("unclosed") == len(unclosed)
    assert trace.quality.count("invalid") == wrong


def test_asynchronous_halves_meet_by_id_across_threads(tmp_path: Path) -> None:
    def half(ph: str, ts: int, name: str, tid: int, **id_: object) -> Json:
        return {"ph": ph, "cat": "request", "name": name, "pid": 1, "tid": tid, "ts": ts, **id_}

    events = [
        half("b", 1, "r1", 1, id="0x1"),
        half("b", 2, "r2", 1, id="0x2"),
        half("b", 3, "r1 inner", 3, id="0x1"),
        half("e", 5, "r1 inner", 2, id="0x1"),
        half("e", 6, "r2", 2, id="0x2"),
        half("e", 7, "r1", 2, id="0x1"),
        half("b", 1, "mine", 1, id2={"local": 1}),
        {**half("b", 2, "theirs", 1, id2={"local": 1}), "pid": 2},
        half("e", 3, "mine", 1, id2={"local": 1}),
        {**half("e", 9, "theirs", 1, id2={"local": 1}), "pid": 2},
    ]
    assert intervals(opened(tmp_path, events)) == {
        ("r1", 1000, 7000),
        ("r1 inner", 3000, 5000),
        ("r2", 2000, 6000),
        ("mine", 1000, 3000),
        ("theirs", 2000, 9000),
    }


def test_arrows_of_several_steps_and_ids_used_again(tmp_path: Path) -> None:
    def flow(ph: str, ts: int, id_: object, tid: int = 1) -> Json:
        return {"ph": ph, "cat": "link", "name": "link", "id": id_, "pid": 1, "tid": tid, "ts": ts}

    events = [{"ph": "X", "name": "work", "pid": 1, "tid": tid, "ts": 1, "dur": 99} for tid in (1, 2)]
    events += [flow("s", 10, 1), flow("t", 20, 1, 2), flow("f", 30, 1)]
    events += [flow("s", 40, 1), flow("f", 50, 1, 2)]
    events += [flow("f", 60, "early", 2), flow("s", 61, "early")]
    events += [flow("s", 70, "lost"), flow("f", 80, "alone"), flow("s", 90, 7, 33), flow("f", 91, 7, 34)]
    trace = opened(tmp_path, events)
    flows, origin = trace["flows"], trace.info.origin_ns
    pairs = zip((flows["start"] + origin).tolist(), (flows["end"] + origin).tolist(), strict=True)
    assert sorted(pairs) == [(10000, 20000), (20000, 30000), (40000, 50000), (61000, 60000), (90000, 91000)]
    tids = [-1, *trace["threads"]["tid"].tolist()]
    assert [tids[row + 1] for row in flows["start_thread"].tolist()] == [1, 2, 1, 1, -1]
    assert trace.quality.count("ignored") == 2


@pytest.mark.parametrize(("first", "last", "kept"), [(1, 20e6, True), (5e6, 6e6, True), (1.6e15, 1.6e15 + 10, False)])
def test_a_time_of_zero_is_one_where_the_trace_may_begin_there(
    first: float, last: float, kept: bool, tmp_path: Path
) -> None:
    events = [call(9, ts, n + 1) for n, ts in enumerate((0, first, last))]
    trace = opened(tmp_path, events)
    assert len(trace["host_calls"]) == (3 if kept else 2)
    assert trace.quality.count("unstamped") == (not kept)
    assert trace.records("host_calls") == 3


def test_instants_and_memory(tmp_path: Path) -> None:
    memory = {"ph": "i", "name": "[memory]", "pid": 9, "tid": 1, "s": "t"}
    device = {
        "Device Type": 1,
        "Device Id": 2,
        "Addr": 4096,
        "Bytes": 512,
        "Total Allocated": 512,
        "Total Reserved": 2048,
    }
    events: list[Json] = [
        {**memory, "ts": 1, "args": device},
        {**memory, "ts": 2, "args": {**device, "Bytes": -512, "Total Allocated": 0}},
        {**memory, "ts": 3, "args": {"Device Type": 0, "Device Id": -1, "Bytes": 64}},
        {"ph": "i", "name": "Record Window End", "s": "g", "pid": "", "tid": "", "ts": 4},
        {"ph": "I", "name": "here", "pid": 9, "tid": 1, "ts": 5},
        {"ph": "C", "name": "queue", "pid": 9, "ts": 6, "args": {"waiting": 3, "state": "full"}},
    ]
    trace = opened(tmp_path, events)
    allocations = trace["allocations"]
    assert allocations["bytes"].tolist() == [512, -512, 64]
    assert allocations["device"].tolist() == [0, 0, -1]
    assert allocations["kind"].tolist() == [3, 3, 1]
    assert allocations["address"].tolist() == [4096, 4096, 0]
    names = [trace.names[row] for row in trace["series"]["name"].tolist()]
    found = sorted(
        (names[row], value)
        for row, value in zip(trace["counters"]["series"].tolist(), trace["counters"]["value"].tolist(), strict=True)
    )
    assert found == [
        ("memory allocated", 0.0),
        ("memory allocated", 512.0),
        ("memory reserved", 2048.0),
        ("memory reserved", 2048.0),
        ("queue waiting", 3.0),
    ]
    assert trace["marks"]["thread"].tolist() == [-1, 0]
    assert trace["processes"]["pid"].tolist() == [9]
    assert trace.quality.count("invalid") == 1


def test_what_stands_after_the_list_is_read_as_what_stands_before(tmp_path: Path) -> None:
    events = [call(9, 10, 1), kernel(0, 12, 1)]
    head = {
        "schemaVersion": 2,
        "distributedInfo": {"rank": 4, "world_size": 8, "backend": "nccl"},
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 10**11, "numSms": 132}],
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "displayTimeUnit": "ms",
        "roctracer_version": 4.1,
    }
    infos = []
    for text in (json.dumps({**head, "traceEvents": events}), json.dumps({"traceEvents": events, **head})):
        trace = opened(tmp_path, text)
        infos.append(
            (trace.info, trace.device_name(0), trace["devices"]["memory"].tolist(), trace["processes"]["rank"].tolist())
        )
    assert infos[0] == infos[1]
    assert infos[0][1:] == ("GPU 0 · NVIDIA H200", [10**11], [4])
    assert infos[0][0].start_epoch_ns == 1_700_000_000_000_010_000


def test_what_the_profiler_said_of_itself(tmp_path: Path) -> None:
    said = "{}:2024-02-08 10:38:45 948300:948300 CuptiActivityProfiler.cpp:835] {}".format
    overhead = {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "ts": 11, "dur": 3, "tid": 0}
    events = [call(9, 10, 1), {**overhead, "pid": -1}, {**overhead, "pid": 9, "tid": 1}]
    trace = opened(
        tmp_path,
        events,
        INFO=[said("INFO", "Enabling GPU tracing")],
        WARNING=[said("WARNING", "Some of it was dropped"), said("WARNING", "slow")],
        ERROR="not a list",
        displayTimeUnit="ns",
    )
    assert [(note.code, note.text) for note in trace.quality.notes] == [
        ("profiler-loss", "the profiler said: Some of it was dropped"),
        ("profiler", "the profiler said: slow"),
    ]
    assert sorted(trace["overheads"]["thread"].tolist()) == [-1, 0]
    assert trace["processes"]["pid"].tolist() == [9]
    assert trace.info.details["display unit"] == "ns"
