from __future__ import annotations

import random
import threading
from collections import Counter
from itertools import pairwise

import pytest

from probes.workloads.engine.arrivals import BURST, Arrival, Arrivals, Prompts
from probes.workloads.engine.options import SLOWEST
from probes.workloads.engine.prompts import SYSTEM_PROMPTS
from probes.workloads.engine.tokens import ASSISTANT, USER, Tokenizer

MIX = {"faq": 0.5, "prose": 0.3, "copy": 0.2}
OUTPUTS = {"24": 0.25, "64": 0.75}
SECOND = 1_000_000_000
TOKENIZER = Tokenizer.load()


def _arrivals(
    kind: str = "poisson", rate: float = 10.0, seed: int = 1, lengths: dict[str, float] | None = None
) -> Arrivals:
    return Arrivals(kind, rate, Prompts(TOKENIZER, MIX, lengths or {"0": 1.0}, seed), OUTPUTS, seed)


def _first(count: int, arrivals: Arrivals) -> list[Arrival]:
    return arrivals.due(10**18, count)


def test_the_seed_decides_whenever_one_looks() -> None:
    rng = random.Random(1)
    at_once = _arrivals().due(20 * SECOND)
    looking, found, now = _arrivals(), [], 0
    while now < 20 * SECOND:
        now = min(now + rng.randrange(SECOND), 20 * SECOND)
        found += looking.due(now)
    assert found == at_once
    assert len(at_once) > 100
    assert _first(100, _arrivals(seed=2)) != at_once[:100]


def test_poisson_arrivals_come_at_the_rate_with_gaps_that_remember_nothing() -> None:
    offsets = [one.offset for one in _first(2000, _arrivals(rate=50.0))]
    gaps = [after - before for before, after in pairwise([0, *offsets])]
    assert min(gaps) >= 0
    mean = sum(gaps) / len(gaps)
    assert mean == pytest.approx(SECOND / 50, rel=0.08)
    assert sum(gap > mean for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.04)


def test_bursts_arrive_together_at_the_same_mean_rate() -> None:
    offsets = [one.offset for one in _first(2000, _arrivals("burst", rate=50.0))]
    sizes = list(Counter(offsets).values())[:-1]
    assert set(sizes) == set(BURST)
    assert offsets[-1] / len(offsets) == pytest.approx(SECOND / 50, rel=0.2)


@pytest.mark.parametrize("group", list(MIX))
@pytest.mark.parametrize("least", [0, 400])
def test_every_request_of_the_longest_kind_reaches_what_is_said_of_it(group: str, least: int) -> None:
    mix = {group: 1.0} if least else {**dict.fromkeys(MIX, 0.0), group: 1.0}
    arrivals = Arrivals("poisson", 1.0, Prompts(TOKENIZER, mix, {str(least): 1.0}, 1), {"9": 1.0, "99": 0.0}, 1)
    lengths = [len(one.prompt) + one.max_tokens for one in _first(100, arrivals)]
    assert arrivals.reach <= min(lengths)
    assert arrivals.reach > min(lengths) - 200
    mixed = Arrivals("poisson", 1.0, Prompts(TOKENIZER, MIX, {"0": 0.5, str(least): 0.5}, 1), OUTPUTS, 1)
    assert mixed.reach >= arrivals.reach + 64 - 9
    assert max(len(one.prompt) + one.max_tokens for one in _first(100, mixed)) >= mixed.reach


def test_the_rate_may_change_and_be_none() -> None:
    steady, changed = _arrivals(rate=10.0), _arrivals(rate=10.0)
    before = changed.due(10 * SECOND)
    changed.change_rate(0.0, 10 * SECOND)
    assert changed.next_offset is None
    assert changed.due(10**18) == []
    changed.change_rate(20.0, 30 * SECOND)
    after = _first(100, changed)
    expected = _first(len(before) + 100, steady)
    assert before == expected[: len(before)]
    for one, other in zip(after, expected[len(before) :], strict=True):
        assert one.offset == pytest.approx(30 * SECOND + (other.offset - 10 * SECOND) / 2, abs=2)
        assert one.prompt == other.prompt


@pytest.mark.parametrize("kind", ["poisson", "burst"])
def test_the_slowest_arrivals_can_be_waited_for(kind: str) -> None:
    offsets = [0, *(one.offset for one in _first(200, _arrivals(kind, SLOWEST)))]
    longest = max(after - before for before, after in pairwise(offsets))
    assert 1 / SLOWEST < longest / SECOND < threading.TIMEOUT_MAX / 10


def test_groups_and_output_lengths_come_by_their_shares() -> None:
    arrivals = _first(1500, _arrivals())
    groups = Counter(one.group for one in arrivals)
    for group, share in MIX.items():
        assert groups[group] / 1500 == pytest.approx(share, abs=0.05)
    assert Counter(one.max_tokens for one in arrivals)[64] / 1500 == pytest.approx(0.75, abs=0.05)


def test_prompts_begin_with_the_system_prompt_of_their_group_and_end_with_a_request() -> None:
    for one in _first(60, _arrivals()):
        system = TOKENIZER.chat([("system", SYSTEM_PROMPTS[one.group])], answer=False)
        assert list(one.prompt[: len(system)]) == system
        assert one.prompt[len(system)] == USER
        assert one.prompt[-1] == ASSISTANT
        assert one.prompt.count(USER) == 1


def test_long_prompts_continue_a_few_conversations() -> None:
    arrivals = _first(80, _arrivals(lengths={"600": 1.0}))
    assert all(600 <= len(one.prompt) < 1100 for one in arrivals)
    for group in MIX:
        mine = [one.prompt for one in arrivals if one.group == group]
        assert 2 <= len({prompt[:400] for prompt in mine}) <= 6
        assert len(set(mine)) > 0.9 * len(mine)
