"""Events as nobody should write them: ids of any shape, numbers that do not fit, depth, bytes changed at random."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import Unreadable
from inspector.readers.kineto.numbers import integers
from tests.readers.kineto_events import call, kernel, opened


@pytest.mark.parametrize("ts", ["absent", None, "soon", [], 1e40, True])
def test_an_event_without_a_time_is_set_aside(ts: object, tmp_path: Path) -> None:
    events = [call(9, 10 * n, n + 1) for n in range(1, 4)]
    events.append({key: value for key, value in {**events[0], "ts": ts}.items() if value != "absent"})
    trace = opened(tmp_path, events)
    assert len(trace["host_calls"]) == 3
    assert trace.quality.count("unstamped") == 1
    (name,) = trace["rejected"]["name"].tolist()
    assert trace.names[name] == "cudaLaunchKernel"


def test_ids_of_any_shape_are_read(tmp_path: Path) -> None:
    odd = [None, True, 1.0, 2.5, "0x10", "17", " 18", "text", [1], {"a": 1}, 2**70, -3]
    events = [
        {"ph": "X", "cat": "c", "name": value, "pid": value, "tid": value, "ts": 1 + n, "dur": 1}
        for n, value in enumerate(odd)
    ]
    events += [{**event, "cat": value, "args": value} for event, value in zip(events, odd, strict=True)]
    trace = opened(tmp_path, events)
    assert len(trace["ranges"]) == 2 * len(odd)
    tids = set(trace["threads"]["tid"].tolist())
    assert {1, 16, 17, 18, -3} <= tids
    assert len(trace["threads"]) == len(tids)


def test_numbers_that_do_not_fit_are_counted_not_wrapped(tmp_path: Path) -> None:
    events = [call(9, 1, 1), kernel(0, 2, 1), kernel(2**40, 5, 1), kernel(0, 8, 1, context=2**33, bytes="many")]
    events.append({**kernel(0, 11, 1), "cat": "gpu_memcpy", "args": {"device": 0, "stream": 7, "bytes": "many"}})
    trace = opened(tmp_path, events)
    assert len(trace["kernels"]) == 3
    assert trace["kernels"].get("context").tolist() == [0, 0, 0]
    assert trace["memcpys"]["bytes"].tolist() == [-1]
    assert trace.device_of(trace["kernels"]["stream"]).tolist() == [0, -1, 0]
    assert trace.quality.count("invalid") == 3


@given(
    st.lists(
        st.none()
        | st.booleans()
        | st.integers(-(2**65), 2**65)
        | st.floats()
        | st.sampled_from(["7", "0x1f", "no", "", [1], {"a": 1}])
    )
)
def test_integers_equal_one_by_one(values: list[Any]) -> None:
    found, odd = integers(values, -1)
    expected, wrong = [], 0
    for value in values:
        number: int | None = None
        if isinstance(value, str):
            number = {"7": 7, "0x1f": 31}.get(value)
        elif isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
            number = int(value)
        if number is not None and abs(number) >= 2**62:
            number = None
        wrong += number is None and value is not None
        expected.append(-1 if number is None else number)
    assert found.tolist() == expected
    assert odd == wrong


@pytest.mark.parametrize("separators", [(",,", ""), (" ", ""), (", ", ",")])
def test_commas_too_many_or_too_few(separators: tuple[str, str], tmp_path: Path) -> None:
    between, after = separators
    texts = [
        json.dumps(event) for n in range(4) for event in (call(9, 10 * n + 1, n + 1), kernel(0, 10 * n + 3, n + 1))
    ]
    trace = opened(tmp_path, '{"traceEvents": [' + between.join(texts) + after + "]}")
    assert len(trace["kernels"]) == len(trace["host_calls"]) == 4
    assert trace.quality.count("repaired") == (7 if between != ", " else 1)
    assert trace.quality.count("invalid") == 0


@pytest.mark.parametrize(
    "text", ['{"traceEvents": [' + "[" * 100_000, '{"traceEvents": [' + '{"ph":' * 100_000, "[" * 100_000]
)
def test_depth_without_end_is_no_trace(text: str, tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        opened(tmp_path, text)


def test_deep_arguments_cost_their_event_only(tmp_path: Path) -> None:
    deep = json.dumps(call(9, 5, 9)).replace('"correlation"', '"deep": ' + "[" * 5000 + "]" * 5000 + ', "correlation"')
    texts = [json.dumps(call(9, 10, 1)), deep, json.dumps(call(9, 20, 2))]
    trace = opened(tmp_path, "[" + ",".join(texts) + "]")
    assert len(trace["host_calls"]) + trace.quality.count("invalid") == 3
    assert {1, 2} <= set(trace["host_calls"]["correlation"].tolist())


@pytest.mark.parametrize("seed", range(60))
def test_bytes_changed_at_random_never_break_the_reader(seed: int, tmp_path: Path) -> None:
    events = [event for n in range(30) for event in (call(9, 10 * n + 1, n + 1), kernel(0, 10 * n + 3.125, n + 1))]
    events += [{"ph": "C", "name": "queue", "pid": 9, "ts": 6, "args": {"waiting": 3}}]
    events += [{"ph": ph, "cat": "x", "name": "a", "id": 1, "pid": 9, "tid": 1, "ts": 7} for ph in "BEbesftiMSFnNOD"]
    text = bytearray(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode())
    draw = random.Random(seed)
    for _ in range(draw.choice((1, 3, 30, 300))):
        at = draw.randrange(len(text))
        kind = draw.randrange(3)
        if kind == 0:
            text[at] = draw.randrange(256)
        elif kind == 1:
            del text[at : at + draw.randrange(1, 20)]
        else:
            text[at:at] = bytes(draw.choices(b'{}[]",:\\0e-\xff', k=draw.randrange(1, 4)))
    try:
        trace = opened(tmp_path, bytes(text))
    except Unreadable:
        return
    assert len(trace["kernels"]) <= 31 * 2


def test_repairs_of_numbers_and_commas_leave_text_alone(tmp_path: Path) -> None:
    name = "f[1, nan, ], {inf,}"
    text = json.dumps([call(9, 1, 1), {**kernel(0, 3, 1), "name": name}]).replace(
        '"stream": 7', '"rate": nan, "stream": 7,'
    )
    trace = opened(
        tmp_path, text.replace('"stream": 7,,', '"stream": 7,').replace('"correlation": 1}}]', '"correlation": 1,}}]')
    )
    assert trace.names[int(trace["kernels"]["name"][0])] == name
    assert trace.quality.count("repaired") == 1
