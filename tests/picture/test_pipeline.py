"""Pictures of a pipeline: pieces tile the runs, shares are those of the pieces, the strip holds every iteration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.alignment import Alignment
from inspector.analysis.pipeline import IDLE, Pipeline, pipeline_figures
from inspector.picture import pipeline as pictures
from inspector.picture.pipeline import bubble_strip, pipeline_picture
from inspector.trace.builder import Builder
from inspector.trace.quality import Quality
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import Setup, engine_trace

TRACE = engine_trace(Setup(seed=2, stages=3, micro_batches=4))
WHOLE = Window(0, TRACE.end_ns)


def test_pieces_of_a_stage_tile_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "MOST_DRAWN", 10**6)
    shown = pipeline_picture(TRACE, WHOLE, 100)
    pieces, runs = shown.pieces, TRACE.index(Pipeline).runs
    assert pieces is not None
    assert shown.names == ("stage 0", "stage 1", "stage 2")
    for stage in range(3):
        mine = np.flatnonzero(pieces.stage == stage)
        mine = mine[np.argsort(pieces.start[mine])]
        assert (pieces.start[mine[1:]] >= pieces.end[mine[:-1]]).all()
        assert (pieces.end - pieces.start)[mine].sum() == (runs.ends - runs.starts).sum()
    cells = pieces.kind < 0
    assert cells.sum() == len(TRACE["stage_work"])
    assert ((pieces.idle[cells] >= 0) & (pieces.idle[cells] < 1)).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 90), st.integers(1, 40), st.integers(1, 50))
def test_shares_are_what_the_pieces_cover(low: int, length: int, columns: int) -> None:
    window = Window(low * TRACE.end_ns // 100, (low + length) * TRACE.end_ns // 100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "MOST_DRAWN", 10**6)
        pieces = pipeline_picture(TRACE, window, columns).pieces
        patch.setattr(pictures, "MOST_DRAWN", 0)
        shown = pipeline_picture(TRACE, window, columns)
    assert pieces is not None
    if shown.pieces is not None:
        assert len(pieces) == 0
        return
    many = shown.shares.shape[2]
    assert 1 <= many <= columns
    edges = [window.start + window.length * at // many for at in range(many + 1)]
    expected = np.zeros((3, 1 + len(IDLE), many))
    for at in range(len(pieces)):
        for column in range(many):
            inside = min(int(pieces.end[at]), edges[column + 1]) - max(int(pieces.start[at]), edges[column])
            layer = int(pieces.kind[at]) + 1
            expected[int(pieces.stage[at]), layer, column] += max(inside, 0) / (edges[column + 1] - edges[column])
    np.testing.assert_allclose(shown.shares, expected, atol=1e-5)


@settings(max_examples=40)
@given(st.integers(0, 90), st.integers(1, 100), st.integers(1, 30))
def test_the_strip_holds_the_bubbles_of_every_iteration_in_its_column(low: int, length: int, columns: int) -> None:
    window = Window(low * TRACE.end_ns // 100, (low + length) * TRACE.end_ns // 100)
    spans = TRACE.index(Pipeline).spans
    strip = bubble_strip(spans, 3, window, columns)
    bubbles = spans.bubble(3)
    for column in range(columns):
        inside = [
            row
            for row in range(len(spans))
            if window.start <= int(spans.start[row]) < window.end
            and (int(spans.start[row]) - window.start) * columns // window.length == column
        ]
        if not inside:
            assert np.isnan([strip.low[column], strip.high[column], strip.ideal[column]]).all()
            continue
        assert strip.low[column] == min(bubbles[inside])
        assert strip.high[column] == max(bubbles[inside])
        assert strip.ideal[column] == pytest.approx(np.mean(spans.ideal[inside]))


def ranks(late: int, jitter: list[int], paths: tuple[str, ...] = ("a", "b")) -> Trace:
    """Two GPUs that leave collectives together, on clocks that differ by `late`."""
    builder = Builder()
    process = builder.process(1, "python")
    streams = [builder.stream(process, builder.device(number), 7) for number in range(2)]
    talk = builder.names.add("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
    ends = [(at * 1000 + 500, 0) for at in range(len(jitter))]
    ends += [(at * 1000 + 500 + late + extra, 1) for at, extra in enumerate(jitter)]
    builder.add(
        "kernels",
        start=[end - 200 for end, _ in ends],
        end=[end for end, _ in ends],
        stream=[streams[device] for _, device in ends],
        name=talk,
        correlation=0,
    )
    return builder.build(TraceInfo(paths, "nsys-sqlite"))


def test_the_alignment_error_is_what_collectives_say() -> None:
    found = ranks(40, [0, 1, -1, 2, 0, 0, 0, 0, 0, 0]).index(Alignment)
    assert (found.files, found.matched, found.device, found.offset_ns) == (2, 10, 1, 40)
    assert found.spread_ns == 1
    assert ranks(-70, [0, 0, 0]).index(Alignment).offset_ns == -70


def test_nothing_is_said_of_collectives_that_do_not_match() -> None:
    found = TRACE.index(Alignment)
    assert (found.matched, found.device) == (0, -1)


@settings(max_examples=30, deadline=None)
@given(st.integers(10, 99), st.sampled_from((0, 10**6)))
def test_what_a_run_has_not_told_yet_is_not_idle(percent: int, most: int) -> None:
    settled = TRACE.end_ns * percent // 100
    cells = TRACE["stage_work"]
    read = {"stage_work": cells.take(np.flatnonzero(cells["start"] < settled))}
    going = Trace(TRACE.info, read, TRACE.names, Quality(), generation=1, settled_ns=settled)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "MOST_DRAWN", most)
        shown = pipeline_picture(going, WHOLE, 50)
    known = pipeline_figures(TRACE.index(Pipeline), Window(0, settled))
    assert shown.figures.busy_ns.tolist() == known.busy_ns.tolist()
    assert (shown.figures.idle_ns.sum(axis=1) <= known.idle_ns.sum(axis=1)).all()
    assert (shown.spans.end <= settled).all()
    if shown.pieces is not None:
        assert (shown.pieces.end[shown.pieces.kind >= 0] <= settled).all()
    else:
        later = np.linspace(0, TRACE.end_ns, shown.shares.shape[2] + 1)[:-1] > settled + 1
        assert not shown.shares[:, 1:, later].any()
