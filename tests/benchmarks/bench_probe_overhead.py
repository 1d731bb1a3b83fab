"""By hand: what recording costs the built-in engine: time per iteration with it over that without, in one process.

    .venv/bin/python -m tests.benchmarks.bench_probe_overhead [--iterations 2000] [--only NAME ...]

Two engines with the same requests do the same work, iteration for iteration, on one thread and over the same weights:
one tells the probe in question, the other tells nobody. They take turns at every iteration, and lots decide who goes
first, so that whatever else the machine does meets both. Thread CPU time is counted, so that it hardly does, and wall
time too. Each row has the ratio of the sums of CPU time with its 95 % interval, from resampled pairs of turns, then the
same of wall time. *alike* has no probe in either: what the method itself errs by.

"native" and "sampled" are operators as `--operators` takes them once the burst of the start is spent; "burst" is while
it lasts, in which the native probe captures every iteration. "from the start" has the burst among its iterations, as
a run of that length has it.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inspector.trace.ring import Ring
from probes.inprocess import operators
from probes.inprocess.native_operators import Build
from probes.inprocess.producer import Producer
from probes.workloads.engine.emit import Emitter
from probes.workloads.engine.engine import Engine, Request, Settings
from probes.workloads.engine.loop import Capture
from probes.workloads.engine.model import load
from probes.workloads.engine.prompts import prompts
from probes.workloads.engine.runner import LocalRunner
from probes.workloads.engine.stage import settle
from probes.workloads.engine.tokens import Tokenizer

TURN = 1
"""Iterations of one turn."""
DRAINED_EVERY = 10
"""Turns between which the ring is emptied."""
WARM_UP = 40
RESAMPLED = 4000
MOST = 0.02
"""What recording may take of the throughput."""
PLENTY = 10**12
TOKENIZER = Tokenizer.load()


@dataclass(frozen=True)
class Probe:
    """What one of the two engines tells."""

    records: bool = False
    mode: str = "none"
    burst: int = 1
    per_minute: int = operators.PER_MINUTE // 2
    """Half of it: an engine that runs half of the time makes half of the iterations of a minute."""
    warm_up: int = WARM_UP


PROBES = {
    "alike": Probe(),
    "spans and records": Probe(records=True),
    "operators, native": Probe(mode="native"),
    "operators, native, burst": Probe(mode="native", burst=PLENTY, per_minute=PLENTY),
    "operators, sampled": Probe(mode="sampled"),
    "operators, sampled, burst": Probe(mode="sampled", burst=PLENTY, per_minute=PLENTY),
    "all of the default": Probe(records=True, mode="native"),
    "all of the default, from the start": Probe(records=True, mode="native", burst=operators.BURST, warm_up=TURN),
}


model = functools.cache(load)


class Side:
    """An engine with what it tells to a ring that somebody empties."""

    def __init__(self, folder: Path, probe: Probe, requests: int) -> None:
        self._producer = Producer(str(folder), "bench", 1 << 26)
        (self._path,) = folder.glob("*.ring")
        settings = Settings(host_blocks=64, draft="model")
        runners = [
            LocalRunner(model(which), settings.blocks, settings.tokens_per_block, settings.host_blocks)
            for which in ("target", "draft")
        ]
        observers = [Emitter(self._producer, TOKENIZER)] if probe.records else []
        self.engine = Engine(settings, *runners, observers=observers)
        self._capture: Capture | None = None
        if probe.mode != "none":
            self._capture = operators.start(self._producer, probe.mode, probe.per_minute, probe.burst)
        asked = [prompts(group, 5) for group in ("faq", "prose", "copy")]
        for at in range(requests):
            self.engine.add(Request(tuple(TOKENIZER.chat(next(asked[at % 3]).messages)), 64, end=None))

    def turn(self) -> tuple[int, int]:
        """Thread CPU time and wall time of TURN iterations, ns."""
        capture, step = self._capture, self.engine.step
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(TURN):
            if capture is not None:
                capture.iteration_begin()
            step()
            if capture is not None:
                capture.iteration_end()
        cpu = time.thread_time_ns() - cpu
        return cpu, time.perf_counter_ns() - wall

    def drain(self) -> None:
        """Do the recorder's part, outside what is counted."""
        ring = Ring(self._path, writable=True)
        ring.release(ring.take().upto)
        ring.close()

    def close(self) -> None:
        """End; fails when records were lost, which would have been cheap."""
        self._producer.close()
        assert self._producer.lost == 0


@contextmanager
def _sides(probe: Probe, requests: int) -> Iterator[tuple[Side, Side]]:
    with tempfile.TemporaryDirectory() as watched, tempfile.TemporaryDirectory() as plain:
        sides = Side(Path(watched), probe, requests), Side(Path(plain), Probe(), requests)
        yield sides
        assert sides[0].engine.counters == sides[1].engine.counters, "they did not do the same"
        for side in sides:
            side.close()


def measure(probe: Probe, iterations: int) -> npt.NDArray[np.int64]:
    """Times, ns, of each turn: (CPU or wall, turns, 2), with the probe and without."""
    turns = -(-iterations // TURN)
    found = np.zeros((2, turns, 2), np.int64)
    lots = random.Random(1)
    with _sides(probe, iterations + 100) as sides:
        settle()
        for turn in range(-probe.warm_up // TURN, turns):
            # Who is second finds other caches.
            for which in lots.sample((0, 1), 2):
                times = sides[which].turn()
                if turn >= 0:
                    found[:, turn, which] = times
            if turn % DRAINED_EVERY == 0:
                sides[0].drain()
    return found


def interval(times: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """The ratio of the sums of the two columns, and the ends of its 95 % interval."""
    chosen = np.random.default_rng(1).integers(0, len(times), (RESAMPLED, len(times)))
    sums = times[chosen].sum(1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], (0.025, 0.975))
    with_it, without = times.sum(0)
    return float(with_it / without), float(low), float(high)


def main() -> None:
    """Print a row for each probe."""
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--only", nargs="+", choices=PROBES, default=list(PROBES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    build = Build()
    _until(lambda: build.ready() or bool(build.reason))
    _say(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} in the last minute; {args.iterations} iterations")
    _say(f"{'':34}   CPU time (95 % interval)      wall time (95 % interval)     CPU of ms/iteration without")
    for name in args.only:
        probe = PROBES[name]
        if build.reason and probe.mode == "native":
            _say(f"{name:34} {build.reason}")
            continue
        times = measure(probe, args.iterations)
        ratios = [interval(kind) for kind in times]
        cells = [f"{ratio:7.4f} ({low:.4f} .. {high:.4f})" for ratio, low, high in ratios]
        cpu, wall = (kind[:, 1].sum() / len(kind) / TURN / 1e6 for kind in times)
        verdict = "" if ratios[0][2] <= 1 + MOST else f"  more than {MOST:.0%}, or not shown to be less"
        _say(f"{name:34} {'   '.join(cells)}   {cpu:5.2f} of {wall:5.2f}{verdict}")


def _until(true: Callable[[], bool]) -> None:
    while not true():
        time.sleep(0.1)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
