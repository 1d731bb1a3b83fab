"""Acceptance, against the definitions counted out step by step, and the draft length that pays."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.draft_length import DraftCost, NoCost, chain, draft_cost, estimate
from inspector.analysis.pass_cost import PassCost
from inspector.analysis.speculation import (
    by_request,
    counts,
    groups,
    of_iterations,
    over_time,
    passes,
    positions,
)
from inspector.trace.schema import PHASES
from inspector.trace.selection import Window
from inspector.trace.trace import Trace
from tests.analysis.test_steps import REQUESTS, steps_trace
from tests.engine_traces import GROUPS, Setup, engine_trace

Drafts = list[tuple[int, int, int]]  # request, drafted, accepted


def drafts_trace(drafts: Drafts) -> Trace:
    """One pass per iteration."""
    cells = [(at, request, "generation") for at, (request, _, _) in enumerate(drafts)]
    trace = steps_trace(cells, [0] * len(drafts))
    columns = trace["steps"].columns
    columns["drafted"][:] = [drafted for _, drafted, _ in drafts]
    columns["accepted"][:] = [accepted for _, _, accepted in drafts]
    return trace


@st.composite
def lists_of_drafts(draw: st.DrawFn) -> Drafts:
    found: Drafts = []
    for _ in range(draw(st.integers(1, 25))):
        drafted = draw(st.integers(0, 4))
        found.append((draw(st.integers(0, REQUESTS - 1)), drafted, draw(st.integers(0, drafted))))
    return found


@settings(max_examples=150, deadline=None)
@given(lists_of_drafts())
def test_acceptance_counts_only_steps_that_drafted_the_position(drafts: Drafts) -> None:
    trace = drafts_trace(drafts)
    found = passes(trace)
    counted = counts(found)
    ks, accepted = [k for _, k, _ in drafts], [a for _, _, a in drafts]
    assert (counted.passes, counted.drafting) == (len(drafts), sum(k > 0 for k in ks))
    assert (counted.drafted, counted.accepted) == (sum(ks), sum(accepted))
    by = positions(counted)
    assert len(by.drafted) == max(ks) == counted.longest
    for at in range(1, max(ks) + 1):
        assert int(by.drafted[at - 1]) == sum(k >= at for k in ks)
        assert int(by.reached[at - 1]) == sum(k >= at and a >= at - 1 for k, a in zip(ks, accepted, strict=True))
        assert int(by.accepted[at - 1]) == sum(k >= at and a >= at for k, a in zip(ks, accepted, strict=True))
    each = by_request(found)
    means = []
    for row, made, drafted, took in zip(each.row, each.passes, each.drafted, each.accepted, strict=True):
        mine = [(k, a) for request, k, a in drafts if request == row]
        assert (int(made), int(drafted), int(took)) == (len(mine), sum(k for k, _ in mine), sum(a for _, a in mine))
        means += [Fraction(int(took), int(drafted))] if drafted else []
    assert each.row.tolist() == sorted({request for request, _, _ in drafts})
    if means:
        assert each.mean_rate == pytest.approx(float(sum(means, Fraction(0)) / len(means)))
    else:
        assert np.isnan(each.mean_rate)


@settings(max_examples=50, deadline=None)
@given(lists_of_drafts(), st.integers(0, 250), st.integers(0, 250), st.integers(1, 6))
def test_bins_over_time_sum_to_the_window(drafts: Drafts, one: int, other: int, bins: int) -> None:
    trace = drafts_trace(drafts)
    window = Window(min(one, other), max(one, other) + 1)
    found = passes(trace, window)
    inside = [(k, a) for at, (_, k, a) in enumerate(drafts) if window.start <= 10 * at < window.end]
    assert (int(found.drafted.sum()), int(found.accepted.sum())) == (
        sum(k for k, _ in inside),
        sum(a for _, a in inside),
    )
    binned = over_time(trace, found, window, bins)
    assert (int(binned.drafted.sum()), int(binned.accepted.sum())) == (
        int(found.drafted.sum()),
        int(found.accepted.sum()),
    )
    assert int(binned.passes.sum()) == len(inside)
    for at in range(bins):
        low, high = binned.edges[at], binned.edges[at + 1]
        mine = [k for row, (_, k, _) in enumerate(drafts) if low <= 10 * row < high]
        assert (int(binned.drafted[at]), int(binned.passes[at])) == (sum(mine), len(mine))


def test_passes_that_claim_too_much_or_nothing_are_counted_apart() -> None:
    trace = drafts_trace([(0, 2, 3), (0, -1, -1), (1, 4, 4), (2, 2, 1)])
    found = passes(trace)
    counted = counts(found)
    assert (counted.odd, counted.unknown, counted.passes) == (1, 1, 2)
    assert (counted.drafted, counted.accepted) == (6, 5)


def test_an_engines_figures_agree_with_its_iterations_and_groups_differ() -> None:
    trace = engine_trace(Setup(work=80, draft=4))
    found = passes(trace)
    counted = counts(found)
    assert (counted.drafted, counted.accepted) == of_iterations(trace)
    generating = trace["steps"]["phase"] == PHASES.index("generation")
    assert counted.emitted == int(trace["steps"]["emitted"][generating].sum())
    assert counted.emitted <= counted.accepted + counted.passes
    split = {trace.names[name]: each for name, each in groups(trace, found)}
    assert set(split) == set(GROUPS)
    assert sum(each.passes for each in split.values()) == counted.passes
    assert {each.longest for each in split.values()} == {counted.longest}
    rates = {name: each.accepted / each.drafted for name, each in split.items()}
    assert rates["faq"] > rates["prose"] + 0.2
    # What a drawn coin does: each position of a group is accepted with its chance, once it is reached.
    by = positions(split["prose"])
    assert int(by.accepted.sum()) / int(by.reached.sum()) == pytest.approx(GROUPS["prose"], abs=0.06)


def test_a_trace_whose_requests_have_no_steps_still_tells_the_acceptance_over_time() -> None:
    trace = engine_trace(Setup(), leave_out=("steps",))
    drafted, accepted = of_iterations(trace)
    table = trace["iterations"]
    assert (drafted, accepted) == (int(table["drafted"].sum()), int(table["accepted"].sum()))
    binned = over_time(trace, None, Window(0, trace.end_ns), 7)
    assert int(binned.drafted.sum()) == drafted
    assert set(binned.passes.tolist()) == {-1}
    assert len(passes(trace).row) == 0


def test_the_cost_of_passes_is_found_again() -> None:
    trace = engine_trace(Setup(work=60, draft=4))
    cost = draft_cost(trace)
    assert isinstance(cost, DraftCost)
    # As the engine of the tests makes them, less the 5 us until a pass is on the device.
    assert cost.draft == pytest.approx(150_000 - 5_000)
    assert cost.target.per_token == pytest.approx(20_000, rel=1e-6)
    assert cost.target.fixed == pytest.approx(900_000 - 5_000, rel=1e-6)
    table = trace["iterations"]
    rows = np.flatnonzero((table["context_requests"] == 0) & (table["generation_requests"] > 0))
    assert cost.count == len(rows)
    assert cost.batch == pytest.approx(float(table["generation_requests"][rows].mean()))
    # A longer draft costs its pass and one more token of each request.
    assert cost.cost(3) - cost.cost(2) == pytest.approx(cost.draft + cost.target.per_token * cost.batch)


def known(draft: float, rest: float) -> DraftCost:
    target = PassCost(100.0, 0.0, 8)
    return DraftCost(target, draft, rest, 1.0, 8, (target, target))


def measured(tokens: list[int], length: list[int]) -> DraftCost:
    """8 requests, up to 4 drafts each, so that passes of 8 to 40 tokens matter."""
    x, y = np.array(tokens), np.array(length)
    target = PassCost.fit(x, y)
    assert target is not None
    return DraftCost(target, 100.0, 100.0, 8.0, len(x), PassCost.bounds(x, y, 32.0))


def test_passes_of_one_size_do_not_tell_which_length_is_best() -> None:
    counted = counts(passes(drafts_trace([(0, 4, a) for a in (4, 4, 3, 2, 1, 0, 4, 2)])))
    noise = np.random.default_rng(1).normal(0, 1000, 200).astype(int)
    for ends in ((12_000, 15_000), (15_000, 12_000)):
        # A full batch but for two passes at the end, which happened to be slower or faster.
        length = [*(13_000 + noise).tolist(), *ends]
        found = estimate(counted, measured([40] * 200 + [39, 38], length))
        assert found.doubtful
        assert found.best == -1
        assert found.among == (0, 4)
        assert (found.low <= found.speedup + 1e-9).all()
        assert (found.speedup <= found.high + 1e-9).all()
    # Other draft lengths while it ran: more tokens cost nothing more, or all that there is.
    tokens = [8, 16, 24, 32, 40] * 40
    cheap = estimate(counted, measured(tokens, (13_000 + noise).tolist()))
    assert (cheap.best, cheap.among) == (4, (4, 4))
    assert cheap.low[4] <= cheap.speedup[4] <= cheap.high[4]
    assert cheap.high[4] < 1.2 * cheap.low[4]
    dear = estimate(counted, measured(tokens, (400 * np.array(tokens) + noise).tolist()))
    assert dear.best == 0
    assert not dear.doubtful


def test_a_length_that_was_not_drafted_is_never_the_best() -> None:
    counted = counts(passes(drafts_trace([(0, 2, 2), (0, 2, 2), (0, 2, 2)])))
    found = estimate(counted, known(1.0, 0.0))
    assert len(found.speedup) > 3
    assert found.speedup[3] > found.speedup[2]
    assert found.best == found.seen == 2


def test_speedup_is_tokens_over_relative_cost_and_the_best_length_is_marked() -> None:
    drafts = [(0, 4, a) for a in (4, 4, 3, 2, 1, 0, 4, 2)]
    counted = counts(passes(drafts_trace(drafts)))
    found = estimate(counted, known(10.0, 20.0))
    assert found.seen == 4
    for length in range(5):
        mean = sum(min(a, length) for _, _, a in drafts) / len(drafts)
        assert found.tokens[length] == pytest.approx(1 + mean)
        assert found.speedup[length] == pytest.approx((1 + mean) * 120 / (120 + 10 * length))
    assert found.best == int(np.argmax(found.speedup[:5]))
    assert found.speedup[0] == 1
    # A draft that costs as much as the target never pays.
    assert estimate(counted, known(100.0, 0.0)).best == 0
    unknown = estimate(counted, NoCost("not measured"))
    assert unknown.best == -1
    assert np.isnan(unknown.speedup).all()
    assert unknown.tokens.tolist() == found.tokens.tolist()


def test_passes_that_drafted_less_do_not_pull_later_positions_down() -> None:
    # Half of the passes draft one token only; of those that draft two, all are right.
    found = chain(positions(counts(passes(drafts_trace([(0, 1, 1), (0, 2, 2), (0, 1, 1), (0, 2, 2)])))))
    assert found.tolist() == [1.0, 1.0]
    assert chain(positions(counts(passes(drafts_trace([(0, 2, 0)]))))).tolist() == [0.0]
    assert len(chain(positions(counts(passes(drafts_trace([(0, 0, 0)])))))) == 0


def test_what_is_not_known_is_said() -> None:
    no_passes = draft_cost(engine_trace(Setup(), ("kernels",)))
    assert isinstance(no_passes, NoCost)
    assert "no kernel or range is called target forward" in no_passes.reason
    no_drafts = draft_cost(engine_trace(Setup(draft=0)))
    assert isinstance(no_drafts, NoCost)
    assert "no kernel or range is called draft forward" in no_drafts.reason


def test_windows_cut_by_the_start_of_iterations() -> None:
    trace = engine_trace(Setup(work=30))
    middle = int(trace["iterations"]["start"][len(trace["iterations"]) // 2])
    parts = [
        counts(passes(trace, window), longest=4) for window in (Window(0, middle), Window(middle, trace.end_ns + 1))
    ]
    assert (parts[0].joint + parts[1].joint).tolist() == counts(passes(trace), longest=4).joint.tolist()
    assert parts[0].passes
    assert parts[1].passes
