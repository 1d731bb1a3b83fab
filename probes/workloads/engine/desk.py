"""Between the HTTP threads and the engine's thread: requests go one way by a queue, tokens come back by another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version

from inspector.errors import Usage
from probes.workloads.engine.asks import Ask, Refused
from probes.workloads.engine.engine import Engine
from probes.workloads.engine.records import FINISHED, Iteration
from probes.workloads.engine.request import Request, Room
from probes.workloads.engine.responses import Json
from probes.workloads.engine.service import Progress, Ticket
from probes.workloads.engine.statistics import Statistics
from probes.workloads.engine.tokens import END, Tokenizer

MOST_WAITING = 1024
"""Prompts that may be in the engine or on the way to it."""


class Desk:
    """The Service of `engine`. `post` has a function called on the engine's thread before its next iteration.

    `info` is what /server_info tells of the run. `deliver` and `close` are for the engine's thread.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        statistics: Statistics,
        model: str,
        system: str,
        info: Json,
        post: Callable[[Callable[[], None]], None],
    ) -> None:
        self.model = model
        self.system = system
        self.tokenizer = tokenizer
        self.iterations = statistics.iterations
        self.page_events = statistics.page_events
        self.finished = statistics.finished
        self.prometheus = statistics.prometheus
        self._engine = engine
        self._info = info
        self._post = post
        self._lock = threading.Lock()
        self._waiting = 0
        self._closed = False
        self._open: dict[Request, tuple[Ticket, int]] = {}

    @property
    def room(self) -> Room:
        """See Service."""
        return self._engine.room

    def version(self) -> str:
        """See Service."""
        try:
            return version("inflight-inspector")
        except PackageNotFoundError:
            return "unknown"

    def info(self) -> Json:
        """See Service."""
        settings = self._engine.settings
        return {**self._info, "settings": {name: getattr(settings, name) for name in vars(settings)}}

    def submit(self, ask: Ask) -> Ticket:
        """See Service."""
        with self._lock:
            if self._closed:
                raise Refused(503, "the engine is about to end", "ServiceUnavailableError")
            if self._waiting + len(ask.prompts) > MOST_WAITING:
                raise Refused(503, f"{self._waiting} requests are waiting already", "ServiceUnavailableError")
            self._waiting += len(ask.prompts)
        ticket = Ticket(ask)
        self._post(partial(self._add, ticket))
        return ticket

    def cancel(self, ticket: Ticket, choice: int | None = None) -> None:
        """See Service."""
        self._post(partial(self._cancel, ticket, choice))

    def deliver(self, iteration: Iteration) -> None:
        """Hand out the tokens of an iteration."""
        for step in iteration.steps:
            found = self._open.get(step.request)
            if found is None:
                continue
            ticket, choice = found
            if step.emitted:
                ticket.progress.put(Progress(choice, step.emitted))
            if step.phase == FINISHED:
                self._end(step.request, step.request.reason)

    def close(self) -> None:
        """Take no more requests, and end those that are there."""
        with self._lock:
            self._closed = True
        for request in list(self._open):
            self._engine.cancel(request)
            self._end(request, "cancelled")

    def _add(self, ticket: Ticket) -> None:
        ask = ticket.ask
        for choice, prompt in enumerate(ask.prompts):
            request = Request(
                prompt,
                ask.max_tokens,
                ask.temperature,
                self._engine.counters.requests if ask.seed is None else ask.seed + choice,
                None if ask.ignore_end else END,
                "http",
            )
            self._open[request] = ticket, choice
            try:
                if self._closed:
                    raise Usage("the engine is about to end")
                self._engine.add(request)
            except Usage:
                # The pool has become smaller since it was asked, or the run has ended.
                self._end(request, "cancelled")

    def _cancel(self, ticket: Ticket, choice: int | None) -> None:
        for request, (of, number) in list(self._open.items()):
            if of is ticket and choice in (None, number):
                self._engine.cancel(request)
                self._end(request, "cancelled")

    def _end(self, request: Request, reason: str | None) -> None:
        ticket, choice = self._open.pop(request)
        with self._lock:
            self._waiting -= 1
        ticket.progress.put(Progress(choice, (), reason))
