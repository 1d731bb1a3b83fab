"""Why a device was idle: every gap cut into slices that tile it, each with one cause.

```
  gpu 0 stream 7   ...AAAA.....BB       L launch (links in order), S synchronise
  thread 1 calls   L....SSSSSL...
  expected                sssoo         s sync [7, 10), o launch overhead [10, 12)
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.analysis.dependencies import STREAM_WAIT, Dependencies, event_sources
from inspector.analysis.gaps import DeviceGaps, Gaps
from inspector.analysis.thread_states import SYNC, ThreadStates
from inspector.trace.intervals import expand, union
from inspector.trace.links import Links, process_of
from inspector.trace.schema import WORK_TABLES
from inspector.trace.table import Array
from inspector.trace.work import DeviceWork, Work, launch_calls, node_launches

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

# The first eight, and waiting for a peer, are those of thread_states.
CAUSES: tuple[str, ...] = (
    "no requests",
    "sync",
    "allocation",
    "module load",
    "launching",
    "os blocked",
    "gc",
    "host code",
    "launch overhead",
    "graph internal",
    "waiting for a peer",
    "stream dependency",
    "device busy elsewhere",
    "queue latency",
    "unattributed",
)
LAUNCH_OVERHEAD, GRAPH_INTERNAL = 8, 9
DEPENDENCY, ELSEWHERE, QUEUE, UNATTRIBUTED = range(11, 15)
LATENCY_BOUND_NS = 20_000

EXPLANATIONS: dict[str, str] = {
    "no requests": "The engine had no request to run, or was told to stand still.",
    "sync": "The host waited for the GPU before it launched the next work, so the GPU then waited for the host.",
    "allocation": "The host was allocating or freeing memory, which can stop it for long and often synchronises.",
    "module load": "The host was loading or compiling code, or building a CUDA graph; usual only at the start.",
    "launching": "The host was in the launch call of other work: on another stream, or one that took long.",
    "os blocked": "The host thread slept in the operating system or was off the processor.",
    "gc": "The host's interpreter collected garbage.",
    "host code": "The host ran other code between launches; the range name says which.",
    "launch overhead": "The launch itself: the call and the usual way to the GPU. CUDA graphs close such gaps.",
    "graph internal": "Inside one CUDA graph launch, between its nodes: dependencies between kernels.",
    "waiting for a peer": "The host waited for another stage, or the next work, launched in time, waited for a rank.",
    "stream dependency": "The next work was launched in time but its stream waited for an event of another stream.",
    "device busy elsewhere": "Another process or context held the GPU.",
    "queue latency": "The next work was launched in time and started late, for no reason that this trace shows.",
    "unattributed": "The trace has no launch call for the next work, so nothing says what held it up.",
}

UNCHANGED: dict[str, str] = {
    "no requests": "only more requests would fill it",
    "graph internal": "it lies inside graphs, where no launch is late",
    "queue latency": "the trace has no reason",
    "unattributed": "the trace does not say why",
}
"""Causes that no change of the program is known to close, and why."""


@dataclass(frozen=True)
class DeviceSlices:
    """Slices of the gaps of one device, by gap and time; together they tile every gap.

    `gap` is a row of DeviceGaps, `cause` an index into CAUSES, `host` a name id: the call or range the thread was in;
    -1 unmarked, and for all that was launched in time. `thread` is the row of threads that launched late (-1 none).
    `return_latency`: a sync whose awaited work had already ended.
    """

    device: int
    gap: Rows
    start: Int
    end: Int
    cause: npt.NDArray[np.int8]
    host: Rows
    thread: Rows
    return_latency: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.gap)


def of_host(cause: npt.NDArray[Any], host: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Where the host held the device up, for causes and hosts of slices: the launch had not begun, or was being made.

    A wait for a peer is of both kinds; what was launched in time has no host.
    """
    return (cause <= LAUNCH_OVERHEAD) | (host >= 0)


class _Slices(NamedTuple):
    gap: Array
    start: Array
    end: Array
    cause: Array
    host: Array
    thread: Array
    returning: Array


@dataclass(frozen=True)
class Causes:
    """`devices[d]` holds the slices of row d of devices, for a launch-latency bound of LATENCY_BOUND_NS."""

    devices: tuple[DeviceSlices, ...]

    @classmethod
    def build(cls, trace: Trace) -> Causes:
        """Attribute every gap of every device."""
        return cls(tuple(attribute(trace, device) for device in range(len(trace["devices"]))))


