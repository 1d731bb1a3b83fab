"""What a host thread was doing, moment by moment: the first cause of the host's that covers each moment."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.analysis import calls
from inspector.trace.intervals import Intervals, gaps, union
from inspector.trace.nesting import innermost

if TYPE_CHECKING:
    from inspector.trace.table import Table
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]

# Indexes into causes.CAUSES, and the order in which they are asked.
NO_REQUESTS, SYNC, ALLOCATION, MODULE, LAUNCHING, OS_BLOCKED, GC, HOST_CODE = range(8)
PEER = 10
_ORDER = (NO_REQUESTS, PEER, SYNC, ALLOCATION, MODULE, LAUNCHING, OS_BLOCKED, GC, HOST_CODE)
# A look into an empty request queue returns at once; one that takes longer was a wait. Used where the trace has no
# operating system calls of the thread that would show whether it blocked.
QUEUE_WAIT_NS = 1_000_000


class States(NamedTuple):
    """A partition of time: from starts[i] on the thread was in causes[i], at the call or range of name id hosts[i]
    (-1 unmarked); `calls` is the row of host_calls, -1 where it is none."""

    starts: Int
    causes: npt.NDArray[np.int8]
    hosts: npt.NDArray[np.int32]
    calls: npt.NDArray[np.int32]


class _Layer(NamedTuple):
    """Disjoint sorted intervals with a name and a call each."""

    starts: Int
    ends: Int
    hosts: npt.NDArray[np.int32]
    calls: npt.NDArray[np.int32]


@dataclass
class ThreadStates:
    """The states of every thread, made for the times that are asked for."""

    _trace: weakref.ref[Trace]
    _rows: dict[str, dict[int, npt.NDArray[np.int32]]] = field(default_factory=dict)
    _flags: dict[str, npt.NDArray[np.int8]] = field(default_factory=dict)
    _fetching: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def trace(self) -> Trace:
        """The trace that has this index."""
        found = self._trace()
        assert found is not None
        return found

    @classmethod
    def build(cls, trace: Trace) -> ThreadStates:
        """Classify every name once; threads come later."""
        texts = trace.names.texts
        ranges, os_calls, overheads = trace["ranges"], trace["os_calls"], trace["overheads"]
        flags = {
            "calls": trace.index(calls.CallKinds).of_row,
            "os": calls.by_name(texts, os_calls["name"], calls.is_blocking)[os_calls["name"]],
            "gc": calls.by_name(texts, ranges["name"], calls.is_gc)[ranges["name"]],
            "queue": calls.by_name(texts, ranges["name"], calls.is_request_wait)[ranges["name"]],
            "peer": calls.by_name(texts, ranges["name"], calls.is_peer_wait)[ranges["name"]],
            "overheads": calls.by_name(texts, overheads["name"], _is_loading)[overheads["name"]],
        }
        fetching = np.unique(ranges["thread"][flags["queue"] > 0])
        # Weak, since the trace holds this index: a circle would keep the generations of a run.
        return cls(weakref.ref(trace), _flags=flags, _fetching=fetching)

    def of(self, thread: int, times: Intervals) -> States:
        """The states of a row of threads at `times`; between them nothing is said."""
        return _overlay(self._layers(thread, times))

    def _rows_of(self, table: str, thread: int) -> npt.NDArray[np.int32]:
        if table not in self._rows:
            threads = self.trace[table]["thread"]
            order = np.argsort(threads, kind="stable").astype(np.int32)
            edges = np.flatnonzero(np.diff(threads[order], prepend=-2))
            groups = np.split(order, edges[1:]) if len(order) else []
            self._rows[table] = {int(threads[rows[0]]): rows for rows in groups}
        return self._rows[table].get(thread, np.empty(0, np.int32))

    def _layers(self, thread: int, times: Intervals) -> list[_Layer]:
        host, ranges = self.trace["host_calls"], self.trace["ranges"]
        mine = _during(host, self._rows_of("host_calls", thread), times)
        kinds = self._flags["calls"][mine]
        marks = _during(ranges, self._rows_of("ranges", thread), times)
        os_calls, os_rows = self.trace["os_calls"], self._rows_of("os_calls", thread)
        blocking = os_rows[self._flags["os"][os_rows] > 0]
        overheads, loading = self.trace["overheads"], self._rows_of("overheads", thread)
        loading = _during(overheads, loading[self._flags["overheads"][loading] > 0], times)
        blocking = _during(os_calls, blocking, times)
        idle = _merged(self._request_waits(thread, times), self._idle_engine(thread))
        peers = _outermost(ranges, marks[self._flags["peer"][marks] > 0])
        return [
            _merged(idle, self._without_work(thread, peers, times)),
            peers,
            _outermost(host, mine[kinds == calls.SYNC], True),
            _outermost(host, mine[kinds == calls.ALLOCATION], True),
            _merged(_outermost(host, mine[kinds == calls.MODULE], True), _outermost(overheads, loading)),
            _outermost(host, mine[kinds == calls.LAUNCHING], True),
            _merged(_outermost(os_calls, blocking), self._descheduled(thread)),
            _outermost(ranges, marks[self._flags["gc"][marks] > 0]),
            _innermost(ranges, marks),
        ]

    def _request_waits(self, thread: int, times: Intervals) -> _Layer:
        ranges, os_calls = self.trace["ranges"], self.trace["os_calls"]
        waits = _during(ranges, self._rows_of("ranges", thread), times)
        waits = waits[self._flags["queue"][waits] > 0]
        os_rows = self._rows_of("os_calls", thread)
        blocking = os_rows[self._flags["os"][os_rows] > 0]
        return _outermost(ranges, waits[_blocked(ranges, waits, os_calls, os_rows, blocking)])

    def _without_work(self, thread: int, peers: _Layer, times: Intervals) -> _Layer:
        """Waits for another stage while the engine itself waited for requests.

        Known where one thread takes all the requests of the trace: with more, which one a stage hangs on is not.
        """
        if not len(peers.starts) or len(self._fetching) != 1 or self._fetching[0] == thread:
            return _layer(*(np.empty(0, np.int64),) * 2)
        return _cut(self._request_waits(int(self._fetching[0]), times), union(peers.starts, peers.ends))

    def _descheduled(self, thread: int) -> _Layer:
        """From being switched off a processor to being switched on again."""
        table, rows = self.trace["schedulings"], self._rows_of("schedulings", thread)
        time, on = table["time"][rows], table["on"][rows]
        off = np.flatnonzero((on[:-1] == 0) & (on[1:] == 1))
        return _layer(time[off], time[off + 1])

    def _idle_engine(self, thread: int) -> _Layer:
        """Engine iterations of the thread's process that had no request in any phase."""
        table = self.trace["iterations"]
        process = self.trace["threads"]["process"][thread]
        empty = (table["context_requests"] == 0) & (table["generation_requests"] == 0)
        rows = np.flatnonzero(empty & ((table["process"] == process) | (table["process"] < 0)))
        return _layer(*union(table["start"][rows], table["end"][rows]))


