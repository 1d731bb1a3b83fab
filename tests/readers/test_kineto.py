"""Kineto and Chrome JSON: exact times, every shape of event, and files as crashes and careless writers leave them."""

from __future__ import annotations

import gzip
import json
import zipfile
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.errors import Cancelled, Unreadable
from inspector.readers import open_trace
from inspector.readers.kineto.numbers import exact_ns
from inspector.readers.reader import Progress
from inspector.trace.links import Links
from inspector.trace.schema import RANGE_KINDS
from inspector.trace.trace import Trace


def opened(tmp_path: Path, text: str | bytes, name: str = "trace.json") -> Trace:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return open_trace(path)


def events(count: int = 5) -> list[dict[str, Any]]:
    """Launches and kernels that are easy to tell apart."""
    found: list[dict[str, Any]] = []
    for n in range(count):
        args = {"correlation": n + 1}
        common = {"ph": "X", "pid": 9, "tid": 9}
        found.append(
            {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 10 * n, "dur": 2, "args": args}
        )
        args = {**args, "device": 0, "stream": 7}
        found.append(
            {
                "ph": "X",
                "cat": "kernel",
                "name": f"k{n}",
                "pid": 0,
                "tid": 7,
                "ts": 10 * n + 3.5,
                "dur": 4.25,
                "args": args,
            }
        )
    return found


def kernels(trace: Trace) -> list[tuple[str, int, int]]:
    """(name, start, end) in the file's own ns."""
    table, origin = trace["kernels"], trace.info.origin_ns
    return [
        (trace.names[int(name)], int(start) + origin, int(end) + origin)
        for name, start, end in zip(table["name"], table["start"], table["end"], strict=True)
    ]


EXPECTED = [(f"k{n}", 10_000 * n + 3_500, 10_000 * n + 7_750) for n in range(5)]


@given(
    st.lists(
        st.decimals(min_value=-(10**12), max_value=10**15, places=None, allow_nan=False, allow_infinity=False),
        max_size=20,
    )
)
def test_times_are_exact(values: list[Decimal]) -> None:
    texts = [format(value, "f") if len(format(value, "f")) < 60 else str(value) for value in values]
    found, rounded, unreadable = exact_ns([text.encode() for text in texts])
    assert not unreadable.any()
    exact = [Fraction(text) * 1000 for text in texts]
    assert found.tolist() == [floor(x + Fraction(1, 2)) for x in exact]
    assert rounded == sum(int(ns) != x for ns, x in zip(found.tolist(), exact, strict=True))


def test_times_that_a_double_cannot_hold() -> None:
    texts = [b"1695751379466123.457", b"6912345678901.123", b"1.5e3", b'"12.25"', b"-0.5", b"0.0005", b"nonsense", b""]
    assert exact_ns(texts)[0].tolist() == [
        1695751379466123457,
        6912345678901123,
        1500000,
        12250,
        -500,
        1,
        0,
        0,
    ]


