"""Operators of a PyTorch workload, for whole iterations: by a native callback where it can be built, else by slices.

`start` gives an `Operators` whose `iteration_begin` and `iteration_end` the workload calls, on one thread, around each
iteration. A captured iteration is complete. How many are captured follows from a budget of records, and what is
less than every iteration says so in its domain: "sampled 1/30". Nothing here raises into the workload or waits.

The records of an iteration reach the producer's ring when it ends: a workload that is killed loses those of the
iteration in which it was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from .columns import STATES
from .native_operators import Build, NativeOperators
from .pace import Pace
from .torch_slices import Slice, TorchSlices, Work

PER_MINUTE = 36_000
"""Records a minute in the long run: with 2,400 of them in an iteration, 15 iterations."""
BURST = 150_000
"""Records that may come at once, at the start and after a rest."""
SLICE_EVERY = 30
"""torch.profiler halves the speed of what it watches; one iteration in 30 costs about a twentieth."""
WHILE_BUILT_EVERY = 100
"""Fewer of them while what is to replace them is built, which is soon."""
OURS = "inflight probe: reading operators"
"""The range, on the workload's thread, of what starting a slice and reading it takes."""

logger = logging.getLogger(__name__)

_ANNOTATION, _OPERATOR = 2, 3  # indexes into RANGE_KINDS
_SECOND = 1_000_000_000


