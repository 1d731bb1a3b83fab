"""What the engine tells, as rows for a recording."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from time import monotonic_ns

from inspector.trace.schema import NEVER, RANGE_KINDS, TOKEN_KINDS
from probes.inprocess.columns import LAYOUTS
from probes.inprocess.producer import Producer
from probes.workloads.engine.blocks import Content, PageEvent
from probes.workloads.engine.records import PAUSED, Iteration, Span, Step
from probes.workloads.engine.request import Request
from probes.workloads.engine.tokens import Tokenizer

_ANNOTATION = RANGE_KINDS.index("annotation")
TARGET, ACCEPTED, REJECTED, CORRECTED = range(len(TOKEN_KINDS))
TEXTS_OF_ONE_IN = 4
"""Token texts are given of one request in so many."""
Rows = Sequence[tuple[str, Sequence[tuple[int, ...]]]]


class Emitter:
    """An Observer that hands rows to `producer`. Made on the engine's thread.

    With more than one of `stages` those have devices of their own and record what they do: what this process computes,
    the draft model, is none of theirs and has the device after them.
    """

    def __init__(self, producer: Producer, tokenizer: Tokenizer, stages: int = 1) -> None:
        self._producer = producer
        self._name = producer.name
        self._device = 0 if stages == 1 else stages
        self._thread = threading.get_native_id()
        self._domain = producer.name("engine")
        self._texts = [producer.name(tokenizer.piece(token)) for token in range(len(tokenizer))]
        # What waits for the end of the iteration: each call of the producer costs as much as many rows of another.
        self._pages: list[PageEvent] = []
        self._requests: list[tuple[int, ...]] = []
        self._correlation = 0
        producer.thread_name("engine")

    def pool(self, time: int, blocks: int, host_blocks: int, tokens_per_block: int, block_bytes: int) -> None:
        """See Observer."""
        row = (time, blocks, host_blocks, tokens_per_block, block_bytes)
        self._producer.add_all([*self._waiting(), ("pools", [row])])

    def changed(self, what: str) -> None:
        """The user has changed something now, e.g. 'rate = 4'."""
        self._producer.add("marks", [(monotonic_ns(), self._thread, self._name(what), self._domain)])

    def page(self, event: PageEvent, content: Content | None) -> None:
        """See Observer. Events go out together: with an iteration, a request, a change of the pool."""
        self._pages.append(event)

    def request(self, request: Request) -> None:
        """See Observer. What happens within an iteration goes out with it."""
        self._requests.append(self._request_row(request))
        if request.last_token is None or request.reason == "cancelled":
            self._producer.add_all(self._waiting())

    def iteration(self, iteration: Iteration) -> None:
        """See Observer."""
        number, thread, domain, name = iteration.number, self._thread, self._domain, self._name
        spans = [(start, end, thread, name(what), _ANNOTATION, domain) for start, end, what in iteration.spans]
        texts = [
            (number, request, place, self._texts[token], kind)
            for step in iteration.steps
            if step.request.id % TEXTS_OF_ONE_IN == 0
            for request, place, token, kind in token_rows(step)
        ]
        self._producer.add_all(
            [
                ("iterations", [_iteration_row(iteration)]),
                ("steps", _step_rows(number, iteration.steps)),
                *self._waiting(),
                ("ranges", spans),
                ("tokens", texts),
                *self._stand_ins(iteration.passes),
            ]
        )

    def _stand_ins(self, passes: Sequence[Span]) -> Rows:
        """Forward passes on the processor as work of a device, each with the call that launched it."""
        if not passes:
            return ()
        if not self._correlation:
            self._producer.device(self._device, "CPU draft model (no GPU)" if self._device else "CPU stage 0 (no GPU)")
        work, calls = [], []
        for start, end, what in passes:
            self._correlation += 1
            name = self._name(what)
            work.append((start, end, self._device, 0, name, self._correlation))
            calls.append((start, end, self._thread, name, self._correlation))
        return ("host_calls", calls), ("kernels", work)

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

    def _waiting(self) -> Rows:
        requests, self._requests = self._requests, []
        pages, self._pages = self._pages, []
        return ("requests", requests), ("page_events", pages)


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


_iteration_row: Callable[[Iteration], tuple[int, ...]] = attrgetter(
    *("number" if column == "iteration" else column for column, _ in LAYOUTS["iterations"])
)


def _step_rows(number: int, steps: Sequence[Step]) -> list[tuple[int, ...]]:
    return [
        (
            number,
            step.request.id,
            step.phase,
            step.tokens,
            len(step.drafts),
            step.accepted,
            step.blocks,
            len(step.emitted),
            step.position if step.phase < PAUSED else -1,
            step.micro_batch,
        )
        for step in steps
    ]
