from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.workloads.engine.engine import Request, Settings
from probes.workloads.engine.sampling import Draft, choose_greedy, choose_sampled, distribution, draw, likeliest
from tests.engine import tiny


def _chi_square(found: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> tuple[float, int]:
    """Pearson's sum, and its degrees of freedom; `expected` are counts. What is rare is one class."""
    rare = [key for key, count in expected.items() if count < 8]
    classes = [([key], count) for key, count in expected.items() if count >= 8]
    if rare:
        classes.append((rare, sum(expected[key] for key in rare)))
    return sum((sum(found[key] for key in keys) - count) ** 2 / count for keys, count in classes), len(classes) - 1


def _limit(freedom: int) -> float:
    """What Pearson's sum exceeds once in about 3,500 times (Wilson and Hilferty)."""
    part = 2 / (9 * freedom)
    return freedom * (1 - part + 3.45 * math.sqrt(part)) ** 3


def _assert_drawn_from(found: Iterable[tuple[int, ...]], odds: dict[tuple[int, ...], float]) -> None:
    counts = Counter(found)
    assert set(counts) <= set(odds)
    total = sum(counts.values())
    value, freedom = _chi_square(counts, {key: share * total for key, share in odds.items()})
    assert value < _limit(freedom)


def _sequences(first: list[float], after: list[list[float]]) -> dict[tuple[int, ...], float]:
    """Odds of pairs of tokens, the second one's depending on the first."""
    pairs = {(a, b): first[a] * after[a][b] for a in range(len(first)) for b in range(len(first))}
    return {pair: odds for pair, odds in pairs.items() if odds > 0}


FIRST = [0.5, 0.3, 0.15, 0.05]
AFTER = [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0.0, 0.5, 0.5, 0.0]]
OFFERED = [0.2, 0.2, 0.2, 0.4]
OFFERED_AFTER = [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.97, 0.01, 0.01, 0.01], [0.25, 0.25, 0.25, 0.25]]


def _two_tokens(drawn: bool, rng: random.Random) -> tuple[int, int]:
    """Two tokens by as many rounds as it takes, with two drafts each: drawn from OFFERED, or always the same."""
    made: list[int] = []
    while len(made) < 2:
        drafts: list[int] = []
        odds = []
        while len(made) + len(drafts) < 2:
            before = [*made, *drafts]
            row = torch.tensor(OFFERED_AFTER[before[-1]] if before else OFFERED, dtype=torch.float64)
            odds.append(row)
            drafts.append(draw(row, rng) if drawn else (1, 2)[len(before)])
        rows = [AFTER[token] if token >= 0 else FIRST for token in [*(made or [-1])[-1:], *drafts]]
        draft = Draft(tuple(drafts), torch.stack(odds) if drawn else None)
        made += choose_sampled(torch.tensor(rows, dtype=torch.float64), draft, rng).tokens
    return made[0], made[1]


@pytest.mark.parametrize("drawn", [True, False])
def test_tokens_with_drafts_are_distributed_as_without(drawn: bool) -> None:
    rng = random.Random(7)
    _assert_drawn_from((_two_tokens(drawn, rng) for _ in range(12_000)), _sequences(FIRST, AFTER))


def test_the_test_of_the_distribution_notices_a_wrong_rule() -> None:
    # Every draft taken: the tokens are those of the drafter.
    rng = random.Random(7)
    offered = torch.tensor(OFFERED, dtype=torch.float64)
    with pytest.raises(AssertionError):
        _assert_drawn_from(((draw(offered, rng),) for _ in range(3_000)), {(at,): p for at, p in enumerate(FIRST)})


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda odds: sum(odds) > 0), st.integers(0, 1000))
def test_what_has_no_chance_is_never_drawn(odds: list[float], seed: int) -> None:
    rng = random.Random(seed)
    drawn = {draw(torch.tensor(odds, dtype=torch.float64), rng) for _ in range(20)}
    assert all(odds[token] > 0 for token in drawn)


def test_a_draft_as_likely_as_the_target_has_it_is_always_taken() -> None:
    rng = random.Random(1)
    rows = torch.tensor([FIRST, FIRST, FIRST], dtype=torch.float64)
    for _ in range(300):
        tokens = tuple(draw(row, rng) for row in rows[:2])
        assert choose_sampled(rows, Draft(tokens, rows[:2]), rng).accepted == 2


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.data())
def test_greedy_takes_drafts_as_long_as_they_are_right(best: list[int], data: st.DataObject) -> None:
    size = len(best) - 1
    drafts = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    chosen = choose_greedy(best, drafts)
    wrong = [at for at, (draft, right) in enumerate(zip(drafts, best[:-1], strict=True)) if draft != right]
    assert chosen.accepted == (wrong[0] if wrong else size)
    assert chosen.tokens == best[: chosen.accepted + 1]


def test_temperature_flattens() -> None:
    logits = torch.tensor([2.0, 1.0, 0.0])
    weights = [math.exp(2), math.e, 1.0]
    assert distribution(logits, 1.0).tolist() == pytest.approx([weight / sum(weights) for weight in weights])
    assert distribution(logits, 100.0).tolist() == pytest.approx([1 / 3] * 3, abs=0.01)


def _dense_odds(prompt: tuple[int, ...], entries: int, temperature: float) -> dict[tuple[int, ...], float]:
    """Odds of all outputs of four tokens, by the whole model over the whole text."""
    odds: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(4):
        heads = list(odds)
        logits = tiny.target(entries)(torch.tensor([[*prompt, *head] for head in heads]))[:, -1]
        rows = distribution(logits, temperature).tolist()
        odds = {
            (*head, token): odds[head] * rows[at][token] for at, head in enumerate(heads) for token in range(entries)
        }
    return odds


@pytest.mark.parametrize("draft", ["none", "model", "ngram"])
def test_the_engine_samples_from_the_target_whoever_drafts(draft: str) -> None:
    entries, prompt, temperature = 4, (3, 1, 0, 1, 2, 3, 1), 3.0
    settings = Settings(max_batch_size=64, max_num_tokens=600, blocks=400, tokens_per_block=4, draft=draft, draft_len=2)
    engine = tiny.engine(settings, entries=entries, noise=0.3)
    asked = [engine.add(Request(prompt, 4, temperature, seed, end=None)) for seed in range(3000)]
    tiny.run(engine)
    assert (engine.counters.accepted > 300) == (draft != "none")
    assert (engine.counters.drafted - engine.counters.accepted > 300) == (draft != "none")
    _assert_drawn_from((tuple(request.output) for request in asked), _dense_odds(prompt, entries, temperature))


def test_the_same_seed_gives_the_same_tokens() -> None:
    outputs = []
    for _ in range(2):
        engine = tiny.engine(Settings(blocks=100, tokens_per_block=4, draft="model"))
        asked = [engine.add(Request((3, 1, 4), 12, 2.0, seed, end=None)) for seed in (1, 2, 1)]
        tiny.run(engine)
        outputs.append([request.output for request in asked])
    assert outputs[0] == outputs[1]
    assert outputs[0][0] == outputs[0][2] != outputs[0][1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_likeliest_is_the_first_of_the_largest(dtype: torch.dtype) -> None:
    rows = torch.tensor([[1.0, 3, 3, 2], [-5, -6, -7, -5], [0, 0, 0, 9]], dtype=dtype)
    assert likeliest(rows) == [1, 0, 3]
    assert likeliest(rows[:0]) == []
