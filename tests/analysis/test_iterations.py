"""Iterations from TensorRT-LLM's three spellings, torch steps, and the kernel sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.busy import busy
from inspector.analysis.causes import CAUSES
from inspector.analysis.iterations import Iterations, iterations
from inspector.analysis.sequence import find_period
from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo
from inspector.trace.work import Work

SPELLINGS = {
    "1.0": "[Executor] _forward_step: {c} ctx reqs, {g} gen reqs",
    "1.2": "[Executor] _forward_step {n}: {c} ctx reqs, {g} gen reqs",
    "main": "[Executor] _forward_step {n}: {c} ctx reqs, 77 ctx tokens, {g} gen reqs",
}
BATCHES = [(2, 0), (1, 3), (0, 4), (0, 0)]


def steps(names: list[str], kernels: int = 2) -> Trace:
    """Steps of 1000 ns, the first 600 in the range; kernels are launched in it and run after it, into the next."""
    builder = Builder()
    process = builder.process(1)
    thread, stream = builder.thread(process, 1), builder.stream(process, builder.device(0), 7)
    for at, name in enumerate(names):
        start = 1000 * at
        text = builder.names.add(name)
        builder.add("ranges", start=start, end=start + 600, thread=thread, name=text, kind=0, domain=-1)
        for k in range(kernels):
            launch, ran = start + 100 + 100 * k, start + 900 + 200 * k
            link = 10 * at + k + 1
            call = builder.names.add("cudaLaunchKernel")
            builder.add("host_calls", start=launch, end=launch + 50, thread=thread, name=call, correlation=link)
            kernel = builder.names.add(f"k{k}")
            builder.add("kernels", start=ran, end=ran + 150, stream=stream, name=kernel, correlation=link)
    return builder.build(TraceInfo(paths=("steps",), kind="test"))


@pytest.mark.parametrize("version", SPELLINGS)
def test_executor_ranges(version: str) -> None:
    names = [SPELLINGS[version].format(n=17 + at, c=c, g=g) for at, (c, g) in enumerate(BATCHES)]
    trace = steps(names)
    found = trace.index(Iterations)
    assert found.source == "executor ranges"
    assert found.number.tolist() == ([0, 1, 2, 3] if version == "1.0" else [17, 18, 19, 20])
    assert [found.kind(row) for row in range(4)] == ["context", "mixed", "generation", "empty"]
    assert found.start.tolist() == [0, 1000, 2000, 3000]
    assert found.end.tolist() == [1000, 2000, 3000, 3600]
    assert found.host_ns.tolist() == [600] * 4
    figures = iterations(trace)
    # Work belongs to the step that launched it, although it runs under the next one's range.
    assert figures.work.tolist() == [2] * 4
    assert figures.busy_ns.tolist() == [300] * 4
    assert figures.idle_by_cause_ns.shape == (4, len(CAUSES))
    assert int(figures.idle_ns.sum() + figures.outside_ns.sum()) == busy(trace, 0).idle_ns


def test_profiler_steps() -> None:
    found = steps(["ProfilerStep#5", "ProfilerStep#6"]).index(Iterations)
    assert (found.source, found.number.tolist(), found.kind(0)) == ("profiler steps", [5, 6], "")


def test_annotations_of_other_engines() -> None:
    names = ["step[EXTEND bs=15 toks=15360]", "step[DECODE bs=4]", "execute_32_context_1(sq0sk0)_generation_31(sq32)"]
    found = steps(names).index(Iterations)
    assert list(zip(found.context.tolist(), found.generation.tolist(), strict=True)) == [(15, 0), (0, 4), (1, 31)]


def test_kernel_sequence_is_used_when_nothing_else_tells() -> None:
    trace = steps(["other"] * 6, kernels=4)
    found = trace.index(Iterations)
    assert (found.source, len(found)) == ("kernel sequence", 6)
    assert found.confidence >= 0.8
    assert found.start.tolist() == sorted(trace["kernels"]["start"][trace["kernels"]["name"] == trace.names.find("k0")])


def test_nothing_repeats() -> None:
    found = steps(["other"], kernels=4).index(Iterations)
    assert (found.source, len(found), found.confidence) == ("none", 0, 0.0)
    assert iterations(steps(["other"], kernels=4)).outside_ns.tolist() == [150]


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.integers(4, 6),
    st.lists(st.integers(6, 9), max_size=2),
)
def test_a_repeated_pattern_is_found_whole(pattern: list[int], times: int, before: list[int]) -> None:
    pattern = [*pattern, 10]  # a kernel that each repeat has once
    first, confidence = find_period(np.array(before + pattern * times))
    # What stands before the first repeat may cost one repeat, never more.
    assert confidence >= len(pattern) * (times - 1) / (len(pattern) * times + len(before)) - 1e-9
    assert len(first) == times
    assert set(np.diff(first).tolist()) == {len(pattern)}


def test_random_kernels_are_not_called_iterations() -> None:
    names = np.random.default_rng(1).integers(0, 40, 4000)
    assert find_period(names)[1] < 0.8


def test_kernels_without_a_name_and_steps_without_a_thread() -> None:
    first, confidence = find_period(np.array([-1, 2, 3] * 5))
    assert (first.tolist(), confidence) == ([0, 3, 6, 9, 12], 1.0)
    builder = Builder()
    name = builder.names.add("ProfilerStep#1")
    builder.add("ranges", start=[0], end=[5], thread=-1, name=name, kind=0, domain=-1)
    assert builder.build(TraceInfo(paths=("x",), kind="test")).index(Iterations).source == "none"


def test_work_of_a_pipeline_stage_belongs_to_the_iterations_of_the_engine() -> None:
    builder = Builder()
    engine, stage, other = (builder.process(pid) for pid in (1, 2, 3))
    for number in range(3):
        start = 1000 * number
        builder.add(
            "iterations", process=engine, start=start, end=start + 800, iteration=7 + number, context_requests=0,
            generation_requests=1, queued_requests=0, paused_requests=0, tokens=1, used_blocks=0, free_blocks=0,
            reused_blocks=0, missed_blocks=0,
        )  # fmt: skip
        builder.add(
            "stage_work", start=start + 300, end=start + 500, process=stage, stage=1, iteration=7 + number,
            micro_batch=0, cpu=-1,
        )  # fmt: skip
        for device, process in enumerate((engine, stage, other)):
            stream, thread = builder.stream(process, builder.device(device), 0), builder.thread(process, process + 1)
            name, span = builder.names.add("forward"), {"start": start + 300, "end": start + 500}
            builder.add("host_calls", **span, thread=thread, name=name, correlation=number + 1)
            builder.add("kernels", **span, stream=stream, name=name, correlation=number + 1)
    trace = builder.build(TraceInfo((), "recording"))
    found, work = trace.index(Iterations), trace.index(Work).devices
    assert found.of_work(trace, work[0]).tolist() == [0, 1, 2]
    assert found.of_work(trace, work[1]).tolist() == [0, 1, 2]
    # A process that is no stage has no iterations.
    assert found.of_work(trace, work[2]).tolist() == [-1, -1, -1]