@pytest.mark.parametrize("form", ["object", "array", "gzip", "zip", "indented", "bom", "two gzip members"])
def test_forms(form: str, tmp_path: Path) -> None:
    text = json.dumps({"schemaVersion": 1, "traceEvents": events(), "traceName": "x"})
    data = text.encode()
    if form == "array":
        data = json.dumps(events()).encode()
    elif form == "indented":
        data = json.dumps({"traceEvents": events()}, indent=2).encode()
    elif form == "bom":
        data = b"\xef\xbb\xbf" + data
    elif form == "gzip":
        data = gzip.compress(data)
    elif form == "two gzip members":
        data = gzip.compress(data[:300]) + gzip.compress(data[300:])
    path = tmp_path / "unknown"
    if form == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("trace.json", data)
    else:
        path.write_bytes(data)
    trace = open_trace(path)
    assert kernels(trace) == EXPECTED
    assert trace.quality.notes == []
    links = trace.index(Links).launch["kernels"]
    assert trace["host_calls"]["start"][links].tolist() == [10_000 * n for n in range(5)]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_complete_event_before_a_cut_is_read(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    indent = data.draw(st.sampled_from([None, 1]))
    name = data.draw(st.sampled_from(["plain", 'quo"te', "brackets ]}]", "back\\slash", "end\\"]))
    listed = events()
    listed[3]["name"] = listed[-1]["name"] = name
    text = json.dumps({"traceEvents": listed}, indent=indent)
    first = text.index("[") + 1
    cut = data.draw(st.integers(first, len(text) - 1))
    whole, decoder, at = [], json.JSONDecoder(), first
    while True:
        while at < cut and text[at] in " \n,":
            at += 1
        try:
            event, at = decoder.raw_decode(text[:cut], at)
        except ValueError:
            break
        whole.append(event)
    path = tmp_path_factory.mktemp("cut") / "cut.json"
    path.write_text(text[:cut])
    if not whole:
        with pytest.raises(Unreadable):
            open_trace(path)
        return
    trace = open_trace(path)
    assert [k[0] for k in kernels(trace)] == [event["name"] for event in whole if event["cat"] == "kernel"]
    assert len(trace["host_calls"]) == sum(event["cat"] == "cuda_runtime" for event in whole)
    assert trace.quality.count("truncated") == 1
    assert trace.quality.count("invalid") == 0


@pytest.mark.parametrize(
    ("name", "shown", "code"),
    [
        (b"tab\there", "tab\there", "repaired"),
        (b"line\nbreak", "line\nbreak", "repaired"),
        (b"C:\\odd\\path", "C:\\odd\\path", "repaired"),
        (b"latin \xe9", "latin \ufffd", "encoding"),
        (b"half \\ud83d of one", "half \ufffd of one", "repaired"),
        (b"whole \\ud83d\\ude00", "whole \U0001f600", ""),
        (b"path \\\\ud83d \\q", "path \\ud83d \\q", "repaired"),
        (b"both \xe9\tx", "both \ufffd\tx", "repaired"),
        (b"ends with \\", "ends with \\", "repaired"),
        (b"ends with \\\\", "ends with \\", ""),
        (b'escaped \\"quotes\\"', 'escaped "quotes"', ""),
        (b"brackets }, {", "brackets }, {", ""),
        (b'looks like }, {\\"ph\\": ', 'looks like }, {"ph": ', ""),
    ],
)
@pytest.mark.parametrize("row", [1, 3, 9])
def test_names_as_careless_writers_leave_them(name: bytes, shown: str, code: str, row: int, tmp_path: Path) -> None:
    listed = events()
    listed[row]["name"] = "@"
    text = json.dumps({"traceEvents": listed}).encode().replace(b'"@"', b'"' + name + b'"')
    trace = opened(tmp_path, text)
    expected = [*EXPECTED]
    expected[row // 2] = (shown, *EXPECTED[row // 2][1:])
    assert kernels(trace) == expected
    assert {note.code: note.count for note in trace.quality.notes} == ({code: 1} if code else {})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"dur": 4.25', '"dur": 4.25,'),
        ('"stream": 7}', '"stream": 7, "occupancy": nan}'),
        ('"stream": 7}', '"stream": 7, "rate": inf, "low": -Infinity}'),
        ('"stream": 7}', '"stream": 7,}'),
    ],
)
def test_numbers_and_commas_that_json_does_not_have(before: str, after: str, tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": events()}).replace(
        ', "args": {"correlation": 3, "device"', ', "args": {"correlation": 3, "device"'
    )
    damaged = text.replace(before, after, 2) if after.endswith(",") is False else text.replace(before + ",", after, 2)
    if damaged == text or after == '"dur": 4.25,':
        damaged = text.replace("}]}", "},]}")
        assert kernels(opened(tmp_path, damaged)) == EXPECTED
        return
    trace = opened(tmp_path, damaged)
    assert kernels(trace) == EXPECTED
    assert trace.quality.count("repaired") == 2


