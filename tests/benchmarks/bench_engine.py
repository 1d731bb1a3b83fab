"""By hand: speed of the built-in engine with its trained models, one thread, greedy.

    .venv/bin/python -m tests.benchmarks.bench_engine [rounds]

Rounds of all rows take turns, so that what else the machine does meets them alike: compare rows by their ratio. it/s
is of the median iteration; a step is one generation request in one iteration.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from probes.inprocess.producer import Producer
from probes.workloads.engine.emit import Emitter
from probes.workloads.engine.engine import Engine, Request, Settings
from probes.workloads.engine.model import load
from probes.workloads.engine.prompts import prompts
from probes.workloads.engine.records import GENERATION, Iteration
from probes.workloads.engine.runner import LocalRunner
from probes.workloads.engine.tokens import Tokenizer

BATCH = 16
FLOORS = {("none", 0): 60, ("model", 4): 25}
"""Iterations per second that are asked for at batch 16, by drafter and K."""
ROWS = [
    (group, draft, length)
    for group in ("faq", "prose", "copy")
    for draft, length in (("none", 0), ("model", 1), ("model", 2), ("model", 4), ("model", 6), ("ngram", 4))
]


def rounds(tokenizer: Tokenizer, group: str, draft: str, length: int, producer: Producer | None) -> Iterator[Iteration]:
    """One round: 32 requests of 64 tokens each, greedy."""
    settings = Settings(BATCH, 256, 512, draft=draft, draft_len=length or 1)
    runners = [LocalRunner(load(which), 512, settings.tokens_per_block) for which in ("target", "draft")]
    engine = Engine(settings, *runners, observers=[Emitter(producer, tokenizer)] if producer else [])
    asked = prompts(group, 5)
    for _ in range(2 * BATCH):
        engine.add(Request(tuple(tokenizer.chat(next(asked).messages)), 64, end=None))
    while (iteration := engine.step()) is not None:
        yield iteration


def main(count: int) -> None:
    import torch

    torch.set_num_threads(1)
    begun = time.monotonic()
    tokenizer = Tokenizer.load()
    found: dict[tuple[str, str, int], list[Iteration]] = {row: [] for row in ROWS}
    told: dict[bool, list[Iteration]] = {False: [], True: []}
    for _ in range(count):
        for row, iterations in found.items():
            iterations += rounds(tokenizer, *row, None)
        for on, iterations in told.items():
            iterations += recorded(tokenizer) if on else rounds(tokenizer, "faq", "model", 4, None)
    say(
        f"{'prompts':8} {'drafts':8} {'it/s':>6} {'p95 ms':>7} {'tok/s':>7} {'of none':>7} {'tok/step':>8} {'taken':>6}"
    )
    for (group, draft, length), iterations in found.items():
        times = sorted(one.end - one.start for one in iterations)
        say(
            f"{group:8} {draft:6}{length or '':2} {speed(iterations):6.0f} {times[len(times) * 19 // 20] / 1e6:7.1f}"
            f" {output(iterations):7.0f} {output(iterations) / output(found[group, 'none', 0]):7.2f}"
            f" {per_step(iterations):8.2f} {taken(iterations):>6}"
        )
        floor = FLOORS.get((draft, length), 0)
        if speed(iterations) < floor:
            say(f"         below the {floor} iterations/s that are asked for")
    say(f"an iteration that is recorded takes {speed(told[False]) / speed(told[True]):.3f} times as long")
    say(f"{time.monotonic() - begun:.0f} s, load {Path('/proc/loadavg').read_text().split()[0]}")


def recorded(tokenizer: Tokenizer) -> list[Iteration]:
    with tempfile.TemporaryDirectory() as folder:
        producer = Producer(folder, "bench", 1 << 26)
        iterations = list(rounds(tokenizer, "faq", "model", 4, producer))
        producer.close()
        assert producer.lost == 0
    return iterations


def speed(iterations: list[Iteration]) -> float:
    """Iterations per second, by the median."""
    return 1e9 / statistics.median(one.end - one.start for one in iterations)


def output(iterations: list[Iteration]) -> float:
    """Tokens given out per second."""
    return sum(one.emitted for one in iterations) / sum(one.end - one.start for one in iterations) * 1e9


def per_step(iterations: list[Iteration]) -> float:
    """Tokens given out per generation request and iteration."""
    steps = [step for one in iterations for step in one.steps if step.phase == GENERATION]
    return sum(len(step.emitted) for step in steps) / len(steps)


def taken(iterations: list[Iteration]) -> str:
    """Share of the drafts that were accepted."""
    drafted = sum(one.drafted for one in iterations)
    return f"{sum(one.accepted for one in iterations) / drafted:.2f}" if drafted else ""


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
