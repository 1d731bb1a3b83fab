"""What the engine has done so far."""

from __future__ import annotations

from dataclasses import dataclass

from probes.workloads.engine.blocks import BlockPool
from probes.workloads.engine.records import PAUSED, Iteration


@dataclass
class Counters:
    """Sums since the engine was made: they equal the sums over its iterations, steps and page events.

    `evictions` are of device pages whose content is lost; those that went to the host are `offloads`.
    """

    iterations: int = 0
    requests: int = 0
    finished: int = 0
    tokens: int = 0
    context_tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    emitted: int = 0
    pauses: int = 0
    reused_blocks: int = 0
    missed_blocks: int = 0
    evictions: int = 0
    offloads: int = 0
    restores: int = 0

    def count(self, iteration: Iteration, pool: BlockPool) -> None:
        """`iteration` has ended, `pool` is as it left it."""
        self.iterations += 1
        self.tokens += iteration.tokens
        self.context_tokens += iteration.context_tokens
        self.drafted += iteration.drafted
        self.accepted += iteration.accepted
        self.emitted += iteration.emitted
        self.pauses += sum(step.phase == PAUSED for step in iteration.steps)
        self.reused_blocks += iteration.reused_blocks
        self.missed_blocks += iteration.missed_blocks
        self.evictions, self.offloads, self.restores = pool.evictions, pool.offloads, pool.restores
