"""Choosing tokens from logits, and how many drafted tokens to take so that the outcome is as without drafts.

Greedy: a draft is taken as long as it is the target's own choice. Sampled, by the rejection rule: a draft d that was
drawn from q is taken with probability min(1, p(d) / q(d)), else the token is drawn from what p has more than q,
normalised. Either way each token is distributed as if drawn from p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor


@dataclass(frozen=True)
class Draft:
    """Tokens proposed for a sequence, and the distributions (tokens, entries) that each was drawn from.

    `odds` is None where each was certain: greedy, or found rather than drawn.
    """

    tokens: tuple[int, ...] = ()
    odds: Tensor | None = None


@dataclass(frozen=True)
class Chosen:
    """The first `accepted` of the drafts and one token of the target's own: `tokens` (accepted + 1)."""

    tokens: list[int]
    accepted: int


def likeliest(logits: Tensor) -> list[int]:
    """The entry with the largest logit in each row of (rows, entries): the first of them where several are."""
    if logits.device.type == "cpu":
        # A tenth of the time that torch takes for it.
        found: list[int] = logits.numpy().argmax(-1).tolist()
        return found
    return [int(entry) for entry in logits.argmax(-1).tolist()]


def distribution(logits: Tensor, temperature: float) -> Tensor:
    """Probabilities (..., entries), float64 on the CPU, of `logits` at a temperature above 0."""
    return torch.softmax(logits.to(device="cpu", dtype=torch.float64) / temperature, -1)


def draw(probabilities: Tensor, random: Random) -> int:
    """A token from one distribution (entries), which need not be normalised."""
    sums = probabilities.cumsum(-1)
    found = int(torch.searchsorted(sums, random.random() * float(sums[-1]), right=True))
    # Rounding may leave the drawn number at the very end.
    return min(found, int(torch.nonzero(probabilities)[-1]))


def choose_greedy(best: Sequence[int], drafts: Sequence[int]) -> Chosen:
    """`best` (drafts + 1): the target's choice after each of the drafts before it."""
    accepted = 0
    while accepted < len(drafts) and drafts[accepted] == best[accepted]:
        accepted += 1
    return Chosen(list(best[: accepted + 1]), accepted)


def choose_sampled(target: Tensor, draft: Draft, random: Random) -> Chosen:
    """`target` (drafts + 1, entries): the target's distribution after each of the drafts before it."""
    tokens: list[int] = []
    for at, token in enumerate(draft.tokens):
        wanted = target[at]
        offered = 1.0 if draft.odds is None else float(draft.odds[at, token])
        if random.random() * offered < float(wanted[token]):
            tokens.append(token)
            continue
        if draft.odds is None:
            rest = wanted.clone()
            rest[token] = 0.0
        else:
            rest = (wanted - draft.odds[at]).clamp_min(0.0)
        return Chosen([*tokens, draw(rest, random)], at)
    return Chosen([*tokens, draw(target[len(tokens)], random)], len(tokens))
