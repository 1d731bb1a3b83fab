"""What the engine tells, as rows for a recording."""

from __future__ import annotations

import threading
from time import monotonic_ns

from inspector.trace.schema import NEVER, RANGE_KINDS, TOKEN_KINDS
from probes.inprocess.producer import Producer
from probes.workloads.engine.blocks import Content, PageEvent
from probes.workloads.engine.records import PAUSED, Iteration, Step
from probes.workloads.engine.request import Request
from probes.workloads.engine.tokens import Tokenizer

_ANNOTATION = RANGE_KINDS.index("annotation")
TARGET, ACCEPTED, REJECTED, CORRECTED = range(len(TOKEN_KINDS))
TEXTS_OF_ONE_IN = 4
"""Token texts are given of one request in so many."""


class Emitter:
    """An Observer that hands rows to `producer`. Made on the engine's thread.

    With more than one of `stages` those have devices of their own and record what they do: what this process computes,
    the draft model, is none of theirs and has the device after them.
    """

    def __init__(self, producer: Producer, tokenizer: Tokenizer, stages: int = 1) -> None:
        self._producer = producer
        self._device = 0 if stages == 1 else stages
        self._thread = threading.get_native_id()
        self._domain = producer.name("engine")
        self._texts = [producer.name(tokenizer.piece(token)) for token in range(len(tokenizer))]
        self._pages: list[PageEvent] = []
        self._correlation = 0
        producer.thread_name("engine")

    def pool(self, time: int, blocks: int, host_blocks: int, tokens_per_block: int, block_bytes: int) -> None:
        """See Observer."""
        self._flush()
        self._producer.add("pools", [(time, blocks, host_blocks, tokens_per_block, block_bytes)])

    def changed(self, what: str) -> None:
        """The user has changed something now, e.g. 'rate = 4'."""
        self._producer.add("marks", [(monotonic_ns(), self._thread, self._name(what), self._domain)])

    def page(self, event: PageEvent, content: Content | None) -> None:
        """See Observer. Events go out together: with an iteration, a request that leaves, a change of the pool."""
        self._pages.append(event)

    def request(self, request: Request) -> None:
        """See Observer."""
        self._producer.add("requests", [self._request_row(request)])
        if request.finished is not None:
            self._flush()

    def iteration(self, iteration: Iteration) -> None:
        """See Observer."""
        add = self._producer.add
        add("iterations", [_iteration_row(iteration)])
        add("steps", [_step_row(iteration.number, step) for step in iteration.steps])
        self._flush()
        add(
            "ranges",
            [(*span[:2], self._thread, self._name(span.name), _ANNOTATION, self._domain) for span in iteration.spans],
        )
        texts = [row for step in iteration.steps if step.request.id % TEXTS_OF_ONE_IN == 0 for row in token_rows(step)]
        if texts:
            add(
                "tokens",
                [(iteration.number, request, place, self._texts[token], kind) for request, place, token, kind in texts],
            )
        if iteration.passes:
            self._stand_in(iteration)

    def _stand_in(self, iteration: Iteration) -> None:
        """Forward passes on the processor as work of a device, each with the call that launched it."""
        if not self._correlation:
            name = "CPU draft model (no GPU)" if self._device else "CPU stage 0 (no GPU)"
            self._producer.device(self._device, name)
        work, calls = [], []
        for start, end, name in iteration.passes:
            self._correlation += 1
            work.append((start, end, self._device, 0, self._name(name), self._correlation))
            calls.append((start, end, self._thread, self._name(name), self._correlation))
        self._producer.add("host_calls", calls)
        self._producer.add("kernels", work)

    def _request_row(self, request: Request) -> tuple[int, ...]:
        """What changes until it has left (its last token, how many) is not known before."""
        left = request.finished is not None
        begun = request.scheduled is not None
        return (
            request.id,
            _known(request.arrival),
            _known(request.first_token),
            _known(request.last_token) if left else NEVER,
            len(request.prompt),
            len(request.output) if left else -1,
            _known(request.scheduled),
            _known(request.finished),
            request.reused_tokens if begun else -1,
            request.max_tokens,
            self._name(request.group),
        )

    def _flush(self) -> None:
        if self._pages:
            pages, self._pages = self._pages, []
            self._producer.add("page_events", pages)

    def _name(self, text: str) -> int:
        return self._producer.name(text)


def token_rows(step: Step) -> list[tuple[int, int, int, int]]:
    """(request, place in the output, token, kind) of what a step gave out and of the drafts that it rejected.

    Accepted drafts that come after an end were not given out and are left out.
    """
    request, begin = step.request.id, step.output_position
    own = CORRECTED if step.accepted < len(step.drafts) else TARGET
    given = [
        (request, begin + at, token, ACCEPTED if at < step.accepted else own) for at, token in enumerate(step.emitted)
    ]
    rejected = [(request, begin + at, step.drafts[at], REJECTED) for at in range(step.accepted, len(step.drafts))]
    return given + rejected


def _known(time: int | None) -> int:
    return NEVER if time is None else time


def _iteration_row(iteration: Iteration) -> tuple[int, ...]:
    return (
        iteration.start,
        iteration.end,
        iteration.number,
        iteration.context_requests,
        iteration.generation_requests,
        iteration.paused_requests,
        iteration.queued_requests,
        iteration.tokens,
        iteration.used_blocks,
        iteration.free_blocks,
        iteration.reused_blocks,
        iteration.missed_blocks,
        iteration.context_tokens,
        iteration.drafted,
        iteration.accepted,
        iteration.emitted,
        iteration.completed_requests,
        iteration.cached_blocks,
        iteration.host_blocks,
        iteration.max_batch_size,
        iteration.max_num_tokens,
        iteration.micro_batches,
    )


def _step_row(number: int, step: Step) -> tuple[int, ...]:
    takes_part = step.phase < PAUSED
    return (
        number,
        step.request.id,
        step.phase,
        step.tokens,
        len(step.drafts),
        step.accepted,
        step.blocks,
        len(step.emitted),
        step.position if takes_part else -1,
        step.micro_batch,
    )
