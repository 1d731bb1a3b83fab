"""The whole file: events sorted to the tables they belong to, then what only the end of the file can tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from inspector.errors import Unreadable
from inspector.readers.kineto.blocks import Text
from inspector.readers.kineto.device import WORK, Device, Launchers
from inspector.readers.kineto.events import Event, EventReader
from inspector.readers.kineto.host import CALLS, Host
from inspector.readers.kineto.numbers import exact_ns, integer
from inspector.readers.reader import Progress, Report
from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo

# Drawn on the device's rows by the profiler: what ran on the host, once more. Not work, not of any thread.
_DRAWN_ON_DEVICE = "gpu_user_annotation"
# The row that spans the whole recording and tells nothing.
_WHOLE = "Trace"
_TOLD_BY_CORRELATION = frozenset(("ac2g", "async", "async_cpu_to_gpu", "async_gpu"))
# Microseconds since 1970 are of this size in our lifetime; smaller ones count from the start of the machine.
_EPOCHS_US = (10**15, 4 * 10**15)
_STAMPED_NS = 10**9
_ZERO = (b"0", b"0.0", b"0.000")


class _Reading:
    def __init__(self) -> None:
        self.builder = Builder()
        self.host = Host(self.builder)
        self.device = Device(self.builder, self.host)
        self.metadata: list[Event] = []
        self.flows: dict[object, dict[str, Event]] = defaultdict(dict)
        self.flow_events = 0
        self.drawn_on_device = 0
        self.unknown: dict[str, int] = defaultdict(int)
        self.is_kineto = False
        self.rows = 0
        self._unstamped: dict[str, list[Event]] = defaultdict(list)

    def take(self, events: Sequence[Event]) -> None:
        """Sort the events of a chunk by what they are and add them."""
        groups: dict[tuple[str, Any], list[Event]] = defaultdict(list)
        for event in events:
            groups[event.ph, event.cat if event.ph == "X" else None].append(event)
        for (phase, category), group in groups.items():
            self.rows += len(group)
            if phase == "X":
                self._complete("" if category is None else str(category), group)
            elif phase in ("B", "E", "b", "e"):
                self.host.begin_or_end(group)
            elif phase in ("i", "I", "R", "n"):
                self.host.marks(group)
            elif phase == "M":
                self.metadata += group
            elif phase in ("s", "t", "f"):
                self._flow(group)
            elif phase != "C":
                self.unknown[phase] += len(group)

    def _complete(self, category: str, events: list[Event], zero_is_a_time: bool = False) -> None:
        lower = category.lower()
        if not zero_is_a_time:
            stamped = [event for event in events if bytes(event.ts) not in _ZERO]
            if len(stamped) < len(events):
                self._unstamped[category] += [event for event in events if bytes(event.ts) in _ZERO]
                events = stamped
        if not events or category == _WHOLE:
            return
        if lower in WORK:
            self.is_kineto = True
            self.device.add(WORK[lower], events)
        elif lower in CALLS:
            self.is_kineto = True
            self.host.calls(events)
        elif lower == _DRAWN_ON_DEVICE:
            self.drawn_on_device += len(events)
        elif lower == "overhead":
            self.host.overheads(events)
        else:
            self.is_kineto |= lower in ("cpu_op", "operator", "user_annotation", "python_function")
            self.host.ranges(category, events)

    def _flow(self, events: list[Event]) -> None:
        self.flow_events += len(events)
        for event in events:
            if event.cat not in _TOLD_BY_CORRELATION:
                self.flows[event.cat, event.id, event.name].setdefault("s" if event.ph == "s" else "f", event)

    def finish(self, header: dict[str, Any]) -> None:
        """Add what had to wait for the end of the file."""
        self._late_stamps()
        unclosed = self.host.finish()
        if unclosed:
            self.builder.quality.add(
                "unclosed", "ranges that were begun and never ended: they end with the trace", unclosed
            )
        if self.host.without_length:
            text = "complete events without a duration: taken as 0"
            self.builder.quality.add("unclosed", text, self.host.without_length)
        if self.host.rounded:
            text = "times with digits beyond the nanosecond: rounded to it"
            self.builder.quality.add("assumed", text, self.host.rounded)
        if self.drawn_on_device:
            text = "annotations that the profiler drew on device rows: host ranges once more, no work"
            self.builder.quality.add("ignored", text, self.drawn_on_device)
        for phase, count in self.unknown.items():
            self.builder.quality.add("ignored", f"events of phase {phase!r}", count)
        for table, columns in self.device.finish(self._launchers(), _properties(header)).items():
            self.builder.add(table, **columns)
        self._add_flows()
        self._names(header)

    def _late_stamps(self) -> None:
        """Events stamped 0: true only where the whole trace begins near 0, else records without a time."""
        late, self._unstamped = self._unstamped, defaultdict(list)
        if self.host.last < _STAMPED_NS:
            for category, events in late.items():
                self._complete(category, events, zero_is_a_time=True)
            return
        for category, events in late.items():
            table = WORK.get(category.lower(), "host_calls" if category.lower() in CALLS else "ranges")
            length, _ = exact_ns([bytes(event.dur) for event in events])
            columns = {"start": length * 0, "end": length}
            self.builder.reject(table, "no time stamp", columns, np.arange(len(events)))

    def _launchers(self) -> Launchers:
        ids, rows, names = self.builder.column("host_calls", "correlation", "thread", "name")
        owners = self.builder.owners("threads", "process")
        texts = self.builder.names.texts
        graphs = np.array([("GraphLaunch" in text) for text in texts] + [False], bool)
        if len(rows):
            default = int(np.bincount(owners[rows]).argmax())
        else:
            default = self.builder.process(-1) if not len(owners) else int(owners[0])
        linked = ids > 0
        processes = owners[rows] if len(rows) else np.empty(0, np.int32)
        return Launchers(ids[linked], processes[linked], graphs[names[linked]], default)

    def _add_flows(self) -> None:
        whole = [flow for flow in self.flows.values() if "s" in flow and "f" in flow]
        if not whole:
            return
        start, _ = exact_ns([bytes(flow["s"].ts) for flow in whole])
        end, _ = exact_ns([bytes(flow["f"].ts) for flow in whole])
        self.builder.add(
            "flows",
            start=start,
            start_thread=[self.host.thread(flow["s"]) for flow in whole],
            end=end,
            end_thread=[self.host.thread(flow["f"]) for flow in whole],
            kind=[self.builder.names.add(str(flow["s"].cat)) for flow in whole],
        )

    def _names(self, header: dict[str, Any]) -> None:
        """Names of processes and threads, for those that have rows; the rank of all."""
        known = self.builder.keys("processes"), self.builder.keys("threads")
        for event in self.metadata:
            name = str(event.args.name) if event.args is not None and event.args.name is not None else ""
            pid = integer(event.pid, -1)
            if not name or pid not in known[0]:
                continue
            if event.name == "process_name":
                self.builder.process(pid, name)
            elif event.name == "thread_name":
                process, tid = self.builder.process(pid), integer(event.tid, -1)
                if (process, tid) in known[1]:
                    # Kineto names a thread "thread 4711 (python)": the number is shown anyway.
                    self.builder.thread(process, tid, name.replace(f"thread {tid} ", "").strip("()") or name)
        rank = integer(_distributed(header).get("rank"), -1)
        if rank >= 0:
            for pid in known[0]:
                self.builder.process(pid, rank=rank)


def read(path: Path, report: Report) -> Trace:
    """The trace of a JSON file, plain or packed. Raises Unreadable and what `report` raises."""
    text = Text(path)
    events = EventReader(text)
    reading = _Reading()
    for chunk in events:
        reading.take(chunk.events)
        reading.host.counters(chunk.values)
        report(Progress("reading events", text.position, text.size, reading.rows))
    if not reading.rows and (events.losses.invalid or events.losses.truncated):
        raise Unreadable(
            f"no event in {path} can be read", events.losses.truncated or "not one is valid", "record again"
        )
    reading.finish(events.header)
    _note_losses(reading.builder, events)
    simulated = "SIMULATED" in events.header or "simulated" in events.header
    if simulated:
        reading.builder.quality.add("simulated", str(events.header.get("SIMULATED", "the file says so")))
    header = events.header
    base = integer(header.get("baseTimeNanoseconds"), -1)
    if base < 0 and _EPOCHS_US[0] < reading.host.last // 1000 < _EPOCHS_US[1]:
        base = 0
    info = TraceInfo(
        paths=(str(path),),
        kind="kineto",
        producer=_producer(header, reading.is_kineto),
        schema_version=str(header.get("schemaVersion", "")),
        start_epoch_ns=base if base >= 0 else None,
        basis="simulated" if simulated else "measured",
        details=_details(header),
        missing=_missing(reading),
    )
    return reading.builder.build(info)


def _note_losses(builder: Builder, events: EventReader) -> None:
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
        builder.quality.add("truncated", losses.truncated)


def _properties(header: dict[str, Any]) -> dict[int, dict[str, Any]]:
    found = header.get("deviceProperties")
    if not isinstance(found, list):
        return {}
    return {integer(each.get("id"), -1): each for each in found if isinstance(each, dict)}


def _distributed(header: dict[str, Any]) -> dict[str, Any]:
    found = header.get("distributedInfo")
    return found if isinstance(found, dict) else {}


def _producer(header: dict[str, Any], is_kineto: bool) -> str:
    if not is_kineto and "schemaVersion" not in header:
        return "Chrome trace"
    backends = (("CUPTI", "cupti_version"), ("roctracer", "roctracer_version"))
    known = [f"{name} {header[key]}" for name, key in backends if key in header]
    return "PyTorch profiler" + (f" ({', '.join(known)})" if known else "")


def _details(header: dict[str, Any]) -> dict[str, str]:
    """What the file says of its recording; never paths, host or user names."""
    wanted = {
        "CUDA runtime": header.get("cuda_runtime_version"),
        "CUDA driver": header.get("cuda_driver_version"),
        "HIP runtime": header.get("hip_runtime_version"),
        "stacks": header.get("with_stack"),
        "shapes": header.get("record_shapes"),
        "memory": header.get("profile_memory"),
        "backend": _distributed(header).get("backend"),
        "rank": _distributed(header).get("rank"),
        "world size": _distributed(header).get("world_size"),
    }
    details = {key: str(value) for key, value in wanted.items() if value is not None}
    groups = _distributed(header).get("pg_config")
    if isinstance(groups, list):
        names = [str(group.get("pg_desc") or group.get("pg_name", "")) for group in groups if isinstance(group, dict)]
        details["process groups"] = ", ".join(dict.fromkeys(names))
    return details


def _missing(reading: _Reading) -> dict[str, str]:
    work = "no device work in this trace: profile with ProfilerActivity.CUDA to record it"
    missing = {table: work for table in ("kernels", "memcpys", "memsets") if not reading.device.chunks.get(table)}
    missing["graphs"] = "the PyTorch profiler records the kernels inside CUDA graphs, never a graph as a whole"
    missing["os_calls"] = missing["schedulings"] = "the PyTorch profiler does not record the operating system"
    missing["counters"] = "no counters: profile with profile_memory=True for memory; GPU metrics need Nsight Systems"
    return missing
