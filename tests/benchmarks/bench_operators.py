"""By hand: what each way of capturing operators costs, as a ratio to none at all, interleaved in one process.

    .venv/bin/python tests/benchmarks/bench_operators.py [rounds]

An iteration is three forward passes of the target model over 16 x 4 tokens on one thread. "native" captures every
iteration, "native, budget" what the default budget of records allows once its burst is spent, "slices" is
torch.profiler at one iteration in 30, "every slice" at every one. CPU time of the process, median over the rounds.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from probes.inprocess import operators
from probes.inprocess.native_operators import Build
from probes.inprocess.pace import Pace
from probes.workloads.engine.model import TARGET, Decoder

ITERATIONS = 60
PLENTY = 10**12


class Away:
    """A sink that lets go of what it is given."""

    def name(self, text: str) -> int:
        return len(text)

    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        return None

    def add_packed(self, table: str, rows: int, data: bytes) -> None:
        return None

    def device(self, number: int, name: str, memory: int = -1) -> None:
        return None


def measured(run: operators.Operators, iteration: Callable[[], None]) -> float:
    """CPU ms per iteration."""
    begun = time.process_time_ns()
    for _ in range(ITERATIONS):
        run.iteration_begin()
        iteration()
        run.iteration_end()
    return (time.process_time_ns() - begun) / ITERATIONS / 1e6


def main() -> None:
    import torch

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    torch.set_num_threads(1)
    model = Decoder(TARGET).requires_grad_(False)
    ids = torch.randint(0, TARGET.entries, (16, 4))

    def iteration() -> None:
        for _ in range(3):
            model(ids)

    build = Build()
    while not build.ready() and not build.reason:
        time.sleep(0.1)
    if build.reason:
        sys.exit(build.reason)
    spent = operators.start(Away(), "native", burst=1)
    every = operators.start(Away(), "sampled", PLENTY, PLENTY)
    every._pace = Pace(1, PLENTY, PLENTY)
    modes = {
        "none": operators.start(Away(), "none"),
        "native": operators.start(Away(), "native", PLENTY, PLENTY),
        "native, budget": spent,
        "slices": operators.start(Away(), "sampled", PLENTY, PLENTY),
        "every slice": every,
    }
    found: dict[str, list[float]] = {mode: [] for mode in modes}
    for _ in range(rounds):
        for mode, run in modes.items():
            found[mode].append(measured(run, iteration))
    plain = statistics.median(found["none"])
    for mode, times in found.items():
        status = modes[mode].status
        each = status.records / (rounds * ITERATIONS)
        sys.stdout.write(
            f"{mode:16} {statistics.median(times):7.2f} ms  x{statistics.median(times) / plain:.3f}"
            f"  {each:7.0f} records/iteration, own count {status.cost_ns / 1e6 / (rounds * ITERATIONS):.2f} ms\n"
        )


if __name__ == "__main__":
    main()
