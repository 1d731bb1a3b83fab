"""Runs of equal phase and times between tokens, against walks through the steps one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.steps import FINISHED, PAUSED, SKIPPED, Steps
from inspector.trace.builder import Builder
from inspector.trace.schema import PHASES
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import MS, Setup, engine_trace

Cell = tuple[int, int, str]  # iteration, request, phase
REQUESTS, ITERATIONS = 3, 8


def steps_trace(cells: list[Cell], processes: list[int]) -> Trace:
    """Iterations of 10 ns each, of those processes; each step gives one token."""
    builder = Builder()
    rows = [builder.process(100 + each) for each in processes]
    count = len(processes)
    builder.add(
        "iterations",
        start=[10 * at for at in range(count)],
        end=[10 * at + 7 for at in range(count)],
        process=rows,
        iteration=list(range(count)),
        **dict.fromkeys(
            (
                "context_requests",
                "generation_requests",
                "paused_requests",
                "queued_requests",
                "tokens",
                "used_blocks",
                "free_blocks",
                "reused_blocks",
                "missed_blocks",
            ),
            -1,
        ),
    )
    builder.add(
        "requests",
        request=list(range(REQUESTS)),
        arrival=[0] * REQUESTS,
        first_token=5,
        last_token=6,
        prompt_tokens=1,
        output_tokens=1,
    )
    if cells:
        builder.add(
            "steps",
            iteration=[cell[0] for cell in cells],
            request=[cell[1] for cell in cells],
            phase=[PHASES.index(cell[2]) for cell in cells],
            tokens=1,
            drafted=0,
            accepted=0,
            blocks=1,
            emitted=[int(cell[2] == "generation") for cell in cells],
        )
    return builder.build(TraceInfo(("t",), "recording"))


def drawn(runs: object) -> set[tuple[int, int, int]]:
    """(request, ordinal, phase) of every cell that a run covers; the runs of a request must not overlap."""
    cells: set[tuple[int, int, int]] = set()
    for request, first, last, phase in zip(runs.request, runs.first, runs.last, runs.phase, strict=True):  # type: ignore[attr-defined]
        for at in range(first, last):
            cell = (int(request), at, int(phase))
            assert cell not in cells
            cells.add(cell)
    return cells


def walked(cells: list[Cell], ordinal: list[int]) -> set[tuple[int, int, int]]:
    """The same, one request and one iteration after the other."""
    found: set[tuple[int, int, int]] = set()
    for request in range(REQUESTS):
        mine = {ordinal[at]: phase for at, who, phase in cells if who == request and phase != "finished"}
        paused = False
        for at in range(min(mine, default=0), max(mine, default=-1) + 1):
            if at in mine:
                paused = mine[at] == "paused"
                found.add((request, at, PHASES.index(mine[at])))
            else:
                found.add((request, at, PAUSED if paused else SKIPPED))
    return found


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Cell], list[int]]:
    count = draw(st.integers(1, ITERATIONS))
    processes = draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    owner = draw(st.lists(st.integers(0, 1), min_size=REQUESTS, max_size=REQUESTS))
    cells: list[Cell] = []
    for at in range(count):
        for request in range(REQUESTS):
            if owner[request] == processes[at]:
                phase = draw(st.sampled_from(["", "context", "generation", "generation", "paused"]))
                cells += [(at, request, phase)] if phase else []
    return cells, processes


@settings(max_examples=150, deadline=None)
@given(histories(), st.integers(0, ITERATIONS))
def test_runs_are_those_of_a_walk_and_growing_makes_no_difference(
    history: tuple[list[Cell], list[int]], cut: int
) -> None:
    cells, processes = history
    trace = steps_trace(cells, processes)
    ordinal = [processes[:at].count(each) for at, each in enumerate(processes)]
    whole = Steps.build(trace)
    assert drawn(whole.runs) == walked(cells, ordinal)
    at = min(cut, len(processes))
    early = steps_trace([cell for cell in cells if cell[0] < at], processes[:at]) if at else None
    if early is not None:
        # Processes are numbered as they come, so a trace that has seen fewer may number them in another way.
        grown = Steps.extend(Steps.build(early), trace)
        assert drawn(grown.runs) == drawn(whole.runs)
        for name in ("row", "iteration", "request", "phase", "before", "begun", "ended", "done", "given", "process"):
            assert getattr(grown, name).tolist() == getattr(whole, name).tolist(), name


@settings(max_examples=60, deadline=None)
@given(histories())
def test_each_step_knows_when_its_request_was_given_tokens_before(history: tuple[list[Cell], list[int]]) -> None:
    cells, processes = history
    steps = Steps.build(steps_trace(cells, processes))
    last: dict[int, int] = {}
    for row, before in zip(steps.row.tolist(), steps.before.tolist(), strict=True):
        iteration, request, phase = cells[row]
        assert before == (last.get(request, -1) if phase == "generation" else -1)
        if phase == "generation":
            last[request] = iteration


def test_steps_without_iteration_or_request_are_counted_and_left_out() -> None:
    steps = Steps.build(steps_trace([(0, 0, "context"), (-1, 0, "generation"), (0, -1, "generation")], [0]))
    assert steps.unplaced == 2
    assert steps.row.tolist() == [0]


def test_rows_that_changed_are_read_anew() -> None:
    before = steps_trace([(0, 0, "context"), (1, 0, "generation")], [0, 0])
    after = steps_trace([(0, 1, "context"), (1, 0, "generation"), (2, 0, "generation")], [0, 0, 0])
    grown = Steps.extend(Steps.build(before), after)
    assert drawn(grown.runs) == drawn(Steps.build(after).runs)
    assert grown.begun.tolist() == [1, 0, -1]


def test_an_engines_requests_leave_where_they_end() -> None:
    trace = engine_trace(Setup(blocks=16, gap=MS))
    steps = trace.index(Steps)
    assert (steps.done >= steps.begun).all()
    assert (steps.done == steps.ended).all()
    assert PAUSED in steps.runs.phase.tolist()
    finished = trace["steps"]["phase"] == FINISHED
    assert sorted(trace["steps"]["request"][finished].tolist()) == list(range(len(trace["requests"])))
    assert np.all(steps.runs.last > steps.runs.first)
