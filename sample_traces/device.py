"""The device side of the simulation: streams that run their work in order, and what held each piece of work up.

Work starts when the last of its conditions is met, and remembers which one that was: the truth about idle time comes
from there, not from looking at the finished trace.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

# Between two pieces of work of one stream, between two nodes of a graph, from an event to the stream that waits for it.
QUEUE_STEP_NS = 900
NODE_STEP_NS = 700
EVENT_STEP_NS = 1_600
# A GPU that two processes share without MPS gives each of them time slices; the change takes this long.
SLICE_CHANGE_NS = 90_000
MEETING_NS = 2_500


@dataclass(frozen=True)
class Kernel:
    """A kernel of the catalogue: full name, usual duration in ns, and its share of the device's peaks in percent."""

    name: str
    duration: int
    grid: int = 132
    block: int = 256
    sm: int = 90
    tensor: int = 0
    read: int = 30
    write: int = 10
    collective: bool = False


@dataclass(slots=True, eq=False)
class Call:
    """A CUDA API call. `recorded` is False when the trace lost its row."""

    start: int
    end: int
    name: str
    correlation: int
    thread: int
    process: int
    recorded: bool = True
    driver: bool = False


@dataclass(slots=True, eq=False)
class Work:
    """A kernel, copy or set. `start` is -1 until all it waits for is known; `held_by` names the last condition."""

    kernel: Kernel
    stream: Stream
    call: Call
    duration: int
    ready: int
    waits: tuple[Work, ...] = ()
    hold: int = 0
    meeting: Meeting | None = None
    node: int = 0
    graph: Graph | None = None
    copy_kind: int = 0
    size: int = 0
    pageable: bool = False
    start: int = -1
    end: int = -1
    held_by: str = ""
    behind: list[Stream] = field(default_factory=list)

    def host_function(self) -> bool:
        """A host function in the stream (cudaLaunchHostFunc): it takes time in the stream and is no device work."""
        return self.kernel.name == HOST_FUNCTION


HOST_FUNCTION = "host function"


@dataclass(eq=False)
class Graph:
    """One launch of a CUDA graph: its nodes ran from the first one's start to the last one's end."""

    number: int
    nodes: list[Work] = field(default_factory=list)


@dataclass(eq=False)
class Meeting:
    """A collective: with `gate`, no member starts before all have been launched; else all end together."""

    size: int = 2
    gate: bool = False
    members: list[Work] = field(default_factory=list)

    def complete(self) -> bool:
        """All ranks have launched their part, and what stands before each of them in its stream is known."""
        return len(self.members) == self.size


class Group:
    """Ranks that run the same collectives in the same order: the n-th of each rank is one meeting."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._meetings: list[Meeting] = []
        self._joined: dict[int, int] = {}

    def next_of(self, rank: int) -> Meeting:
        """The meeting that the next collective of `rank` belongs to."""
        at = self._joined.get(rank, 0)
        self._joined[rank] = at + 1
        if at == len(self._meetings):
            self._meetings.append(Meeting(self.size))
        return self._meetings[at]


@dataclass(eq=False)
class Device:
    """A GPU. `number` is its own, whatever the processes call it."""

    number: int
    work: list[Work] = field(default_factory=list)
    last: Work | None = None


@dataclass(eq=False)
class Stream:
    """A stream of one process on one device: `ordinal` is what the process calls the device."""

    device: Device
    process: int
    context: int
    number: int
    ordinal: int
    queue: deque[Work] = field(default_factory=deque)
    last: Work | None = None

    def push(self, work: Work) -> None:
        """Queue work and start all that can start now, here and wherever somebody waited for it."""
        self.queue.append(work)
        for other in work.waits:
            if other.end < 0:
                other.behind.append(self)
        self.advance()

    def advance(self) -> None:
        """Give a start to the work at the head for as long as all that it waits for is known."""
        while self.queue:
            work = self.queue[0]
            if any(other.end < 0 for other in work.waits):
                return
            if work.meeting is not None:
                if work not in work.meeting.members:
                    work.ready, work.held_by = self._own_start(work)
                    work.meeting.members.append(work)
                    if work.meeting.complete():
                        _meet(work.meeting)
                return
            start, work.held_by = self._own_start(work)
            self.start(work, start)

    def start(self, work: Work, start: int, end: int | None = None) -> None:
        """Let the work at the head run from `start` on."""
        self.queue.popleft()
        work.start = start
        work.end = start + work.duration if end is None else end
        self.last = work
        if not work.host_function():
            self.device.work.append(work)
            if self.device.last is None or work.end > self.device.last.end:
                self.device.last = work
        for stream in work.behind:
            stream.advance()

    def _own_start(self, work: Work) -> tuple[int, str]:
        conditions = [(work.ready, "launch")]
        if self.last is not None:
            inside = work.graph is not None and self.last.graph is work.graph
            conditions.append((self.last.end + (NODE_STEP_NS if inside else QUEUE_STEP_NS), "queue"))
        conditions += [(other.end + EVENT_STEP_NS, "dependency") for other in work.waits]
        other = self.device.last
        if other is not None and other.stream.process != self.process and not work.host_function():
            conditions.append((other.end + SLICE_CHANGE_NS, "elsewhere"))
        start, why = max(conditions)
        return (start + work.hold, "queue") if work.hold else (start, why)


def _meet(meeting: Meeting) -> None:
    """All members are there: give them their starts and their common end, then go on in each stream."""
    latest = max(member.ready for member in meeting.members)
    end = latest + MEETING_NS + max(member.duration for member in meeting.members)
    for member in meeting.members:
        start = member.ready
        if meeting.gate and latest + MEETING_NS > start:
            start = latest + MEETING_NS
            if member.ready < latest:
                member.held_by = "peer"
        member.stream.start(member, start, end)
    for member in meeting.members:
        member.stream.advance()
