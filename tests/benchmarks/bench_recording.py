"""Build, save, open and link a trace of ten million kernels, by hand: `python tests/benchmarks/bench_recording.py`.

Prints seconds, the ratio to numpy's own memory map of the same columns, and resident memory after each step. The first
argument is the number of kernels (and of calls), the second the number of processes that share them.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from inspector.readers import recording
from inspector.readers.reader import silent
from inspector.trace.builder import Builder
from inspector.trace.links import Links
from inspector.trace.save import save
from inspector.trace.trace import Trace, TraceInfo
from inspector.trace.work import Work

T = TypeVar("T")
CHUNK = 1 << 18


def step(name: str, act: Callable[[], T]) -> tuple[T, float]:
    begun = time.perf_counter()
    result = act()
    took = time.perf_counter() - begun
    now = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    say(f"{name:42} {took:8.3f} s   resident {now / 2**30:5.2f} GiB   peak {peak / 2**30:5.2f} GiB")
    return result, took


def added(count: int, num_processes: int, in_order: bool) -> Builder:
    """A builder with `count` launches 5 us apart and their kernels, in chunks as a reader gives them."""
    builder = Builder()
    names = builder.names.add_all(f"kernel {n}" for n in range(200))
    launch = builder.names.add("cudaLaunchKernel")
    processes = [builder.process(100 + n) for n in range(num_processes)]
    threads = np.array([builder.thread(process, 1) for process in processes], np.int32)
    streams = np.array([builder.stream(p, builder.device(p), 7) for p in processes], np.int32)
    for first in range(0, count, CHUNK):
        row = np.arange(first, min(first + CHUNK, count))
        if not in_order:
            row = np.random.default_rng(first).permutation(row)
        owner, correlation = row % num_processes, row // num_processes + 1
        begin = row * 5_000
        builder.add(
            "host_calls",
            start=begin,
            end=begin + 3_000,
            thread=threads[owner],
            name=launch,
            correlation=correlation,
            result=0,
        )
        begin = begin + 9_000
        builder.add(
            "kernels",
            start=begin,
            end=begin + 4_000,
            stream=streams[owner],
            name=names[row % len(names)],
            correlation=correlation,
            graph_node=0,
            context=1,
        )
    return builder


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def main(count: int, num_processes: int, in_order: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="inflight-bench-"))
    saved = folder / "big.inflight"
    try:
        written(folder, saved, count, num_processes, in_order)
        opened, opening = step("open the recording", lambda: recording.read(saved, silent))
        files = sorted(folder.glob("*.npy"))
        mapped, mapping = step("numpy: map the same columns", lambda: [np.load(file, mmap_mode="r") for file in files])
        say(f"{'':4}ratio {opening / mapping:.1f}")
        _, ours = step("first use of every column (checked)", lambda: touched(opened))
        _, theirs = step("numpy: sum of every column", lambda: [int(column.sum()) for column in mapped])
        say(f"{'':4}ratio {ours / theirs:.1f}")
        again, _ = step("open again", lambda: recording.read(saved, silent))
        step("Links.build", lambda: again.index(Links))
        step("Work.build", lambda: again.index(Work))
    finally:
        shutil.rmtree(folder)


def written(folder: Path, saved: Path, count: int, num_processes: int, in_order: bool) -> None:
    """The recording, and each column beside it as numpy writes it."""
    builder, _ = step("add the chunks", lambda: added(count, num_processes, in_order))
    trace, _ = step("Builder.build", lambda: builder.build(TraceInfo(("bench",), "bench")))
    say(f"{'':4}{trace.nbytes() / 2**30:.2f} GiB of columns")
    step("Links.build", lambda: trace.index(Links))
    step("Work.build", lambda: trace.index(Work))
    _, took = step("save", lambda: save(trace, saved))
    size = sum(file.stat().st_size for file in saved.iterdir())
    say(f"{'':4}{size / 2**30:.2f} GiB on disk, written at {size / 2**30 / took:.2f} GiB/s")
    for name, table in trace.tables.items():
        for key, values in table.columns.items():
            np.save(folder / f"{name}.{key}.npy", values)


def touched(trace: Trace) -> None:
    for table in trace.tables.values():
        for column in table.columns:
            table[column]


if __name__ == "__main__":
    main(
        int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000,
        int(sys.argv[2]) if len(sys.argv) > 2 else 1,
        "--shuffled" not in sys.argv,
    )
