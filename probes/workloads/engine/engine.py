"""The engine: requests come in, each step is one iteration of in-flight batching over a paged cache.

Single-threaded: one thread calls everything here. It decides (scheduler), proposes (drafting), computes (runner),
chooses (sampling), and tells its observers (records).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from inspector.errors import Missing, Usage
from probes.workloads.engine import memory
from probes.workloads.engine.blocks import BlockPool, Content, PageEvent
from probes.workloads.engine.choice import choose
from probes.workloads.engine.counters import Counters
from probes.workloads.engine.drafting import Drafter, ModelDrafter, NgramDrafter, NoDrafter
from probes.workloads.engine.packing import Piece
from probes.workloads.engine.records import (
    CONTEXT,
    FINISHED,
    GENERATION,
    PAUSED,
    TARGET_FORWARD,
    ForwardPass,
    Iteration,
    Observer,
    Span,
    Step,
)
from probes.workloads.engine.request import Request, Room, Sequence
from probes.workloads.engine.runner import Result, Runner
from probes.workloads.engine.sampling import Chosen, Draft
from probes.workloads.engine.scheduler import Plan, Scheduler, Settings, changed

__all__ = ["Counters", "Engine", "Request", "Settings"]


class Engine:
    """Serves requests with `target`, and with `draft` as the smaller model where there is one.

    Both have `settings.blocks` pages of `settings.tokens_per_block` tokens, and `settings.host_blocks` host pages.
    Raises Usage when the settings ask for a draft model and there is none.
    """

    def __init__(
        self, settings: Settings, target: Runner, draft: Runner | None = None, observers: Iterable[Observer] = ()
    ) -> None:
        self.settings = settings
        self.counters = Counters()
        self._target = target
        self._draft = draft
        self._observers = tuple(observers)
        self._pool = BlockPool(
            settings.blocks,
            settings.host_blocks,
            reuse=settings.reuse,
            observe=self._page if len(self._observers) > 1 else next((one.page for one in self._observers), None),
        )
        self._scheduler = Scheduler(settings, self._pool)
        self._drafter = self._drafter_for(settings)
        self._ids = 0
        self._spans: list[Span] = []
        self._passes: list[ForwardPass] = []
        self._micro_batches: tuple[int, ...] | None = None
        self._left: list[Step] = []
        self._empty_since: int | None = None
        self._paused_since: int | None = None
        self._waits: list[Span] = []
        self._tell_pool()

    @property
    def room(self) -> Room:
        """For a request, as the pool is now."""
        return self.room_in(self.settings.blocks)

    def room_in(self, blocks: int) -> Room:
        """For a request, with a pool of so many blocks."""
        size = self.settings.tokens_per_block
        # The last token is given out and needs no page.
        pool = Room(blocks * size + 1, f"the pool has {blocks} blocks of {size} tokens")
        positions = min(runner.positions for runner in self._runners())
        return min(pool, Room(positions, f"the model has {positions} positions"))

    @property
    def requests(self) -> tuple[Request, ...]:
        """Those that are in the engine: running, paused or queued."""
        scheduler = self._scheduler
        return tuple(sequence.request for sequence in (*scheduler.running, *scheduler.waiting))

    def add(self, request: Request) -> Request:
        """Queue a request, which gets its number and, unless it has one, its time of arrival. Returns it.

        Raises Usage for an empty prompt, for no tokens to make, and for what could never fit.
        """
        length = len(request.prompt) + request.max_tokens
        if not request.prompt or request.max_tokens < 1:
            raise Usage("a request must have a prompt and make 1 token or more")
        room = self.room
        if length > room.tokens:
            raise Usage(f"a request of {length} tokens, output included, never fits", room.why)
        request.id = self._ids
        self._scheduler.add(Sequence(request))
        self._ids += 1
        now = time.monotonic_ns()
        if request.arrival is None:
            request.arrival = now
        if self._empty_since is not None:
            self._waits.append(Span(self._empty_since, now, "wait_for_requests"))
            self._empty_since = None
        self.counters.requests += 1
        self._tell_request(request)
        return request

    def pause(self, now: int) -> None:
        """No step is to be made from `now` on, ns on the monotonic clock."""
        if self._empty_since is not None:
            self._waits.append(Span(self._empty_since, now, "wait_for_requests"))
            self._empty_since = None
        self._paused_since = now
        self._tell_rest()

    def resume(self, now: int) -> None:
        """Steps are made again."""
        if self._paused_since is not None:
            self._waits.append(Span(self._paused_since, now, "paused by the user"))
            self._paused_since = None
        self._empty_since = None if self.requests else now

    def cancel(self, request: Request) -> bool:
        """End a request with what it has made so far; False when it has ended already."""
        scheduler = self._scheduler
        for sequence in (*scheduler.running, *scheduler.waiting):
            if sequence.request is request:
                self._leave(sequence, "cancelled")
                return True
        return False

    def change(self, **changes: object) -> None:
        """Set max_batch_size, max_num_tokens, blocks, policy, draft or draft_len while requests run.

        A smaller pool pauses who holds a page that goes. Raises Usage, and changes nothing, for what cannot be: a pool
        too small for a request that is there among it. Raises Missing likewise without memory for a larger one.
        """
        settings = changed(self.settings, changes)
        drafter = self._drafter if settings.draft == self.settings.draft else self._drafter_for(settings)
        if settings.blocks > self.settings.blocks:
            self._grow(settings.blocks)
            self._scheduler.resize(settings.blocks)
        elif settings.blocks < self.settings.blocks:
            self._scheduler.resize(settings.blocks)
            self._move()
            for runner in self._runners():
                runner.resize(settings.blocks)
        resized = settings.blocks != self.settings.blocks
        self.settings = self._scheduler.settings = settings
        self._drafter = drafter
        if resized:
            self._tell_pool()

    def step(self) -> Iteration | None:
        """Run one iteration; None when there is nothing to do."""
        scheduler = self._scheduler
        if not (scheduler.running or scheduler.waiting or self._left):
            return None
        self._spans, self._passes, self._micro_batches = [], [], None
        start = time.monotonic_ns()
        with self._span("schedule"):
            plan = scheduler.plan()
            self._begin(plan)
        steps = self._compute(plan) if plan else []
        steps += [Step(sequence.request, PAUSED) for sequence in plan.paused]
        return self._end(start, plan, steps)

    def stop(self) -> Iteration | None:
        """End all requests with what they have made so far. The iteration that tells so; None if there were none."""
        for request in self.requests:
            self.cancel(request)
        return self.step()

    def close(self) -> None:
        """Give back what the runners hold."""
        self._tell_rest()
        for runner in self._runners():
            runner.close()

    def _grow(self, blocks: int) -> None:
        """Give the runners `blocks` pages, or leave each with as many as it has."""
        memory.check(blocks, blocks * sum(runner.block_bytes for runner in self._runners() if runner.on_host))
        grown: list[Runner] = []
        try:
            for runner in self._runners():
                runner.resize(blocks)
                grown.append(runner)
        except Missing:
            for runner in grown:
                runner.resize(self.settings.blocks)
            raise

    def _runners(self) -> Iterator[Runner]:
        yield self._target
        if self._draft is not None:
            yield self._draft

    def _drafter_for(self, settings: Settings) -> Drafter:
        if settings.draft == "none":
            return NoDrafter()
        if settings.draft == "ngram":
            return NgramDrafter()
        if self._draft is None:
            raise Usage("draft model", "the engine was made without one")
        return ModelDrafter(self._draft, self._forward)

    def _begin(self, plan: Plan) -> None:
        now = time.monotonic_ns()
        for sequence, _ in plan.context:
            if sequence.request.scheduled is None:
                sequence.request.scheduled = now
        self._move()

    def _move(self) -> None:
        transfers = self._pool.take_transfers()
        if transfers:
            for runner in self._runners():
                runner.move(transfers)

    def _compute(self, plan: Plan) -> list[Step]:
        drafts = [Draft()] * len(plan.generation)
        if any(most for _, most in plan.generation):
            with self._span("draft"):
                drafts = self._drafter.draft(plan.generation)
        pieces = [
            Piece(
                [*sequence.tokens[sequence.done :], *draft.tokens],
                sequence.done,
                sequence.blocks,
                1 + len(draft.tokens),
            )
            for (sequence, _), draft in zip(plan.generation, drafts, strict=True)
        ]
        for sequence, count in plan.context:
            end = sequence.done + count
            last = end == len(sequence.tokens)
            pieces.append(Piece(sequence.tokens[sequence.done : end], sequence.done, sequence.blocks, int(last)))
        with self._span(TARGET_FORWARD):
            result = self._forward(pieces, self._target)
        self._micro_batches = result.micro_batches
        if plan.context and self.settings.draft == "model":
            with self._span("draft context"):
                self._drafter.follow(plan.context)
        with self._span("sample"):
            chosen = choose(plan, drafts, result.logits)
        with self._span("update"):
            return self._update(plan, drafts, chosen)

    def _forward(self, pieces: list[Piece], runner: Runner) -> Result:
        start = time.monotonic_ns()
        result = runner.forward(pieces, self.counters.iterations)
        if result.span is not None:
            name = TARGET_FORWARD if runner is self._target else "draft forward"
            self._passes.append(ForwardPass(*result.span, name, result.cpu))
        if result.micro_batches is not None:
            self._spans.append(Span(start, time.monotonic_ns(), "wait for stages"))
        return result

    def _update(self, plan: Plan, drafts: list[Draft], chosen: list[Chosen | None]) -> list[Step]:
        now = time.monotonic_ns()
        parts = [
            (sequence, GENERATION, 1 + len(draft.tokens), draft.tokens)
            for (sequence, _), draft in zip(plan.generation, drafts, strict=True)
        ]
        parts += [(sequence, CONTEXT, count, ()) for sequence, count in plan.context]
        steps = []
        for at, ((sequence, phase, count, offered), picked) in enumerate(zip(parts, chosen, strict=True)):
            position, place = sequence.done, len(sequence.request.output)
            emitted = self._take(sequence, picked.tokens, now) if picked else ()
            steps.append(
                Step(
                    sequence.request,
                    phase,
                    tokens=count,
                    position=position,
                    blocks=len(sequence.blocks),
                    drafts=offered,
                    accepted=picked.accepted if picked else 0,
                    emitted=emitted,
                    output_position=place,
                    micro_batch=self._micro_batches[at] if self._micro_batches else -1,
                )
            )
            sequence.done += count if phase == CONTEXT else len(emitted)
            sequence.drafted = min(sequence.drafted, sequence.done)
            sequence.in_context = picked is None
            self._settle(sequence)
        return steps

    def _settle(self, sequence: Sequence) -> None:
        """Publish what is full; then the request leaves if it is done, else what it does not need is given back."""
        self._scheduler.publish(sequence)
        request = sequence.request
        if request.end is not None and request.output[-1:] == [request.end]:
            self._leave(sequence, "stop")
        elif request.left == 0:
            self._leave(sequence, "length")
        else:
            self._scheduler.rewind(sequence)

    def _take(self, sequence: Sequence, tokens: list[int], now: int) -> tuple[int, ...]:
        """Give out `tokens`, as far as an end and `max_tokens` let them."""
        request = sequence.request
        tokens = tokens[: request.left]
        if request.end is not None and request.end in tokens:
            tokens = tokens[: tokens.index(request.end) + 1]
        sequence.tokens += tokens
        request.output += tokens
        request.last_token = now
        if request.first_token is None:
            request.first_token = now
            self._tell_request(request)
        return tuple(tokens)

    def _leave(self, sequence: Sequence, reason: str) -> None:
        self._scheduler.leave(sequence)
        request = sequence.request
        request.reason = reason
        request.finished = time.monotonic_ns()
        self._left.append(Step(request, FINISHED))
        self.counters.finished += 1
        self._tell_request(request)

    def _end(self, start: int, plan: Plan, steps: list[Step]) -> Iteration:
        scheduler, pool, settings = self._scheduler, self._pool, self.settings
        steps += self._left
        self._left = []
        end = time.monotonic_ns()
        iteration = Iteration(
            number=self.counters.iterations,
            start=start,
            end=end,
            steps=steps,
            spans=[*self._waits, Span(start, end, "iteration"), *self._spans],
            passes=self._passes,
            paused_requests=scheduler.paused,
            queued_requests=len(scheduler.waiting) - scheduler.paused,
            used_blocks=pool.used,
            free_blocks=pool.available,
            cached_blocks=pool.cached,
            host_blocks=pool.host_used,
            reused_blocks=plan.reused_blocks,
            missed_blocks=plan.missed_blocks,
            max_batch_size=settings.max_batch_size,
            max_num_tokens=settings.max_num_tokens,
            micro_batches=len(set(self._micro_batches)) if self._micro_batches else -1,
        )
        self._waits.clear()
        self._empty_since = None if scheduler.running or scheduler.waiting else end
        self.counters.count(iteration, pool)
        for observer in self._observers:
            observer.iteration(iteration)
        if self._empty_since is not None:
            self._tell_rest()
        return iteration

    @contextmanager
    def _span(self, name: str) -> Iterator[None]:
        start = time.monotonic_ns()
        yield
        self._spans.append(Span(start, time.monotonic_ns(), name))

    def _page(self, event: PageEvent, content: Content | None) -> None:
        for observer in self._observers:
            observer.page(event, content)

    def _tell_request(self, request: Request) -> None:
        for observer in self._observers:
            observer.request(request)

    def _tell_rest(self) -> None:
        for observer in self._observers:
            observer.rest()

    def _tell_pool(self) -> None:
        settings = self.settings
        size = sum(runner.block_bytes for runner in self._runners())
        for observer in self._observers:
            observer.pool(time.monotonic_ns(), settings.blocks, settings.host_blocks, settings.tokens_per_block, size)