def test_an_event_beyond_repair_is_counted_and_the_rest_read(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": events()}).replace('"name": "k2"', '"name": k2 oops')
    trace = opened(tmp_path, text)
    assert [name for name, *_ in kernels(trace)] == ["k0", "k1", "k3", "k4"]
    assert trace.quality.count("invalid") == 1


def test_string_ids_begin_end_counters_instants_and_flows(tmp_path: Path) -> None:
    listed = [
        {"ph": "M", "name": "process_name", "pid": 5, "args": {"name": "server"}},
        {"ph": "M", "name": "thread_name", "pid": 5, "tid": 6, "args": {"name": "thread 6 (main)"}},
        {"ph": "B", "name": "outer", "pid": 5, "tid": 6, "ts": 0},
        {"ph": "B", "name": "inner", "pid": 5, "tid": 6, "ts": 1},
        {"ph": "E", "pid": 5, "tid": 6, "ts": 2},
        {"ph": "E", "pid": 5, "tid": 6, "ts": 4},
        {"ph": "B", "name": "open", "pid": 5, "tid": 6, "ts": 5},
        {"ph": "b", "cat": "req", "id": "a", "name": "r1", "pid": 5, "tid": 6, "ts": 1},
        {"ph": "b", "cat": "req", "id": "b", "name": "r2", "pid": 5, "tid": 6, "ts": 2},
        {"ph": "e", "cat": "req", "id": "a", "name": "r1", "pid": 5, "tid": 6, "ts": 7},
        {"ph": "e", "cat": "req", "id": "b", "name": "r2", "pid": 5, "tid": 6, "ts": 9},
        {"ph": "C", "name": "queue", "pid": 5, "ts": 3, "args": {"waiting": 2, "running": 4}},
        {"ph": "C", "name": "load", "pid": 5, "ts": 4, "args": {"value": 0.5}},
        {"ph": "i", "name": "tick", "pid": "worker", "tid": "loop", "ts": 3, "s": "t"},
        {"ph": "X", "name": "work", "pid": "worker", "tid": "loop", "ts": 3, "dur": 2},
        {"ph": "s", "cat": "fwdbwd", "id": 1, "name": "f", "pid": 5, "tid": 6, "ts": 1},
        {"ph": "f", "cat": "fwdbwd", "id": 1, "name": "f", "pid": "worker", "tid": "loop", "ts": 4},
    ]
    trace = opened(tmp_path, json.dumps(listed))
    ranges, names = trace["ranges"], trace.names
    found = {
        names[int(n)]: (int(s), int(e)) for n, s, e in zip(ranges["name"], ranges["start"], ranges["end"], strict=True)
    }
    assert found == {
        "outer": (0, 4000),
        "inner": (1000, 2000),
        "open": (5000, 9000),
        "r1": (1000, 7000),
        "r2": (2000, 9000),
        "work": (3000, 5000),
    }
    assert trace.quality.count("unclosed") == 1
    series, counters = trace["series"], trace["counters"]
    assert [
        (names[int(series["name"][s])], float(v)) for s, v in zip(counters["series"], counters["value"], strict=True)
    ] == [("queue waiting", 2.0), ("queue running", 4.0), ("load", 0.5)]
    assert [names[int(n)] for n in trace["marks"]["name"]] == ["tick"]
    assert [names[int(n)] for n in trace["processes"]["name"]] == ["server", "worker"]
    assert "main" in [names[int(n)] for n in trace["threads"]["name"]]
    assert [(int(s), int(e)) for s, e in zip(trace["flows"]["start"], trace["flows"]["end"], strict=True)] == [
        (1000, 4000)
    ]
    assert trace.info.producer == "Chrome trace"


def test_events_stamped_zero_are_set_aside(tmp_path: Path) -> None:
    listed = [{**event, "ts": event["ts"] + 1_600_000_000_000_000} for event in events()]
    for row in (1, 2):
        listed[row]["ts"] = 0
    trace = opened(tmp_path, json.dumps(listed))
    assert len(trace["kernels"]) == 4
    assert trace.quality.count("unstamped") == 2
    assert trace.records("kernels") == 5
    assert trace.info.start_epoch_ns == trace.info.origin_ns


def test_nodes_of_a_graph_launch_are_numbered(tmp_path: Path) -> None:
    listed = events(3)
    listed[2]["name"] = "cudaGraphLaunch"
    for row in (3, 5):
        listed[row]["args"]["correlation"] = 2
    trace = opened(tmp_path, json.dumps(listed))
    assert trace["kernels"]["graph_node"].tolist() == [0, 1, 2]
    assert trace.quality.count("assumed") == 2


def test_ranks_stacks_and_devices_of_a_profiler_trace(tmp_path: Path) -> None:
    listed = events(1)
    listed += [
        {"ph": "X", "cat": cat, "name": cat, "pid": 9, "tid": 9, "ts": 0, "dur": 1}
        for cat in ("cpu_op", "user_annotation", "python_function", "gpu_user_annotation", "overhead", "odd")
    ]
    head = {
        "schemaVersion": 1,
        "distributedInfo": {"rank": 3, "world_size": 8, "backend": "nccl", "pg_config": [{"pg_desc": "tp"}]},
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 80, "numSms": 132}],
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "cupti_version": 22,
    }
    trace = opened(tmp_path, json.dumps({**head, "traceEvents": listed}))
    kinds = {
        trace.names[int(n)]: RANGE_KINDS[k]
        for n, k in zip(trace["ranges"]["name"], trace["ranges"]["kind"], strict=True)
    }
    assert kinds == {
        "cpu_op": "operator",
        "user_annotation": "annotation",
        "python_function": "python",
        "odd": "other",
    }
    assert trace["processes"]["rank"].tolist() == [3]
    assert trace.device_name(0) == "GPU 0 · NVIDIA H100"
    assert trace.info.start_epoch_ns == 1_700_000_000_000_000_000
    assert trace.info.producer == "PyTorch profiler (CUPTI 22)"
    assert trace.info.details["world size"] == "8"
    assert len(trace["overheads"]) == 1
    assert trace.quality.count("ignored") == 1


