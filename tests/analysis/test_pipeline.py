"""Pipelines against a reference that goes through their time nanosecond by nanosecond."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.pipeline import (
    DRAIN,
    FILL,
    HOST,
    IDLE,
    NEXT,
    PREVIOUS,
    UNTOLD,
    Pipeline,
    contention_of,
    pipeline_figures,
)
from inspector.trace.builder import Builder
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo


class Cell(NamedTuple):
    start: int
    end: int
    stage: int
    iteration: int
    micro_batch: int
    cpu: int = -1


def trace_of(cells: list[Cell]) -> Trace:
    builder = Builder()
    if cells:
        columns = {name: [getattr(cell, name) for cell in cells] for name in Cell._fields}
        builder.add("stage_work", process=-1, **columns)
    trace = builder.build(TraceInfo((), "recording"))
    assert trace.info.origin_ns == (min(cell.start for cell in cells) if cells else 0)
    return trace


@st.composite
def schedules(draw: st.DrawFn) -> list[Cell]:
    """Micro-batches handed on from stage to stage, each stage one at a time, iterations flushed or overlapping."""
    stages, flush = draw(st.integers(1, 3)), draw(st.booleans())
    free, cells, begin, back = [0] * stages, [], 0, {}
    for iteration in range(draw(st.integers(1, 4))):
        many, done = draw(st.integers(1, 3)), 0
        for micro_batch in range(many):
            ready = begin if flush else max(begin, back.get(micro_batch, 0))
            for stage in range(stages):
                start = max(ready, free[stage]) + draw(st.integers(0, 2))
                ready = free[stage] = start + draw(st.integers(1, 4))
                cells.append(Cell(start, ready, stage, iteration, micro_batch))
            back[micro_batch] = ready
            done = max(done, ready)
        begin = done + draw(st.integers(0, 3)) if flush else begin
    low = min(cell.start for cell in cells)
    return sorted(cell._replace(start=cell.start - low, end=cell.end - low) for cell in cells)


class Naive:
    """What every nanosecond of every stage is."""

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells
        self.stages = sorted({cell.stage for cell in cells})
        self.windows = {
            number: (
                min(cell.start for cell in cells if cell.iteration == number),
                max(cell.end for cell in cells if cell.iteration == number),
            )
            for number in {cell.iteration for cell in cells}
        }

    def run(self, time: int) -> tuple[int, int] | None:
        """The run of overlapping (or touching) windows that holds `time`."""
        inside = [window for window in self.windows.values() if window[0] <= time < window[1]]
        if not inside:
            return None
        low, high = inside[0]
        for _ in self.windows:
            for a, b in self.windows.values():
                if a <= high and b >= low:
                    low, high = min(low, a), max(high, b)
        return low, high

    def what(self, stage: int, time: int) -> int | None:
        """-1 busy, an index into IDLE, or None outside of runs."""
        run = self.run(time)
        if run is None:
            return None
        mine = [cell for cell in self.cells if cell.stage == stage]
        if any(cell.start <= time < cell.end for cell in mine):
            return -1
        earlier = [cell for cell in mine if run[0] <= cell.start and cell.end <= time]
        later = [cell for cell in mine if time < cell.start < run[1]]
        if not earlier and not later:
            return UNTOLD
        if not earlier:
            return FILL
        if not later:
            return DRAIN
        coming, gone = min(later), max(earlier)
        if time < self.ready(coming, run):
            return PREVIOUS
        return NEXT if time < self.taken(gone) else HOST

    def ready(self, cell: Cell, run: tuple[int, int]) -> int:
        at = self.stages.index(cell.stage)
        iteration, stage = (cell.iteration, self.stages[at - 1]) if at else (cell.iteration - 1, self.stages[-1])
        found = [
            each.end
            for each in self.cells
            if (each.iteration, each.micro_batch, each.stage) == (iteration, cell.micro_batch, stage)
            and each.end >= run[0]
        ]
        return found[0] if found else -1

    def taken(self, cell: Cell) -> int:
        at = self.stages.index(cell.stage)
        if at + 1 == len(self.stages):
            return -1
        line = [each for each in self.cells if each.stage == self.stages[at + 1]]
        for before, each in zip([None, *line], line, strict=False):
            if (each.iteration, each.micro_batch) == (cell.iteration, cell.micro_batch):
                return before.end if before else -1
        return -1


def end_of(cells: list[Cell]) -> int:
    return max(cell.end for cell in cells)


@settings(max_examples=120, deadline=None)
@given(schedules())
def test_every_nanosecond_of_every_stage_is_accounted_for(cells: list[Cell]) -> None:
    pipeline, naive = trace_of(cells).index(Pipeline), Naive(cells)
    for row, stage in enumerate(naive.stages):
        expected = [naive.what(stage, time) for time in range(end_of(cells))]
        shown: list[int | None] = [None] * end_of(cells)
        busy = pipeline.busy(row)
        for low, high in zip(busy.starts.tolist(), busy.ends.tolist(), strict=True):
            shown[low:high] = [-1] * (high - low)
        slices = pipeline.slices
        for at in np.flatnonzero(slices.stage == row).tolist():
            low, high = int(slices.start[at]), int(slices.end[at])
            assert all(each is None for each in shown[low:high])
            shown[low:high] = [int(slices.cause[at])] * (high - low)
        assert shown == expected


@settings(max_examples=60, deadline=None)
@given(schedules(), st.integers(0, 30), st.integers(0, 30))
def test_figures_of_a_window_sum_up_exactly(cells: list[Cell], low: int, length: int) -> None:
    pipeline, naive = trace_of(cells).index(Pipeline), Naive(cells)
    window = Window(low, low + length)
    figures = pipeline_figures(pipeline, window)
    assert figures.active_ns * len(naive.stages) == int(figures.busy_ns.sum()) + int(figures.idle_ns.sum())
    assert figures.active_ns + figures.between_ns == length
    for row, stage in enumerate(naive.stages):
        every = [naive.what(stage, time) for time in range(window.start, window.end)]
        assert int(figures.busy_ns[row]) == every.count(-1)
        assert figures.idle_ns[row].tolist() == [every.count(cause) for cause in range(len(IDLE))]


@settings(max_examples=60, deadline=None)
@given(schedules())
def test_bubble_of_an_iteration_is_what_its_window_lacks(cells: list[Cell]) -> None:
    pipeline, naive = trace_of(cells).index(Pipeline), Naive(cells)
    spans, stages = pipeline.spans, len(naive.stages)
    assert sorted(spans.iteration.tolist()) == sorted(naive.windows)
    for row, number in enumerate(spans.iteration.tolist()):
        low, high = naive.windows[number]
        assert (int(spans.start[row]), int(spans.end[row])) == (low, high)
        busy = sum(naive.what(stage, time) == -1 for stage in naive.stages for time in range(low, high))
        assert int(spans.busy[row]) == busy
        assert spans.bubble(stages)[row] == pytest.approx(1 - busy / (stages * (high - low)))
        m = len({cell.micro_batch for cell in cells if cell.iteration == number})
        assert int(spans.micro_batches[row]) == m
        assert spans.ideal[row] == pytest.approx((stages - 1) / (m + stages - 1))


def perfect(stages: int, many: int, times: list[int], iterations: int = 2) -> list[Cell]:
    """No hand-over, no jitter: stage s takes times[s]."""
    free, cells, begin = [0] * stages, [], 0
    for iteration in range(iterations):
        for micro_batch in range(many):
            ready = begin
            for stage in range(stages):
                start = max(ready, free[stage])
                ready = free[stage] = start + times[stage]
                cells.append(Cell(start, ready, stage, iteration, micro_batch, times[stage] - 1))
        begin = max(free) + 10
        free = [begin] * stages
    return cells


@pytest.mark.parametrize(("stages", "many"), [(2, 1), (2, 4), (4, 1), (4, 8), (3, 32)])
def test_equal_stages_have_the_ideal_bubble(stages: int, many: int) -> None:
    pipeline = trace_of(perfect(stages, many, [100] * stages)).index(Pipeline)
    figures = pipeline_figures(pipeline, Window(0, 10**9))
    ideal = (stages - 1) / (many + stages - 1)
    assert figures.bubble == pytest.approx(ideal)
    assert (figures.ideal, figures.unequal) == (pytest.approx(ideal), pytest.approx(ideal))
    assert figures.idle_ns[:, [PREVIOUS, NEXT, HOST, UNTOLD]].sum() == 0
    assert figures.contention == pytest.approx(0.01)


def least(cells: list[Cell]) -> float:
    """Bubble share of one iteration whose cells all begin as soon as they can."""
    stages = sorted({cell.stage for cell in cells})
    order = sorted(
        {cell.micro_batch for cell in cells}, key=lambda one: min(c.start for c in cells if c.micro_batch == one)
    )
    free = dict.fromkeys(stages, 0)
    for micro_batch in order:
        ready = 0
        for stage in stages:
            work = sum(c.end - c.start for c in cells if (c.micro_batch, c.stage) == (micro_batch, stage))
            ready = free[stage] = max(ready, free[stage]) + work
    return 1 - sum(cell.end - cell.start for cell in cells) / (len(stages) * free[stages[-1]])


@settings(max_examples=120, deadline=None)
@given(schedules())
def test_no_iteration_by_itself_has_fewer_bubbles_than_its_unequal_cells_must_have(cells: list[Cell]) -> None:
    pipeline = trace_of(cells).index(Pipeline)
    spans, stages = pipeline.spans, pipeline.num_stages
    figures = pipeline_figures(pipeline, Window(0, end_of(cells)))
    ends = np.maximum.accumulate(spans.end)
    assert figures.overlapping == np.count_nonzero(spans.start[1:] < ends[:-1])
    assert not figures.cut
    low, high = int(pipeline.runs.starts[0]), int(pipeline.runs.ends[0])
    assert pipeline_figures(pipeline, Window(0, high - 1)).cut == (high - 1 > low)
    for row, number in enumerate(spans.iteration.tolist()):
        assert spans.unequal[row] == pytest.approx(least([cell for cell in cells if cell.iteration == number]))
    if not figures.overlapping:
        assert (spans.bubble(stages) >= spans.unequal - 1e-12).all()
        assert figures.bubble >= figures.unequal - 1e-12


def test_unequal_stages_have_the_bubble_of_the_slowest() -> None:
    # The figures of two measured stages: 1 - 4 (3.91 + 2.64) / (2 (6.55 + 3 x 3.91)) = 0.283.
    pipeline = trace_of(perfect(2, 4, [3910, 2640])).index(Pipeline)
    figures = pipeline_figures(pipeline, Window(0, 10**9))
    assert figures.unequal == pytest.approx(0.283, abs=0.0006)
    assert figures.bubble == pytest.approx(figures.unequal)
    assert figures.ideal == pytest.approx(0.2)
    assert figures.idle_ns[1, PREVIOUS] == 2 * 3 * (3910 - 2640)


def test_a_slow_stage_behind_is_named_where_it_holds_one_up() -> None:
    cells = [
        Cell(0, 10, 0, 0, 0),
        Cell(10, 40, 1, 0, 0),
        # Stage 0 hands micro-batch 1 over while stage 1 is busy, and goes on when it is taken.
        Cell(10, 20, 0, 0, 1),
        Cell(40, 60, 1, 0, 1),
        Cell(45, 55, 0, 0, 2),
        Cell(60, 70, 1, 0, 2),
    ]
    slices = trace_of(sorted(cells)).index(Pipeline).slices
    rows = [
        (int(slices.stage[at]), int(slices.start[at]), int(slices.end[at]), int(slices.cause[at]))
        for at in range(len(slices))
    ]
    assert rows == [(1, 0, 10, FILL), (0, 20, 40, NEXT), (0, 40, 45, HOST), (0, 55, 70, DRAIN)]


@settings(max_examples=60, deadline=None)
@given(schedules(), st.integers(1, 20), st.integers(1, 6))
def test_a_pipeline_that_grows_is_what_it_would_be_from_the_start(cells: list[Cell], cut: int, apart: int) -> None:
    # Far enough apart that the first runs are settled when the later ones come.
    second = 3_000_000_000
    spread = sorted(
        cell._replace(start=cell.start + cell.iteration * second, end=cell.end + cell.iteration * second)
        for cell in cells
    )
    grown = trace_of(spread[:cut]).index(Pipeline)
    for size in range(cut, len(spread) + 1, apart):
        grown = Pipeline.extend(grown, trace_of(spread[:size]))
    grown = Pipeline.extend(grown, trace_of(spread))
    whole = trace_of(spread).index(Pipeline)
    for part in ("spans", "slices"):
        for name, values in vars(getattr(whole, part)).items():
            np.testing.assert_array_equal(getattr(getattr(grown, part), name), values)
    assert np.array_equal(grown.runs.starts, whole.runs.starts)


def test_devices_stand_for_stages_where_no_stage_was_recorded() -> None:
    builder = Builder()
    process = builder.process(1, "python")
    streams = [builder.stream(process, builder.device(number), 7) for number in range(2)]
    name, talk = builder.names.add("gemm"), builder.names.add("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)")
    rows = [(0, 10, 0, name), (10, 20, 1, name), (0, 10, 1, talk), (30, 40, 0, name), (40, 50, 1, name)]
    builder.add(
        "kernels",
        start=[row[0] for row in rows],
        end=[row[1] for row in rows],
        stream=[streams[row[2]] for row in rows],
        name=[row[3] for row in rows],
        correlation=0,
        graph_node=0,
        context=0,
    )
    pipeline = builder.build(TraceInfo((), "nsys-sqlite")).index(Pipeline)
    assert pipeline.cells.source == "devices"
    assert [
        (int(a), int(b), int(s))
        for a, b, s in zip(pipeline.cells.start, pipeline.cells.end, pipeline.cells.stage, strict=True)
    ] == [
        (0, 10, 0),
        (10, 20, 1),
        (30, 40, 0),
        (40, 50, 1),
    ]
    # A collective alone is no work of its stage; nobody tells what the gap in between was for.
    figures = pipeline_figures(pipeline, Window(0, 50))
    assert figures.idle_ns.tolist() == [[0, 10, 0, 0, 0, 20], [10, 0, 0, 0, 0, 20]]
    assert np.isnan(figures.ideal)
    assert np.isnan(figures.contention)


def test_without_stages_there_is_no_pipeline() -> None:
    pipeline = trace_of([]).index(Pipeline)
    assert (pipeline.cells.source, len(pipeline.cells), len(pipeline.spans)) == ("none", 0, 0)
    assert pipeline_figures(pipeline, Window(0, 10)).bubble == 0.0


@given(schedules(), st.data())
@settings(deadline=None)
def test_what_work_of_a_processor_waited_for_it(cells: list[Cell], data: st.DataObject) -> None:
    """Of the cells of its stage that lie in the window and tell it; a draft model and a GPU have no stage."""
    told = [
        cell._replace(cpu=data.draw(st.one_of(st.just(-1), st.integers(0, cell.end - cell.start)))) for cell in cells
    ]
    builder = Builder()
    stages = max(cell.stage for cell in told) + 1
    for stage in range(stages):
        builder.device(stage, f"CPU stage {stage} (no GPU)")
    draft, gpu = builder.device(stages, "CPU draft model (no GPU)"), builder.device(stages + 1, "NVIDIA H200")
    builder.add("stage_work", process=-1, **{name: [getattr(cell, name) for cell in told] for name in Cell._fields})
    trace = builder.build(TraceInfo((), "recording"))
    end = max(cell.end for cell in told)
    low = data.draw(st.integers(0, end - 1))
    window = Window(low, data.draw(st.integers(low + 1, end)))
    for stage in range(stages):
        mine = [
            cell
            for cell in told
            if cell.stage == stage and cell.cpu >= 0 and window.start <= cell.start and cell.end <= window.end
        ]
        wall = sum(cell.end - cell.start for cell in mine)
        assert contention_of(trace, stage, window) == (wall, wall - sum(cell.cpu for cell in mine))
    assert contention_of(trace, draft, window) == contention_of(trace, gpu, window) == (0, 0)
