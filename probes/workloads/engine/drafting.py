"""Who proposes tokens: a smaller model over its own cache, or the sequence itself, by what followed its last n-gram."""

from __future__ import annotations

import collections.abc
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from probes.workloads.engine.packing import Piece
from probes.workloads.engine.request import Sequence
from probes.workloads.engine.runner import Result, Runner
from probes.workloads.engine.sampling import Draft, distribution, draw, likeliest

Work = collections.abc.Sequence[tuple[Sequence, int]]
Forward = Callable[[list[Piece], Runner], Result]


class Drafter(Protocol):
    """Proposes tokens."""

    def draft(self, work: Work) -> list[Draft]:
        """For each sequence at most as many tokens as the number beside it."""

    def follow(self, chunks: Work) -> None:
        """Of each sequence that many tokens of context have just been computed by the target."""


class NoDrafter:
    """Proposes nothing."""

    def draft(self, work: Work) -> list[Draft]:
        """See Drafter."""
        return [Draft()] * len(work)

    def follow(self, chunks: Work) -> None:
        """See Drafter."""


class ModelDrafter:
    """Runs a smaller model through `forward`, one token at a time, on the same block tables.

    `Sequence.drafted` is how far its cache is filled; what is missing is computed when it next proposes.
    """

    def __init__(self, runner: Runner, forward: Forward) -> None:
        self._runner = runner
        self._forward = forward

    def draft(self, work: Work) -> list[Draft]:
        """See Drafter. Tokens of sampled requests are drawn at their temperature."""
        drafts: list[list[int]] = [[] for _ in work]
        odds: list[list[Tensor]] = [[] for _ in work]
        for step in range(max((most for _, most in work), default=0)):
            taking = [at for at, (_, most) in enumerate(work) if step < most]
            pieces = []
            for at in taking:
                sequence = work[at][0]
                known = len(sequence.tokens) - sequence.drafted
                tokens = sequence.tokens[-known:] if step == 0 else drafts[at][-1:]
                pieces.append(Piece(tokens, sequence.drafted, sequence.blocks, 1))
                sequence.drafted += len(tokens)
            logits = self._forward(pieces, self._runner).logits
            best = likeliest(logits)
            for row, at in enumerate(taking):
                request = work[at][0].request
                if request.temperature > 0:
                    odds[at].append(distribution(logits[row], request.temperature))
                    drafts[at].append(draw(odds[at][-1], work[at][0].random))
                else:
                    drafts[at].append(best[row])
        return [
            Draft(tuple(tokens), torch.stack(drawn) if drawn else None)
            for tokens, drawn in zip(drafts, odds, strict=True)
        ]

    def follow(self, chunks: Work) -> None:
        """See Drafter."""
        pieces = []
        for sequence, count in chunks:
            end = sequence.done + count
            pieces.append(Piece(sequence.tokens[sequence.drafted : end], sequence.drafted, sequence.blocks, 1))
            sequence.drafted = end
        if pieces:
            self._forward(pieces, self._runner)


@dataclass
class _Seen:
    """Where each n-gram of a sequence ended last, by n; those that end before `upto` are in."""

    ends: dict[int, dict[tuple[int, ...], int]] = field(default_factory=dict)
    upto: int = 0


class NgramDrafter:
    """Proposes what followed when the last three tokens, or else the last two, occurred before."""

    LENGTHS = (3, 2)

    def __init__(self) -> None:
        self._seen: weakref.WeakKeyDictionary[Sequence, _Seen] = weakref.WeakKeyDictionary()

    def draft(self, work: Work) -> list[Draft]:
        """See Drafter."""
        return [Draft(tuple(self._find(sequence, most))) for sequence, most in work]

    def follow(self, chunks: Work) -> None:
        """See Drafter."""

    def _find(self, sequence: Sequence, most: int) -> list[int]:
        seen = self._seen.setdefault(sequence, _Seen())
        tokens = sequence.tokens
        for length in self.LENGTHS:
            ends = seen.ends.setdefault(length, {})
            # The n-gram at the very end is not in: it would find itself.
            for end in range(max(length, seen.upto), len(tokens)):
                ends[tuple(tokens[end - length : end])] = end
        seen.upto = len(tokens)
        for length in self.LENGTHS:
            end = seen.ends[length].get(tuple(tokens[-length:]), -1)
            if end >= 0:
                return tokens[end : end + most]
        return []
