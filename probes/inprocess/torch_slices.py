"""One whole iteration at a time by torch.profiler: host operators, and kernels and copies where there is a GPU.

Starting and stopping it costs several times what it watches, so it is for one iteration in many. The device side is
written against the documented interface of torch.profiler; it has not met a GPU yet.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

_STEADY_NS = 100_000
"""How far wall clock and monotonic clock may drift apart within one slice."""
_WORK = {"kernel": "kernels", "gpu_memcpy": "memcpys", "gpu_memset": "memsets"}
_CALLS = frozenset({"cuda_runtime", "cuda_driver"})


class Operator(NamedTuple):
    """A host operator. Times in ns of CLOCK_MONOTONIC, `thread` as the OS numbers it."""

    start: int
    end: int
    thread: int
    name: str


class Call(NamedTuple):
    """A call of the CUDA runtime or driver; `correlation` is that of the work that it started."""

    start: int
    end: int
    thread: int
    name: str
    correlation: int


class Work(NamedTuple):
    """Work on a device: `table` is kernels, memcpys or memsets; `bytes` is -1 for a kernel."""

    table: str
    start: int
    end: int
    device: int
    stream: int
    name: str
    correlation: int
    bytes: int


class Slice(NamedTuple):
    """What one iteration did. `lost` counts what the profiler told and could not be placed in time."""

    operators: list[Operator]
    calls: list[Call]
    work: list[Work]
    lost: int


class TorchSlices:
    """torch.profiler, started and stopped around one iteration. Raises RuntimeError where another profiler runs."""

    def __init__(self) -> None:
        # Else it writes two lines to stderr for every slice. Read once, when the profiler starts for the first time.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        import torch.profiler

        self._activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            self._activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profile = torch.profiler.profile
        self._profiler = torch.autograd.profiler
        self._running: Any = None
        self._ahead_ns = 0
        # The first start takes most of a second, which belongs to the start of the program.
        self.begin()
        self.end()

    def begin(self) -> None:
        """Start a slice. There is one profiler in a process: one that is at work already is not ours to stop."""
        if self._profiler._is_profiler_enabled:
            raise RuntimeError("another profiler is at work")
        self._running = self._profile(activities=self._activities)
        self._ahead_ns = _wall_ahead_of_monotonic()
        self._running.start()

    def end(self) -> Slice:
        """Stop, and read what happened. Waits for the device where there is one."""
        self._running.stop()
        events = self._running.profiler.kineto_results.events()
        self._running = None
        ahead = _wall_ahead_of_monotonic()
        if abs(ahead - self._ahead_ns) > _STEADY_NS:
            # The profiler tells wall time; when that clock was set meanwhile, nothing can be placed.
            return Slice([], [], [], len(events))
        return read(events, (ahead + self._ahead_ns) // 2)


def read(events: list[Any], ahead_ns: int) -> Slice:
    """Sort Kineto's events by what they are; `ahead_ns` is what their clock is ahead of CLOCK_MONOTONIC."""
    operators: list[Operator] = []
    calls: list[Call] = []
    work: list[Work] = []
    for event in events:
        kind = event.activity_type()
        start, end = event.start_ns() - ahead_ns, event.end_ns() - ahead_ns
        if kind == "cpu_op":
            operators.append(Operator(start, end, event.device_resource_id(), event.name()))
        elif kind in _CALLS:
            calls.append(Call(start, end, event.device_resource_id(), event.name(), event.correlation_id()))
        elif kind in _WORK:
            number, stream = event.device_index(), event.device_resource_id()
            moved = -1 if kind == "kernel" else event.nbytes()
            work.append(Work(_WORK[kind], start, end, number, stream, event.name(), event.correlation_id(), moved))
    return Slice(operators, calls, work, 0)


def _wall_ahead_of_monotonic() -> int:
    """Wall clock less CLOCK_MONOTONIC in ns, from the tightest of a few readings."""
    found = []
    for _ in range(5):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        found.append((after - before, wall - (before + after) // 2))
    return min(found)[1]
