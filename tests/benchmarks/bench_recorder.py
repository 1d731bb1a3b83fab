"""By hand: what a producer costs its workload, and what the recorder keeps up with.

    .venv/bin/python tests/benchmarks/bench_recorder.py [seconds] [kernels a second]

First the producer: CPU per row, in calls of one row and of many. Then a process that hands over kernels at the given
rate is recorded whole: what was lost (nothing, it must be), and the recorder's own share of a processor.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import inspector
from probes.inprocess.producer import KERNEL_CAPACITY, Producer, from_environment

BATCH = 1000
ROUNDS = 5


def cost_of_calls(folder: str) -> None:
    """ns of CPU for a call with one row, and for a row in a call of many: the best of some rounds."""
    row = (1, 2, 0, 7, 0, 3)
    for rows, calls in ((1, 20_000), (BATCH, 200)):
        best = float("inf")
        for number in range(ROUNDS):
            producer = Producer(folder, f"bench{rows}-{number}", KERNEL_CAPACITY)
            begun = time.process_time_ns()
            for _ in range(calls):
                producer.add("kernels", [row] * rows)
            best = min(best, (time.process_time_ns() - begun) / calls / rows)
            producer.close()
            assert producer.lost == 0
        sys.stdout.write(f"a call with {rows} rows: {best:.0f} ns per row\n")


def replay(seconds: float, rate: int) -> None:
    """Hand over so many kernels a second, as a tap does: in batches, every few milliseconds."""
    producer = from_environment("kernels", KERNEL_CAPACITY)
    assert producer is not None
    names = [producer.name(f"kernel {number}") for number in range(200)]
    begun = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - begun) < seconds:
        due = int(passed * rate) - sent
        if due >= BATCH:
            now = time.monotonic_ns()
            producer.add(
                "kernels",
                [(now - 5000 * k - 4000, now - 5000 * k, 0, 7 + k % 3, names[k % 200], sent + k) for k in range(due)],
            )
            sent += due
        time.sleep(0.004)
    producer.close()
    sys.stdout.write(f"{sent} {producer.lost} {producer.cost_ns}\n")


def recorded(seconds: float, rate: int) -> None:
    """Record `replay`, and say how that went."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.inflight"
        command = [sys.executable, __file__, "replay", str(seconds), str(rate)]
        record = [sys.executable, "-m", "inspector", "record", "--headless", "--out", str(out), "--", *command]
        begun = time.monotonic()
        done = subprocess.run(record, stdout=subprocess.PIPE, text=True, check=True)
        passed = time.monotonic() - begun
        sent, lost, cost_ns = map(int, done.stdout.split())
        trace = inspector.open(out)
        probes = trace["probes"]
        mine = probes.take(probes["name"] == trace.names.find("recorder"))
        share = float(mine["cost"][-1] - mine["cost"][0]) / float(mine["time"][-1] - mine["time"][0])
        kept = len(trace["kernels"])
        size = sum(path.stat().st_size for path in out.iterdir())
        sys.stdout.write(
            f"{sent:,} kernels at {rate:,} a second: {lost:,} dropped by the workload, {sent - kept:,} missing\n"
            f"the workload's producer: {cost_ns / max(sent, 1):.0f} ns per kernel\n"
            f"the recorder: {100 * share:.1f} % of a processor; closing took {passed - seconds:.1f} s; "
            f"{size / max(kept, 1):.0f} bytes per kernel\n"
        )


def main() -> None:
    """Run it."""
    if sys.argv[1:2] == ["replay"]:
        replay(float(sys.argv[2]), int(sys.argv[3]))
        return
    with tempfile.TemporaryDirectory() as folder:
        cost_of_calls(folder)
    recorded(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0, int(sys.argv[2]) if len(sys.argv) > 2 else 200_000)


if __name__ == "__main__":
    main()
