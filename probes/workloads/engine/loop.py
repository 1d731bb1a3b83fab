"""The run: iteration after iteration, requests as they fall due, changes as they come, until it is to end."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from inspector.errors import Missing, Usage
from probes.workloads.engine.arrivals import Arrivals
from probes.workloads.engine.control import Change
from probes.workloads.engine.counters import Counters
from probes.workloads.engine.engine import Engine
from probes.workloads.engine.records import CONTEXT, GENERATION, Iteration
from probes.workloads.engine.request import Request

_SECOND = 1_000_000_000
_NEVER = float("inf")


class Capture(Protocol):
    """What is told where an iteration begins and ends."""

    def iteration_begin(self) -> None:
        """An iteration begins."""

    def iteration_end(self) -> None:
        """An iteration has ended."""


class Desk(Protocol):
    """What brings requests from elsewhere, and takes their tokens there."""

    def deliver(self, iteration: Iteration) -> None:
        """An iteration has ended."""

    def close(self) -> None:
        """Take no more requests, and cancel those that are there."""


@dataclass(frozen=True)
class Limits:
    """When a run ends by itself: after so many seconds, or once so many requests have arrived and are done; 0: not."""

    seconds: float = 0.0
    requests: int = 0


@dataclass(frozen=True)
class Load:
    """What the requests of `arrivals` have in common."""

    arrivals: Arrivals
    temperature: float
    seed: int


@dataclass(frozen=True)
class Told:
    """The engine's counters at a moment, and `members`: requests in the batches of all iterations until then."""

    counters: Counters = field(default_factory=Counters)
    members: int = 0