def attribute(trace: Trace, device: int, bound_ns: int = LATENCY_BOUND_NS) -> DeviceSlices:
    """Slices of all gaps of a row of devices. `bound_ns` is the usual time from the launch call's end to the start."""
    found = trace.index(Gaps).devices[device]
    work = trace.index(Work).devices[device]
    calls = trace["host_calls"]
    call = launch_calls(trace, work, found.next)
    thread = np.where(call >= 0, calls["thread"][call] if len(calls) else -1, -1).astype(np.int32)
    internal = _same_graph_launch(trace, work, found)
    lost = ~internal & (call < 0)
    rest = np.flatnonzero(~internal & ~lost)
    start, end = found.start[rest], found.end[rest]
    begun, returned = (calls["start"][call[rest]], calls["end"][call[rest]]) if len(rest) else (start, start)
    begun = np.minimum(np.maximum(begun, start), end)
    late = end > returned + bound_ns
    queued = np.where(late, np.minimum(np.maximum(returned, begun), end), end)
    why = Dependencies(trace, device, work).of(found, rest[late], call[rest[late]])
    parts = [
        _whole(found, np.flatnonzero(internal), GRAPH_INTERNAL),
        _whole(found, np.flatnonzero(lost), UNATTRIBUTED),
        _host_part(trace, device, rest, start, begun, thread[rest]),
        _span(
            rest, begun, queued, np.full(len(rest), LAUNCH_OVERHEAD), thread[rest], _names(calls["name"], call[rest])
        ),
        # Launched in time: whatever the host did meanwhile was not what held it up.
        _span(rest[late], queued[late], end[late], why, thread[rest[late]], np.full(len(why), -1, np.int32)),
    ]
    columns = _Slices(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    real = np.flatnonzero(columns.end > columns.start)
    order = real[np.lexsort((columns.start[real], columns.gap[real]))]
    joined = _Slices(*(column[order] for column in columns))
    return DeviceSlices(
        device,
        joined.gap.astype(np.int32),
        joined.start,
        joined.end,
        joined.cause.astype(np.int8),
        joined.host.astype(np.int32),
        joined.thread.astype(np.int32),
        joined.returning,
    )


def _same_graph_launch(trace: Trace, work: DeviceWork, found: DeviceGaps) -> npt.NDArray[np.bool_]:
    """Gaps between two nodes of one launch."""
    if not any("graph_node" in trace[table] for table in WORK_TABLES):
        return np.zeros(len(found), bool)
    after = node_launches(trace, work, found.next)
    same: npt.NDArray[np.bool_] = (after >= 0) & (node_launches(trace, work, found.previous) == after)
    return same


def _whole(found: DeviceGaps, rows: Int, cause: int) -> _Slices:
    none = np.full(len(rows), -1, np.int32)
    causes = np.full(len(rows), cause, np.int8)
    return _Slices(rows, found.start[rows], found.end[rows], causes, none, none, np.zeros(len(rows), bool))


def _names(names: Rows, call: Rows) -> Rows:
    return names[call] if len(call) else call


def _span(rows: Int, start: Int, end: Int, cause: Array, thread: Rows, host: Rows) -> _Slices:
    return _Slices(rows, start, end, cause.astype(np.int8), host, thread, np.zeros(len(rows), bool))


def _host_part(trace: Trace, device: int, rows: Int, start: Int, end: Int, thread: Rows) -> _Slices:
    """[start, end) of each gap, cut by what its thread was doing."""
    parts = [_Slices(*(np.empty(0, dtype) for dtype in (np.int64, np.int64, np.int64, np.int8, *[np.int32] * 2, bool)))]
    states_of = trace.index(ThreadStates)
    waiting = np.flatnonzero(end > start)
    for late in np.unique(thread[waiting]).tolist():
        mine = waiting[thread[waiting] == late]
        states = states_of.of(late, union(start[mine], end[mine]))
        first = np.searchsorted(states.starts, start[mine], "right") - 1
        times = np.searchsorted(states.starts, end[mine], "left") - first
        owner = np.repeat(mine, times)
        at = expand(first, times)
        until = np.r_[states.starts[1:], np.iinfo(np.int64).max]
        cause = states.causes[at]
        parts.append(
            _Slices(
                rows[owner],
                np.maximum(start[owner], states.starts[at]),
                np.minimum(end[owner], until[at]),
                cause,
                states.hosts[at],
                np.full(len(at), late, np.int32),
                (cause == SYNC) & _waits_here(trace, device, states.calls[at]),
            )
        )
    return _Slices(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _waits_here(trace: Trace, device: int, call: Rows) -> npt.NDArray[np.bool_]:
    """Whether a synchronising call waits for this device: idle from the gap's start, it has nothing left to wait for.

    True unless the trace tells what the call waited for, by its synchronisation record (a stream, or the stream that an
    event was recorded into) or by the copy that it made, and that is of another device.
    """
    here = np.ones(len(call), bool)
    if not len(call) or len(trace["devices"]) < 2:
        return here
    syncs, calls = trace["syncs"], trace["host_calls"]
    linked = np.flatnonzero((syncs["correlation"] > 0) & (syncs["kind"] != STREAM_WAIT))
    streams = syncs["stream"][linked].copy()
    streams[streams < 0] = event_sources(trace, linked[streams < 0])
    elsewhere = linked[(streams >= 0) & (trace.device_of(streams) != device)]
    keys = syncs["process"][elsewhere].astype(np.int64) << 40 | syncs["correlation"][elsewhere]
    known = call >= 0
    process = process_of(trace, "host_calls")[call[known]].astype(np.int64)
    here[known] = ~np.isin(process << 40 | calls["correlation"][call[known]], keys)
    away = trace.device_of(trace["memcpys"]["stream"]) != device
    return here & ~np.isin(call, trace.index(Links).launch["memcpys"][away])
