"""Names of ranges come from elsewhere: figures in them that cannot be are no iterations, and no error."""

from __future__ import annotations

import pytest

from inspector.analysis.iterations import Iterations
from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo


def named(text: str) -> Trace:
    builder = Builder()
    device, process = builder.device(number=0, name="gpu"), builder.process(pid=1, name="p")
    stream, thread = builder.stream(process=process, device=device, number=7), builder.thread(process, 1, "t")
    builder.add("kernels", start=[5], end=[10], stream=stream, correlation=0, name=builder.names.add("k"))
    builder.add("ranges", start=[0], end=[40], thread=thread, name=builder.names.add(text), kind=0, domain=-1)
    return builder.build(TraceInfo((), "recording"))


@pytest.mark.parametrize(
    "text",
    [
        f"ProfilerStep#{'9' * 5000}",
        f"ProfilerStep#{'9' * 25}",
        "ProfilerStep#\u0661\u0662",
        "[Executor] _forward_step 1: 99999999999 ctx reqs, 3 gen reqs",
    ],
)
def test_impossible_numbers_name_no_iteration(text: str) -> None:
    assert not len(named(text).index(Iterations).number)


def test_possible_ones_do() -> None:
    found = named("[Executor] _forward_step 12: 1 ctx reqs, 3 gen reqs").index(Iterations)
    assert found.number.tolist() == [12]
    assert found.generation.tolist() == [3]


def test_a_step_of_impossible_size_is_one_of_unknown_size() -> None:
    found = named("step[DECODE bs=99999999999999999999999]").index(Iterations)
    assert found.generation.tolist() == [-1]
