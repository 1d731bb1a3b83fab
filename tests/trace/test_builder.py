from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.builder import Builder
from inspector.trace.schema import NEVER, REJECTIONS, SCHEMAS
from inspector.trace.trace import Trace, TraceInfo

INFO = TraceInfo(("here",), "test", start_epoch_ns=1_000)
DAY = 86_400 * 10**9


def builder() -> Builder:
    """One process, device and stream, each row 0."""
    made = Builder()
    made.stream(made.process(1), made.device(0), 7)
    made.thread(0, 1)
    return made


def kernels(made: Builder, spans: list[tuple[int, int]], **more: Any) -> None:
    start, end = (list(times) for times in zip(*spans, strict=True))
    made.add("kernels", start=start, end=end, **{"stream": 0, "name": -1, "correlation": 0, **more})


def rejected(trace: Trace) -> list[tuple[int, int, str, str]]:
    """(start, end, table, reason) in file time."""
    rows = trace["rejected"]
    return [
        (start + trace.info.origin_ns, end + trace.info.origin_ns, list(SCHEMAS)[table], REJECTIONS[reason])
        for start, end, table, reason in zip(
            *(rows[key].tolist() for key in ("start", "end", "table", "reason")), strict=True
        )
    ]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 30), st.integers(-4, 4), st.booleans()), min_size=1, max_size=5), max_size=5
    )
)
def test_chunks_become_one_sorted_table_and_what_is_reversed_is_set_aside(
    chunks: list[list[tuple[int, int, bool]]],
) -> None:
    made = builder()
    number = 0
    wanted, wrong = [], []
    for chunk in chunks:
        numbers = list(range(number, number + len(chunk)))
        number += len(chunk)
        optional = {"graph_node": [n + 100 for n in numbers]} if chunk[0][2] else {}
        kernels(made, [(start, start + length) for start, length, _ in chunk], correlation=numbers, **optional)
        for n, (start, length, _) in zip(numbers, chunk, strict=True):
            if length >= 0:
                wanted.append((start, start + length, n, n + 100 if optional else 0))
            else:
                wrong.append((start, start + length))
    wanted.sort(key=lambda row: row[0])
    trace = made.build(INFO)
    table = trace["kernels"]
    origin = trace.info.origin_ns
    # A late end that three later kernels contradict is set aside, too: not the subject here.
    gone = {row[:2] for row in rejected(trace) if row[3] == "end contradicted"}
    found = list(
        zip(
            (table["start"] + origin).tolist(),
            (table["end"] + origin).tolist(),
            table["correlation"].tolist(),
            table.get("graph_node").tolist(),
            strict=True,
        )
    )
    assert found == [row for row in wanted if row[:2] not in gone or row in found]
    assert [row[:2] for row in rejected(trace) if row[3] == "ends before it starts"] == wrong
    assert trace.quality.count("reversed") == len(wrong)
    assert trace.records("kernels") == number
    assert origin == (found[0][0] if found else 0)


def test_times_are_counted_from_the_first_record() -> None:
    made = builder()
    kernels(made, [(5_000, 5_100)])
    made.add("marks", time=4_000, thread=0, name=-1, domain=-1)
    trace = made.build(INFO)
    assert trace["kernels"]["start"].tolist() == [1_000]
    assert trace["marks"]["time"].tolist() == [0]
    assert (trace.info.origin_ns, trace.info.duration_ns, trace.info.start_epoch_ns) == (4_000, 1_100, 5_000)
    assert trace.end_ns == 1_100


def test_work_outside_the_session_is_set_aside_and_ranges_that_were_open_stay() -> None:
    made = builder()
    kernels(made, [(90, 110), (100, 120), (130, 140)])
    for start, end in ((50, 100), (60, 150)):
        made.add("ranges", start=start, end=end, thread=0, name=-1, kind=0, domain=-1)
    trace = made.build(INFO, session_start=100)
    assert rejected(trace) == [
        (90, 110, "kernels", "outside the session"),
        (50, 100, "ranges", "outside the session"),
    ]
    assert trace.info.origin_ns == 100
    assert trace["ranges"]["start"].tolist() == [-40]
    assert trace.quality.count("outside") == 3


def test_another_clock_is_set_aside() -> None:
    made = builder()
    kernels(made, [(10, 20), (30, 40), (50, 60), (3 * DAY, 3 * DAY + 5), (-3 * DAY, 70)])
    trace = made.build(INFO)
    assert trace["kernels"]["start"].tolist() == [0, 20, 40]
    assert sorted(row[0] for row in rejected(trace)) == [-3 * DAY, 3 * DAY]
    assert trace.info.duration_ns == 50


