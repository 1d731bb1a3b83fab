from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.errors import Usage
from probes.workloads.engine.blocks import BlockPool
from probes.workloads.engine.request import Request, Sequence
from probes.workloads.engine.scheduler import Plan, Scheduler, Settings

WIDE = Settings(max_batch_size=4, max_num_tokens=40, blocks=100, tokens_per_block=4)


def _scheduler(chosen: Settings, sizes: list[tuple[int, int]]) -> tuple[Scheduler, list[Sequence]]:
    """With requests of these (prompt, max_tokens)."""
    pool = BlockPool(chosen.blocks, chosen.host_blocks, reuse=chosen.reuse)
    scheduler = Scheduler(chosen, pool)
    sequences = []
    for number, (prompt, most) in enumerate(sizes):
        request = Request(tuple((number * 31 + at) % 1000 for at in range(prompt)), most, id=number)
        sequences.append(Sequence(request))
        scheduler.add(sequences[-1])
    return scheduler, sequences


def _carry_out(scheduler: Scheduler, plan: Plan, rng: random.Random) -> None:
    """What the engine does with a plan, with random tokens and a random part of the drafts accepted."""
    for sequence, count in plan.context:
        sequence.request.scheduled = 0
        sequence.done += count
        if sequence.done == len(sequence.tokens):
            _give(scheduler, sequence, 1, rng)
    for sequence, most in plan.generation:
        given = 1 + rng.randint(0, most)
        sequence.done += given
        _give(scheduler, sequence, given, rng)
    scheduler.pool.take_transfers()


def _give(scheduler: Scheduler, sequence: Sequence, count: int, rng: random.Random) -> None:
    tokens = [rng.randrange(1000) for _ in range(count)]
    sequence.tokens += tokens
    sequence.request.output += tokens
    sequence.in_context = False
    scheduler.publish(sequence)
    if sequence.request.left == 0:
        scheduler.leave(sequence)
    else:
        scheduler.rewind(sequence)


def _numbers(sequences: list[Sequence]) -> list[int]:
    return [sequence.request.id for sequence in sequences]


LOADS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 25)), min_size=1, max_size=12)
SETTINGS = st.builds(
    Settings,
    max_batch_size=st.integers(1, 6),
    max_num_tokens=st.integers(1, 50),
    blocks=st.integers(16, 40),
    tokens_per_block=st.just(4),
    host_blocks=st.sampled_from([0, 5]),
    policy=st.sampled_from(["guaranteed_no_evict", "max_utilization"]),
    batching=st.sampled_from(["inflight", "static"]),
    reuse=st.booleans(),
    draft=st.sampled_from(["none", "ngram"]),
    draft_len=st.integers(1, 6),
)


