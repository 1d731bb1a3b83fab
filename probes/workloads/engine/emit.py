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
from probes.workloads.engine.records import PAUSED, TARGET_FORWARD, Iteration, Step
from probes.workloads.engine.request import Request
from probes.workloads.engine.tokens import Tokenizer

_ANNOTATION = RANGE_KINDS.index("annotation")
TARGET, ACCEPTED, REJECTED, CORRECTED = range(len(TOKEN_KINDS))
TEXTS_OF_ONE_IN = 4
"""Token texts are given of one request in so many."""
HELD_NS = 50_000_000
"""How long what iterations tell may wait for that of the next ones."""
Rows = list[tuple[int, ...]]


class Emitter:
    """An Observer that hands rows to `producer`. Made on the engine's thread.

    What iterations tell waits for that of others, HELD_NS at most while they come: after a forward pass the caches of
    the processor hold none of this code, and to fetch it costs more than to run it. A process that is killed takes
    with it what waits.

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
        # Each call of the producer costs as much as many rows of another.
        self._pages: list[PageEvent] = []
        self._requests: Rows = []
        self._iterations: list[Iteration] = []
        self._handed_over = monotonic_ns()
        self._correlation = 0
        producer.thread_name("engine")

    def pool(self, time: int, blocks: int, host_blocks: int, tokens_per_block: int, block_bytes: int) -> None:
        """See Observer."""
        self._hand_over([(time, blocks, host_blocks, tokens_per_block, block_bytes)])

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
            self._hand_over()

    def iteration(self, iteration: Iteration) -> None:
        """See Observer."""
        self._iterations.append(iteration)
        if iteration.end - self._handed_over >= HELD_NS:
            self._hand_over()

    def rest(self) -> None:
        """See Observer."""
        self._hand_over()

    def _hand_over(self, pools: Rows | None = None) -> None:
        """Give the producer all that waits, and `pools`."""
        self._handed_over = monotonic_ns()
        iterations, self._iterations = self._iterations, []
        requests, self._requests = self._requests, []
        pages, self._pages = self._pages, []
        calls, work, stage_work = self._stand_ins(iterations)
        self._producer.add_all(
            (
                ("iterations", [_iteration_row(iteration) for iteration in iterations]),
                ("steps", [row for iteration in iterations for row in _step_rows(iteration.number, iteration.steps)]),
                ("requests", requests),
                ("page_events", pages),
                ("pools", pools or ()),
                ("ranges", self._ranges(iterations)),
                ("tokens", self._token_texts(iterations)),
                ("host_calls", calls),
                ("kernels", work),
                ("stage_work", stage_work),
            )
        )

    def _ranges(self, iterations: Sequence[Iteration]) -> Rows:
        thread, domain, name = self._thread, self._domain, self._name
        return [
            (start, end, thread, name(what), _ANNOTATION, domain)
            for iteration in iterations
            for start, end, what in iteration.spans
        ]

    def _token_texts(self, iterations: Sequence[Iteration]) -> Rows:
        texts = self._texts
        return [
            (iteration.number, request, place, texts[token], kind)
            for iteration in iterations
            for step in iteration.steps
            if step.request.id % TEXTS_OF_ONE_IN == 0
            for request, place, token, kind in token_rows(step)
        ]

    def _stand_ins(self, iterations: Sequence[Iteration]) -> tuple[Rows, Rows, Rows]:
        """Forward passes on the processor: the call that launched each, as work of a device, as work of a stage.

        The target where it runs in this process is a pipeline of one stage; the draft model is no stage of it.
        """
        calls: Rows = []
        work: Rows = []
        stage_work: Rows = []
        for number, (start, end, what, cpu) in ((i.number, one) for i in iterations for one in i.passes):
            if not self._correlation:
                self._producer.device(
                    self._device, "CPU draft model (no GPU)" if self._device else "CPU stage 0 (no GPU)"
                )
            self._correlation += 1
            name = self._name(what)
            calls.append((start, end, self._thread, name, self._correlation))
            work.append((start, end, self._device, 0, name, self._correlation))
            if what == TARGET_FORWARD:
                stage_work.append((start, end, 0, number, 0, cpu))
        return calls, work, stage_work

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


def _step_rows(number: int, steps: Sequence[Step]) -> Rows:
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
