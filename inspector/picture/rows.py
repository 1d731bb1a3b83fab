"""What stands in each track: disjoint lanes of records, made from the trace when a track is first looked at."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from inspector.analysis.busy import Unions
from inspector.analysis.calls import CallKinds, by_name, is_gc
from inspector.analysis.categories import Categories
from inspector.analysis.causes import Causes
from inspector.analysis.iterations import Iterations
from inspector.picture.lane import Inks, Int, Lane, Rows, behind, lanes_of, longer, row_numbers, split, stand_ins
from inspector.picture.lanes import lanes
from inspector.picture.palette import category_ink, cause_ink, ink
from inspector.picture.tracks import HOST_TABLES, Track, spans
from inspector.trace.nesting import nest
from inspector.trace.pyramid import Pyramid
from inspector.trace.schema import RANGE_KINDS, WORK_TABLES
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_CALL_INKS = np.array(
    [ink(name) for name in ("sync", "allocation", "module load", "launching", "other call")], np.uint8
)
_HOST_INKS = {"os_calls": "os blocked", "overheads": "profiler", "marks": "mark"}
_RANGE_INKS = {"operator": "operator", "python": "python"}


@dataclass(frozen=True)
class Content:
    """Lanes of a track from top to bottom; `brackets` are graph launches over a stream's lanes.

    `seen` is the revision and the number of rows of each table that were looked at for it.
    """

    lanes: tuple[Lane, ...]
    brackets: tuple[Lane, ...] = ()
    seen: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False, repr=False)


@dataclass
class TrackRows:
    """The content of every track that was asked for so far, and the rows of each table by stream or thread.

    `_trace` is a weak reference, since the trace holds this: a circle would keep the generations of a run.
    """

    _trace: weakref.ref[Trace]
    _before: dict[str, Content] = field(default_factory=dict)
    _content: dict[str, Content] = field(default_factory=dict)
    _groups: dict[tuple[str, str, int], tuple[Rows, Int]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def trace(self) -> Trace:
        """The trace that has this index."""
        found = self._trace()
        assert found is not None
        return found

    @classmethod
    def build(cls, trace: Trace) -> TrackRows:
        """Nothing is gathered yet: the first picture needs a few tracks only."""
        return cls(weakref.ref(trace))

    @classmethod
    def extend(cls, old: TrackRows, trace: Trace) -> TrackRows:
        """Nothing is gathered yet; tracks that were made for an earlier generation are added to when asked for."""
        return cls(
            weakref.ref(trace), {name: made for name, made in {**old._before, **old._content}.items() if made.seen}
        )

    def ready(self, track: Track) -> Content | None:
        """The content if it was made already."""
        return self._content.get(track.identity)

    def of(self, track: Track) -> Content:
        """The content of a track, made on first use; from any thread. Counters have none (see picture.curves)."""
        found = self._content.get(track.identity)
        if found is not None:
            return found
        # Analyses that a track needs are built before the lock is taken: other tracks need not wait for them.
        if track.kind in ("busy", "causes", "iterations"):
            content = Content(_MAKERS[track.kind](self.trace, track.key))
        else:
            with self._lock:
                content = self._made(track)
        return self._content.setdefault(track.identity, content)

    def _made(self, track: Track) -> Content:
        tables = WORK_TABLES if track.kind == "stream" else [t for t, kind in HOST_TABLES.items() if kind == track.kind]
        seen = {table: (self.trace[table].revision, len(self.trace[table])) for table in tables}
        before = self._before.pop(track.identity, None)
        grown = None if before is None else self._grown(track, before, seen)
        if grown is not None:
            return grown
        if track.kind == "stream":
            return replace(self._stream(track.key), seen=seen)
        return Content(self._thread(tables[0], track.key) if tables else (), seen=seen)

    def _grown(self, track: Track, old: Content, seen: Mapping[str, tuple[int, int]]) -> Content | None:
        """What was made for an earlier generation with the new rows; None where it has to be made anew."""
        if any(old.seen.get(table, (-1, 0))[0] != revision for table, (revision, _) in seen.items()):
            return None
        if track.kind != "stream":
            table = next(iter(seen))
            return Content(self._thread(table, track.key, old.lanes, old.seen[table][1]), seen=seen)
        # Graph launches come together from many records, of which some may have been there.
        if old.brackets or len(self.trace["graphs"]) or "graph_node" in self.trace["kernels"]:
            return None
        parts = self._work(track.key, {table: rows for table, (_, rows) in old.seen.items()})[0]
        found = longer(old.lanes, parts)
        return None if found is None else Content(found, seen=seen)

    def _rows(self, table: str, column: str, key: int, since: int = 0) -> Rows | slice:
        """Rows of a table from `since` on where `column` is `key`, ascending; all of them as a slice, which copies
        nothing.
        """
        found = self._groups.get((table, column, since))
        if found is None:
            keys = self.trace[table][column][since:]
            counts = np.bincount(keys + 1)
            # Small keys sort by radix, several times faster.
            small = keys + 1 if len(counts) > 0xFFFF else (keys + 1).astype(np.uint16)
            order = np.empty(0, np.int32)
            if np.count_nonzero(counts) > 1:
                order = (np.argsort(small, kind="stable") + since).astype(np.int32)
            found = self._groups[table, column, since] = order, np.r_[0, np.cumsum(counts)]
        order, first = found
        if key + 2 >= len(first) or first[key + 1] == first[key + 2]:
            return slice(0, 0)
        return order[first[key + 1] : first[key + 2]] if len(order) else slice(since, None)

    def _stream(self, stream: int) -> Content:
        parts, brackets = self._work(stream, {})
        work = lanes_of(parts, WORK_TABLES)
        found = brackets[0] if brackets and len(brackets[0][0]) else self._graph_launches(stream)
        bracket = lanes_of([(*found[:2], _same(found, "graph launch"), *_coded(found))], ("graph launch",))
        return Content(work, bracket)

    def _work(
        self, stream: int, since: Mapping[str, int]
    ) -> tuple[list[tuple[npt.NDArray[Any], ...]], list[tuple[Int, Int, Rows]]]:
        """(start, end, ink, code, row) of the records of each work table from row `since` on; whole graphs around nodes
        that are there too (start, end, row).
        """
        trace = self.trace
        parts: list[tuple[npt.NDArray[Any], ...]] = []
        brackets: list[tuple[Int, Int, Rows]] = []
        of_name = trace.index(Categories).of_name
        for code, table in enumerate(WORK_TABLES):
            rows = self._rows(table, "stream", stream, since.get(table, 0))
            start, end = trace[table]["start"][rows], trace[table]["end"][rows]
            if not len(start):
                continue
            index = row_numbers(rows, len(start))
            if table == "graphs":
                # Where the nodes are there too, the launch is a bracket over them.
                alone = trace.index(Work).counted["graphs"][rows]
                brackets.append((start[~alone], end[~alone], index[~alone]))
                start, end, index = start[alone], end[alone], index[alone]
                inks = np.full(len(start), ink("whole graph"), np.uint8)
            else:
                inks = of_name[trace[table]["name"][rows]].astype(np.uint8) + category_ink(0)
            parts.append((start, end, inks, np.full(len(start), code, np.uint8), index))
        return parts, brackets

    def _graph_launches(self, stream: int) -> tuple[Int, Int, Rows]:
        kernels = self.trace["kernels"]
        rows = self._rows("kernels", "stream", stream)
        if "graph_node" not in kernels:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
        nodes = np.flatnonzero(kernels["graph_node"][rows] != 0)
        mine = nodes if isinstance(rows, slice) else rows[nodes]
        if not len(mine):
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32)
        correlation = kernels["correlation"][mine]
        first = np.flatnonzero(np.r_[True, correlation[1:] != correlation[:-1]])
        end = np.maximum.reduceat(kernels["end"][mine], first)
        return kernels["start"][mine[first]], end, mine[first].astype(np.int32)

    def _thread(self, table: str, thread: int, before: tuple[Lane, ...] = (), since: int = 0) -> tuple[Lane, ...]:
        """The lanes of a thread; behind those of `before` what comes from row `since` on."""
        trace = self.trace
        rows = self._rows(table, "thread", thread, since)
        start, end = (times[rows] for times in spans(trace, table))
        if since and not len(start):
            return before
        if before and table != "marks" and start[0] <= max(int(lane.pyramid.start[-1]) for lane in before):
            # One that starts with the last of them may enclose it, and so come into its lane.
            return self._thread(table, thread)
        index = row_numbers(rows, len(start))
        # Instants at one time stay in one lane: they cover nothing of each other.
        depth = np.zeros(len(start), np.int32)
        if table != "marks":
            open_start, open_end = stand_ins(before, start)
            depth = nest(np.r_[open_start, start], np.r_[open_end, end]).depth[len(before) :]
        if table == "host_calls":
            inks = _CALL_INKS[trace.index(CallKinds).of_row[rows]]
        elif table == "ranges":
            inks = self._range_inks(rows, depth)
        else:
            inks = np.full(len(start), ink(_HOST_INKS[table]), np.uint8)
        return behind(before, start, end, inks, None, index, depth, (table,))

    def _range_inks(self, rows: Rows | slice, depth: Rows) -> Inks:
        ranges = self.trace["ranges"]
        inks = np.where(depth % 2 == 1, ink("range, nested"), ink("range")).astype(np.uint8)
        kinds = ranges["kind"][rows]
        for kind, name in _RANGE_INKS.items():
            inks[kinds == RANGE_KINDS.index(kind)] = ink(name)
        names = ranges["name"][rows]
        inks[by_name(self.trace.names.texts, names, is_gc)[names] > 0] = ink("gc")
        return inks


def _busy(trace: Trace, device: int) -> tuple[Lane, ...]:
    starts, ends = trace.index(Unions).devices[device]["all"]
    return _single(starts, ends, np.full(len(starts), ink("busy"), np.uint8), "busy")


def _causes(trace: Trace, device: int) -> tuple[Lane, ...]:
    slices = trace.index(Causes).devices[device]
    return _single(slices.start, slices.end, slices.cause.astype(np.uint8) + cause_ink(0), "causes")


def _iterations(trace: Trace, _: int) -> tuple[Lane, ...]:
    found = trace.index(Iterations)
    inks = np.full(len(found), ink("iteration"), np.uint8)
    context, generation = found.context, found.generation
    inks[(context > 0) & (generation == 0)] = ink("context iteration")
    inks[(context == 0) & (generation > 0)] = ink("generation iteration")
    inks[(context > 0) & (generation > 0)] = ink("mixed iteration")
    order = np.argsort(found.start, kind="stable")
    rows = order.astype(np.int32)
    start, end = found.start[order], found.end[order]
    # Each process keeps to lanes of its own.
    lane, used = np.zeros(len(found), np.int32), 0
    for process in np.unique(found.process).tolist():
        mine = np.flatnonzero(found.process[order] == process)
        lane[mine] = lanes(start[mine], end[mine]) + used
        used = int(lane[mine].max()) + 1
    return split(start, end, inks[order], None, rows, lane, ("iterations",))


_MAKERS = {"busy": _busy, "causes": _causes, "iterations": _iterations}


def _single(start: Int, end: Int, inks: Inks, source: str) -> tuple[Lane, ...]:
    rows = np.arange(len(start), dtype=np.int32)
    return (Lane(Pyramid.of(start, end, inks), (source,), None, rows),) if len(start) else ()


def _same(found: tuple[Int, Int, Rows], name: str) -> Inks:
    return np.full(len(found[0]), ink(name), np.uint8)


def _coded(found: tuple[Int, Int, Rows]) -> tuple[npt.NDArray[np.uint8], Rows]:
    return np.zeros(len(found[0]), np.uint8), found[2]