def _is_loading(name: str) -> bool:
    text = name.lower()
    return any(word in text for word in ("jit", "lazy", "module load", "function load"))


def _during(table: Table, rows: npt.NDArray[np.int32], times: Intervals) -> npt.NDArray[np.int32]:
    """The rows that meet one of `times`."""
    start, end = table["start"][rows], table["end"][rows]
    return rows[np.searchsorted(times.ends, start, "right") < np.searchsorted(times.starts, end, "left")]


def _layer(starts: Int, ends: Int) -> _Layer:
    none = np.full(len(starts), -1, np.int32)
    return _Layer(starts, ends, none, none)


def _outermost(table: Table, rows: npt.NDArray[np.int32], are_calls: bool = False) -> _Layer:
    """What the rows cover, each moment for the one that began first: a driver call in a runtime call is one wait."""
    begun, end = table["start"][rows], table["end"][rows]
    if np.any(begun[1:] == begun[:-1]):
        order = np.lexsort((-end, begun))
        rows, begun, end = rows[order], begun[order], end[order]
    # What has been covered by those that began earlier is theirs.
    start = begun.copy()
    np.maximum(start[1:], np.maximum.accumulate(end)[:-1], out=start[1:])
    left = end > start
    rows = rows[left]
    none = np.full(len(rows), -1, np.int32)
    return _Layer(start[left], end[left], table["name"][rows], rows if are_calls else none)


