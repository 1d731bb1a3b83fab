"""What the engine tells of itself: one record per iteration, with a step for every request that took part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from inspector.trace.schema import PHASES
from probes.workloads.engine.blocks import Content, PageEvent
from probes.workloads.engine.request import Request

QUEUED, CONTEXT, GENERATION, PAUSED, FINISHED = range(len(PHASES))
TARGET_FORWARD = "target forward"


class Span(NamedTuple):
    """A named part of an iteration, on the engine's thread; ns on the monotonic clock."""

    start: int
    end: int
    name: str


class ForwardPass(NamedTuple):
    """A forward pass of a whole model, on a processor; ns on the monotonic clock, `cpu` the thread's time in it."""

    start: int
    end: int
    name: str
    cpu: int


class Step(NamedTuple):
    """What one request did in an iteration.

    `tokens` were computed by the target, from `position` on; `drafts` were checked and the first `accepted` of them
    taken; `emitted` were given out, from place `output_position` of the output on (an end cuts what was accepted).
    `blocks` are those held when the forward pass ran.
    """

    request: Request
    phase: int
    tokens: int = 0
    position: int = 0
    blocks: int = 0
    drafts: tuple[int, ...] = ()
    accepted: int = 0
    emitted: tuple[int, ...] = ()
    output_position: int = 0
    micro_batch: int = -1


@dataclass(frozen=True)
class Iteration:
    """One iteration, complete. Counts are of requests, tokens and blocks; block counts are those at its `end`.

    `spans` are the whole and its parts on the engine's thread, and how long requests were waited for before it;
    `passes` are forward passes that stand in for device work. Of the requests that were admitted in it `reused_blocks`
    of the whole context blocks were in the cache, `missed_blocks` were not. `paused_requests` wait to be taken up
    again, `queued_requests` have not begun.
    """

    number: int
    start: int
    end: int
    steps: Sequence[Step]
    spans: Sequence[Span]
    passes: Sequence[ForwardPass]
    paused_requests: int
    queued_requests: int
    used_blocks: int
    free_blocks: int
    cached_blocks: int
    host_blocks: int
    reused_blocks: int
    missed_blocks: int
    max_batch_size: int
    max_num_tokens: int
    micro_batches: int = -1
    context_requests: int = field(init=False)
    generation_requests: int = field(init=False)
    completed_requests: int = field(init=False)
    tokens: int = field(init=False)
    context_tokens: int = field(init=False)
    drafted: int = field(init=False)
    accepted: int = field(init=False)
    emitted: int = field(init=False)

    def __post_init__(self) -> None:
        phases = [step.phase for step in self.steps]
        sums = {
            "context_requests": phases.count(CONTEXT),
            "generation_requests": phases.count(GENERATION),
            "completed_requests": phases.count(FINISHED),
            "tokens": sum(step.tokens for step in self.steps),
            "context_tokens": sum(step.tokens for step in self.steps if step.phase == CONTEXT),
            "drafted": sum(len(step.drafts) for step in self.steps),
            "accepted": sum(step.accepted for step in self.steps),
            "emitted": sum(len(step.emitted) for step in self.steps),
        }
        for name, value in sums.items():
            object.__setattr__(self, name, value)


class Observer(Protocol):
    """Is told, on the engine's thread, what happens, as it happens."""

    def pool(self, time: int, blocks: int, host_blocks: int, tokens_per_block: int, block_bytes: int) -> None:
        """The pool was made, or has another size since `time`."""

    def page(self, event: PageEvent, content: Content | None) -> None:
        """A page changed hands; `content` is what it has, gets or loses by that."""

    def request(self, request: Request) -> None:
        """A request came, gave its first token, or left."""

    def iteration(self, iteration: Iteration) -> None:
        """An iteration ended."""

    def rest(self) -> None:
        """No iteration follows for now: there is nothing to do, the user has paused, or it is over."""