def test_a_far_off_start_in_int64_does_not_wrap() -> None:
    made = builder()
    kernels(made, [(10, 20), (30, 40), (2**62, 2**62 + 1), (-(2**62), 0)])
    trace = made.build(INFO)
    assert trace["kernels"]["start"].tolist() == [0, 20]


CONTRADICTED = [(0, 100), (10, 12), (20, 22), (30, 32), (200, 210)]


def test_an_end_that_three_later_kernels_contradict() -> None:
    made = builder()
    kernels(made, CONTRADICTED)
    trace = made.build(INFO)
    assert rejected(trace) == [(0, 100, "kernels", "end contradicted")]
    assert trace["kernels"]["start"].tolist() == [0, 10, 20, 190]
    assert trace.quality.count("contradicted") == 1


@pytest.mark.parametrize(
    "more",
    [
        {"stream": [0, 1, 1, 1, 1]},
        {"context": [1, 2, 2, 2, 2]},
        {"correlation": 5, "graph_node": [1, 2, 3, 4, 5]},
    ],
    ids=["other streams", "other contexts", "nodes of one launch"],
)
def test_an_overlap_that_contradicts_nothing(more: dict[str, Any]) -> None:
    made = builder()
    made.stream(0, 0, 13)
    kernels(made, CONTRADICTED, **more)
    assert len(made.build(INFO)["kernels"]) == 5


def test_two_overlaps_are_ordinary() -> None:
    made = builder()
    kernels(made, [(0, 25), *CONTRADICTED[1:]])
    assert len(made.build(INFO)["kernels"]) == 5


def test_times_that_never_came_stay_never() -> None:
    made = builder()
    made.add(
        "requests", request=[1, 2], arrival=[50, 40], first_token=[60, NEVER], last_token=NEVER, prompt_tokens=1,
        output_tokens=0,
    )  # fmt: skip
    made.add("event_records", stream=0, correlation=0, event=1, time=[70])
    made.add("event_records", stream=0, correlation=0, event=2)
    trace = made.build(INFO)
    assert trace["requests"]["first_token"].tolist() == [NEVER, 20]
    assert trace["requests"]["last_token"].tolist() == [NEVER, NEVER]
    assert trace["event_records"]["time"].tolist() == [30, NEVER]


def test_what_must_be_there() -> None:
    made = builder()
    kernels(made, [(0, 1)])
    made.add("kernels", start=[5], end=[6], stream=0, name=-1)
    with pytest.raises(ValueError, match=r"kernels\.correlation is not optional"):
        made.build(INFO)
    with pytest.raises(ValueError, match="2 rows, not 3"):
        made.add("marks", time=[1, 2, 3], thread=[0, 0], name=-1, domain=-1)
    with pytest.raises(KeyError):
        made.add("marks", colour=[1])


def test_keys_are_looked_up_and_learnt() -> None:
    made = Builder()
    process = made.process(7)
    assert made.process(7, "python", rank=3) == process
    assert made.process(7) == process
    assert made.thread(process, 7) == made.thread(process, 7, "main") == 0
    assert made.thread(made.process(8), 7) == 1
    assert made.device(4, "H100", memory=80) == made.device(4)
    assert [made.stream(0, 0, 7), made.stream(1, 0, 7), made.stream(0, 0, 7)] == [0, 1, 0]
    assert made.series("power", "W", device=0) != made.series("power", "W")
    trace = made.build(INFO)
    assert trace.process_name(0) == "rank 3 · python 7"
    assert trace["processes"]["rank"].tolist() == [3, -1]
    assert trace["devices"]["memory"].tolist() == [80]
    assert trace.device_name(0) == "GPU 4 · H100"
    assert trace.thread_name(0) == "main 7"
    assert trace.thread_name(-1) == ""
    assert trace.stream_name(0) == "stream 7"


@pytest.mark.parametrize(
    ("device", "name"),
    [
        ("CPU stage 1 (no GPU)", "stage 1 forward passes"),
        ("CPU draft model (no GPU)", "draft model forward passes"),
        ("CPU core", "stream 0"),
    ],
)
def test_a_stream_without_a_gpu_is_called_by_what_ran(device: str, name: str) -> None:
    made = Builder()
    made.stream(made.process(7), made.device(0, device), 0)
    assert made.build(INFO).stream_name(0) == name


def test_an_unknown_stream_is_of_no_device() -> None:
    made = builder()
    kernels(made, [(0, 1), (2, 3)], stream=[-1, 0])
    trace = made.build(INFO)
    assert trace.device_of(trace["kernels"]["stream"]).tolist() == [-1, 0]
    assert trace.device_of(np.empty(0, np.int32)).tolist() == []


def test_nothing_at_all() -> None:
    trace = Builder().build(INFO)
    assert (trace.num_work(), trace.info.duration_ns, trace.nbytes()) == (0, 0, 0)
    assert all(len(table) == 0 for table in trace.tables.values())