class Loop:
    """Runs `engine` on the thread that calls `run`; `post`, `change` and `stop` may be called by any, by signals too.

    `complain` is told in one line what could not be done. Raises Usage when requests are to arrive that never fit.
    """

    def __init__(self, engine: Engine, load: Load, limits: Limits, complain: Callable[[str], None]) -> None:
        self.engine = engine
        self.arrived = 0
        """Requests that the generator has made so far."""
        self.refused = 0
        """Of them, those that could not fit into the engine."""
        self.told = Told()
        """As of the end of the last iteration; replaced as a whole: what other threads read belongs together."""
        self.cancelled = 0
        """Requests that were ended when the run ended."""
        self.paused = False
        self.desk: Desk | None = None
        """Who takes requests from elsewhere and gets every iteration."""
        self.capture: Capture | None = None
        self.changed: Callable[[str], None] | None = None
        """Who is told each change that was made, like 'rate = 4'."""
        self._load = load
        self._limits = limits
        self._complain = complain
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stopping = False
        self._begun = self._resting = 0
        self._pause_began: int | None = None
        self._check(load.arrivals.rate, engine.settings.blocks)

    def post(self, call: Callable[[], None]) -> None:
        """Have `call` called before the next iteration."""
        self._inbox.put(call)

    def change(self, change: Change) -> None:
        """Have `change` made before the next iteration; what is wrong with it is complained of."""
        self.post(lambda: self._change(change))

    def stop(self) -> None:
        """End the run after this iteration; what is not done is cancelled."""
        self.post(self._stop)

    def run(self) -> None:
        """Run until the end. Raises LinkEnded when a pipeline stage is gone."""
        self._begun = time.monotonic_ns()
        while not self._over():
            self._take(0.0)
            if self._over():
                break
            if self.paused:
                self._take(self._wait(_NEVER))
                continue
            self._arrive()
            if not self._step() and not self._over():
                due = self._load.arrivals.next_offset if self._more else None
                self._take(self._wait(_NEVER if due is None else (due - self._now()) / _SECOND))
        self._end()

    @property
    def _more(self) -> bool:
        """Whether more requests are to arrive."""
        return not self._limits.requests or self.arrived < self._limits.requests

    def _now(self) -> int:
        """Since the beginning, pauses left out, ns: the time of the arrivals."""
        until = time.monotonic_ns() if self._pause_began is None else self._pause_began
        return until - self._begun - self._resting

    def _left(self) -> float:
        """Seconds until the run is to end."""
        if not self._limits.seconds:
            return _NEVER
        return self._limits.seconds - (time.monotonic_ns() - self._begun) / _SECOND

    def _over(self) -> bool:
        return self._stopping or self._left() <= 0 or (not self._more and not self.engine.requests)

    def _wait(self, seconds: float) -> float:
        return max(min(seconds, self._left()), 0.0)

    def _take(self, seconds: float) -> None:
        """Do what was posted; where nothing was, wait for it that long."""
        try:
            call = self._inbox.get(timeout=None if seconds == _NEVER else seconds)
            while True:
                call()
                call = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _step(self) -> bool:
        if self.capture is not None and self.engine.requests:
            self.capture.iteration_begin()
            iteration = self.engine.step()
            self.capture.iteration_end()
        else:
            iteration = self.engine.step()
        if iteration is None:
            return False
        members = sum(step.phase in (CONTEXT, GENERATION) for step in iteration.steps)
        self.told = Told(replace(self.engine.counters), self.told.members + members)
        if self.desk is not None:
            self.desk.deliver(iteration)
        return True

    def _arrive(self) -> None:
        most = self._limits.requests - self.arrived if self._limits.requests else None
        for arrival in self._load.arrivals.due(self._now(), most):
            seed = self._load.seed * 1_000_003 + self.arrived
            request = Request(arrival.prompt, arrival.max_tokens, self._load.temperature, seed, group=arrival.group)
            request.arrival = self._begun + self._resting + arrival.offset
            self.arrived += 1
            try:
                self.engine.add(request)
            except Usage as error:
                if not self.refused:
                    self._complain(f"{error}; the request is left out, as will be others like it")
                self.refused += 1

    def _change(self, change: Change) -> None:
        settings = dict(change.set)
        rate = settings.pop("rate", None)
        try:
            if rate or "blocks" in settings:
                arrivals, blocks = self._load.arrivals.rate if rate is None else rate, self.engine.settings.blocks
                self._check(arrivals, settings.get("blocks", blocks))
            if settings:
                self.engine.change(**settings)
                for name, value in settings.items():
                    self._changed(f"{name} = {value}")
            if rate is not None:
                self._load.arrivals.change_rate(float(rate), self._now())
                self._changed(f"rate = {rate}")
        except (Usage, Missing) as error:
            self._complain(str(error))
        if change.pause is not None and change.pause != self.paused:
            self._pause(change.pause)
            self._changed("paused by the user" if change.pause else "goes on")
        if change.stop:
            self._stop()

    def _changed(self, what: str) -> None:
        if self.changed is not None:
            self.changed(what)

    def _check(self, rate: float, blocks: int) -> None:
        """Raise Usage when some of what arrives could never fit into a pool of that size."""
        reach, room = self._load.arrivals.reach, self.engine.room_in(blocks)
        if rate > 0 and reach > room.tokens:
            raise Usage(
                f"requests of {reach} tokens or more, output included, are to arrive and never fit",
                room.why,
                "have more blocks, or shorter prompts and outputs",
            )

    def _pause(self, paused: bool) -> None:
        now = time.monotonic_ns()
        if self._pause_began is not None:
            self._resting += now - self._pause_began
        self._pause_began = now if paused else None
        self.paused = paused
        if paused:
            self.engine.pause(now)
        else:
            self.engine.resume(now)

    def _stop(self) -> None:
        self._stopping = True

    def _end(self) -> None:
        before = self.engine.counters.finished
        if self.paused:
            self._pause(False)
        if self.desk is not None:
            self.desk.close()
        self._take(0.0)
        for request in self.engine.requests:
            self.engine.cancel(request)
        self.cancelled = self.engine.counters.finished - before
        # The iteration that tells of those that left.
        self._step()
