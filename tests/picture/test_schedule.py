"""The schedule's cells, strips and words, against a walk through requests and iterations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.batching import EngineBatches
from inspector.analysis.steps import CONTEXT, FINISHED, GENERATION, PAUSED, QUEUED, SKIPPED, Steps
from inspector.picture.ribbon import ribbon, told_requests
from inspector.picture.schedule import NOTHING, PADDING, ROOM, Ask, SchedulePicture, schedule
from inspector.picture.schedule_axis import Axis, Span, most
from inspector.picture.schedule_tip import place_at
from inspector.picture.speculation import speculation
from inspector.trace.builder import Builder
from inspector.trace.schema import PHASES, TOKEN_KINDS
from inspector.trace.trace import Kept, Trace, TraceInfo
from tests.engine_traces import MS, Engine, Setup, engine_trace

setups = st.builds(
    Setup,
    seed=st.integers(0, 10_000),
    work=st.integers(1, 10),
    gap=st.sampled_from([MS // 2, 4 * MS]),
    max_batch_size=st.integers(1, 5),
    max_num_tokens=st.sampled_from([12, 48]),
    blocks=st.sampled_from([16, 40]),
    draft=st.integers(0, 4),
)


def all_of(trace: Trace, px: int, static: bool = False) -> SchedulePicture:
    """Every iteration, so many pixels each."""
    count = len(trace["iterations"])
    return schedule(trace, Ask(Span(False, 0, count, count * px), 0, 1000, None, static))


def worked(trace: Trace, request: int, iteration: int) -> list[int]:
    """Phases of the work of a request in an iteration."""
    table = trace["steps"]
    mine = table["phase"][(table["request"] == request) & (table["iteration"] == iteration)]
    return [phase for phase in mine.tolist() if phase in (CONTEXT, GENERATION)]


def phases(trace: Trace) -> dict[tuple[int, int], int]:
    """What each request does in each iteration, one after the other: the phase of its step, or why it has none."""
    table, found = trace["steps"], {}
    ends = trace["iterations"]["end"].tolist()
    for request in range(len(trace["requests"])):
        mine: dict[int, list[int]] = {}
        for at in np.flatnonzero(table["request"] == request).tolist():
            mine.setdefault(int(table["iteration"][at]), []).append(int(table["phase"][at]))
        arrival, before = int(trace["requests"]["arrival"][request]), QUEUED
        for iteration, end in enumerate(ends):
            now = mine.get(iteration, [])
            work = [phase for phase in now if phase in (CONTEXT, GENERATION, PAUSED)]
            if work:
                before = work[-1]
                found[request, iteration] = before if PAUSED not in work else PAUSED
            elif not any(earlier <= iteration for earlier in mine):
                if end > arrival:
                    found[request, iteration] = QUEUED
            elif max(mine) > iteration:
                found[request, iteration] = PAUSED if before == PAUSED else SKIPPED
            if FINISHED in now:
                found[request, iteration] = FINISHED
    return found


@settings(max_examples=40, deadline=None)
@given(setups)
def test_a_pixel_per_iteration_shows_what_each_request_did(setup: Setup) -> None:
    trace = engine_trace(setup)
    picture, expected = all_of(trace, 1), phases(trace)
    assert picture.rows.tolist() == list(range(len(trace["requests"])))
    for request in range(picture.cells.shape[0]):
        for iteration in range(picture.cells.shape[1]):
            assert picture.cells[request, iteration] == expected.get((request, iteration), NOTHING)


@settings(max_examples=40, deadline=None)
@given(setups)
def test_near_a_cell_is_as_full_as_its_pass_gave_tokens(setup: Setup) -> None:
    trace, px = engine_trace(setup), 12
    picture, expected = all_of(trace, px), phases(trace)
    fullest = 1 + max(0, int(trace["steps"]["drafted"].max()))
    assert picture.fullest == fullest
    table = trace["steps"]
    given_out = {
        (int(request), int(iteration)): int(emitted)
        for request, iteration, emitted, phase in zip(
            table["request"], table["iteration"], table["emitted"], table["phase"], strict=True
        )
        if phase == GENERATION
    }
    for (request, iteration), phase in expected.items():
        cell = picture.cells[request, iteration * px : (iteration + 1) * px].tolist()
        if phase == FINISHED:
            assert cell[-2:] == [FINISHED] * 2
        elif phase == GENERATION:
            full = min(max(round(px * given_out[request, iteration] / fullest), 1), px - 1)
            # A pixel of ground stands between cells.
            assert cell == [GENERATION] * full + [ROOM] * (px - 1 - full) + [NOTHING]
        elif phase == CONTEXT:
            assert cell == [CONTEXT] * (px - 1) + [NOTHING]
        elif phase == PAUSED and worked(trace, request, iteration):
            # Paused and taken up again in the same iteration.
            assert cell[:2] == [PAUSED] * 2
            assert PAUSED not in cell[2:]
        else:
            assert cell == [phase] * px


@settings(max_examples=25, deadline=None)
@given(setups, st.integers(0, 20), st.integers(1, 11))
def test_what_is_cut_by_the_edge_is_drawn_as_if_it_were_not(setup: Setup, first: int, inside: int) -> None:
    trace, px = engine_trace(setup), 12
    whole, count = all_of(trace, px), len(trace["iterations"])
    low = min(first, count - 1) + inside / px
    width = min(3 * px, (count * px) - round(low * px))
    part = schedule(trace, Ask(Span(False, low, low + width / px, width), 0, 1000))
    at = round(low * px)
    assert part.cells.tolist() == whole.cells[part.rows, at : at + width].tolist()


@settings(max_examples=60, deadline=None)
@given(setups, st.booleans(), st.integers(0, 100), st.integers(1, 100), st.integers(1, 40))
def test_strips_show_the_largest_of_each_column(setup: Setup, by_time: bool, low: int, long: int, width: int) -> None:
    trace = engine_trace(setup)
    table = trace["iterations"]
    end = trace.end_ns if by_time else len(table)
    begin = low * end / 120
    span = Span(by_time, begin, begin + max(long * end / 100, 1), width)
    picture = schedule(trace, Ask(span, 0, 1000))
    assert picture.strips is not None
    for column in range(width):
        first, last = span.at(column), span.at(column + 1)
        inside = [
            at
            for at in range(len(table))
            if (
                table["end"][at] > first and table["start"][at] < last
                if by_time
                else at + 1 > first + 1e-7 and at < last - 1e-7
            )
        ]
        for name, values in (("tokens", picture.strips.tokens), ("queued_requests", picture.strips.queued)):
            assert int(values[column]) == max((int(table[name][at]) for at in inside), default=-1)


@settings(max_examples=60, deadline=None)
@given(setups, st.integers(0, 100), st.integers(1, 60))
def test_rows_are_the_requests_that_were_there(setup: Setup, low: int, long: int) -> None:
    trace = engine_trace(setup)
    begin = low * trace.end_ns / 100
    span = Span(True, begin, begin + long * trace.end_ns / 100, 300)
    picture = schedule(trace, Ask(span, 0, 1000))
    requests, steps = trace["requests"], trace.index(Steps)
    ends = trace["iterations"]["end"][steps.done]
    there = [at for at in range(len(requests)) if requests["arrival"][at] < span.high and ends[at] > span.low]
    assert picture.rows.tolist() == there
    assert picture.alive == len(there)
    some = schedule(trace, Ask(span, 1, 3))
    assert (some.top, some.rows.tolist()) == (min(1, len(there)), there[1:3])
    assert some.cells.tolist() == picture.cells[1:3].tolist()


def test_those_that_only_wait_can_be_left_out_and_are_counted() -> None:
    trace = engine_trace(Setup(gap=MS // 2, max_batch_size=1, work=8))
    steps = trace.index(Steps)
    span = Span(False, 0, 10, 100)
    every = schedule(trace, Ask(span, 0, 100))
    few = schedule(trace, Ask(span, 0, 100, waiting=False))
    served = [row for row in every.rows.tolist() if steps.begun[row] < 10]
    assert few.rows.tolist() == served
    assert few.waiting == every.alive - len(served) > 0


def test_waiting_begins_with_the_arrival_to_the_pixel() -> None:
    trace = engine_trace(Setup(gap=MS // 2, max_batch_size=1, work=4))
    arrival = trace["requests"]["arrival"]
    begun = trace["iterations"]["start"][trace.index(Steps).begun]
    picture = schedule(trace, Ask(Span(True, 0, trace.end_ns, trace.end_ns // 1000), 0, 10))
    for row, (came, began) in enumerate(zip(arrival.tolist(), begun.tolist(), strict=True)):
        queued = np.flatnonzero(picture.cells[row] == QUEUED)
        if began - came > 2000:
            assert abs(int(queued[0]) - came / picture.ask.span.per_px) <= 1
            assert abs(int(queued[-1]) + 1 - began / picture.ask.span.per_px) <= 1


def test_a_request_that_is_still_paused_or_waits_reaches_up_to_now() -> None:
    builder, trace = Builder(), engine_trace(Setup(blocks=16, gap=MS))
    steps = trace["steps"]
    pause = int(np.flatnonzero(steps["phase"] == PAUSED)[0])
    request, cut = int(steps["request"][pause]), int(steps["iteration"][pause]) + 3
    later = np.flatnonzero((steps["request"] == request) & (np.arange(len(steps)) > pause))
    cut = min(cut, int(steps["iteration"][later[0]]))
    process = builder.process(1)
    iterations = {key: values[:cut] for key, values in trace["iterations"].columns.items() if key != "process"}
    builder.add("iterations", process=process, **iterations)
    requests = {key: values for key, values in trace["requests"].columns.items() if key not in ("process", "group")}
    builder.add("requests", process=process, **requests)
    kept = steps["iteration"] < cut
    builder.add("steps", **{key: values[kept] for key, values in steps.columns.items()})
    picture = all_of(builder.build(TraceInfo(("t",), "recording")), 1)
    row = picture.rows.tolist().index(request)
    first = int(steps["iteration"][pause])
    assert picture.cells[row, first:].tolist() == [PAUSED] * (cut - first)


def test_one_that_began_before_what_is_at_hand_waits_no_more_for_its_first_turn() -> None:
    builder = Builder()
    process = builder.process(pid=1, name="engine")
    builder.add(
        "iterations",
        start=np.arange(100, 110) * MS,
        end=np.arange(101, 111) * MS,
        process=process,
        iteration=np.arange(10),
        **dict.fromkeys(("context_requests", "generation_requests", "paused_requests", "queued_requests"), 1),
        **dict.fromkeys(("tokens", "used_blocks", "free_blocks", "reused_blocks", "missed_blocks"), -1),
    )
    builder.add(
        "requests",
        request=[1, 2],
        arrival=[10 * MS, 10 * MS],
        first_token=-(1 << 63),
        last_token=-(1 << 63),
        prompt_tokens=4,
        output_tokens=-1,
        process=process,
        scheduled=[20 * MS, 105 * MS],
    )
    phase = PHASES.index("generation")
    builder.add("steps", iteration=5, request=[0, 1], phase=phase, tokens=1, drafted=-1, accepted=-1, blocks=1)
    trace = builder.build(TraceInfo((), "recording"))
    # Trace time 0 is the first arrival.
    trace.kept = Kept(90 * MS)
    cells = all_of(trace, 1).cells
    rows = {int(row): cells[at] for at, row in enumerate(all_of(trace, 1).rows)}
    assert rows[0][:5].tolist() == [SKIPPED] * 5
    assert rows[1][:5].tolist() == [QUEUED] * 5


@settings(max_examples=25, deadline=None)
@given(setups)
def test_static_batches_stand_beside_what_was_measured(setup: Setup) -> None:
    trace = engine_trace(setup)
    span = Span(True, 0, trace.end_ns, 500)
    picture = schedule(trace, Ask(span, 0, 1000, None, True))
    assert picture.static is not None
    model = picture.model
    for row, request in enumerate(picture.rows.tolist()):
        at = int(np.flatnonzero(model.row == request)[0])  # type: ignore[union-attr]
        edges = [int(x[at]) for x in (model.begin, model.context_end, model.end, model.batch_end)]  # type: ignore[union-attr]
        starts = [int(trace["requests"]["arrival"][request]), *edges]
        for code, first, last in zip((QUEUED, CONTEXT, GENERATION, PADDING), starts, edges, strict=False):
            seen = span.pixels(np.array([first, last]))
            inside = picture.static[row, int(seen[0]) + 1 : max(int(seen[1]), 0)]
            assert set(inside.tolist()) <= {code}


@given(
    st.lists(st.integers(-1, 9), max_size=20), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=9)
)
def test_largest_of_each_column(values: list[int], columns: list[tuple[int, int]]) -> None:
    columns = [(min(a, b, len(values)), min(max(a, b), len(values))) for a, b in columns]
    first, last = (np.array([column[at] for column in columns], np.int64) for at in (0, 1))
    found = most(np.array(values, np.int32), first, last)
    assert found.tolist() == [max(values[a:b], default=-1) for a, b in columns]


def test_the_axis_finds_its_way_back() -> None:
    trace = engine_trace(Setup())
    (batches,) = trace.index(EngineBatches).engines
    for span in (Span(False, 3, 11, 80), Span(True, 0, trace.end_ns, 997)):
        axis = Axis(span, batches)
        ordinals = np.arange(*axis.inside())
        middle = (axis.left(ordinals) + axis.right(ordinals)) / 2
        for ordinal, place in zip(ordinals.tolist(), middle.tolist(), strict=True):
            assert axis.ordinal_at(span.x(place)) == ordinal
        assert axis.ordinal_at(span.x(axis.end) + 1) == -1
    # Between two iterations there is none.
    gap = Axis(Span(True, float(batches.end[0]), float(batches.start[1]), 10), batches)
    assert gap.ordinal_at(5) == -1


def test_the_tip_says_exactly_what_a_request_did() -> None:
    setup = Setup(work=8)
    trace, engine = engine_trace(setup), Engine(setup)
    engine.run()
    picture = all_of(trace, 10)
    step = next(
        step
        for step in engine.rows["steps"]
        if step["phase"] == PHASES.index("generation") and step["drafted"] > 1 and step["emitted"] > 1
    )
    row = picture.rows.tolist().index(step["request"])
    found = place_at(picture, step["iteration"] * 10 + 5, row)
    assert found is not None
    assert (found.request, found.ordinal) == (step["request"], step["iteration"])
    lines = dict(found.lines)
    assert lines["request"].startswith(str(engine.asks[step["request"]].number))
    assert lines["drafts"] == f"{step['accepted']} of {step['drafted']} accepted"
    assert lines["given out"] == f"{step['emitted']} tokens"
    assert lines["phase"].startswith("generation, ")
    ask = engine.asks[step["request"]]
    assert f"({ask.first - ask.arrival:,} ns)" in lines["TTFT"]
    above = place_at(picture, step["iteration"] * 10 + 5, -1)
    assert above is not None
    said = dict(above.lines)
    iteration = engine.rows["iterations"][step["iteration"]]
    assert said["tokens"].startswith(f"{iteration['tokens']} of {setup.max_num_tokens} (")
    assert said["queued"] == str(iteration["queued_requests"])
    before = place_at(picture, 2, len(picture.rows) - 1)
    assert before is not None
    assert dict(before.lines)["phase"] == "not here yet"
    assert place_at(picture, 5, len(picture.rows)) is None
    assert place_at(picture, -1, 0) is None


@pytest.mark.parametrize("by_time", [False, True])
def test_without_steps_rows_come_from_the_requests(by_time: bool) -> None:
    trace = engine_trace(Setup(), leave_out=("steps", "tokens"))
    end = trace.end_ns if by_time else len(trace["iterations"])
    picture = schedule(trace, Ask(Span(by_time, 0, end, 400), 0, 100))
    assert any("No steps of requests" in each for each in picture.missing)
    assert {CONTEXT, GENERATION} <= set(picture.cells.reshape(-1).tolist()) <= {QUEUED, CONTEXT, GENERATION, NOTHING}


def test_steps_that_belong_nowhere_are_told_of() -> None:
    trace = engine_trace(Setup())
    trace["steps"]["iteration"][[3, 5]] = -1
    assert any(each.startswith("2 steps without iteration") for each in all_of(trace, 1).missing)
    assert any(each.startswith("2 steps without iteration") for each in speculation(trace, None, None, 9).missing)


def test_without_requests_the_strips_are_left_and_it_says_what_is_missing() -> None:
    trace = engine_trace(Setup(), leave_out=("steps", "requests", "tokens", "page_events"))
    picture = all_of(trace, 2)
    assert picture.alive == 0
    assert picture.strips is not None
    assert int(picture.strips.batch.max()) > 0
    assert any(each.startswith("No request records") for each in picture.missing)


def test_without_anything_there_is_only_what_is_missing() -> None:
    picture = schedule(Builder().build(TraceInfo(("t",), "kineto")), Ask(Span(False, 0, 1, 10), 0, 10))
    assert picture.axis is None
    assert len(picture.missing) == 2


@settings(max_examples=20, deadline=None)
@given(setups)
def test_a_ribbon_holds_every_token_in_order(setup: Setup) -> None:
    trace = engine_trace(setup)
    table = trace["tokens"]
    for request in told_requests(trace).tolist():
        found = ribbon(trace, request)
        tokens = [token for each in found.passes for token in each.tokens]
        assert len(tokens) == int(np.count_nonzero(table["request"] == request))
        kept = [token.position for token in tokens if TOKEN_KINDS[token.kind] != "rejected"]
        assert kept == list(range(int(trace["requests"]["output_tokens"][request])))
        for each in found.passes:
            for one, other in zip(each.tokens, each.tokens[1:], strict=False):
                assert one.position <= other.position
        few = ribbon(trace, request, most=2)
        assert few.passes == found.passes[-2:]
        assert few.total == len(found.passes)


def test_the_speculation_picture_follows_selection_and_says_what_is_missing() -> None:
    trace = engine_trace(Setup(work=30))
    told = told_requests(trace)
    chosen = int(trace["requests"]["request"][told[0]])
    picture = speculation(trace, None, chosen, 10)
    assert picture.ribbon is not None
    assert picture.ribbon.request == chosen
    assert [group.rank for group in picture.groups] == [0, 1]
    other = speculation(trace, None, None, 10).ribbon
    assert other is not None
    assert other.request == int(trace["requests"]["request"][told[-1]])
    bare = speculation(engine_trace(Setup(), leave_out=("steps", "tokens")), None, None, 10)
    assert bare.everything is None
    assert bare.ribbon is None
    assert bare.drafted == int(trace.index(Steps).unplaced) + int(bare.over_time.drafted.sum())
    assert bare.missing
