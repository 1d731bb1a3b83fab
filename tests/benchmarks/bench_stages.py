"""By hand: bubbles of the engine's pipeline stages: what the pipeline itself costs, and what comes on top of it.

    .venv/bin/python -m tests.benchmarks.bench_stages [iterations]

The engine makes decode steps of equal micro-batches: `each` sequences of about 256 tokens in one. Time counts from an
iteration's first start on stage 0 to that of the next iteration, times the number of stages. Its shares add up to 1:

    work        thread CPU time of the forward passes
    pipeline    what stages would wait if each pass took its CPU time and nothing lay between passes
    contention  how much longer that schedule gets with the passes' wall times: they waited for a processor
    hand-over   how much longer it was in truth: micro-batches on their way from one process to the next
    host        from the last end on the last stage to the next first start: sampling, scheduling, what is told

*measured* is pipeline / (work + pipeline), what *formula*, (s-1)/(m+s-1) for passes of equal times, is about; *bubble*
is all but work. Medians over iterations, so that shares add up to 1 but for a few thousandths.
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
from probes.workloads.engine.engine import Engine, Request, Settings
from probes.workloads.engine.model import load
from probes.workloads.engine.stages import StagesRunner

CONTEXT = 224
PAGE = 16
WARM_UP = 5
ROWS = [(stages, parts, each) for each in (8, 48) for stages in (2, 3, 4) for parts in (1, 2, 4, 8)]
SHARES = ("work", "pipeline", "contention", "hand-over", "host")


class Found(NamedTuple):
    """Of one row: shares in the order of SHARES, ms per pass, ms per iteration that the host and the way take."""

    shares: npt.NDArray[np.float64]
    measured: float
    each_ms: float
    host_ms: float
    way_ms: float


def measure(stages: int, parts: int, each: int, iterations: int) -> Found:
    """Run decode steps and read what the stages recorded."""
    work = run(stages, parts, each, iterations)
    start, wall, cpu = work["start"], work["end"] - work["start"], work["cpu"]
    begins, ends = start[:, :, 0].min(0), work["end"].max((0, 2))
    period = np.diff(begins)
    busy, made = cpu.sum((0, 2))[:-1], (ends - begins)[:-1]
    least, longer = makespan(cpu)[:-1], makespan(wall)[:-1]
    area = stages * period
    parts_of = (
        busy,
        stages * least - busy,
        stages * (longer - least),
        stages * (made - longer),
        stages * (period - made),
    )
    return Found(
        np.array([np.median(part / area) for part in parts_of]),
        float(np.median(1 - busy / (stages * least))),
        float(np.median(cpu)) / 1e6,
        float(np.median(period - made)) / 1e6,
        float(np.median(made - longer)) / 1e6,
    )


def makespan(times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """From the first start to the last end, of each iteration, for passes of `times` (stage, iteration, micro-batch).

    A pass begins when its stage has done the one before, and the stage before the same micro-batch.
    """
    stages, iterations, parts = times.shape
    ends = np.zeros((stages + 1, iterations, parts + 1), np.int64)
    for stage in range(stages):
        for part in range(parts):
            begin = np.maximum(ends[stage, :, part + 1], ends[stage + 1, :, part])
            ends[stage + 1, :, part + 1] = begin + times[stage, :, part]
    return ends[-1, :, -1]


def run(stages: int, parts: int, each: int, iterations: int) -> npt.NDArray[np.void]:
    """The stage_work of decode steps in which all requests take part: (stage, iteration, micro-batch)."""
    sequences = each * parts
    wanted = iterations + WARM_UP
    pages = -(-(CONTEXT + wanted) // PAGE) + 1
    settings = Settings(sequences, 2048, sequences * pages, PAGE, reuse=False)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TLLM_INSPECTOR_RUN"] = folder
        runner = StagesRunner(load("target"), stages, parts, settings.blocks, PAGE)
        runner.ready()
        engine = Engine(settings, runner)
        for number in range(sequences):
            engine.add(Request(tuple((number + at) % 250 for at in range(CONTEXT)), wanted + sequences, end=None))
        first = -1
        for _ in range(10 * wanted):
            iteration = engine.step()
            assert iteration is not None
            if iteration.generation_requests == sequences:
                first = iteration.number if first < 0 else first
                if iteration.number - first == wanted - 1:
                    break
        engine.close()
        taken = [_work(path) for path in sorted(Path(folder).glob("stage*.ring"))]
    decoding = [rows[(rows["iteration"] >= first + WARM_UP) & (rows["iteration"] < first + wanted)] for rows in taken]
    return np.stack([rows.reshape(iterations, parts) for rows in decoding])


def _work(path: Path) -> npt.NDArray[np.void]:
    ring = Ring(path)
    rows: npt.NDArray[np.void] = ring.take().tables["stage_work"]
    ring.close()
    return rows


def main(iterations: int) -> None:
    """Print a row for each number of stages, micro-batches and sequences in one."""
    cores = os.cpu_count()
    _say(f"{cores} cores, load {os.getloadavg()[0]:.1f}: no more than {cores} stages can be busy at once")
    _say(f"stages  m  each  formula  measured  bubble  {'  '.join(SHARES)}   ms: pass  way  host")
    for stages, parts, each in ROWS:
        found = measure(stages, parts, each, iterations)
        shares = "  ".join(f"{share:{len(name)}.3f}" for share, name in zip(found.shares, SHARES, strict=True))
        _say(
            f"{stages:6} {parts:2}  {each:4}  {(stages - 1) / (parts + stages - 1):7.3f}  {found.measured:8.3f}"
            f"  {1 - found.shares[0]:6.3f}  {shares}      {found.each_ms:5.2f} {found.way_ms:4.2f} {found.host_ms:5.2f}"
        )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
