"""Makes an SQLite export in the shape of Nsight Systems: `num_kernels` kernels and as many launch calls.

Two processes with one GPU each decode: steps of 32 layers with 12 kernels, short gaps within a step and long ones
between steps, where the host is late. Times, names and launch calls are made up; nothing was measured.

    python tests/benchmarks/generate_nsys.py OUT.sqlite NUM_KERNELS
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_VERSION = "3.24.0"
_VM = 1 << 48
_PIDS = (4000, 4001)
_STEP = 32 * 12 + 8
_ROWS_AT_ONCE = 200_000
_KERNELS = [f"void gemm_bf16_{64 << i % 3}x{64 << i % 2}_stages{i}(Params)" for i in range(30)] + [
    *(f"void attention_kernel<{i}>(Params)" for i in range(12)),
    *(f"ncclDevKernel_AllReduce_Sum_bf16_RING_LL_{i}" for i in range(3)),
    *(f"void norm_kernel<{i}>(float *, int)" for i in range(15)),
]
_CALLS = ["cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaLaunchKernelExC_v11060"]
_KERNEL_COLUMNS = (
    *("start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid"),
    *("demangledName", "shortName", "mangledName", "launchType", "cacheConfig", "registersPerThread"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"),
    *("localMemoryPerThread", "localMemoryTotal", "gridId", "sharedMemoryExecuted", "graphNodeId"),
)
_CALL_COLUMNS = (*("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId"),)
Int = npt.NDArray[np.int64]


def generate(out: Path, num_kernels: int, seed: int = 7) -> None:
    """Write the export to `out`, which is replaced."""
    out.unlink(missing_ok=True)
    random = np.random.default_rng(seed)
    with closing(sqlite3.connect(out)) as file:
        file.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
        _small_tables(file)
        _create(file, "CUPTI_ACTIVITY_KIND_KERNEL", _KERNEL_COLUMNS)
        _create(file, "CUPTI_ACTIVITY_KIND_RUNTIME", _CALL_COLUMNS)
        for device, pid in enumerate(_PIDS):
            count = num_kernels // len(_PIDS) + (num_kernels % len(_PIDS) if device == 0 else 0)
            _decode(file, random, device, pid, count)
        file.commit()


def _create(file: sqlite3.Connection, table: str, columns: tuple[str, ...]) -> None:
    file.execute(f"CREATE TABLE {table} ({', '.join(f'{column} INTEGER' for column in columns)})")


def _small_tables(file: sqlite3.Connection) -> None:
    file.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
    file.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(["", *_KERNELS, *_CALLS]))
    file.execute("CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT)")
    file.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', ?)", (_VERSION,))
    file.execute("CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)")
    file.executemany("INSERT INTO PROCESSES VALUES (?, ?, 'python3')", [(_VM | pid << 24, pid) for pid in _PIDS])
    file.execute("CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER)")
    file.executemany("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (?, ?, ?)", [(d, d, p) for d, p in enumerate(_PIDS)])


def _decode(file: sqlite3.Connection, random: np.random.Generator, device: int, pid: int, count: int) -> None:
    at = np.arange(count) % _STEP
    name = (at % 12 * 5 + at // 12 % 4) % len(_KERNELS)
    typical = random.lognormal(1.9, 0.7, len(_KERNELS)).clip(2, 50) * 1000
    duration = (typical[name] * random.normal(1, 0.08, count).clip(0.6, 2)).astype(np.int64)
    gap = random.integers(300, 1500, count)
    gap[at == 0] += random.integers(150_000, 600_000, int((at == 0).sum()))
    start = 1_000_000 + np.cumsum(gap + np.r_[0, duration[:-1]])
    stream = np.where(at % 12 == 11, 13, 7)
    start -= np.where(stream == 13, gap + 2000, 0)
    launch = start - random.integers(5_000, 60_000, count)
    correlation = np.arange(1, count + 1)
    global_pid = _VM | pid << 24
    kernel: dict[str, Int | int] = {
        **dict.fromkeys(("contextId", "launchType", "gridY", "gridZ", "blockY", "blockZ"), 1),
        **dict.fromkeys(("cacheConfig", "staticSharedMemory", "localMemoryPerThread", "localMemoryTotal"), 0),
        "start": start,
        "end": start + duration,
        "deviceId": device,
        "streamId": stream,
        "gridId": correlation,
        "correlationId": correlation,
        "globalPid": global_pid,
        "demangledName": name + 1,
        "shortName": name + 1,
        "registersPerThread": 32 + name,
        "gridX": 16 + name * 4,
        "blockX": 256,
        "dynamicSharedMemory": 49152,
    }
    _insert(file, "CUPTI_ACTIVITY_KIND_KERNEL", _KERNEL_COLUMNS, kernel, count)
    call: dict[str, Int | int] = {
        "start": launch,
        "end": launch + random.integers(1500, 5000, count),
        "eventClass": 0,
        "returnValue": 0,
        "globalTid": global_pid | pid,
        "correlationId": correlation,
        "nameId": name % 3 + 1 + len(_KERNELS),
    }
    _insert(file, "CUPTI_ACTIVITY_KIND_RUNTIME", _CALL_COLUMNS, call, count)


def _insert(
    file: sqlite3.Connection, table: str, columns: tuple[str, ...], values: dict[str, Int | int], count: int
) -> None:
    for first in range(0, count, _ROWS_AT_ONCE):
        last = min(first + _ROWS_AT_ONCE, count)

        def column(name: str, first: int = first, last: int = last) -> Iterator[Any]:
            value = values.get(name)
            return iter(value[first:last].tolist() if isinstance(value, np.ndarray) else [value] * (last - first))

        marks = ", ".join("?" * len(columns))
        file.executemany(f"INSERT INTO {table} VALUES ({marks})", zip(*map(column, columns), strict=True))


if __name__ == "__main__":
    generate(Path(sys.argv[1]), int(sys.argv[2]))
