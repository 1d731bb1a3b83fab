from __future__ import annotations

import functools
from dataclasses import replace
from itertools import count
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import strategies as st

from inspector.errors import Usage
from probes.workloads.engine.engine import Request, Settings
from probes.workloads.engine.model import load
from probes.workloads.engine.prompts import prompts
from probes.workloads.engine.records import CONTEXT, FINISHED, GENERATION, PAUSED, Iteration
from probes.workloads.engine.runner import LocalRunner
from probes.workloads.engine.tokens import Tokenizer
from tests.engine import tiny

WIDE = Settings(max_batch_size=8, max_num_tokens=64, blocks=200, tokens_per_block=4)
CONFIGURATIONS = {
    "as it comes": WIDE,
    "one at a time": replace(WIDE, max_batch_size=1),
    "large batch": replace(WIDE, max_batch_size=32, max_num_tokens=500),
    "small chunks": replace(WIDE, max_num_tokens=9),
    "one token per iteration": replace(WIDE, max_num_tokens=1, max_batch_size=2),
    "pages of one token": replace(WIDE, tokens_per_block=1, blocks=800),
    "pages of sixteen": replace(WIDE, tokens_per_block=16),
    "no reuse": replace(WIDE, reuse=False),
    "tight pool": replace(WIDE, blocks=22),
    "tight pool, no reuse": replace(WIDE, blocks=22, reuse=False),
    "tight pool, small chunks": replace(WIDE, blocks=22, max_num_tokens=7),
    "nobody is paused": replace(WIDE, blocks=22, policy="guaranteed_no_evict"),
    "host pages": replace(WIDE, blocks=22, host_blocks=40),
    "few host pages": replace(WIDE, blocks=22, host_blocks=3),
    "static": replace(WIDE, batching="static"),
    "static, tight pool": replace(WIDE, batching="static", blocks=22),
    **{f"draft model, K {k}": replace(WIDE, draft="model", draft_len=k) for k in range(1, 7)},
    **{f"n-gram, K {k}": replace(WIDE, draft="ngram", draft_len=k) for k in range(1, 7)},
    "draft model, tight pool": replace(WIDE, draft="model", blocks=22, host_blocks=6),
    "draft model, small chunks": replace(WIDE, draft="model", max_num_tokens=11),
    "draft model, static": replace(WIDE, draft="model", batching="static"),
    "n-gram, tight pool": replace(WIDE, draft="ngram", draft_len=6, blocks=22),
}


@functools.cache
def _reference(number: int) -> list[list[int]]:
    return tiny.dense(tiny.requests(number))


def _agree(engine: object, iterations: list[Iteration], asked: list[Request]) -> None:
    """Sums of the records are the requests' and the engine's own."""
    counters = engine.counters  # type: ignore[attr-defined]
    assert [iteration.number for iteration in iterations] == list(range(counters.iterations))
    for name in ("tokens", "context_tokens", "drafted", "accepted", "emitted", "reused_blocks", "missed_blocks"):
        assert sum(getattr(iteration, name) for iteration in iterations) == getattr(counters, name), name
    steps = [step for iteration in iterations for step in iteration.steps]
    assert sum(step.phase == PAUSED for step in steps) == counters.pauses == sum(one.pauses for one in asked)
    for request in asked:
        mine = [step for step in steps if step.request is request]
        assert [token for step in mine for token in step.emitted] == request.output
        assert [step.phase for step in mine].count(FINISHED) == 1
        assert mine[-1].phase == FINISHED


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_output_is_that_of_the_whole_model_over_the_whole_text(name: str) -> None:
    settings = CONFIGURATIONS[name]
    short = settings.blocks < 30
    engine = tiny.engine(settings)
    # Where pages are short, enough that many are paused.
    asked = [engine.add(request) for request in tiny.requests(90)[: 90 if short else 40]]
    iterations = tiny.run(engine)
    assert [request.output for request in asked] == _reference(90)[: len(asked)]
    _agree(engine, iterations, asked)
    assert iterations[-1].used_blocks == 0
    assert {request.reason for request in asked} == {"stop", "length"}
    counters = engine.counters
    for iteration in iterations:
        assert iteration.context_requests + iteration.generation_requests <= settings.max_batch_size
        assert iteration.tokens <= settings.max_num_tokens
    # That each configuration brings about what it is there for.
    assert (counters.drafted > 0) == (settings.draft != "none")
    assert (counters.accepted > 0) == (settings.draft != "none")
    assert (counters.reused_blocks > 0) == settings.reuse
    assert (counters.restores > 0) == (settings.host_blocks > 0)
    assert (counters.pauses >= 20) == (short and settings.policy == "max_utilization")


