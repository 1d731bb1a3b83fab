"""How a run is going, in one short line, from the engine's own counters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, fields

from probes.workloads.engine.loop import Loop


@dataclass(frozen=True)
class Figures:
    """Sums at a moment; `at` in seconds on any clock, `batch` the requests in the batches of all iterations."""

    at: float
    iterations: int
    batch: int
    emitted: int
    drafted: int
    accepted: int
    finished: int
    here: int

    @classmethod
    def of(cls, loop: Loop) -> Figures:
        """Those of `loop` now. May be called by any thread: all of the last iteration but for the requests' numbers."""
        told, now = loop.told, loop.engine.counters
        counters = told.counters
        return cls(
            time.monotonic(),
            counters.iterations,
            told.members,
            counters.emitted,
            counters.drafted,
            counters.accepted,
            now.finished,
            now.requests - now.finished,
        )

    def line(self, before: Figures, begun: float) -> str:
        """What happened since `before`; seconds are counted from `begun`."""
        new = {field.name: getattr(self, field.name) - getattr(before, field.name) for field in fields(self)}
        seconds = new["at"] or 1e-9
        return "  ".join(
            (
                f"{self.at - begun:6.1f} s",
                f"{new['iterations'] / seconds:4.0f} iterations/s",
                f"{new['emitted'] / seconds:6,.0f} tokens/s",
                f"batch {new['batch'] / new['iterations']:4.1f}" if new["iterations"] else "batch    –",
                f"accepted {100 * new['accepted'] / new['drafted']:3.0f} %" if new["drafted"] else "accepted    – ",
                f"{self.here} in flight",
                f"{self.finished} done",
            )
        )


_PATIENCE_S = 2.0


class Ticker:
    """Says how `loop` is going once every `seconds`, from `start` to `stop`, on a thread of its own."""

    def __init__(self, loop: Loop, say: Callable[[str], None], seconds: float) -> None:
        self._loop = loop
        self._say = say
        self._seconds = seconds
        self._stopped = threading.Event()
        self._begun = Figures.of(loop)
        self._thread = threading.Thread(target=self._tick, name="figures", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> str:
        """Say no more; returns the summary of the whole run."""
        self._stopped.set()
        # A thread that still runs when Python ends is torn out of C++ code, which aborts the process. One that nobody
        # reads the lines of is not waited for longer.
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_S)
        loop, counters = self._loop, self._loop.engine.counters
        seconds = time.monotonic() - self._begun.at
        finished = counters.finished - loop.cancelled
        accepted = f", {counters.accepted:,} of {counters.drafted:,} drafted accepted" if counters.drafted else ""
        refused = f", {loop.refused:,} that could not fit" if loop.refused else ""
        return (
            f"ended after {seconds:.1f} s: {counters.iterations:,} iterations, {counters.emitted:,} tokens{accepted}; "
            f"{finished:,} requests done, {loop.cancelled:,} cancelled{refused}"
        )

    def _tick(self) -> None:
        before = self._begun
        while not self._stopped.wait(self._seconds):
            now = Figures.of(self._loop)
            self._say(now.line(before, self._begun.at) + ("  paused" if self._loop.paused else ""))
            before = now
