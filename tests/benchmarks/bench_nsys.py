"""How fast an SQLite export becomes a trace, against SQLite's own sum over the same columns in the same run.

    python tests/benchmarks/bench_nsys.py [NUM_KERNELS ...]       (default 1000000)

Prints, for that many kernels and as many launch calls, medians and spread of the repeats and the peak memory of the
process. The trace must come at half the rate of the sum or faster: a ratio of 0.5.
"""

from __future__ import annotations

import resource
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from inspector.readers import nsys_sqlite
from inspector.readers.reader import silent
from tests.benchmarks.generate_nsys import generate

_REPEATS = 3
_COLUMNS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid", "demangledName"),
        "graphNodeId",
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "globalTid", "correlationId", "nameId", "returnValue"),
}


def sum_columns(path: Path) -> None:
    """SQLite reads and adds up every value that the reader reads."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as file:
        for table, columns in _COLUMNS.items():
            file.execute(f"SELECT {', '.join(f'total({column})' for column in columns)} FROM {table}").fetchone()


def seconds(what: Callable[[], object]) -> float:
    """How long it takes."""
    start = time.perf_counter()
    what()
    return time.perf_counter() - start


def main(sizes: list[int]) -> None:
    """Measure each size; sum and read take turns, so that both meet the same machine."""
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / f"{size}.sqlite"
            generate(path, size)
            sums, reads = [], []
            for _ in range(_REPEATS):
                sums.append(seconds(lambda path=path: sum_columns(path)))
                reads.append(seconds(lambda path=path: nsys_sqlite.read(path, silent)))
            ratios = sorted(s / r for s, r in zip(sums, reads, strict=True))
            trace = nsys_sqlite.read(path, silent)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            line = (
                f"{size:,} kernels + {len(trace['host_calls']):,} calls, {path.stat().st_size / 1e6:.0f} MB: "
                f"sum {statistics.median(sums):.2f} s, trace {statistics.median(reads):.2f} s, "
                f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), "
                f"trace {trace.nbytes() / 2**20:.0f} MiB, peak {peak:.0f} MiB"
            )
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            path.unlink()


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1_000_000])
