"""Writes a Kineto-shaped trace of any size: launches, kernels, operators and arrows of a decode loop, all invented.

python -m tests.benchmarks.generate_kineto OUT.json MEGABYTES
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

_NAMES = [
    *(
        f"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_{64 * n}x64_32x3_tn_align8>(Params)"
        for n in range(9)
    ),
    *(f"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, {n}, 256, 4>>(Params)" for n in range(4)),
    *(
        f"void at::native::vectorized_elementwise_kernel<4, at::native::Functor_{n}<c10::BFloat16>>(int)"
        for n in range(9)
    ),
]
_LAYER = len(_NAMES)
_BASE_NS = 6_912_345_678_901_123


def write(path: Path, megabytes: float) -> int:
    """Write about that many megabytes (of 10^6 bytes); the number of kernels in the file."""
    names = [json.dumps(name) for name in _NAMES]
    wanted, written, count, now = int(megabytes * 1e6), 0, 0, _BASE_NS
    with path.open("w", encoding="utf-8") as file:
        file.write('{\n  "schemaVersion": 1,\n  "cupti_version": 22,\n  "deviceProperties": [\n')
        file.write('    {"id": 0, "name": "generated", "totalGlobalMem": 84929347584, "numSms": 132}\n  ],\n')
        file.write('  "traceEvents": [\n')
        while written < wanted:
            text = _step(count, now, names[count % _LAYER])
            written += file.write(text if not count else "," + text)
            count += 1
            now += 9_000 + count % 700 + (200_000 if count % 400 == 0 else 0)
        file.write('\n  ],\n  "traceName": "generated"\n}\n')
    return count


def _step(count: int, now: int, name: str) -> str:
    link, start = count + 1, now + 5_000 + count % 90
    place = '"pid": 4021, "tid": 4021'
    return f"""
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::linear", {place},
    "ts": {_us(now)}, "dur": 7.250,
    "args": {{"External id": {link}, "Ev Idx": {count}}}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", {place},
    "ts": {_us(now + 1_500)}, "dur": 2.125,
    "args": {{"External id": {link}, "cbid": 211, "correlation": {link}}}
  }},
  {{
    "ph": "s", "id": {link}, {place}, "ts": {_us(now + 1_500)}, "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": {name}, "pid": 0, "tid": 7,
    "ts": {_us(start)}, "dur": {3 + count % 5}.{count % 1000:03d},
    "args": {{
      "External id": {link}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {link},
      "registers per thread": 32, "shared memory": 0, "grid": [128, 1, 1], "block": [128, 1, 1]
    }}
  }},
  {{
    "ph": "f", "id": {link}, "pid": 0, "tid": 7, "ts": {_us(start)}, "cat": "ac2g", "name": "ac2g", "bp": "e"
  }}"""


def _us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("megabytes", type=float)
    given = parser.parse_args()
    write(given.out, given.megabytes)
