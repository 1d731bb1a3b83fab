"""A recording that was not closed gives back every whole batch of every producer, and says so."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc

from inspector.errors import InspectorError, Unreadable
from inspector.readers import recording
from inspector.readers.reader import silent
from inspector.trace import header
from inspector.trace.links import Links
from inspector.trace.save import save
from inspector.trace.schema import SCHEMAS
from inspector.trace.trace import Trace
from tests.readers.recordings import assert_equal, opened, use

BOOT = 5_000_000_000


def start(folder: Path, **said: Any) -> Path:
    folder.mkdir(exist_ok=True)
    anchors = [{"monotonic_ns": BOOT, "epoch_ns": 1_700_000_000_000_000_000}]
    (folder / header.NAME).write_text(json.dumps({"format": 1, "state": "recording", "clock": anchors, **said}))
    return folder


def names(folder: Path, producer: str, *batches: list[str]) -> None:
    schema = pa.schema([("text", pa.string())])
    with pa.OSFile(str(folder / f"{producer}.names.arrows"), "wb") as sink, ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_pydict({"text": batch}, schema))


def rows(folder: Path, producer: str, table: str, *batches: Mapping[str, Any]) -> Path:
    kinds = [(c.name, pa.from_numpy_dtype(np.dtype(c.dtype))) for c in SCHEMAS[table].columns if c.name in batches[0]]
    path = folder / f"{producer}.{table}.arrows"
    with pa.OSFile(str(path), "wb") as sink, ipc.new_stream(sink, pa.schema(kinds)) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_pydict(dict(batch), pa.schema(kinds)))
    return path


def producer(folder: Path, name: str, pid: int, kernel: str, times: list[list[int]]) -> None:
    """A process with one thread and stream on device 0, and its kernels, in batches, each 10 ns long."""
    names(folder, name, ["python"], [kernel, "launch"])
    rows(folder, name, "processes", {"pid": [pid], "name": [0], "rank": [-1]})
    rows(folder, name, "threads", {"process": [0], "tid": [1], "name": [-1]})
    rows(folder, name, "devices", {"number": [0], "name": [-1], "memory": [80]})
    rows(folder, name, "streams", {"process": [0], "device": [0], "number": [7], "name": [-1]})

    def some(batch: list[int], **more: list[int]) -> dict[str, list[int]]:
        size = len(batch)
        begin = [BOOT + time for time in batch]
        ids = [time + 1 for time in batch]
        return {
            "start": begin,
            "end": [t + 10 for t in begin],
            "correlation": ids,
            **{k: v * size for k, v in more.items()},
        }

    rows(folder, name, "kernels", *(some(batch, stream=[0], name=[1]) for batch in times))
    rows(folder, name, "host_calls", *(some(batch, thread=[0], name=[2]) for batch in times))


def kernel_times(trace: Trace, name: str) -> list[int]:
    mine = trace["kernels"]["name"] == trace.names.find(name)
    return (trace["kernels"]["start"][mine] + trace.info.origin_ns - BOOT).tolist()


def test_two_producers_are_one_trace(tmp_path: Path) -> None:
    folder = start(tmp_path / "a.inflight")
    producer(folder, "one", 11, "gemm", [[0, 100], [300]])
    producer(folder, "two", 22, "attention", [[50], [200, 250]])
    trace = opened(folder)
    assert kernel_times(trace, "gemm") == [0, 100, 300]
    assert kernel_times(trace, "attention") == [50, 200, 250]
    assert trace["processes"]["pid"].tolist() == [11, 22]
    assert len(trace["devices"]) == 1
    assert trace["devices"]["memory"].tolist() == [80]
    owners = trace["streams"]["process"][trace["kernels"]["stream"]]
    assert owners.tolist() == [0, 1, 0, 1, 1, 0]
    assert trace.index(Links).launch["kernels"].tolist() == list(range(6))
    assert trace.info.start_epoch_ns == 1_700_000_000_000_000_000
    assert trace.info.details["state"] == "recovered"
    assert [note.code for note in trace.quality.notes] == ["recovered"]
    save(trace, tmp_path / "b.inflight")
    assert_equal(opened(tmp_path / "b.inflight"), trace)


def test_iterations_that_came_out_of_order_keep_their_steps(tmp_path: Path) -> None:
    folder = start(tmp_path / "a.inflight")
    unknown = [c.name for c in SCHEMAS["iterations"].columns if c.name not in ("start", "end", "process", "iteration")]
    for name, number, times in (("one", 100, [30, 10, 20]), ("two", 200, [15, 5])):
        size = len(times)
        begin = [BOOT + time for time in times]
        columns = {
            "start": begin,
            "end": [begin[0] - 1, *(time + 1 for time in begin[1:])] if name == "two" else [t + 1 for t in begin],
            "process": [-1] * size,
            "iteration": [number + row for row in range(size)],
            **{key: [-1] * size for key in unknown},
        }
        rows(folder, name, "iterations", columns)
        request = {"request": [number], "arrival": [begin[-1]], "first_token": [begin[0]], "last_token": [begin[0]]}
        rows(folder, name, "requests", request | {"prompt_tokens": [1], "output_tokens": [1]})
        none = [-1] * size
        step = {"iteration": list(range(size)), "request": [0] * size, "phase": [1] * size, "tokens": list(range(size))}
        rows(folder, name, "steps", step | {"drafted": none, "accepted": none, "blocks": none})
    trace = opened(folder)
    steps, iterations, requests = trace["steps"], trace["iterations"], trace["requests"]
    assert iterations["iteration"].tolist() == [201, 101, 102, 100]
    assert requests["request"].tolist() == [200, 100]
    # The first iteration of "two" ended before it began: it is gone, and its step is of no iteration.
    assert [
        (int(requests["request"][request]), int(iterations["iteration"][iteration]) if iteration >= 0 else None)
        for request, iteration in zip(steps["request"], steps["iteration"], strict=True)
    ] == [(200, None), (200, 201), (100, 101), (100, 102), (100, 100)]
    assert trace.records("iterations") == 5


def test_references_to_what_was_not_flushed_are_unknown_and_counted(tmp_path: Path) -> None:
    folder = start(tmp_path / "a.inflight")
    producer(folder, "one", 11, "gemm", [[0, 100], [300]])
    (folder / "one.names.arrows").unlink()
    rows(folder, "one", "streams", {"process": [3], "device": [0], "number": [7], "name": [-1]})
    trace = opened(folder)
    assert trace["kernels"]["name"].tolist() == [-1, -1, -1]
    assert trace["streams"]["process"].tolist() == [-1]
    assert {note.text.split(":")[0]: note.count for note in trace.quality.find("truncated")} == {
        "processes.name": 1,
        "streams.process": 1,
        "kernels.name": 3,
        "host_calls.name": 3,
    }
    use(trace)


@settings(max_examples=60)
@given(st.data())
def test_a_stream_cut_anywhere_gives_its_whole_batches(data: st.DataObject) -> None:
    batches = [[0, 100], [300], [400, 500, 600]]
    with tempfile.TemporaryDirectory() as place:
        folder = start(Path(place) / "a.inflight")
        producer(folder, "one", 11, "gemm", batches)
        path = folder / "one.kernels.arrows"
        raw = path.read_bytes()
        cut = data.draw(st.integers(0, len(raw)), "cut")
        path.write_bytes(raw[:cut])
        trace = opened(folder)
        found = kernel_times(trace, "gemm")
        wanted: list[list[int]] = [
            [time for batch in batches[:count] for time in batch] for count in range(len(batches) + 1)
        ]
        assert found in wanted
        if cut == len(raw):
            assert found == wanted[-1]
            assert not trace.quality.count("truncated")
        # A batch more needs bytes more; the same bytes never give less.
        path.write_bytes(raw[: cut + 1])
        assert kernel_times(opened(folder), "gemm")[: len(found)] == found
        use(trace)


@settings(max_examples=80)
@given(st.data())
def test_flipped_bits_end_in_a_trace_or_an_error(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = start(Path(place) / "a.inflight")
        producer(folder, "one", 11, "gemm", [[0, 100], [300]])
        path = data.draw(st.sampled_from(sorted(folder.iterdir())), "file")
        raw = bytearray(path.read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=3), "bytes"):
            raw[at] ^= 1 << data.draw(st.integers(0, 7), "bit")
        path.write_bytes(raw)
        try:
            use(recording.read(folder, silent))
        except InspectorError:  # any other exception is a failure
            return


def test_clocks_that_part_are_noted(tmp_path: Path) -> None:
    anchors = [{"monotonic_ns": 0, "epoch_ns": 10**18}, {"monotonic_ns": 10**9, "epoch_ns": 10**18 + 10**9 + 2_000_000}]
    folder = start(tmp_path / "a.inflight", clock=anchors, state="recovered")
    producer(folder, "one", 11, "gemm", [[0]])
    trace = opened(folder)
    assert trace.quality.count("clock") == 1
    assert trace.info.start_epoch_ns == 10**18


@pytest.mark.parametrize("value", [1 << 62, -(1 << 62)])
def test_times_that_cannot_be(tmp_path: Path, value: int) -> None:
    folder = start(tmp_path / "a.inflight")
    rows(folder, "one", "marks", {"time": [value], "thread": [-1], "name": [-1], "domain": [-1]})
    with pytest.raises(Unreadable):
        opened(folder)


def test_an_empty_one_opens(tmp_path: Path) -> None:
    folder = start(tmp_path / "a.inflight")
    (folder / "one.kernels.arrows").write_bytes(b"")
    (folder / "one.nonsense.arrows").write_bytes(b"x")
    trace = opened(folder)
    assert trace.num_work() == 0
    use(trace)
