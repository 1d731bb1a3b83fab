"""The host side of the simulation: threads that make calls, open ranges and wait, and a clock that orders them.

A thread writes down what it does as it does it (`Moment`); together these tile its time. A thread is a generator: it
yields None to let threads that are behind catch up, or work that it waits for.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sample_traces.device import HOST_FUNCTION, Call, Device, Graph, Group, Kernel, Meeting, Stream, Work

Turn = Generator["Work | None", None, None]

# From the end of a launch call to the start of its work on an idle stream: kernels and graphs, copies.
LAUNCH_NS = 5_000
COPY_NS = 3_000
# From the end of awaited work to the return of the call that waits.
RETURN_NS = 7_000


class Moment(NamedTuple):
    """What a thread did in [start, end): a cause, the call or range it was in (None unmarked).

    `awaited` is the work that a wait was for, `inside` the innermost range around it all.
    """

    start: int
    end: int
    cause: str
    host: str | None
    awaited: Work | None
    inside: str | None


class Range(NamedTuple):
    """An NVTX push/pop range; `domain` 0 is the default one."""

    start: int
    end: int
    text: str
    domain: int
    thread: int
    process: int


class OsCall(NamedTuple):
    """A blocking operating system call."""

    start: int
    end: int
    name: str
    thread: int
    process: int


class Sync(NamedTuple):
    """A synchronisation record (kind as CUPTI numbers it); `stream` None: of no stream in particular."""

    start: int
    end: int
    kind: int
    stream: Stream | None
    context: int
    ordinal: int
    event: int
    call: Call


class EventRecord(NamedTuple):
    """A CUDA event recorded into a stream."""

    stream: Stream
    event: int
    call: Call


@dataclass
class Process:
    """An operating system process; `gpus[ordinal]` is the number of the GPU that it calls `ordinal`."""

    pid: int
    name: str
    gpus: tuple[int, ...]
    correlation: int = 1_000
    threads: dict[int, str] = field(default_factory=dict)

    def next_correlation(self) -> int:
        """Ids are counted per process, so those of two processes collide."""
        self.correlation += 1
        return self.correlation


@dataclass
class Run:
    """All that was simulated. Times are the trace file's own, ns."""

    devices: dict[int, Device] = field(default_factory=dict)
    processes: dict[int, Process] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)
    os_calls: list[OsCall] = field(default_factory=list)
    syncs: list[Sync] = field(default_factory=list)
    event_records: list[EventRecord] = field(default_factory=list)
    moments: dict[int, list[Moment]] = field(default_factory=dict)
    events: int = 0

    def process(self, pid: int, name: str, gpus: tuple[int, ...]) -> Process:
        """A new process."""
        for number in gpus:
            self.devices.setdefault(number, Device(number))
        self.processes[pid] = Process(pid, name, gpus)
        return self.processes[pid]

    def stream(self, process: Process, number: int, ordinal: int = 0) -> Stream:
        """A new stream of `process` on the device that it calls `ordinal`."""
        device = self.devices[process.gpus[ordinal]]
        stream = Stream(device, process.pid, context=1 + ordinal, number=number, ordinal=ordinal)
        self.streams.append(stream)
        return stream


