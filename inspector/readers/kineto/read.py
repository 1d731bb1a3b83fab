"""The whole file: events sorted to the tables they belong to, then what only the end of the file can tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from inspector.errors import Unreadable
from inspector.readers.kineto import header as told
from inspector.readers.kineto.arrows import PHASES, Arrows
from inspector.readers.kineto.blocks import Text
from inspector.readers.kineto.counters import MEMORY, Counters
from inspector.readers.kineto.device import Device
from inspector.readers.kineto.event import Event, Scalar
from inspector.readers.kineto.events import EventReader
from inspector.readers.kineto.halves import HALVES, Halves
from inspector.readers.kineto.host import KINETO_RANGES, Host, numbered
from inspector.readers.kineto.launchers import Launchers
from inspector.readers.kineto.numbers import Int, exact_ns, integer
from inspector.readers.reader import Progress, Report
from inspector.trace.builder import Builder
from inspector.trace.table import Array
from inspector.trace.trace import Trace, TraceInfo

_WORK = {
    "kernel": "kernels",
    "concurrent_kernel": "kernels",
    "gpu_memcpy": "memcpys",
    "memcpy": "memcpys",
    "gpu_memset": "memsets",
    "memset": "memsets",
    "cuda_sync": "syncs",
}
_KEY = attrgetter("ph", "cat")
_CALLS = ("_runtime", "_driver")
_IGNORED = {
    "gpu_user_annotation": "annotations that the profiler drew on device rows: host ranges once more, no work",
    "trace": "rows that span the whole recording",
}
# Microseconds since 1970 are of this size in our lifetime; smaller ones count from the start of the machine.
_EPOCHS_NS = (10**18, 4 * 10**18)
# A trace whose other times begin no later than this, or than it is long, may truly begin at 0.
_NEAR_NS = 3600 * 10**9


class _Reading:
    def __init__(self) -> None:
        self.builder = Builder()
        self.host = Host(self.builder)
        self.device = Device(self.builder, self.host)
        self.counters = Counters(self.builder, self.host)
        self.halves = Halves(self.builder, self.host)
        self.arrows = Arrows(self.builder, self.host)
        self.metadata: list[Event] = []
        self.is_kineto = False
        self.rows = 0
        self._ranges: dict[int, int] = defaultdict(int)
        self._ignored: dict[str, int] = defaultdict(int)
        self._at_zero: list[tuple[str, str, list[Event]]] = []

    def take(self, events: Sequence[Event]) -> None:
        """Sort the events of a chunk by what they are and add them."""
        groups: dict[tuple[str, Scalar], list[Event]] = defaultdict(list)
        for key, event in zip(map(_KEY, events), events, strict=True):
            groups[key].append(event)
        self.rows += len(events)
        if not HALVES.isdisjoint(phase for phase, _ in groups):
            # Begins and ends at one time stay in the order of the file.
            self._stamped("B", "", [event for event in events if event.ph in HALVES])
        # Arrows come last: whether they are needed depends on what they connect.
        for (phase, cat), group in sorted(groups.items(), key=lambda item: item[0][0] in PHASES):
            category = "" if cat is None else str(cat)
            if phase == "M":
                self.metadata += group
            elif phase in PHASES and self.arrows.are_told(category) and not self._arrows_needed():
                self.arrows.pass_over(group)
            elif phase not in HALVES and phase != "C":
                self._stamped(phase, category, group)

    def _arrows_needed(self) -> bool:
        seen = self.host.launches or self.device.chunks
        return not seen or self.host.unlinked or self.device.unlinked

    def _stamped(self, phase: str, category: str, events: list[Event]) -> None:
        """Events that need a time: those without one are set aside, those stamped 0 wait for the end of the file."""
        time, unreadable = self.host.starts(events)
        kept = (time != 0) & ~unreadable
        if not kept.all():
            self._reject(phase, category, [events[row] for row in np.flatnonzero(unreadable)])
            zero = [events[row] for row in np.flatnonzero((time == 0) & ~unreadable)]
            if zero:
                self._at_zero.append((phase, category, zero))
            events, time = [events[row] for row in np.flatnonzero(kept)], time[kept]
        if events:
            self._add(phase, category, events, time)

    def _add(self, phase: str, category: str, events: list[Event], time: Int) -> None:
        if phase == "X":
            self._complete(category, events, time)
        elif phase in HALVES:
            self.halves.add(events, time)
        elif phase in ("i", "I", "R", "n"):
            memory = np.array([event.name == MEMORY for event in events])
            for add, rows in ((self.counters.memory, memory), (self.host.marks, ~memory)):
                if rows.any():
                    add([events[row] for row in np.flatnonzero(rows)], time[rows])
        elif phase in PHASES:
            self.arrows.add(events, time)
        else:
            self._ignored[f"events of phase {phase!r}"] += len(events)

    def _complete(self, category: str, events: list[Event], time: Int) -> None:
        lower = category.lower()
        if lower in _WORK:
            self.is_kineto = True
            self.device.add(_WORK[lower], events, time)
        elif _is_call(lower):
            self.is_kineto = True
            self.host.calls(events, time)
        elif lower in _IGNORED:
            self._ignored[_IGNORED[lower]] += len(events)
        elif lower == "overhead":
            self.host.overheads(events, time)
        else:
            self.is_kineto |= lower in KINETO_RANGES
            self.host.ranges(category, events, time)
            self._ranges[self.host.threads.process(events[0].pid)] += len(events)

    def finish(self, header: dict[str, Any]) -> None:
        """Add what had to wait for the end of the file."""
        self._add_at_zero()
        calls = self.host.launches
        self.arrows.link(calls, self.device.work())
        self.host.finish()
        self.halves.finish()
        self.counters.finish()
        self.device.finish(Launchers(self.builder, calls, self._process_without_calls))
        self.device.name_devices(told.properties(header))
        self.arrows.finish()
        for text, count in self._ignored.items():
            self.builder.quality.add("ignored", text, count)
        for code, text in told.messages(header):
            self.builder.quality.add(code, text)
        self._names(header)

    def _add_at_zero(self) -> None:
        """Events stamped 0: true only where the trace may begin there, else records without a time."""
        late, self._at_zero = self._at_zero, []
        first, last = self.host.first, self.host.last
        for phase, category, events in late:
            if first <= max(last - first, _NEAR_NS) or first > last:
                self._add(phase, category, events, np.zeros(len(events), np.int64))
            else:
                self._reject(phase, category, events)

    def _reject(self, phase: str, category: str, events: list[Event]) -> None:
        lower = category.lower()
        if not events or lower in _IGNORED:
            return
        if phase in PHASES:
            self._ignored["arrows without a time stamp"] += len(events)
            return
        table = _WORK.get(
            lower, "host_calls" if _is_call(lower) else "ranges" if phase == "X" or phase in HALVES else "marks"
        )
        length = exact_ns([bytes(event.dur) for event in events]).ns
        columns: dict[str, Array] = {"start": length * 0, "end": length}
        columns["name"] = np.array(self.host.names(events), np.int32)
        if table not in _WORK.values():
            columns["thread"] = np.array(self.host.thread_rows(events), np.int32)
        self.builder.reject(table, "no time stamp", columns, np.arange(len(events)))

    def _process_without_calls(self) -> int:
        """The process of work where the file has no launch calls: that of most ranges, else one for the device."""
        if self._ranges:
            return max(self._ranges, key=lambda row: self._ranges[row])
        for chunk in self.device.work():
            return self.builder.process(max(int(chunk["device"][0]), 0))
        return -1

    def _names(self, header: dict[str, Any]) -> None:
        """Names of processes and threads, for those that have rows; the rank of all."""
        known = frozenset(self.builder.keys("processes")), frozenset(self.builder.keys("threads"))
        for event in self.metadata:
            name = "" if event.args is None or event.args.name is None else str(event.args.name)
            (pid, _), (tid, _) = numbered(event.pid), numbered(event.tid)
            if not name or pid not in known[0]:
                continue
            if event.name == "process_name":
                self.builder.process(pid, name)
            elif event.name == "thread_name":
                process = self.builder.process(pid)
                if (process, tid) in known[1]:
                    # Kineto names a thread "thread 4711 (python)": the number is shown anyway.
                    self.builder.thread(process, tid, name.replace(f"thread {tid} ", "").strip("()") or name)
        rank = integer(told.distributed(header).get("rank"), -1, 2**31)
        if rank >= 0:
            for pid in known[0]:
                self.builder.process(pid, rank=rank)


def _is_call(category: str) -> bool:
    return category == "runtime" or category.endswith(_CALLS)


def read(path: Path, report: Report) -> Trace:
    """The trace of a JSON file, plain or packed. Raises Unreadable and what `report` raises."""
    text = Text(path)
    events = EventReader(text)
    reading = _Reading()
    for chunk in events:
        reading.take(chunk.events)
        reading.counters.counters(chunk.values)
        report(Progress("reading events", text.position, text.size, reading.rows))
    if not reading.rows and (events.losses.invalid or events.losses.truncated):
        raise Unreadable(
            f"no event in {path} can be read", events.losses.truncated or "not one is valid", "record again"
        )
    header = events.header
    reading.finish(header)
    _note_losses(reading.builder, events, text.broken)
    simulated = "SIMULATED" in header or "simulated" in header
    if simulated:
        reading.builder.quality.add("simulated", str(header.get("SIMULATED", "the file says so")))
    base = integer(header.get("baseTimeNanoseconds"), -1)
    if base < 0 and _EPOCHS_NS[0] < reading.host.last < _EPOCHS_NS[1]:
        base = 0
    info = TraceInfo(
        paths=(str(path),),
        kind="kineto",
        producer=told.producer(header, reading.is_kineto),
        schema_version=str(header.get("schemaVersion", "")),
        start_epoch_ns=base if base >= 0 else None,
        basis="simulated" if simulated else "measured",
        details=told.details(header),
        missing=_missing(reading),
    )
    return reading.builder.build(info)


def _note_losses(builder: Builder, events: EventReader, broken: str) -> None:
    losses = events.losses
    for code, text in (
        ("repaired", "events whose text was not valid JSON, read after a repair"),
        ("encoding", "events with text that is not UTF-8"),
        ("invalid", "events that could not be read"),
    ):
        count = getattr(losses, code)
        if count:
            builder.quality.add(code, text, count, losses.first.get(code, ""))
    if losses.truncated:
        builder.quality.add("truncated", losses.truncated, 1, losses.first["truncated"])
    elif broken:
        builder.quality.add("invalid", f"{broken}, yet its event list is complete")


def _missing(reading: _Reading) -> dict[str, str]:
    work = "no device work in this trace: profile with ProfilerActivity.CUDA to record it"
    missing = {table: work for table in ("kernels", "memcpys", "memsets") if not reading.device.chunks.get(table)}
    missing["graphs"] = "the PyTorch profiler records the kernels inside CUDA graphs, never a graph as a whole"
    missing["os_calls"] = missing["schedulings"] = "the PyTorch profiler does not record the operating system"
    missing["counters"] = "no counters: profile with profile_memory=True for memory; GPU metrics need Nsight Systems"
    return missing