@pytest.mark.parametrize(
    "text",
    ["{}", "[]", "[1, 2]", '{"a": 1}', "hello", '{"traceEvents": 5}', '[{"name": "no phase"}]', '{"traceEvents": ['],
)
def test_what_is_no_trace(text: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        opened(tmp_path, text)


def test_an_empty_event_list_is_an_empty_trace(tmp_path: Path) -> None:
    trace = opened(tmp_path, '{"schemaVersion": 1, "traceEvents": []}')
    assert trace.num_work() == 0
    assert "CUDA" in trace.info.missing["kernels"]


def test_damaged_gzip_gives_what_can_be_unpacked(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps({"traceEvents": events(4000)}).encode())
    trace = opened(tmp_path, packed[: len(packed) // 2])
    assert 100 < len(trace["kernels"]) < 4000
    assert trace.quality.count("truncated") == 1


def test_cancel_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    path.write_text(json.dumps({"traceEvents": events(40_000)}))

    def stop(progress: Progress) -> None:
        assert 0 < progress.done <= progress.total
        raise Cancelled

    with pytest.raises(Cancelled):
        open_trace(path, report=stop)


def test_chunks_do_not_change_what_is_read(tmp_path: Path) -> None:
    trace = opened(tmp_path, json.dumps({"traceEvents": events(40_000)}))
    assert len(trace["kernels"]) == len(trace["host_calls"]) == 40_000
    assert np.all(trace["kernels"]["end"] - trace["kernels"]["start"] == 4250)
    assert trace.quality.notes == []


def test_a_long_name_that_is_cut_off_takes_no_time(tmp_path: Path) -> None:
    listed = events()
    listed[-1]["name"] = "void at::native::" * 20_000
    text = json.dumps({"traceEvents": listed})
    trace = opened(tmp_path, text[: len(text) - 100_000])
    assert [name for name, *_ in kernels(trace)] == ["k0", "k1", "k2", "k3"]


@pytest.mark.parametrize("packing", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_damaged_zip_is_said(packing: int, tmp_path: Path) -> None:
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(path, "w", packing) as archive:
        archive.writestr("trace.json", json.dumps({"traceEvents": events(2000)}))
    packed = bytearray(path.read_bytes())
    for at in range(200, 260):
        packed[at] ^= 0x5A
    path.write_bytes(packed)
    try:
        trace = open_trace(path)
    except Unreadable:
        return
    assert trace.quality.count("truncated") + trace.quality.count("invalid") > 0
