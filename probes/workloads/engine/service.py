"""What the HTTP server needs of an engine: all that its threads ever touch."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from probes.workloads.engine.asks import Ask, Cut
from probes.workloads.engine.request import Room
from probes.workloads.engine.responses import Choice, Json
from probes.workloads.engine.tokens import Tokenizer


@dataclass(frozen=True)
class Progress:
    """New tokens of one choice. `reason` is stop, length or cancelled with the last of them, else None."""

    choice: int
    tokens: tuple[int, ...]
    reason: str | None = None


@dataclass(eq=False)
class Ticket:
    """A request that the engine has been given; it puts what it makes into `progress`."""

    ask: Ask
    progress: queue.SimpleQueue[Progress] = field(default_factory=queue.SimpleQueue)


class Service(Protocol):
    """An engine as its server sees it. Every method may be called from any thread and returns at once."""

    @property
    def model(self) -> str:
        """Name of the model."""

    @property
    def system(self) -> str:
        """What a chat begins with that has no system message; "" nothing."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Texts to tokens and back."""

    @property
    def room(self) -> Room:
        """For a prompt and its answer together."""

    def submit(self, ask: Ask) -> Ticket:
        """Queue a request. Raises Refused when the engine takes none."""

    def cancel(self, ticket: Ticket, choice: int | None = None) -> None:
        """End a request, or one choice of it; what has ended already is no error."""

    def iterations(self) -> list[Json]:
        """Statistics of the iterations since the last call, oldest first."""

    def page_events(self) -> list[Json]:
        """KV cache events since the last call, oldest first."""

    def finished(self) -> list[Json]:
        """Figures of the requests that finished since the last call, oldest first."""

    def version(self) -> str:
        """Version of the engine."""

    def info(self) -> Json:
        """How the engine is set."""

    def prometheus(self) -> str:
        """Figures in Prometheus' text format."""


class Cancelled(Exception):
    """The engine ended a request before it was done."""


def answers(ticket: Ticket, service: Service, wait: float) -> Iterator[tuple[Choice, str] | None]:
    """What the engine makes of a request, as it comes: a choice, as it stands now, and the text that is new in it.

    None after each `wait` seconds without news. The last text of a choice comes with its reason. Raises Cancelled.
    """
    ask = ticket.ask
    choices = [Choice(index, len(prompt)) for index, prompt in enumerate(ask.prompts)]
    streams = [service.tokenizer.stream() for _ in choices]
    cuts = [Cut(ask.stop) for _ in choices]
    if ask.echo and not ask.chat:
        for choice, prompt in zip(choices, ask.prompts, strict=True):
            choice.text = service.tokenizer.decode(prompt)
            yield choice, choice.text
    while any(choice.reason is None for choice in choices):
        try:
            news = ticket.progress.get(timeout=wait)
        except queue.Empty:
            yield None
            continue
        choice, stream, cut = choices[news.choice], streams[news.choice], cuts[news.choice]
        if choice.reason is not None:
            continue
        if news.reason == "cancelled":
            raise Cancelled
        text = ""
        for token in news.tokens:
            choice.tokens += 1
            text += cut.push(stream.push(token))
            if cut.reached is not None:
                break
        choice.reason = news.reason
        if cut.reached is not None:
            if news.reason is None:
                service.cancel(ticket, news.choice)
            choice.reason, choice.stopped_at = "stop", cut.reached
        elif choice.reason is not None:
            text += cut.push(stream.finish()) + cut.finish()
        choice.text += text
        if text or choice.reason is not None:
            yield choice, text
