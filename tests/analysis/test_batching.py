"""Occupancy, latency and the model of static batching, against the definitions written out."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.batching import Batches, EngineBatches, batching, engine_batches
from inspector.analysis.latency import UNKNOWN, latency, request_times, spread
from inspector.analysis.pass_cost import PassCost
from inspector.analysis.static_batching import NoModel, StaticBatching, static_batching
from inspector.configuration.settings import Setting, of
from inspector.trace.builder import Builder
from inspector.trace.schema import NEVER, PHASES
from inspector.trace.selection import Window
from inspector.trace.table import Table
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import MS, Engine, Setup, engine_trace

setups = st.builds(
    Setup,
    seed=st.integers(0, 10_000),
    work=st.integers(1, 12),
    gap=st.sampled_from([MS // 2, 3 * MS, 30 * MS]),
    max_batch_size=st.integers(1, 5),
    blocks=st.sampled_from([16, 40]),
    draft=st.integers(0, 3),
)


def only(trace: Trace) -> Batches:
    (engine,) = trace.index(EngineBatches).engines
    return engine


def nearest_rank(values: list[int], percent: int) -> int:
    """The smallest value that at least `percent` of them do not exceed."""
    ordered = sorted(values)
    return next(value for value in ordered if sum(other <= value for other in ordered) * 100 >= percent * len(ordered))


@given(st.lists(st.integers(0, 50), min_size=1, max_size=120))
def test_percentiles_are_values_that_occurred(values: list[int]) -> None:
    found = spread(np.array(values, np.int64))
    assert (found.p50, found.p90, found.p99) == tuple(nearest_rank(values, share) for share in (50, 90, 99))
    assert (found.longest, found.count) == (max(values), len(values))


@settings(max_examples=25, deadline=None)
@given(setups, st.integers(0, 100), st.integers(0, 100))
def test_occupancy_sums_what_the_iterations_hold(setup: Setup, one: int, other: int) -> None:
    trace = engine_trace(setup)
    table, end = trace["iterations"], trace.end_ns
    window = Window(min(one, other) * end // 100, max(one, other) * end // 100)
    found = batching(only(trace), window)
    rows = [at for at, start in enumerate(table["start"].tolist()) if window.start <= start < window.end]
    batch = [int(table["context_requests"][at] + table["generation_requests"][at]) for at in rows]
    assert found.iterations == found.requests.count == len(rows)
    assert (found.requests.used, found.requests.room) == (sum(batch), setup.max_batch_size * len(rows))
    assert found.requests.most == max(batch, default=0)
    assert found.tokens.used == sum(int(table["tokens"][at]) for at in rows)
    assert found.tokens.room == setup.max_num_tokens * len(rows)
    assert found.queue_sum == sum(int(table["queued_requests"][at]) for at in rows)


@settings(max_examples=25, deadline=None)
@given(setups)
def test_latency_is_as_the_field_defines_it(setup: Setup) -> None:
    trace, engine = engine_trace(setup), Engine(setup)
    engine.run()
    origin = trace.info.origin_ns
    times = request_times(trace, np.arange(len(engine.asks), dtype=np.int32))
    for at, ask in enumerate(engine.asks):
        assert int(trace["requests"]["arrival"][at]) == ask.arrival - origin
        assert int(times.wait[at]) == ask.scheduled - ask.arrival
        assert int(times.ttft[at]) == ask.first - ask.arrival
        assert int(times.e2e[at]) == ask.last - ask.arrival
        later = len(ask.output) - 1
        assert Fraction(int(times.decode[at]), max(int(times.later[at]), 1)) == Fraction(
            ask.last - ask.first, max(later, 1)
        )
        assert np.isnan(times.tpot[at]) == (later == 0)
    found = latency(trace)
    assert found.ttft.p90 == nearest_rank([ask.first - ask.arrival for ask in engine.asks], 90)
    assert found.finished == found.requests == len(engine.asks)
    # Between two passes that gave tokens lies the time between the ends of their iterations.
    given_at: dict[int, list[int]] = {}
    for step in engine.rows["steps"]:
        if step["emitted"]:
            given_at.setdefault(step["request"], []).append(engine.rows["iterations"][step["iteration"]]["end"])
    gaps = [b - a for ends in given_at.values() for a, b in pairwise(ends)]
    assert found.itl.count == len(gaps)
    assert found.itl.longest == max(gaps, default=0)
    assert not gaps or found.itl.p50 == nearest_rank(gaps, 50)


def test_first_iteration_tells_when_a_request_was_scheduled_where_its_record_does_not() -> None:
    builder = Builder()
    trace = engine_trace(Setup())
    for name in ("iterations", "steps"):
        builder.add(
            name,
            **{key: values for key, values in trace[name].columns.items() if key != "process"},
            **({"process": builder.process(1)} if name == "iterations" else {}),
        )
    requests = dict(trace["requests"].columns)
    del requests["scheduled"], requests["process"], requests["group"]
    builder.add("requests", **requests)
    bare = builder.build(TraceInfo(("t",), "recording"))
    rows = np.arange(len(trace["requests"]), dtype=np.int32)
    recorded, found = request_times(trace, rows).wait, request_times(bare, rows).wait
    # The record has the moment of scheduling, the steps the start of the iteration; here the two are one.
    assert found.tolist() == recorded.tolist()


def test_a_request_that_has_not_finished_has_no_end() -> None:
    builder = Builder()
    builder.add(
        "requests",
        request=[1, 2],
        arrival=[0, 10],
        first_token=[50, NEVER],
        last_token=[90, NEVER],
        prompt_tokens=4,
        output_tokens=[5, 0],
        finished=[NEVER, NEVER],
    )
    trace = builder.build(TraceInfo(("t",), "recording"))
    times = request_times(trace, np.array([0, 1], np.int32))
    assert times.ttft.tolist() == [50, UNKNOWN]
    assert times.e2e.tolist() == [UNKNOWN, UNKNOWN]
    assert np.isnan(times.tpot).all()
    assert latency(trace).e2e.count == 0
    assert latency(trace, Window(5, 20)).requests == 1


def test_ranges_of_an_executor_tell_of_the_batch_but_not_of_the_budget() -> None:
    builder = Builder()
    process = builder.process(1)
    thread = builder.thread(process, 1)
    names = [builder.names.add(f"[Executor] _forward_step {at}: {at % 2} ctx reqs, 3 gen reqs") for at in range(4)]
    builder.add("ranges", start=[0, 10, 20, 30], end=[8, 18, 28, 38], thread=thread, name=names, kind=0, domain=-1)
    trace = builder.build(TraceInfo(("t",), "nsys-sqlite"))
    found = only(trace)
    assert found.source == "executor ranges"
    assert found.scheduled.tolist() == [3, 4, 3, 4]
    assert (found.end - found.start).tolist() == [8, 8, 8, 8]
    filled = batching(found)
    assert filled.requests.count == filled.tokens.count == filled.queue_count == 0
    assert static_batching(trace, found) == NoModel(
        "no tokens per iteration were recorded, so a pass has no known cost"
    )


@given(st.integers(0, 10**6), st.integers(0, 1000), st.lists(st.integers(1, 500), min_size=2, max_size=20, unique=True))
def test_a_straight_line_is_found_again(fixed: int, slope: int, tokens: list[int]) -> None:
    length = np.array([fixed + slope * each for each in tokens], np.int64)
    cost = PassCost.fit(np.array(tokens, np.int32), length)
    assert cost is not None
    assert cost.at(tokens[0]) == pytest.approx(float(length[0]), rel=1e-6, abs=1)


def test_a_pass_that_gets_cheaper_with_tokens_has_one_cost() -> None:
    cost = PassCost.fit(np.array([1, 2, 3]), np.array([30, 20, 10]))
    assert cost == PassCost(20.0, 0.0, 3)
    assert PassCost.fit(np.array([], np.int32), np.array([], np.int64)) is None


def walk(trace: Trace, model: StaticBatching, setup: Setup) -> list[tuple[int, int, int, int]]:
    """Begin, end of contexts, end and end of the batch of each request, batch after batch."""
    table, free, rows = trace["requests"], 0, []
    phase, steps = PHASES.index("generation"), trace["steps"]
    made = [int(np.count_nonzero((steps["request"] == at) & (steps["phase"] == phase))) for at in range(len(table))]
    mine = steps["phase"] == phase
    width = int(steps["tokens"][mine].sum()) / max(int(mine.sum()), 1)
    left = list(range(len(table)))
    while left:
        batch, left = left[: setup.max_batch_size], left[setup.max_batch_size :]
        begin = max([free, *(int(table["arrival"][at]) for at in batch)])
        prompt, at_context = sum(int(table["prompt_tokens"][at]) for at in batch), begin
        while prompt > 0:
            at_context += model.cost.of(min(prompt, setup.max_num_tokens))
            prompt -= setup.max_num_tokens
        step = model.cost.of(round(len(batch) * width))
        free = at_context + step * max(made[at] for at in batch)
        rows += [(begin, at_context, at_context + step * made[at], free) for at in batch]
    return rows


@settings(max_examples=25, deadline=None)
@given(setups)
def test_static_batches_wait_until_they_are_full_and_last_as_long_as_the_longest(setup: Setup) -> None:
    trace = engine_trace(setup)
    model = static_batching(trace, only(trace))
    assert isinstance(model, StaticBatching)
    found = list(
        zip(model.begin.tolist(), model.context_end.tolist(), model.end.tolist(), model.batch_end.tolist(), strict=True)
    )
    assert found == walk(trace, model, setup)
    arrival = trace["requests"]["arrival"]
    assert model.waited_ns == sum(begin - int(at) for (begin, *_), at in zip(found, arrival, strict=True))
    assert 0 <= model.padded <= model.places
    assert model.left_out == 0
    assert model.tokens == int(trace["requests"]["output_tokens"].sum())


def test_arrivals_spread_evenly_make_the_first_one_wait_for_the_last() -> None:
    builder = Builder()
    count, apart = 32, 3_000 * MS // 31
    builder.add(
        "requests",
        request=list(range(count)),
        arrival=[at * apart for at in range(count)],
        first_token=[at * apart + MS for at in range(count)],
        last_token=[at * apart + 2 * MS for at in range(count)],
        prompt_tokens=10,
        output_tokens=[1 + at for at in range(count)],
    )
    ones = {"context_requests": 0, "generation_requests": 1, "paused_requests": 0, "queued_requests": 0}
    blocks = dict.fromkeys(("used_blocks", "free_blocks", "reused_blocks", "missed_blocks"), -1)
    builder.add(
        "iterations",
        start=[0, MS],
        end=[MS, 2 * MS],
        process=-1,
        iteration=[0, 1],
        tokens=1,
        max_batch_size=count,
        **ones,
        **blocks,
    )
    trace = builder.build(TraceInfo(("t",), "recording"))
    model = static_batching(trace, only(trace))
    assert isinstance(model, StaticBatching)
    assert int(model.begin[0]) == 31 * apart
    # (n x longest - sum) of n x longest passes are padding; the first token of each comes with the prompt.
    assert (model.padded, model.places) == (32 * 31 - sum(range(32)), 32 * 31)
    assert int(model.batch_end[0] - model.context_end[0]) == 31 * MS


def test_without_a_finished_request_there_is_nothing_to_model() -> None:
    trace = engine_trace(Setup(), leave_out=("requests", "steps", "tokens", "page_events"))
    assert static_batching(trace, only(trace)) == NoModel("no request has finished yet")


def test_limits_of_the_configuration_where_none_were_recorded() -> None:
    settings = [Setting("max_batch_size", 9, "o.yaml", "max_batch_size"), Setting("max_num_tokens", 99, "o.yaml", "t")]
    trace = engine_trace(Setup(max_batch_size=5, max_num_tokens=48))
    told = engine_batches(trace.configured(of(settings)), None)
    assert told is not None
    assert set(told.room.tolist()) == {5}
    assert set(told.budget.tolist()) == {48}
    assert (told.room_from, told.budget_from) == ("", "")
    columns = {name: values for name, values in trace["iterations"].columns.items() if not name.startswith("max_")}
    tables = {**trace.tables, "iterations": Table("iterations", columns)}
    bare = Trace(trace.info, tables, trace.names, trace.quality)
    untold = engine_batches(bare, None)
    assert untold is not None
    assert not (untold.room > 0).any()
    found = engine_batches(bare.configured(of(settings)), None)
    assert found is not None
    assert set(found.room.tolist()) == {9}
    assert set(found.budget.tolist()) == {99}
    assert found.room_from == "max_batch_size in o.yaml"
    figures = batching(found)
    assert figures.requests.room == 9 * len(found)
    assert figures.requests.used == batching(told).requests.used
    half = engine_batches(bare.configured(of(settings[:1])), None)
    assert half is not None
    assert (half.budget_from, (half.budget > 0).any()) == ("", False)
