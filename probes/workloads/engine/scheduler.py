"""Who takes part in the next iteration, with how many tokens, on which pages: in-flight batching on a paged cache.

Oldest first: generation steps (one token and up to K drafts each), then chunks of contexts, then new requests, until
max_batch_size or max_num_tokens is reached. When pages run out the youngest request that is not in the plan yet is
paused: it loses its pages, goes back to the head of the queue and is computed again later.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from inspector.errors import Usage
from probes.workloads.engine.blocks import BlockPool, Content
from probes.workloads.engine.request import Sequence

POLICIES = ("guaranteed_no_evict", "max_utilization")
BATCHINGS = ("inflight", "static")
DRAFTS = ("none", "model", "ngram")
DRAFTED = "drafted"
"""Salt of blocks that are complete in the drafter's cache too. Others would leave holes in it."""


@dataclass(frozen=True)
class Settings:
    """How the engine batches, pages and drafts. Raises Usage for what cannot be.

    `batching` static: nobody joins until the whole batch is done. `draft_len` is K, the most tokens drafted per step.
    `host_blocks`, `tokens_per_block`, `batching` and `reuse` stay as they are while the engine runs.
    """

    max_batch_size: int = 16
    max_num_tokens: int = 256
    blocks: int = 192
    tokens_per_block: int = 16
    host_blocks: int = 0
    policy: str = "max_utilization"
    batching: str = "inflight"
    reuse: bool = True
    draft: str = "none"
    draft_len: int = 4

    def __post_init__(self) -> None:
        for name in ("max_batch_size", "max_num_tokens", "blocks", "tokens_per_block", "draft_len"):
            if getattr(self, name) < 1:
                raise Usage(f"{name} {getattr(self, name)}", "it must be 1 or more")
        if self.host_blocks < 0:
            raise Usage(f"host_blocks {self.host_blocks}", "it must be 0 or more")
        for name, choices in (("policy", POLICIES), ("batching", BATCHINGS), ("draft", DRAFTS)):
            if getattr(self, name) not in choices:
                raise Usage(f"{name} {getattr(self, name)!r}", f"it must be one of {', '.join(choices)}")


LIVE = ("max_batch_size", "max_num_tokens", "blocks", "policy", "draft", "draft_len")


def changed(settings: Settings, changes: dict[str, object]) -> Settings:
    """`settings` with `changes`. Raises Usage for what cannot be changed while the engine runs."""
    for name in changes:
        if name not in LIVE:
            raise Usage(f"{name} cannot be changed while the engine runs", "", f"these can: {', '.join(LIVE)}")
    return replace(settings, **changes)  # type: ignore[arg-type]


@dataclass
class Plan:
    """One iteration to be: generation steps with the drafts that each may have, context chunks with their tokens.

    `paused` lost their pages while it was made.
    """

    generation: list[tuple[Sequence, int]] = field(default_factory=list)
    context: list[tuple[Sequence, int]] = field(default_factory=list)
    paused: list[Sequence] = field(default_factory=list)
    reused_blocks: int = 0
    missed_blocks: int = 0

    def __bool__(self) -> bool:
        return bool(self.generation or self.context)

    def __contains__(self, sequence: Sequence) -> bool:
        return any(planned is sequence for planned, _ in (*self.generation, *self.context))


