"""Rate of the Kineto reader, to a ready trace, against json.loads of the same file in the same run.

python -m tests.benchmarks.bench_kineto [MEGABYTES]
"""

from __future__ import annotations

import gzip
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from inspector.readers import open_trace
from tests.benchmarks.generate_kineto import write


def seconds(work: Callable[[], object]) -> float:
    """The best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def peak_mb() -> float:
    """Largest resident size so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main(megabytes: float) -> None:
    """Print megabytes (of text) a second and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.json"
        count = write(path, megabytes)
        packed = path.with_suffix(".json.gz")
        with path.open("rb") as source, gzip.open(packed, "wb", 6) as target:
            shutil.copyfileobj(source, target)
        size = path.stat().st_size / 1e6
        assert len(open_trace(path)["kernels"]) == count
        lines = [f"{size:.0f} MB, {count:,} kernels; before reading it as a whole {peak_mb():.0f} MB resident at most"]
        ours = seconds(lambda: open_trace(path))
        lines.append(f"plain   {size / ours:7.0f} MB/s")
        lines.append(f"gzip    {size / seconds(lambda: open_trace(packed)):7.0f} MB/s")
        theirs = seconds(lambda: json.loads(path.read_bytes()))
        lines.append(
            f"json    {size / theirs:7.0f} MB/s without making columns; ours is {theirs / ours:.1f} times as fast"
        )
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 200)