class Host:
    """One host thread with its own time `now`, ns."""

    def __init__(self, run: Run, process: Process, tid: int, name: str, now: int, seed: int) -> None:
        self.run_of, self.process, self.tid, self.now = run, process, tid, now
        self.random = random.Random(seed)
        self.open: list[tuple[int, str, int]] = []
        self.moments: list[Moment] = []
        self.group: Group | None = None
        self.rank = 0
        process.threads[tid] = name
        run.moments[tid] = self.moments

    def about(self, ns: int) -> int:
        """`ns` give or take an eighth."""
        return ns + ns * (self.random.getrandbits(10) - 512) // 4096

    def push(self, text: str, domain: int = 1) -> None:
        """Open a range."""
        self.open.append((self.now, text, domain))

    def pop(self) -> None:
        """Close the innermost range."""
        start, text, domain = self.open.pop()
        self.run_of.ranges.append(Range(start, self.now, text, domain, self.tid, self.process.pid))

    def inside(self) -> str | None:
        """The innermost open range."""
        return self.open[-1][1] if self.open else None

    def spend(self, ns: int, cause: str, host: str | None, awaited: Work | None = None) -> None:
        """Let `ns` pass doing that."""
        self.moments.append(Moment(self.now, self.now + ns, cause, host, awaited, self.inside()))
        self.now += ns

    def work(self, ns: int) -> None:
        """Run code that is no call of interest."""
        self.spend(self.about(ns), "host code", self.inside())

    def collect_garbage(self, ns: int) -> None:
        """The interpreter's garbage collection, marked as a range."""
        self.push("Python GC", domain=0)
        self.spend(self.about(ns), "gc", "Python GC")
        self.pop()

    def block(self, ns: int, name: str) -> None:
        """Sleep in an operating system call."""
        start = self.now
        self.spend(self.about(ns), "os blocked", name)
        self.run_of.os_calls.append(OsCall(start, self.now, name, self.tid, self.process.pid))

    def wait_for_requests(self, until: int, name: str) -> None:
        """The range in which the engine waits for requests: from its begin to its end there are none."""
        self.push(name)
        start = self.now
        begun = start + self.about(1_500)
        until = max(until, begun + 1_000)
        end = until + self.about(4_000)
        self.run_of.os_calls.append(OsCall(begun, until, "pthread_cond_timedwait", self.tid, self.process.pid))
        self.spend(end - start, "no requests", name)
        self.pop()

    def call(self, name: str, ns: int, cause: str = "", recorded: bool = True) -> Call:
        """A CUDA call; without a cause it counts as code of the range around it, as does one that the trace lost."""
        call = Call(
            self.now,
            self.now + self.about(ns),
            name,
            self.process.next_correlation(),
            self.tid,
            self.process.pid,
            recorded,
            name.startswith("cu") and not name.startswith("cuda"),
        )
        plain = name.split("_v")[0]
        told = bool(cause) and recorded
        self.spend(call.end - call.start, cause if told else "host code", plain if told else self.inside())
        self.run_of.calls.append(call)
        return call

    def launch(
        self,
        stream: Stream,
        kernel: Kernel,
        waits: Sequence[Work] = (),
        hold: int = 0,
        gate: bool = False,
        recorded: bool = True,
        scale: int = 100,
    ) -> Work:
        """Launch one kernel; `scale` is its duration in percent of the usual one, `gate` that of its meeting."""
        name = "cuLaunchKernelEx" if kernel.name.startswith("nvjet") else "cudaLaunchKernel_v7000"
        call = self.call(name, 4_200, "launching", recorded)
        duration = max(self.about(kernel.duration * scale // 100), 800)
        ready = call.end + self.about(LAUNCH_NS)
        work = Work(kernel, stream, call, duration, ready, tuple(waits), hold, self._meeting(kernel, gate))
        stream.push(work)
        return work

    def launch_graph(self, stream: Stream, number: int, kernels: Sequence[Kernel], scale: int = 100) -> Graph:
        """Launch a captured graph: all nodes share the call."""
        call = self.call("cudaGraphLaunch_v10000", 9_000 + 60 * len(kernels), "launching")
        graph = Graph(number)
        ready = call.end + self.about(LAUNCH_NS)
        for row, kernel in enumerate(kernels):
            duration = max(self.about(kernel.duration * scale // 100), 800)
            work = Work(kernel, stream, call, duration, ready, node=number << 32 | row + 1, graph=graph)
            work.meeting = self._meeting(kernel)
            graph.nodes.append(work)
            stream.push(work)
        return graph

    def _meeting(self, kernel: Kernel, gate: bool = False) -> Meeting | None:
        if not kernel.collective or self.group is None:
            return None
        meeting = self.group.next_of(self.rank)
        meeting.gate |= gate
        return meeting

    def copy(
        self, stream: Stream, kind: int, size: int, waits: Sequence[Work] = (), name: str = "cudaMemcpyAsync_v3020"
    ) -> Work:
        """Launch a copy from or to pinned memory (kind as CUPTI numbers it)."""
        call = self.call(name, 3_600, "launching")
        ready = call.end + self.about(COPY_NS)
        work = Work(COPIES[kind], stream, call, _copy_ns(kind, size), ready, tuple(waits), copy_kind=kind, size=size)
        stream.push(work)
        return work

    def copy_and_wait(self, stream: Stream, size: int) -> Turn:
        """A blocking copy to pageable host memory: the call returns when the data is there."""
        start = self.now
        call = Call(start, -1, "cudaMemcpy_v3020", self.process.next_correlation(), self.tid, self.process.pid)
        ready = start + self.about(COPY_NS + 2_000)
        work = Work(COPIES[2], stream, call, 3 * _copy_ns(2, size), ready, copy_kind=2, size=size, pageable=True)
        stream.push(work)
        while work.end < 0:
            yield work
        call.end = work.end + self.about(2 * RETURN_NS)
        self.run_of.calls.append(call)
        self._waited(call, work)

    def memset(self, stream: Stream, size: int) -> Work:
        """Launch a memory set."""
        call = self.call("cudaMemsetAsync_v3020", 3_300, "launching")
        work = Work(MEMSET, stream, call, 1_100, call.end + self.about(COPY_NS), copy_kind=-1, size=size)
        stream.push(work)
        return work

    def host_function(self, stream: Stream, ns: int, waits: Sequence[Work] = ()) -> Work:
        """Have the stream call a host function that takes `ns`."""
        call = self.call("cudaLaunchHostFunc_v10000", 3_000, "launching")
        work = Work(_HOST_FUNCTION, stream, call, self.about(ns), call.end + self.about(LAUNCH_NS), tuple(waits))
        stream.push(work)
        return work

    def record_event(self, stream: Stream) -> int:
        """Record a new event into the stream."""
        self.run_of.events += 1
        call = self.call("cudaEventRecord_v3020", 1_400)
        self.run_of.event_records.append(EventRecord(stream, self.run_of.events, call))
        return self.run_of.events

    def stream_wait(self, stream: Stream, event: int) -> None:
        """Have the stream wait for an event."""
        call = self.call("cudaStreamWaitEvent_v3020", 1_200)
        sync = Sync(call.start + 200, call.end - 200, 2, stream, stream.context, stream.ordinal, event, call)
        self.run_of.syncs.append(sync)

    def synchronize(self, work: Work, event: int = 0) -> Turn:
        """Wait for work: for the event recorded behind it, or else for its stream."""
        while work.end < 0:
            yield work
        name = "cudaEventSynchronize_v3020" if event else "cudaStreamSynchronize_v3020"
        end = max(work.end + self.about(RETURN_NS), self.now + self.about(1_500))
        correlation = self.process.next_correlation()
        call = Call(self.now, end, name, correlation, self.tid, self.process.pid)
        self.run_of.calls.append(call)
        stream = work.stream
        kind, where = (1, None) if event else (3, stream)
        sync = Sync(call.start + 300, end - 300, kind, where, stream.context, stream.ordinal, event, call)
        self.run_of.syncs.append(sync)
        self._waited(call, work)

    def _waited(self, call: Call, work: Work) -> None:
        self.spend(call.end - self.now, "sync", call.name.split("_v")[0], work)


COPIES = {
    1: Kernel("HtoD", 0, sm=0, read=0, write=20),
    2: Kernel("DtoH", 0, sm=0, read=20, write=0),
    10: Kernel("PtoP", 0, sm=0, read=10, write=10),
}
MEMSET = Kernel("memset", 0, sm=0, read=0, write=30)
_HOST_FUNCTION = Kernel(HOST_FUNCTION, 0, sm=0, read=0, write=0)
_BYTES_PER_US = {1: 25_000, 2: 25_000, 10: 200_000}


def _copy_ns(kind: int, size: int) -> int:
    return 1_000 + size * 1_000 // _BYTES_PER_US[kind]


def simulate(threads: Sequence[tuple[Host, Turn]]) -> None:
    """Run all threads to their ends, always the one that is furthest behind. Raises RuntimeError on a deadlock."""
    waiting: list[tuple[Host, Turn, Work | None]] = [(host, turn, None) for host, turn in threads]
    while waiting:
        able = [item for item in waiting if item[2] is None or item[2].end >= 0]
        if not able:
            raise RuntimeError("every thread waits for work that nobody launches")
        chosen = min(able, key=lambda item: item[0].now)
        waiting.remove(chosen)
        host, turn, _ = chosen
        try:
            waiting.append((host, turn, next(turn)))
        except StopIteration:
            continue
