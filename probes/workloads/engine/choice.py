"""From the logits of a forward pass to the tokens of each request in it."""

from __future__ import annotations

from torch import Tensor

from probes.workloads.engine.request import Sequence
from probes.workloads.engine.sampling import Chosen, Draft, choose_greedy, choose_sampled, distribution, likeliest
from probes.workloads.engine.scheduler import Plan


def choose(plan: Plan, drafts: list[Draft], logits: Tensor) -> list[Chosen | None]:
    """What each part of `plan` comes to, generation first; None for chunks that do not end their context.

    `logits` (rows, entries) has one row more than drafts for each generation step, then one for each last chunk.
    """
    asked: list[tuple[Sequence, Draft | None]] = [
        (sequence, draft) for (sequence, _), draft in zip(plan.generation, drafts, strict=True)
    ]
    asked += [
        (sequence, Draft() if sequence.done + count == len(sequence.tokens) else None)
        for sequence, count in plan.context
    ]
    best = likeliest(logits)
    chosen: list[Chosen | None] = []
    row = 0
    for sequence, draft in asked:
        if draft is None:
            chosen.append(None)
            continue
        rows = slice(row, row + 1 + len(draft.tokens))
        row = rows.stop
        temperature = sequence.request.temperature
        if temperature > 0:
            chosen.append(choose_sampled(distribution(logits[rows], temperature), draft, sequence.random))
        else:
            chosen.append(choose_greedy(best[rows], draft.tokens))
    return chosen