@pytest.mark.parametrize("draft", ["model", "ngram"])
def test_two_hundred_prompts_give_the_same_with_drafts_and_pauses(draft: str) -> None:
    settings = Settings(
        max_batch_size=16, max_num_tokens=80, blocks=45, tokens_per_block=4, host_blocks=20, draft=draft, draft_len=5
    )
    engine = tiny.engine(settings)
    asked = [engine.add(request) for request in tiny.requests(200)]
    tiny.run(engine)
    assert engine.counters.pauses >= 20
    assert engine.counters.accepted >= 20
    assert [request.output for request in asked] == _reference(200)


def test_the_trained_models_give_the_same_text_with_drafts() -> None:
    tokenizer = Tokenizer.load()
    texts = {group: prompts(group, 1) for group in ("faq", "prose", "copy")}
    asked = [tuple(tokenizer.chat(next(texts[group]).messages)) for _ in range(4) for group in texts]
    outputs, accepted = [], []
    for draft, blocks in (("none", 400), ("model", 400), ("ngram", 400), ("model", 40)):
        settings = Settings(max_batch_size=6, blocks=blocks, draft=draft, draft_len=4)
        # In double precision: another processor's rounding is not to decide between two tokens.
        models = [load(which, dtype=torch.float64) for which in ("target", "draft")]
        runners = [LocalRunner(model, blocks, settings.tokens_per_block) for model in models]
        engine = tiny.Engine(settings, *runners)
        made = [engine.add(Request(prompt, 24)) for prompt in asked]
        tiny.run(engine)
        outputs.append([request.output for request in made])
        accepted.append(engine.counters.accepted)
    assert outputs[1] == outputs[2] == outputs[3] == outputs[0]
    assert accepted[0] == 0
    assert accepted[1] > 50
    assert engine.counters.pauses > 0


