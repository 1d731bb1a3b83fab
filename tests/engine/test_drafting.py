from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.workloads.engine.drafting import ModelDrafter, NgramDrafter, NoDrafter
from probes.workloads.engine.packing import Piece
from probes.workloads.engine.request import Request, Sequence
from probes.workloads.engine.runner import LocalRunner, Result, Runner
from probes.workloads.engine.sampling import distribution
from tests.engine import tiny


def _sequence(tokens: list[int], temperature: float = 0.0) -> Sequence:
    return Sequence(Request(tuple(tokens), 100, temperature))


def _looked_up(tokens: list[int], most: int) -> list[int]:
    """What followed the latest earlier place of the last three tokens, or else of the last two."""
    for length in (3, 2):
        for end in range(len(tokens) - 1, length - 1, -1):
            if len(tokens) >= length and tokens[end - length : end] == tokens[-length:]:
                return tokens[end : end + most]
    return []


@settings(max_examples=200)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=12), st.integers(1, 6))
def test_n_grams_are_those_that_a_look_back_finds(parts: list[list[int]], most: int) -> None:
    drafter = NgramDrafter()
    sequence = _sequence(parts[0])
    for part in parts[1:]:
        (draft,) = drafter.draft([(sequence, most)])
        assert list(draft.tokens) == _looked_up(sequence.tokens, most)
        assert draft.odds is None
        sequence.tokens += part


def test_n_grams_of_other_sequences_are_not_looked_at() -> None:
    drafter = NgramDrafter()
    repeats, other = _sequence([1, 2, 3, 1, 2]), _sequence([4, 1, 2])
    assert [draft.tokens for draft in drafter.draft([(repeats, 4), (other, 4)])] == [(3, 1, 2), ()]


class Passes:
    """Runs the pieces of a drafter, and keeps how long they were."""

    def __init__(self) -> None:
        self.runner = LocalRunner(tiny.draft(), 60, 4)
        self.lengths: list[list[int]] = []

    def __call__(self, pieces: list[Piece], runner: Runner) -> Result:
        assert runner is self.runner
        self.lengths.append([len(piece.tokens) for piece in pieces])
        return runner.forward(pieces, 0)


def _greedy(tokens: list[int], count: int) -> list[int]:
    made: list[int] = []
    for _ in range(count):
        made.append(int(tiny.draft()(torch.tensor([[*tokens, *made]]))[0, -1].argmax()))
    return made


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_model_drafts_as_if_it_read_the_whole_text(data: st.DataObject) -> None:
    passes = Passes()
    drafter = ModelDrafter(passes.runner, passes)
    tokens = st.lists(st.integers(0, 39), min_size=1, max_size=8)
    sequences = [_sequence(data.draw(tokens)) for _ in range(3)]
    for at, sequence in enumerate(sequences):
        sequence.blocks = list(range(20 * at, 20 * at + 20))
    for _ in range(4):
        work = [(sequence, data.draw(st.integers(0, 4))) for sequence in sequences]
        drafts = drafter.draft(work)
        for (sequence, most), draft in zip(work, drafts, strict=True):
            assert list(draft.tokens) == _greedy(sequence.tokens, most)
            # Some of it is accepted, the target adds one of its own, and what was wrong is to be forgotten.
            accepted = data.draw(st.integers(0, len(draft.tokens)))
            sequence.tokens += [*draft.tokens[:accepted], data.draw(st.integers(0, 39))]
            sequence.done = len(sequence.tokens) - 1
            sequence.drafted = min(sequence.drafted, sequence.done)
    assert all(min(lengths) >= 1 for lengths in passes.lengths)


def test_a_model_follows_context_so_that_its_first_draft_takes_one_token() -> None:
    passes = Passes()
    drafter = ModelDrafter(passes.runner, passes)
    sequence = _sequence(list(range(12)))
    sequence.blocks = [7, 3, 5, 1]
    for _ in range(3):
        drafter.follow([(sequence, 4)])
        sequence.done += 4
    assert sequence.drafted == 12
    sequence.tokens.append(9)
    (draft,) = drafter.draft([(sequence, 2)])
    assert list(draft.tokens) == _greedy(sequence.tokens, 2)
    assert passes.lengths == [[4], [4], [4], [1], [1]]


def test_sampled_drafts_come_with_the_odds_they_were_drawn_from() -> None:
    passes = Passes()
    sequence = _sequence([3, 1, 4], temperature=1.5)
    sequence.blocks = [2, 0]
    (draft,) = ModelDrafter(passes.runner, passes).draft([(sequence, 3)])
    assert draft.odds is not None
    assert draft.odds.shape == (3, 40)
    for at in range(3):
        logits = tiny.draft()(torch.tensor([[3, 1, 4, *draft.tokens[:at]]]))[0, -1]
        assert draft.odds[at].tolist() == pytest.approx(distribution(logits, 1.5).tolist())
        assert draft.odds[at, draft.tokens[at]] > 0


def test_no_drafter_drafts_nothing() -> None:
    assert [draft.tokens for draft in NoDrafter().draft([(_sequence([1, 1, 1, 1]), 4)])] == [()]