def _innermost(table: Table, rows: npt.NDArray[np.int32]) -> _Layer:
    pieces = innermost(table["start"][rows], table["end"][rows])
    held = np.flatnonzero(pieces.owners >= 0)
    ends = np.r_[pieces.starts[1:], pieces.starts[-1:]]
    names = table["name"][rows[pieces.owners[held]]] if len(held) else np.empty(0, np.int32)
    return _Layer(pieces.starts[held], ends[held], names, np.full(len(held), -1, np.int32))


def _blocked(
    ranges: Table,
    waits: npt.NDArray[np.int32],
    os_calls: Table,
    os_rows: npt.NDArray[np.int32],
    blocking: npt.NDArray[np.int32],
) -> npt.NDArray[np.bool_]:
    """Which of the request-queue ranges really waited (see QUEUE_WAIT_NS)."""
    start, end = ranges["start"][waits], ranges["end"][waits]
    if not len(os_rows):
        return end - start >= QUEUE_WAIT_NS
    began = os_calls["start"][blocking]
    return np.searchsorted(began, end) > np.searchsorted(began, start)


def _merged(first: _Layer, second: _Layer) -> _Layer:
    """Both layers, the first where they overlap."""
    if not len(second.starts):
        return first
    if not len(first.starts):
        return second
    low = int(min(first.starts[0], second.starts[0]))
    high = int(max(first.ends[-1], second.ends[-1]))
    free = gaps(union(first.starts, first.ends), low, high)
    cut = _cut(second, free)
    order = np.argsort(np.r_[first.starts, cut.starts], kind="stable")
    return _Layer(*(np.concatenate([a, b])[order] for a, b in zip(first, cut, strict=True)))


def _cut(layer: _Layer, free: Intervals) -> _Layer:
    low = np.searchsorted(free.ends, layer.starts, "right")
    times = np.maximum(np.searchsorted(free.starts, layer.ends, "left") - low, 0)
    owner = np.repeat(np.arange(len(times)), times)
    at = np.arange(len(owner)) - np.repeat(np.cumsum(times) - times, times) + low[owner]
    starts = np.maximum(layer.starts[owner], free.starts[at])
    ends = np.minimum(layer.ends[owner], free.ends[at])
    return _Layer(starts, ends, layer.hosts[owner], layer.calls[owner])


def _overlay(layers: list[_Layer]) -> States:
    """At every moment the first layer that covers it; `host code`, unmarked, where none does."""
    edges = np.unique(np.concatenate([edge for layer in layers for edge in (layer.starts, layer.ends)]))
    edges = np.r_[np.iinfo(np.int64).min, edges]
    causes = np.full(len(edges), HOST_CODE, np.int8)
    hosts = np.full(len(edges), -1, np.int32)
    rows = np.full(len(edges), -1, np.int32)
    free = np.ones(len(edges), bool)
    for cause, layer in zip(_ORDER, layers, strict=True):
        if not len(layer.starts):
            continue
        at = np.searchsorted(layer.starts, edges, "right") - 1
        inside = free & (at >= 0) & (edges < layer.ends[np.maximum(at, 0)])
        held = at[inside]
        causes[inside], hosts[inside], rows[inside] = cause, layer.hosts[held], layer.calls[held]
        free &= ~inside
    return States(edges, causes, hosts, rows)
