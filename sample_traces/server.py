"""A decode server as TensorRT-LLM's PyTorch executor runs it: one host loop, context steps eager, generation as graphs.

Things that go wrong are planted by iteration number (`Plan`), so that a run holds what its sample is meant to show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sample_traces.catalogue import ARGMAX, TOP_K, context_step, generation_step
from sample_traces.device import Stream, Work
from sample_traces.host import Host, Process, Run, Turn

SPELLINGS = (
    "[Executor] _forward_step: {context} ctx reqs, {generation} gen reqs",
    "[Executor] _forward_step {number}: {context} ctx reqs, {generation} gen reqs",
    "[Executor] _forward_step {number}: {context} ctx reqs, {tokens} ctx tokens, {generation} gen reqs",
)
_GRAPH_SIZES = (1, 2, 4, 8, 16, 32, 64)


@dataclass
class Request:
    """A request: when it comes, how many tokens it brings and how many are still to be made."""

    arrival: int
    prompt: int
    left: int


@dataclass
class Streams:
    """The streams of one rank: forward passes, tokens on their way to the host, KV blocks on their way out."""

    compute: Stream
    tokens: Stream
    blocks: Stream

    @classmethod
    def of(cls, run: Run, process: Process, ordinal: int = 0) -> Streams:
        """New ones, numbered as in a process that has made some before."""
        return cls(run.stream(process, 7, ordinal), run.stream(process, 20, ordinal), run.stream(process, 24, ordinal))


Act = Callable[["Server"], Turn]


@dataclass
class Plan:
    """What to plant: `before` the forward pass of an iteration, `after` it in `_update_requests`."""

    before: Mapping[int, Sequence[Act]] = field(default_factory=dict)
    after: Mapping[int, Sequence[Act]] = field(default_factory=dict)


class Server:
    """The executor of one rank. `run()` is its thread; it ends when all requests are done."""

    def __init__(
        self,
        host: Host,
        streams: Streams,
        requests: Sequence[Request],
        layers: int,
        ranks: int = 1,
        spelling: int = 1,
        plan: Plan | None = None,
        by_iteration: bool = False,
        last: int | None = None,
    ) -> None:
        self.host, self.streams, self.layers, self.ranks = host, streams, layers, ranks
        self.waiting = sorted(requests, key=lambda request: request.arrival)
        self.active: list[Request] = []
        self.plan = plan or Plan()
        # Ranks must admit the same requests in the same iteration: then `arrival` is that iteration's number.
        self.by_iteration = by_iteration
        self.last = last
        self.spelling = SPELLINGS[spelling]
        self.generation = generation_step(layers, ranks)
        self.context = context_step(layers, ranks)
        self.captured: set[int] = set()
        self.iteration = 0

    def run(self) -> Turn:
        """One iteration after the other until every request has its tokens, or `last` iterations are done."""
        while (self.waiting or self.active) and self.iteration != self.last:
            fresh = self._fetch()
            yield from self._iterate(fresh)
            self.iteration += 1

    def _fetch(self) -> list[Request]:
        host = self.host
        if not self.active and not self.by_iteration and self.waiting[0].arrival > host.now:
            host.wait_for_requests(self.waiting[0].arrival, "_fetch_new_requests")
        else:
            host.push("_fetch_new_requests")
            host.work(7_000)
            host.pop()
        clock = self.iteration if self.by_iteration else host.now
        fresh = [request for request in self.waiting if request.arrival <= clock]
        self.waiting = self.waiting[len(fresh) :]
        return fresh

    def _iterate(self, fresh: list[Request]) -> Turn:
        host, streams = self.host, self.streams
        host.push("_schedule")
        host.work(14_000 + 400 * len(self.active))
        host.pop()
        tokens = sum(request.prompt for request in fresh)
        host.push(
            self.spelling.format(number=self.iteration, context=len(fresh), tokens=tokens, generation=len(self.active))
        )
        host.push("_prepare_inputs")
        host.work(18_000 + 300 * len(self.active))
        host.copy(streams.compute, 1, 4_096 + 8 * tokens)
        host.pop()
        for act in self.plan.before.get(self.iteration, ()):
            yield from act(self)
        yield from self._forward(fresh, tokens)
        host.pop()
        copied, event = self._sample()
        self.active += fresh
        yield from self._update(copied, event)

    def _forward(self, fresh: list[Request], tokens: int) -> Turn:
        host, stream = self.host, self.streams.compute
        host.work(6_000)
        if not fresh:
            size = next((size for size in _GRAPH_SIZES if size >= len(self.active)), _GRAPH_SIZES[-1])
            if size not in self.captured:
                self.captured.add(size)
                host.call("cudaGraphInstantiate_v12000", 160_000, "module load")
            yield None
            host.launch_graph(stream, size, self.generation, 88 + 3 * size)
            return
        for kernel in self.context:
            host.work(2_600)
            yield None
            host.launch(stream, kernel, scale=30 + tokens // 24)

    def _sample(self) -> tuple[Work, int]:
        host, streams = self.host, self.streams
        host.push("_sample_async")
        host.work(11_000)
        host.launch(streams.compute, TOP_K)
        host.work(4_000)
        done = host.launch(streams.compute, ARGMAX)
        event = host.record_event(streams.compute)
        host.stream_wait(streams.tokens, event)
        copied = host.copy(streams.tokens, 2, 4 * 64, waits=(done,))
        event = host.record_event(streams.tokens)
        host.pop()
        return copied, event

    def _update(self, copied: Work, event: int) -> Turn:
        host = self.host
        host.push("_update_requests")
        yield from host.synchronize(copied, event)
        for act in self.plan.after.get(self.iteration, ()):
            yield from act(self)
        host.work(21_000 + 1_700 * len(self.active))
        for request in self.active:
            request.left -= 1
        done = [request for request in self.active if request.left <= 0]
        self.active = [request for request in self.active if request.left > 0]
        host.pop()
        host.push("_handle_responses")
        host.work(12_000 + 900 * len(self.active) + 6_000 * len(done))
        host.pop()