@settings(max_examples=150, deadline=None)
@given(SETTINGS, LOADS, st.integers(0, 2**16))
def test_every_plan_keeps_the_limits_and_all_requests_end(
    chosen: Settings, sizes: list[tuple[int, int]], seed: int
) -> None:
    scheduler, sequences = _scheduler(chosen, sizes)
    rng = random.Random(seed)
    joined: list[int] = []
    for _ in range(4000):
        if not (scheduler.running or scheduler.waiting):
            break
        before = set(_numbers(scheduler.running))
        plan = scheduler.plan()
        planned = [*plan.generation, *plan.context]
        assert planned, "somebody can always go on"
        assert len({id(sequence) for sequence, _ in planned}) == len(planned) <= chosen.max_batch_size
        assert sum(1 + most for _, most in plan.generation) + sum(count for _, count in plan.context) <= (
            chosen.max_num_tokens
        )
        assert all(count >= 1 for _, count in plan.context)
        assert all(not sequence.in_context for sequence, _ in plan.generation)
        drafts = chosen.draft_len if chosen.draft != "none" else 0
        assert all(0 <= most <= min(drafts, sequence.request.left - 1) for sequence, most in plan.generation)
        assert _numbers(scheduler.running) == sorted(_numbers(scheduler.running))
        assert not any(sequence in scheduler.running for sequence in plan.paused)
        if chosen.policy == "guaranteed_no_evict":
            assert not plan.paused
        fresh = [number for number in _numbers(scheduler.running) if number not in before]
        if chosen.batching == "static" and before:
            assert set(fresh) <= {one.request.id for one in sequences if one.request.pauses}
        for sequence, count in planned:
            known = sequence.done + count if sequence.in_context else len(sequence.tokens) + count
            assert len(sequence.blocks) == -(-known // 4)
            assert len(sequence.blocks) <= sequence.worst_case(4)
            assert len(set(sequence.blocks)) == len(sequence.blocks)
        joined += [number for number in fresh if not sequences[number].request.pauses]
        _carry_out(scheduler, plan, rng)
        held = {block for sequence in scheduler.running for block in sequence.blocks}
        assert scheduler.pool.used == len(held)
    assert [len(one.request.output) for one in sequences] == [most for _, most in sizes]
    assert joined == sorted(joined), "in the order of arrival"
    assert scheduler.pool.used == 0


def test_what_is_sure_to_fit_is_admitted_and_no_more() -> None:
    # Worst cases of 5, 5 and 3 pages.
    scheduler, _ = _scheduler(replace(WIDE, blocks=12, policy="guaranteed_no_evict"), [(8, 13), (8, 13), (8, 5)])
    scheduler.plan()
    assert _numbers(scheduler.running) == [0, 1]
    scheduler, _ = _scheduler(replace(WIDE, blocks=13, policy="guaranteed_no_evict"), [(8, 13), (8, 13), (8, 5)])
    scheduler.plan()
    assert _numbers(scheduler.running) == [0, 1, 2]


def test_at_max_utilization_contexts_and_their_next_tokens_have_to_fit() -> None:
    scheduler, _ = _scheduler(replace(WIDE, blocks=8), [(8, 13), (8, 13), (8, 13)])
    scheduler.plan()
    assert _numbers(scheduler.running) == [0, 1]


def test_the_youngest_is_paused_and_comes_back_first() -> None:
    scheduler, _ = _scheduler(replace(WIDE, blocks=7, max_batch_size=3), [(7, 18), (7, 18), (7, 18), (3, 2)])
    rng = random.Random(1)
    paused: list[int] = []
    while not paused:
        plan = scheduler.plan()
        paused = _numbers(plan.paused)
        _carry_out(scheduler, plan, rng)
    assert paused == [2]
    assert _numbers(list(scheduler.waiting)) == [2, 3]
    assert scheduler.paused == 1
    assert scheduler.waiting[0].blocks == []


def test_a_context_that_began_earlier_may_take_the_pages_of_a_younger_one() -> None:
    scheduler, (old, young) = _scheduler(replace(WIDE, blocks=10, max_num_tokens=8), [(40, 1), (20, 1)])
    for sequence in (old, young):
        sequence.request.scheduled = 0
    scheduler.waiting.clear()
    scheduler.running += [old, young]
    young.blocks = [scheduler.pool.allocate(1, at) for at in range(9)]
    plan = scheduler.plan()
    assert _numbers(plan.paused) == [1]
    assert plan.context == [(old, 8)]


def test_drafts_share_the_budget_and_never_cost_a_pause() -> None:
    chosen = replace(WIDE, max_num_tokens=8, draft="ngram", draft_len=5, blocks=8)
    scheduler, sequences = _scheduler(chosen, [(7, 18), (7, 18)])
    for sequence in sequences:
        sequence.request.scheduled = 0
        sequence.in_context = False
        sequence.done = 7
        sequence.blocks = [scheduler.pool.allocate(sequence.request.id, at) for at in range(2)]
        sequence.tokens.append(1)
        sequence.request.output.append(1)
    scheduler.waiting.clear()
    scheduler.running += sequences
    assert [most for _, most in scheduler.plan().generation] == [3, 3]
    scheduler.settings = replace(chosen, max_num_tokens=100)
    for sequence in sequences:
        scheduler.rewind(sequence)
        while len(sequence.blocks) < 3 + (sequence is sequences[1]):
            sequence.blocks.append(scheduler.pool.allocate(sequence.request.id, 0))
    scheduler.pool.allocate(99, 0)
    plan = scheduler.plan()
    assert [most for _, most in plan.generation] == [4, 5]
    assert not plan.paused


def test_static_batching_lets_nobody_join_a_running_batch() -> None:
    scheduler, _ = _scheduler(replace(WIDE, batching="static", max_batch_size=2), [(4, 2), (4, 6), (4, 2)])
    rng = random.Random(1)
    batches = []
    while scheduler.running or scheduler.waiting:
        plan = scheduler.plan()
        batches.append(_numbers([sequence for sequence, _ in (*plan.generation, *plan.context)]))
        _carry_out(scheduler, plan, rng)
    assert batches == [[0, 1], [0, 1], [1], [1], [1], [1], [2], [2]]


def test_a_request_that_never_fits_is_refused() -> None:
    with pytest.raises(Usage, match="26 blocks"):
        _scheduler(replace(WIDE, blocks=25), [(90, 12)])
    scheduler, _ = _scheduler(replace(WIDE, blocks=25), [(90, 11)])
    with pytest.raises(Usage, match="25"):
        scheduler.resize(24)
    assert scheduler.pool.blocks == 25


@pytest.mark.parametrize(
    "wrong", [{"max_batch_size": 0}, {"blocks": 0}, {"host_blocks": -1}, {"policy": "x"}, {"draft": "x"}]
)
def test_settings_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(Usage):
        replace(WIDE, **wrong)  # type: ignore[arg-type]
