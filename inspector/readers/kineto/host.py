"""Host events to rows: calls, operators, ranges, Python frames, instants, counters, allocations."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from inspector.readers.kineto.events import Event, Values
from inspector.readers.kineto.numbers import exact_ns, integer
from inspector.trace.builder import Builder
from inspector.trace.schema import RANGE_KINDS

CALLS = frozenset(("cuda_runtime", "cuda_driver", "runtime", "hip_runtime", "hip_driver", "xpu_runtime", "xpu_driver"))
_KINDS = {
    "cpu_op": RANGE_KINDS.index("operator"),
    "operator": RANGE_KINDS.index("operator"),
    "user_annotation": RANGE_KINDS.index("annotation"),
    "python_function": RANGE_KINDS.index("python"),
}
_OTHER = RANGE_KINDS.index("other")
_MEMORY_KINDS = {0: 1, 1: 3}  # of torch's device types: the host's pageable memory, the device's


class Host:
    """Adds rows to the builder as events come; `last` is the end of the latest event, ns."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._threads: dict[tuple[object, object], int] = {}
        self._processes: dict[object, int] = {}
        self._open: list[tuple[int, int, int, bool, int, int]] = []
        self._allocations: list[tuple[int, int, int, int, int, int]] = []
        self.last = 0
        self.rounded = 0
        self.without_length = 0
        self.call_pids: dict[int, int] = {}

    def process(self, pid: object) -> int:
        """Row of processes for a process id, which may be text."""
        row = self._processes.get(pid)
        if row is None:
            number = integer(pid, -1)
            if number >= 0:
                row = self._builder.process(number)
            else:
                row = self._builder.process(-1 - (zlib.crc32(str(pid).encode()) & 0x7FFFFFFF), str(pid))
            self._processes[pid] = row
        return row

    def thread(self, event: Event) -> int:
        """Row of threads for the process and thread id of an event."""
        key = (event.pid, event.tid)
        row = self._threads.get(key)
        if row is None:
            number = integer(event.tid, -1)
            text = "" if number >= 0 or isinstance(event.tid, int) else str(event.tid)
            tid = number if not text else zlib.crc32(text.encode())
            row = self._threads[key] = self._builder.thread(self.process(event.pid), tid, text)
        return row

    def times(self, events: Sequence[Event]) -> tuple[np.ndarray, np.ndarray]:
        """Starts and ends of complete events, ns."""
        start, rounded = exact_ns([bytes(event.ts) for event in events])
        lengths = [bytes(event.dur) for event in events]
        self.without_length += lengths.count(b"")
        length, more = exact_ns(lengths)
        self.rounded += rounded + more
        end = start + length
        if len(end):
            self.last = max(self.last, int(end.max()))
        return start, end

    def calls(self, events: Sequence[Event]) -> None:
        """Runtime and driver calls."""
        start, end = self.times(events)
        threads = [self.thread(event) for event in events]
        self._builder.add(
            "host_calls",
            start=start,
            end=end,
            thread=threads,
            name=self._names(events),
            correlation=[integer(event.args.correlation) if event.args else 0 for event in events],
        )

    def ranges(self, category: str, events: Sequence[Event]) -> None:
        """Operators, annotations, Python frames and whatever else has a length."""
        start, end = self.times(events)
        domain = self._builder.names.add(category) if category else -1
        self._builder.add(
            "ranges",
            start=start,
            end=end,
            thread=[self.thread(event) for event in events],
            name=self._names(events),
            kind=_KINDS.get(category.lower(), _OTHER),
            domain=np.full(len(events), domain, np.int32),
            correlation=[integer(event.args.external) if event.args else 0 for event in events],
        )

    def overheads(self, events: Sequence[Event]) -> None:
        """What the profiler took for itself."""
        start, end = self.times(events)
        threads = [self.thread(event) for event in events]
        self._builder.add("overheads", start=start, end=end, thread=threads, name=self._names(events))

    def marks(self, events: Sequence[Event]) -> None:
        """Instants; allocations among them become rows of their own."""
        time, rounded = exact_ns([bytes(event.ts) for event in events])
        self.rounded += rounded
        plain = []
        for row, event in enumerate(events):
            if event.name == "[memory]" and event.args is not None and event.args.memory_bytes is not None:
                self._allocation(int(time[row]), event)
            else:
                plain.append(row)
        if plain:
            kept = [events[row] for row in plain]
            domains = [self._builder.names.add(str(event.cat)) if event.cat else -1 for event in kept]
            threads = [self.thread(event) for event in kept]
            self._builder.add("marks", time=time[plain], thread=threads, name=self._names(kept), domain=domains)

    def _allocation(self, time: int, event: Event) -> None:
        args = event.args
        if args is None:
            return
        device = integer(args.device_id, -1) if integer(args.device_type) == 1 else -1
        kind = _MEMORY_KINDS.get(integer(args.device_type, -1), 0)
        process = self.process(event.pid)
        self._allocations.append((time, process, device, integer(args.address), integer(args.memory_bytes), kind))
        if args.allocated is not None:
            row = self._builder.device(device) if device >= 0 else -1
            series = self._builder.series("memory allocated", "bytes", row, process)
            self._builder.add("counters", time=[time], series=[series], value=[float(integer(args.allocated))])

    def counters(self, events: Sequence[Values]) -> None:
        """Counter events: one series for each argument."""
        times, rounded = exact_ns([bytes(event.ts) for event in events])
        self.rounded += rounded
        rows: tuple[list[int], list[int], list[float]] = ([], [], [])
        for time, event in zip(times.tolist(), events, strict=True):
            values = event.args if isinstance(event.args, dict) else {}
            for key, value in values.items():
                if isinstance(value, int | float):
                    name = str(event.name) if len(values) == 1 else f"{event.name} {key}"
                    rows[0].append(time)
                    rows[1].append(self._builder.series(name, process=self.process(event.pid)))
                    rows[2].append(float(value))
        if rows[0]:
            self._builder.add("counters", time=rows[0], series=rows[1], value=rows[2])

    def begin_or_end(self, events: Sequence[Event]) -> None:
        """Halves of ranges (B and E, b and e); matched by `finish`, since they need not come in order."""
        time, rounded = exact_ns([bytes(event.ts) for event in events])
        self.rounded += rounded
        for row, event in enumerate(events):
            name = self._builder.names.add(str(event.name))
            # Asynchronous halves belong together by id, the others by nesting.
            track = 0 if event.ph in "BE" else zlib.crc32(f"{event.cat}\\0{event.id}".encode()) + 1
            self.last = max(self.last, int(time[row]))
            self._open.append((int(time[row]), len(self._open), self.thread(event), event.ph in "Bb", name, track))

    def finish(self) -> int:
        """Add the matched ranges and the allocations; how many ranges were never closed (they end with the trace)."""
        stacks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        done: list[tuple[int, int, int, int]] = []
        for time, _, thread, begins, name, track in sorted(self._open):
            stack = stacks[thread, track]
            if begins:
                stack.append((time, name))
            elif stack:
                start, opened = stack.pop()
                done.append((start, time, thread, opened))
        unclosed = [(start, self.last, thread, name) for (thread, _), s in stacks.items() for start, name in s]
        rows = done + unclosed
        if rows:
            columns = list(zip(*rows, strict=True))
            size = len(rows)
            self._builder.add(
                "ranges",
                start=columns[0],
                end=columns[1],
                thread=columns[2],
                name=columns[3],
                kind=_OTHER,
                domain=np.full(size, -1, np.int32),
                correlation=np.zeros(size, np.int64),
            )
        if self._allocations:
            columns = list(zip(*self._allocations, strict=True))
            devices = [self._builder.device(number) if number >= 0 else -1 for number in columns[2]]
            self._builder.add(
                "allocations",
                time=columns[0],
                process=columns[1],
                device=devices,
                address=np.array([value % (1 << 64) for value in columns[3]], np.uint64),
                bytes=columns[4],
                kind=columns[5],
            )
        return len(unclosed)

    def _names(self, events: Sequence[Event]) -> list[int]:
        add = self._builder.names.add
        return [add(event.name if isinstance(event.name, str) else str(event.name)) for event in events]
