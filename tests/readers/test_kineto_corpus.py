"""Every public PyTorch profiler trace against the json module with decimal times, whole and damaged."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.readers import open_trace
from inspector.trace.links import Links
from inspector.trace.schema import RANGE_KINDS
from inspector.trace.trace import Trace

NAMES = (
    "a100_graphs_rank0",
    "cpu_only_rank34",
    "event_sync",
    "h100_qwen1.5_0.5b",
    "mi250_minitoy",
    "rank_non_gpu",
    "resnet50_worker0",
    "sampled_rank0",
    "sampled_rank1",
    "sglang_qwen3_8b_prefilldecode",
    "vllm_decode_graph_execution",
)
SMALL = ("event_sync", "mi250_minitoy", "cpu_only_rank34", "vllm_decode_graph_execution")
WORK = {
    "kernels": ("kernel", "Kernel"),
    "memcpys": ("gpu_memcpy", "Memcpy"),
    "memsets": ("gpu_memset", "Memset"),
}
CALLS = ("cuda_runtime", "cuda_driver", "Runtime")
KINDS = {"cpu_op": "operator", "Operator": "operator", "user_annotation": "annotation", "python_function": "python"}
Rows = Counter[tuple[Any, ...]]


@cache
def text_of(path: Path) -> str:
    """The unpacked text."""
    return gzip.decompress(path.read_bytes()).decode()


def interval(event: dict[str, Any]) -> tuple[int, int]:
    """Start and end in whole ns; the files have no finer ones."""
    start, length = Decimal(event["ts"]) * 1000, Decimal(event["dur"]) * 1000
    assert (start % 1, length % 1) == (0, 0)
    return int(start), int(start) + int(length)


def expected_rows(events: list[dict[str, Any]]) -> dict[str, Rows]:
    """What each table must hold, row for row, in the times of the file."""
    found: dict[str, Rows] = defaultdict(Counter)
    for event in events:
        category, args = event.get("cat"), event.get("args", {})
        if event["ph"] != "X":
            continue
        for table, names in WORK.items():
            if category in names:
                where = (args["device"], args["stream"], args["correlation"])
                found[table][(*interval(event), event["name"], *where)] += 1
        thread = (int(event["pid"]), int(event["tid"])) if str(event["tid"]).lstrip("-").isdigit() else None
        if category in CALLS:
            found["host_calls"][(*interval(event), event["name"], thread, args["correlation"])] += 1
        elif category in KINDS:
            external = args.get("External id", 0)
            found["ranges"][(*interval(event), event["name"], thread, category, KINDS[category], external)] += 1
    return found


def read_rows(trace: Trace) -> dict[str, Rows]:
    """The same of a trace."""
    found: dict[str, Rows] = defaultdict(Counter)
    threads, processes = trace["threads"], trace["processes"]["pid"].tolist()
    owners, tids = threads["process"].tolist(), threads["tid"].tolist()
    places = [(processes[owner], tid) for owner, tid in zip(owners, tids, strict=True)]
    devices, streams = trace["devices"]["number"], trace["streams"]
    texts, origin = trace.names.texts, trace.info.origin_ns
    for name in (*WORK, "host_calls", "ranges"):
        table = trace[name]
        columns = [(table["start"] + origin).tolist(), (table["end"] + origin).tolist()]
        columns.append([texts[row] for row in table["name"].tolist()])
        if name in WORK:
            columns.append(devices[streams["device"][table["stream"]]].tolist())
            columns.append(streams["number"][table["stream"]].tolist())
        else:
            columns.append([places[row] for row in table["thread"].tolist()])
        if name == "ranges":
            columns.append([texts[row] for row in table["domain"].tolist()])
            columns.append([RANGE_KINDS[kind] for kind in table["kind"].tolist()])
        columns.append(table["correlation"].tolist())
        found[name] = Counter(zip(*columns, strict=True))
    return found


def busy(intervals: list[tuple[int, int]]) -> int:
    """Measure of their union."""
    total, reach = 0, min(intervals)[0]
    for start, end in sorted(intervals):
        total += max(end - max(start, reach), 0)
        reach = max(reach, end)
    return total


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_that_of_the_file(name: str, corpus: Path) -> None:
    path = corpus / "kineto" / f"{name}.json.gz"
    whole = json.loads(text_of(path), parse_float=Decimal)
    expected = expected_rows(whole["traceEvents"])
    trace = open_trace(path)
    found = read_rows(trace)
    for table in (*WORK, "host_calls", "ranges"):
        assert found[table] == expected[table]
    assert {note.severity for note in trace.quality.notes} <= {"info"}
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for table in WORK:
        for row, count in expected[table].items():
            spans[row[3]] += [row[:2]] * count
    devices = trace.device_of(np.arange(len(trace["streams"]), dtype=np.int32))
    for device, number in enumerate(trace["devices"]["number"].tolist()):
        mine: list[tuple[int, int]] = []
        for table in WORK:
            rows = devices[trace[table]["stream"]] == device
            mine += zip(trace[table]["start"][rows].tolist(), trace[table]["end"][rows].tolist(), strict=True)
        assert busy(mine) == busy(spans[number])
    base = whole.get("baseTimeNanoseconds", 0)
    assert trace.info.start_epoch_ns == base + trace.info.origin_ns
    memory = [event["args"] for event in whole["traceEvents"] if "Bytes" in event.get("args", {})]
    assert trace["allocations"]["bytes"].sum() == sum(args["Bytes"] for args in memory)
    assert len(trace["counters"]) == 2 * sum("Total Allocated" in args for args in memory)
    assert trace.info.schema_version == str(whole.get("schemaVersion", ""))


@pytest.mark.parametrize("name", NAMES)
def test_work_is_linked_to_the_call_of_its_correlation_id(name: str, corpus: Path) -> None:
    path = corpus / "kineto" / f"{name}.json.gz"
    trace = open_trace(path)
    calls = trace["host_calls"]
    known = set(calls["correlation"].tolist()) - {0}
    graphs = {text for text in trace.names.texts if "GraphLaunch" in text}
    nodes: list[tuple[int, int]] = []
    for table, launch in trace.index(Links).launch.items():
        ids = trace[table]["correlation"]
        assert ((launch >= 0) == np.isin(ids, list(known))).all()
        assert (calls["correlation"][launch[launch >= 0]] == ids[launch >= 0]).all()
        if table not in WORK:
            continue
        for row, (call, node) in enumerate(zip(launch.tolist(), trace[table].get("graph_node").tolist(), strict=True)):
            of_graph = call >= 0 and trace.names[int(calls["name"][call])] in graphs
            assert (node > 0) == of_graph
            if of_graph:
                nodes.append((int(ids[row]), node))
    assert len(set(nodes)) == len(nodes)
    for launched in {launch for launch, _ in nodes}:
        mine = sorted(node for launch, node in nodes if launch == launched)
        assert mine == list(range(1, len(mine) + 1))


def test_waits_name_the_stream_that_recorded_their_event(corpus: Path) -> None:
    trace = open_trace(corpus / "kineto/event_sync.json.gz")
    syncs, records = trace["syncs"], trace["event_records"]
    assert syncs["kind"].tolist() == [3, 1, 1, 4]
    assert syncs["stream"].tolist() == [0, -1, -1, -1]
    assert syncs["event"].tolist() == [0, 8, 8, 0]
    assert syncs["event_sync"].tolist() == [0, 1533, 1533, 0]
    assert [records[key].tolist() for key in ("stream", "correlation", "event", "event_sync")] == [
        [0],
        [1533],
        [8],
        [1533],
    ]
    (call,) = np.flatnonzero(trace["host_calls"]["correlation"] == 1533)
    assert trace.names[int(trace["host_calls"]["name"][call])].startswith("cudaEventRecord")


def test_two_ranks_are_one_trace_on_one_clock(corpus: Path) -> None:
    paths = [corpus / f"kineto/sampled_rank{rank}.json.gz" for rank in (0, 1)]
    alone = [open_trace(path) for path in paths]
    both = open_trace(*paths)
    assert both["processes"]["rank"].tolist() == [0, 1]
    assert both["devices"]["number"].tolist() == [0, 1]
    assert len(both["kernels"]) == sum(len(trace["kernels"]) for trace in alone)
    starts = sorted(
        start
        for trace in alone
        for start in (
            trace["kernels"]["start"] + (trace.info.start_epoch_ns or 0) - (both.info.start_epoch_ns or 0)
        ).tolist()
    )
    assert both["kernels"]["start"].tolist() == starts


@pytest.mark.parametrize("name", SMALL)
def test_a_file_cut_anywhere_keeps_its_complete_events(name: str, corpus: Path, tmp_path: Path) -> None:
    text = text_of(corpus / "kineto" / f"{name}.json.gz")
    decoder = json.JSONDecoder(parse_float=Decimal)
    at = text.index("[", text.index('"traceEvents"')) + 1
    events: list[dict[str, Any]] = []
    ends: list[int] = []
    while True:
        while text[at] in " \n\r\t,":
            at += 1
        if text[at] == "]":
            break
        event, at = decoder.raw_decode(text, at)
        events.append(event)
        ends.append(at)
    draw = random.Random(name)
    path = tmp_path / "cut"
    for cut in [*draw.sample(range(ends[3], at), 25), ends[-1], ends[-1] - 1, ends[5] + 1]:
        path.write_text(text[:cut])
        whole = events[: sum(end <= cut for end in ends)]
        trace = open_trace(path)
        found, expected = read_rows(trace), expected_rows(whole)
        for table in (*WORK, "host_calls", "ranges"):
            assert found[table] == expected[table]
        assert trace.quality.count("truncated") == 1
        assert trace.quality.count("invalid") == trace.quality.count("repaired") == 0


def damage_names(text: bytes, damage: bytes, every: int) -> tuple[bytes, int]:
    """Put `damage` into the name of every so many kernels; how many were changed."""
    parts = text.split(b'"cat": "kernel"')
    changed = 0
    for row in range(1, len(parts), every):
        head, _, tail = parts[row].partition(b'"name": "')
        parts[row] = head + b'"name": "' + damage + tail
        changed += 1
    return b'"cat": "kernel"'.join(parts), changed


@pytest.mark.parametrize(
    ("damage", "shown", "code"),
    [
        (b"a\tb\x01 ", "a\tb\x01 ", "repaired"),
        (b"C:\\kernels\\new ", "C:\\kernels\new ", "repaired"),
        (b"\xff\xfe ", "\ufffd\ufffd ", "encoding"),
        (b"]}, {[ ", "]}, {[ ", ""),
    ],
)
def test_damaged_names_cost_no_event(damage: bytes, shown: str, code: str, corpus: Path, tmp_path: Path) -> None:
    text = text_of(corpus / "kineto/a100_graphs_rank0.json.gz").encode()
    whole = expected_rows(json.loads(text, parse_float=Decimal)["traceEvents"])
    text, changed = damage_names(text, damage, 600)
    path = tmp_path / "damaged"
    path.write_bytes(text)
    trace = open_trace(path)
    assert trace.quality.count("repaired") + trace.quality.count("encoding") == (changed if code else 0)
    assert not code or trace.quality.find(code)[0].first.startswith("at byte ")
    found = read_rows(trace)
    assert found["host_calls"] == whole["host_calls"]
    kernels = [name for _, _, name, *_ in found["kernels"].elements()]
    assert len(kernels) == sum(whole["kernels"].values())
    assert sum(name.startswith(shown) for name in kernels) == changed
