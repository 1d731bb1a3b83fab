"""By hand: bubbles of the engine's pipeline stages beside the formulas, with what was contention kept apart.

    .venv/bin/python -m tests.benchmarks.bench_stages [iterations]

Decode steps of equal micro-batches: 8 sequences of 256 tokens each. Per iteration, from the first stage's start to the
last one's end, medians over iterations: *bubble* is the share of stage time without work, *contention* that in which a
stage had work but not the processor (busy wall time less thread CPU time). *equal* is (s-1)/(m+s-1); *unequal* takes
the median times of the stages: 1 - m sum(t) / (s (sum(t) + (m-1) max(t))). Both assume times that do not vary.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.trace.ring import Ring
from probes.workloads.engine.model import load
from probes.workloads.engine.packing import Piece
from probes.workloads.engine.stages import StagesRunner

SEQUENCES = 8
CONTEXT = 256
PAGE = 16
PAGES = CONTEXT // PAGE + 1
WARM_UP = 5
ROWS = [(stages, parts) for stages in (2, 3, 4) for parts in (1, 2, 4, 8)]


class Found(NamedTuple):
    """Medians over the iterations of one row; `times` of each stage in ms, the others are shares."""

    times: list[float]
    bubble: float
    contention: float
    equal: float
    unequal: float


def measure(stages: int, parts: int, iterations: int) -> Found:
    """Run decode steps and read what the stages recorded."""
    sequences = SEQUENCES * parts
    pieces = [Piece([at % 250], CONTEXT, range(at * PAGES, (at + 1) * PAGES), 1) for at in range(sequences)]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TLLM_INSPECTOR_RUN"] = folder
        runner = StagesRunner(load("target"), stages, parts, sequences * PAGES, PAGE)
        runner.ready()
        for iteration in range(iterations + WARM_UP):
            runner.forward(pieces, iteration)
        runner.close()
        taken = [_work(path) for path in sorted(Path(folder).glob("stage*.ring"))]
    work = np.stack([rows.reshape(iterations + WARM_UP, parts)[WARM_UP:] for rows in taken])
    busy = work["end"] - work["start"]
    area = stages * (work["end"].max((0, 2)) - work["start"].min((0, 2)))
    times = np.median(busy, (1, 2)) / 1e6
    return Found(
        times.tolist(),
        float(np.median(1 - busy.sum((0, 2)) / area)),
        float(np.median((busy - work["cpu"]).sum((0, 2)) / area)),
        (stages - 1) / (parts + stages - 1),
        1 - parts * float(times.sum()) / (stages * (float(times.sum()) + (parts - 1) * float(times.max()))),
    )


def _work(path: Path) -> npt.NDArray[np.void]:
    ring = Ring(path)
    rows: npt.NDArray[np.void] = ring.take().tables["stage_work"]
    ring.close()
    return rows


def main(iterations: int) -> None:
    """Print a row for each number of stages and micro-batches."""
    cores = os.cpu_count()
    _say(f"{cores} cores, load {os.getloadavg()[0]:.1f}: no more than {cores} stages can be busy at once")
    _say("stages  m  bubble  contention  equal  unequal  ms per micro-batch and stage")
    for stages, parts in ROWS:
        found = measure(stages, parts, iterations)
        times = " ".join(f"{time:.2f}" for time in found.times)
        _say(
            f"{stages:6} {parts:2}  {found.bubble:6.3f}  {found.contention:10.3f}"
            f"  {found.equal:5.3f}  {found.unequal:7.3f}  {times}"
        )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