class Scheduler:
    """The queue and the batch. `running` is in order of arrival; `waiting` has the paused ones first."""

    def __init__(self, settings: Settings, pool: BlockPool) -> None:
        self.settings = settings
        self.pool = pool
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._paused: list[Sequence] = []

    @property
    def paused(self) -> int:
        """How many wait to be taken up again."""
        return sum(1 for sequence in self.waiting if sequence.request.scheduled is not None)

    def add(self, sequence: Sequence) -> None:
        """Put a new request at the end of the queue. Raises Usage when it could never fit into the pool."""
        need = sequence.worst_case(self.settings.tokens_per_block)
        if need > self.settings.blocks:
            raise Usage(f"a request may need {need} blocks", f"the pool has {self.settings.blocks}", "raise --blocks")
        self.waiting.append(sequence)

    def leave(self, sequence: Sequence) -> None:
        """Take a request out, wherever it stands; its blocks are given back."""
        if sequence in self.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)
        self._release(sequence)

    def plan(self) -> Plan:
        """Decide on the next iteration and take the pages for it."""
        plan = Plan(paused=self._paused)
        self._paused = []
        while len(self.running) > self.settings.max_batch_size:
            self._pause(self.running[-1], plan.paused)
        budget = self._plan_generation(plan, self.settings.max_num_tokens)
        budget = self._plan_context(plan, budget)
        if not plan.paused:
            self._admit(plan, budget)
        return plan

    def publish(self, sequence: Sequence) -> None:
        """Register the blocks of `sequence` that are full by now: in the drafter's cache too where its salt says so."""
        size = self.settings.tokens_per_block
        full = (min(sequence.done, sequence.drafted) if sequence.salt else sequence.done) // size
        if not self.settings.reuse or full <= sequence.published:
            return
        for at, content in enumerate(sequence.contents(full, size)[sequence.published :], sequence.published):
            self.pool.publish(sequence.blocks[at], sequence.request.id, content)
        sequence.published = full

    def rewind(self, sequence: Sequence) -> None:
        """Give back the blocks past the tokens that are valid: they were taken for drafts that were rejected."""
        keep = -(-sequence.done // self.settings.tokens_per_block)
        while len(sequence.blocks) > keep:
            self.pool.release(sequence.blocks.pop(), sequence.request.id)

    def resize(self, blocks: int) -> None:
        """Make the pool `blocks` large; who holds a block that goes is paused. Raises Usage if one could never fit."""
        need = max(
            (seq.worst_case(self.settings.tokens_per_block) for seq in (*self.running, *self.waiting)), default=0
        )
        if need > blocks:
            raise Usage(f"blocks {blocks}", f"a request that is there may need {need}")
        for sequence in reversed(self.running[:]):
            if any(block >= blocks for block in sequence.blocks):
                self._pause(sequence, self._paused)
        self.pool.resize(blocks)

    def _plan_generation(self, plan: Plan, budget: int) -> int:
        ready = sum(not sequence.in_context for sequence in self.running)
        share = budget // ready - 1 if ready else 0
        for sequence in self.running[:]:
            if sequence.in_context or sequence not in self.running:
                continue
            if budget < 1:
                break
            drafts = 0
            if self.settings.draft != "none":
                # Drafts are not worth a pause: they get what room there is.
                size = self.settings.tokens_per_block
                room = (len(sequence.blocks) + self.pool.available) * size - len(sequence.tokens)
                drafts = max(min(self.settings.draft_len, sequence.request.left - 1, share, room), 0)
            if self._grow(sequence, len(sequence.tokens) + drafts, plan):
                plan.generation.append((sequence, drafts))
                budget -= 1 + drafts
        return budget

    def _plan_context(self, plan: Plan, budget: int) -> int:
        for sequence in self.running[:]:
            if sequence.in_context and sequence in self.running and budget > 0:
                budget -= self._chunk(sequence, plan, budget)
        return budget

    def _chunk(self, sequence: Sequence, plan: Plan, budget: int) -> int:
        count = min(len(sequence.tokens) - sequence.done, budget)
        if not self._grow(sequence, sequence.done + count, plan):
            return 0
        plan.context.append((sequence, count))
        return count

    def _admit(self, plan: Plan, budget: int) -> None:
        static = self.settings.batching == "static"
        closed = static and bool(self.running)
        while self.waiting and len(self.running) < self.settings.max_batch_size and budget > 0:
            sequence = self.waiting[0]
            again = sequence.request.scheduled is not None
            if (closed and not again) or not self._fits(sequence):
                break
            self.waiting.popleft()
            self._match(sequence, plan)
            at = next((i for i, other in enumerate(self.running) if other.request.id > sequence.request.id), None)
            self.running.insert(len(self.running) if at is None else at, sequence)
            budget -= self._chunk(sequence, plan, budget)

    def _fits(self, sequence: Sequence) -> bool:
        """Whether `sequence` may join: all that the others may still take, and its own need, is there."""
        promised = sum(self._need(other) - len(other.blocks) for other in self.running)
        shared = 0
        for content in self._cacheable(sequence):
            block = self.pool.find(content.hash)
            if block is None or not self.pool.references(block):
                break
            shared += 1
        return promised + self._need(sequence) - shared <= self.pool.available

    def _need(self, sequence: Sequence) -> int:
        """Blocks that `sequence` is to have for sure: in its worst case, or for its context and the next token."""
        size = self.settings.tokens_per_block
        if self.settings.policy == "guaranteed_no_evict":
            return max(sequence.worst_case(size), len(sequence.blocks))
        known = len(sequence.tokens) + (0 if sequence.request.left == 1 else 1)
        return max(-(-known // size), len(sequence.blocks))

    def _cacheable(self, sequence: Sequence) -> list[Content]:
        """What may be found in the cache: all full blocks, but the last token is always computed."""
        if not self.settings.reuse:
            return []
        sequence.season(DRAFTED if self.settings.draft == "model" else "")
        size = self.settings.tokens_per_block
        return sequence.contents((len(sequence.tokens) - 1) // size, size)

    def _match(self, sequence: Sequence, plan: Plan) -> None:
        wanted = self._cacheable(sequence)
        for index, content in enumerate(wanted):
            block = self.pool.reuse(content.hash, sequence.request.id, index)
            if block is None:
                break
            sequence.blocks.append(block)
        found = sequence.published = len(sequence.blocks)
        sequence.done = found * self.settings.tokens_per_block
        sequence.drafted = sequence.done if sequence.salt else 0
        plan.reused_blocks += found
        plan.missed_blocks += len(wanted) - found
        if sequence.request.scheduled is None:
            sequence.request.reused_tokens = sequence.done

    def _grow(self, sequence: Sequence, positions: int, plan: Plan) -> bool:
        """Have blocks for `positions` tokens, pausing younger requests for them; False if it was paused itself."""
        need = -(-positions // self.settings.tokens_per_block) - len(sequence.blocks)
        while need > self.pool.available:
            youngest = next(other for other in reversed(self.running) if other not in plan)
            self._pause(youngest, plan.paused)
            if youngest is sequence:
                return False
        for _ in range(need):
            sequence.blocks.append(self.pool.allocate(sequence.request.id, len(sequence.blocks)))
        return True

    def _pause(self, sequence: Sequence, paused: list[Sequence]) -> None:
        self.running.remove(sequence)
        self._release(sequence)
        self.waiting.appendleft(sequence)
        sequence.request.pauses += 1
        paused.append(sequence)

    def _release(self, sequence: Sequence) -> None:
        # Last block first: of a prefix the end is to be evicted before the beginning.
        for block in reversed(sequence.blocks):
            self.pool.release(block, sequence.request.id)
        sequence.forget()
