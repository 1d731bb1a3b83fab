"""A workload that only tells of kernels: `python replay_kernels.py RATE SECONDS [STREAMS]`, into its ring."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from probes.inprocess.producer import from_environment

_TICK_NS = 20_000_000
_NAMES = ("gemm", "fmha", "rmsnorm", "silu", "ncclAllReduce", "softmax topk", "copyBlock", "rope")


def main() -> None:
    """Tell of RATE kernels a second, as they would have run, every 20 ms."""
    rate, seconds = int(sys.argv[1]), float(sys.argv[2])
    streams = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    producer = from_environment("replay")
    if producer is None:
        sys.exit("TLLM_INSPECTOR_RUN is not set: start it with inflight record")
    names = [producer.name(name) for name in _NAMES]
    producer.device(0, "replayed")
    begin = at = time.monotonic_ns()
    each = 10**9 // rate
    number = 0
    while at - begin < seconds * 1e9:
        upto = time.monotonic_ns()
        rows = []
        while at + each * 3 < upto:
            number += 1
            stream = number % streams
            rows.append((at, at + each * (2 + number % 2), 0, stream, names[number % len(names)], number))
            at += each
        producer.add("kernels", rows)
        time.sleep(max(_TICK_NS - (time.monotonic_ns() - upto), 0) / 1e9)
    told = f"told {number:,} lost {producer.lost:,} cpu {time.process_time() / seconds:.2f}"
    producer.close()
    Path(os.environ["TLLM_INSPECTOR_RUN"]).with_suffix(".told").write_text(told)


if __name__ == "__main__":
    main()
