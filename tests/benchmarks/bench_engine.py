"""By hand: speed of the built-in engine with its trained models, one thread, greedy.

    .venv/bin/python -m tests.benchmarks.bench_engine [rounds]

Rounds of all rows take turns, so that what else the machine does meets them alike: compare rows by their ratio. it/s
is of the median iteration, by wall time and by CPU time of its thread: the latter is what a core of its own would give.
Tokens per second are by CPU time; a step is one generation request in one iteration. What recording costs is measured
by bench_probe_overhead.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

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


class Timed(NamedTuple):
    """An iteration, and the CPU time of its thread, ns."""

    iteration: Iteration
    cpu: int


def rounds(tokenizer: Tokenizer, group: str, draft: str, length: int) -> Iterator[Timed]:
    """One round: 32 requests of 64 tokens each, greedy."""
    settings = Settings(BATCH, 256, 512, draft=draft, draft_len=length or 1)
    runners = [LocalRunner(load(which), 512, settings.tokens_per_block) for which in ("target", "draft")]
    engine = Engine(settings, *runners)
    asked = prompts(group, 5)
    for _ in range(2 * BATCH):
        engine.add(Request(tuple(tokenizer.chat(next(asked).messages)), 64, end=None))
    cpu = time.thread_time_ns()
    while (iteration := engine.step()) is not None:
        now = time.thread_time_ns()
        yield Timed(iteration, now - cpu)
        cpu = time.thread_time_ns()


def main(count: int) -> None:
    import torch

    torch.set_num_threads(1)
    begun = time.monotonic()
    tokenizer = Tokenizer.load()
    found: dict[tuple[str, str, int], list[Timed]] = {row: [] for row in ROWS}
    for _ in range(count):
        for row, timed in found.items():
            timed += rounds(tokenizer, *row)
    say(
        f"{'prompts':8} {'drafts':8} {'it/s':>6} {'by CPU':>6} {'p95 ms':>7} {'tok/s':>7} {'of none':>7}"
        f" {'tok/step':>8} {'taken':>6}"
    )
    for (group, draft, length), timed in found.items():
        iterations = [one.iteration for one in timed]
        wall = [one.end - one.start for one in iterations]
        speeds = speed(wall), speed([one.cpu for one in timed])
        say(
            f"{group:8} {draft:6}{length or '':2} {speeds[0]:6.0f} {speeds[1]:6.0f}"
            f" {sorted(wall)[len(wall) * 19 // 20] / 1e6:7.1f}"
            f" {output(timed):7.0f} {output(timed) / output(found[group, 'none', 0]):7.2f}"
            f" {per_step(iterations):8.2f} {taken(iterations):>6}"
        )
        floor = FLOORS.get((draft, length), 0)
        if min(speeds) < floor:
            why = "" if speeds[1] < floor else ", since others have the processor"
            say(f"         below the {floor} iterations/s that are asked for{why}")
    say(
        f"{time.monotonic() - begun:.0f} s, load {Path('/proc/loadavg').read_text().split()[0]}, {os.cpu_count()} cores"
    )


def speed(times: Sequence[int]) -> float:
    """Iterations per second, by the median of their times in ns."""
    return 1e9 / statistics.median(times)


def output(timed: Sequence[Timed]) -> float:
    """Tokens given out per second of CPU time."""
    return sum(one.iteration.emitted for one in timed) / sum(one.cpu for one in timed) * 1e9


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