def test_everything_may_change_while_it_runs() -> None:
    engine = tiny.engine(replace(WIDE, host_blocks=10))
    asked = [engine.add(request) for request in tiny.requests(60)]
    changes = [
        {"draft": "model"},
        {"max_batch_size": 2},
        {"blocks": 20},
        {"draft": "ngram", "draft_len": 2},
        {"max_batch_size": 20, "max_num_tokens": 12},
        {"policy": "guaranteed_no_evict"},
        {"draft": "model", "draft_len": 6},
        {"blocks": 60, "max_num_tokens": 100},
        {"draft": "none"},
        {"blocks": 21, "policy": "max_utilization"},
        {"blocks": 300, "draft": "model"},
    ]
    iterations = []
    for number in count():
        if number % 6 == 5:
            engine.change(**changes[number // 6 % len(changes)])
        iteration = engine.step()
        if iteration is None:
            break
        assert len(iteration.steps) - iteration.completed_requests <= 2 * 20
        iterations.append(iteration)
    assert len(iterations) > 6 * len(changes)
    assert [request.output for request in asked] == _reference(60)
    _agree(engine, iterations, asked)


LIVE = st.fixed_dictionaries(
    {},
    optional={
        "max_batch_size": st.integers(1, 12),
        "max_num_tokens": st.sampled_from([1, 7, 20, 64]),
        "blocks": st.integers(20, 60),
        "policy": st.sampled_from(["max_utilization", "guaranteed_no_evict"]),
        "draft": st.sampled_from(["none", "model", "ngram"]),
        "draft_len": st.integers(1, 7),
    },
)


@hypothesis.settings(max_examples=12, deadline=None)
@hypothesis.given(
    LIVE, st.sampled_from([0, 3, 30]), st.sampled_from(["inflight", "static"]), st.booleans(), st.lists(LIVE), st.data()
)
def test_whatever_changes_whenever(
    first: dict[str, Any], host: int, batching: str, reuse: bool, changes: list[dict[str, Any]], data: st.DataObject
) -> None:
    settings = replace(WIDE, host_blocks=host, batching=batching, reuse=reuse, **{"blocks": 40, **first})
    engine = tiny.engine(settings)
    asked = tiny.requests(90)[:20]
    queue, iterations = list(asked), []
    cancelled = data.draw(st.sets(st.sampled_from(asked), max_size=3))
    while queue or engine.requests:
        for request in queue[:2]:
            engine.add(request)
        del queue[:2]
        if changes and len(iterations) % 7 == 6:
            engine.change(**changes.pop())
        if (iteration := engine.step()) is not None:
            iterations.append(iteration)
        for request in cancelled:
            if request.reason is None and len(request.output) > 2:
                engine.cancel(request)
    iterations += tiny.run(engine)
    for request, output in zip(asked, _reference(90), strict=False):
        assert request.output == (output[: len(request.output)] if request.reason == "cancelled" else output)
    _agree(engine, iterations, asked)


def test_a_smaller_pool_pauses_who_holds_a_page_that_goes() -> None:
    engine = tiny.engine(WIDE)
    for request in tiny.requests(8):
        engine.add(request)
    before = [engine.step() for _ in range(3)][-1]
    assert before is not None
    assert before.used_blocks > 20
    engine.change(blocks=20)
    after = engine.step()
    assert after is not None
    paused = [step for step in after.steps if step.phase == PAUSED]
    assert paused
    assert after.paused_requests == len(paused) == engine.counters.pauses
    assert after.used_blocks + after.free_blocks == 20


def test_what_cannot_be_is_refused_and_changes_nothing() -> None:
    engine = tiny.engine(WIDE)
    engine.add(Request((1,) * 30, 20))
    for changes in ({"blocks": 12}, {"draft_len": 0}, {"policy": "luck"}, {"reuse": False}, {"speed": 2}):
        with pytest.raises(Usage):
            engine.change(**changes)
    with pytest.raises(Usage, match="prompt"):
        engine.add(Request((), 4))
    with pytest.raises(Usage, match="1 token"):
        engine.add(Request((1,), 0))
    with pytest.raises(Usage, match="the model has 256 positions"):
        engine.add(Request((1,) * 250, 7))
    engine.change(blocks=13)
    with pytest.raises(Usage, match="the pool has 13 blocks of 4 tokens"):
        engine.add(Request((1,) * 40, 14))
    assert engine.add(Request((1,) * 40, 13)).id == 1
    assert engine.settings == replace(WIDE, blocks=13)
    with pytest.raises(Usage, match="without one"):
        tiny.Engine(replace(WIDE, draft="model"), LocalRunner(tiny.target(), 200, 4))
    tiny.run(engine)


def test_a_cancelled_request_leaves_at_once_with_what_it_has() -> None:
    engine = tiny.engine(replace(WIDE, max_batch_size=2))
    running, other, queued = (engine.add(Request((at, 9, 3), 40, end=None)) for at in range(3))
    for _ in range(5):
        engine.step()
    assert engine.cancel(running)
    assert engine.cancel(queued)
    assert not engine.cancel(queued)
    last = engine.step()
    assert last is not None
    assert [step.request for step in last.steps if step.phase == FINISHED] == [running, queued]
    assert (running.reason, len(running.output), queued.output) == ("cancelled", 5, [])
    tiny.run(engine)
    assert other.output == tiny.dense([other])[0]
    assert engine.counters.finished == 3


def test_stopping_ends_all_that_runs() -> None:
    engine = tiny.engine(replace(WIDE, max_batch_size=2))
    asked = [engine.add(request) for request in tiny.requests(5)]
    engine.step()
    last = engine.stop()
    assert last is not None
    assert last.completed_requests == 5
    assert last.used_blocks == 0
    assert {request.reason for request in asked} == {"cancelled"}
    assert engine.step() is None
    assert engine.stop() is None


def test_requests_of_one_prefix_share_its_pages() -> None:
    engine = tiny.engine(WIDE)
    prompt = tuple(range(20, 33))
    first = engine.add(Request(prompt, 2, end=None))
    engine.step()
    second = engine.add(Request(prompt, 2, end=None))
    iteration = engine.step()
    assert iteration is not None
    assert (first.reused_tokens, second.reused_tokens) == (0, 12)
    assert (iteration.reused_blocks, iteration.missed_blocks, iteration.used_blocks) == (3, 0, 4)


def test_the_last_token_of_a_prompt_is_always_computed() -> None:
    engine = tiny.engine(WIDE)
    prompt = tuple(range(20, 32))
    for _ in range(2):
        request = engine.add(Request(prompt, 1, end=None))
        tiny.run(engine)
    assert request.reused_tokens == 8
    assert request.output == tiny.dense([request])[0]


def test_pages_made_without_a_draft_model_are_not_reused_with_one() -> None:
    engine = tiny.engine(WIDE)
    prompt = tuple(range(20, 33))
    reused = []
    for draft in ("none", "model", "model", "none"):
        engine.change(draft=draft)
        request = engine.add(Request(prompt, 6, end=None))
        tiny.run(engine)
        reused.append(request.reused_tokens)
    assert reused == [0, 0, 12, 12]


def test_pages_that_the_draft_model_has_not_filled_are_not_reused() -> None:
    # A target that drafts for itself is always right, unless its cache has a hole where all drafts were accepted.
    settings = replace(WIDE, draft="model", tokens_per_block=1, blocks=500)
    engine = tiny.Engine(settings, *(LocalRunner(tiny.target(), 500, 1) for _ in range(2)))
    prompt: tuple[int, ...] = (5, 9, 20)
    for turn in range(4):
        request = engine.add(Request(prompt, 15, end=None))
        tiny.run(engine)
        assert (request.reused_tokens > 0) == (turn > 0)
        assert request.output == tiny.dense([request])[0]
        prompt = (*prompt, *request.output, turn)
    assert engine.counters.accepted == engine.counters.drafted > 0


def test_acceptance_counts_before_an_end_cuts_and_output_after() -> None:
    # A target that drafts for itself is always right.
    settings = replace(WIDE, draft="model", draft_len=6)
    engine = tiny.Engine(settings, *(LocalRunner(tiny.target(), 200, 4) for _ in range(2)))
    asked = [engine.add(request) for request in tiny.requests(90)]
    steps = [step for iteration in tiny.run(engine) for step in iteration.steps]
    assert all(step.accepted == len(step.drafts) for step in steps)
    cut = [step for step in steps if step.phase == GENERATION and len(step.emitted) <= step.accepted]
    assert cut
    assert all(step.emitted[-1] == tiny.END for step in cut)
    assert all(step.request.reason == "stop" for step in cut)
    assert all(len(step.drafts) < step.request.max_tokens - step.output_position for step in steps if step.drafts)
    assert [request.output for request in asked] == _reference(90)


def test_times_of_a_request_are_in_order() -> None:
    engine = tiny.engine(WIDE)
    asked = [engine.add(request) for request in tiny.requests(20)]
    given = engine.add(Request((1, 2), 3, arrival=5))
    iterations = tiny.run(engine)
    assert given.arrival == 5
    for request in asked:
        times = (request.arrival, request.scheduled, request.first_token, request.last_token, request.finished)
        assert list(times) == sorted(times)  # type: ignore[type-var]
    for iteration in iterations:
        begin, *rest = iteration.spans
        assert (begin.name, begin.start, begin.end) == ("iteration", iteration.start, iteration.end)
        assert all(iteration.start <= span.start <= span.end <= iteration.end for span in rest)
        assert [span.name for span in rest if span.name != "draft"] == [
            "schedule",
            "target forward",
            "sample",
            "update",
        ]
        assert [span.name for span in iteration.passes] == ["target forward"]
        contexts = [step for step in iteration.steps if step.phase == CONTEXT]
        assert sum(step.tokens for step in contexts) == iteration.context_tokens