class Sink(Protocol):
    """What is needed of a Producer."""

    def name(self, text: str) -> int:
        """The id of a text."""

    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Hand over rows."""

    def add_packed(self, table: str, rows: int, data: bytes) -> None:
        """Hand over so many rows that are packed already."""

    def device(self, number: int, name: str, memory: int = -1) -> None:
        """Say what a device is."""


@dataclass(frozen=True)
class Status:
    """How the capture is doing. `cost_ns` is what it took from the workload so far; `message` says what it does."""

    state: str
    records: int
    lost: int
    cost_ns: int
    message: str


def start(sink: Sink, mode: str, per_minute: int = PER_MINUTE, burst: int = BURST) -> Operators:
    """Capture operators: `mode` is "none", "sampled" (torch.profiler) or "native" (with that until it is built).

    `per_minute` and `burst` bound the records written, see `Pace`.
    """
    return Operators(sink, mode, per_minute, burst)


class Operators:
    """A capture in progress. All calls come from the thread whose operators are wanted."""

    def __init__(self, sink: Sink, mode: str, per_minute: int, burst: int) -> None:
        self._sink, self._mode, self._budget = sink, mode, (per_minute, burst)
        self._names: dict[str, int] = {}
        self._records = self._lost = self._cost_ns = 0
        self._one_in = 0
        self._capturing = False
        self._told_ns = 0
        self._devices: set[int] = set()
        self._why = ""
        self._failed = False
        self._build: Build | None = None
        self._native: NativeOperators | None = None
        self._slices: TorchSlices | None = None
        self._pace = Pace(SLICE_EVERY, *self._budget)
        with ExitStack() as undo, self._guarded():
            if mode == "native":
                self._build = Build()
                # An interrupt of the program while the profiler starts must not leave a compiler behind.
                undo.callback(self._build.close)
                self._pace = Pace(WHILE_BUILT_EVERY, *self._budget)
                self._take_native()
            if mode in ("native", "sampled") and self._native is None:
                self._slices = TorchSlices()
            undo.pop_all()

    @property
    def status(self) -> Status:
        """How it is doing now."""
        if self._failed:
            state, message = "failed", self._why
        elif self._native is None and self._slices is None:
            state, message = "off", self._why or "not asked for"
        else:
            state = "running" if self._native is not None and self._one_in == 1 else "sampling"
            how = "native" if self._native is not None else "torch.profiler"
            share = f"one iteration in {self._one_in}" if self._one_in else "no iteration yet"
            limit = f"at most {self._budget[0]:,} records a minute after {self._budget[1]:,}"
            message = "; ".join(part for part in (f"{how}: {share}", limit, self._why) if part)
        return Status(state, self._records, self._lost, self._cost_ns, message)

    def iteration_skipped(self) -> None:
        """An iteration begins that is not to be captured; it counts for the share of those that are."""
        self._pace.skip()

    def iteration_begin(self) -> None:
        """An iteration begins: decide whether it is captured."""
        if self._native is None and self._slices is None:
            return
        # For most of them that is all, and it is to cost nothing: a guard takes longer than what it guards.
        begun = time.monotonic_ns()
        one_in = 0
        if self._build is None and not self._capturing:
            one_in = self._pace.due(begun)
            if not one_in:
                self._cost_ns += time.monotonic_ns() - begun
                return
        with self._guarded():
            if self._capturing:
                self._stop_capture()  # The workload left the last iteration by an exception.
            if self._build is not None:
                self._take_native()
            one_in = one_in or self._pace.due(time.monotonic_ns())
            capture = self._native or self._slices
            if one_in and capture is not None:
                self._one_in = one_in
                self._capturing = True
                begun = time.monotonic_ns()
                capture.begin()
                if self._native is None:
                    self._mark(begun)

    def iteration_end(self) -> None:
        """It ended: hand over what was captured, and once a second how things are."""
        if self._native is None and self._slices is None:
            return
        now = time.monotonic_ns()
        if not self._capturing and now - self._told_ns < _SECOND:
            return
        with self._guarded():
            if self._capturing:
                self._stop_capture()
            if now - self._told_ns >= _SECOND:
                self._tell(now)

    def stop(self) -> None:
        """End the capture and say so. The status stays."""
        with self._guarded():
            if self._capturing:
                self._stop_capture()
            if self._build is not None:
                self._build.close()
            if self._native is not None or self._slices is not None:
                self._native = self._slices = self._build = None
                self._why = "stopped"
            self._tell(time.monotonic_ns())

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Count the time in here as cost; what fails in here ends the capture and leaves the workload alone."""
        begun = time.monotonic_ns()
        try:
            yield
        except Exception as error:
            logger.debug("the capture of operators gives up", exc_info=True)
            self._failed, self._capturing = True, False
            self._native = self._slices = None
            self._why = f"{type(error).__name__}: {error}"
            self._tell(begun)
        self._cost_ns += time.monotonic_ns() - begun

    def _take_native(self) -> None:
        """Use the native library from here on, if it is ready."""
        assert self._build is not None
        if self._build.ready():
            self._native = NativeOperators(self._build.library)
            self._slices, self._build, self._why = None, None, ""
            self._pace = Pace(1, *self._budget)
        elif self._build.reason:
            self._why, self._build = f"no native capture: {self._build.reason}", None
            self._pace = Pace(SLICE_EVERY, *self._budget)
        else:
            self._why = "the native capture is being built"

    def _stop_capture(self) -> None:
        self._capturing = False
        if self._native is not None:
            self._give_native(self._native)
        elif self._slices is not None:
            begun = time.monotonic_ns()
            self._give_slice(self._slices.end())
            self._mark(begun)

    def _mark(self, begun: int) -> None:
        """Name the time since `begun`, in which the workload stood still for us. No record of the workload's."""
        row = (
            begun,
            time.monotonic_ns(),
            threading.get_native_id(),
            self._name(OURS),
            _ANNOTATION,
            self._name("probe"),
        )
        self._sink.add("ranges", [row])

    def _give_native(self, native: NativeOperators) -> None:
        before = native.lost
        count = native.end()
        if count:
            self._sink.add_packed("ranges", count, native.rows(count, self._name, _OPERATOR, self._domain()))
            self._records += count
        self._lost += native.lost - before
        self._cost_ns += int(count * native.record_ns)
        self._pace.spent(count)

    def _give_slice(self, found: Slice) -> None:
        domain, before = self._domain(), self._records
        self._add(
            "ranges", [(o.start, o.end, o.thread, self._name(o.name), _OPERATOR, domain) for o in found.operators]
        )
        self._add("host_calls", [(c.start, c.end, c.thread, self._name(c.name), c.correlation) for c in found.calls])
        for number in {work.device for work in found.work} - self._devices:
            import torch

            self._devices.add(number)
            properties = torch.cuda.get_device_properties(number)
            self._sink.device(number, properties.name, properties.total_memory)
        for table in ("kernels", "memcpys", "memsets"):
            done = [work for work in found.work if work.table == table]
            self._add(table, [self._work_row(work) for work in done])
        self._lost += found.lost
        self._pace.spent(self._records - before)

    def _work_row(self, work: Work) -> tuple[int, ...]:
        row = (work.start, work.end, work.device, work.stream, self._name(work.name), work.correlation)
        return row if work.table == "kernels" else (*row, work.bytes)

    def _add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            self._sink.add(table, rows)
            self._records += len(rows)

    def _name(self, text: str) -> int:
        found = self._names.get(text)
        if found is None:
            found = self._names[text] = self._sink.name(text)
        return found

    def _domain(self) -> int:
        """The name id of the domain of what is captured now."""
        return self._name("operators" if self._one_in == 1 else f"sampled 1/{self._one_in}")

    def _tell(self, now_ns: int) -> None:
        self._told_ns = now_ns
        told = self.status
        row = (now_ns, self._name("operators"), STATES.index(told.state), told.records, told.lost, told.cost_ns)
        self._sink.add("probes", [(*row, self._sink.name(told.message))])
