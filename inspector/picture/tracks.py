"""The rows of the timeline: which tracks a trace has, in which groups, and what each is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import WORK_TABLES

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Kind = Literal["iterations", "busy", "causes", "stream", "counter", "calls", "ranges", "marks", "os", "profiler"]
HOST_TABLES: dict[str, Kind] = {
    "host_calls": "calls",
    "ranges": "ranges",
    "marks": "marks",
    "os_calls": "os",
    "overheads": "profiler",
}
_KIND_TITLES: dict[Kind, str] = {
    "calls": "CUDA calls",
    "ranges": "ranges",
    "marks": "marks",
    "os": "OS calls",
    "profiler": "profiler",
}


@dataclass(frozen=True)
class Track:
    """One track. `key` is a row of devices (busy, causes), streams, series or threads; -1 for iterations. `identity`
    stays the same when the file is opened again. `group` is the identity of its group.
    """

    kind: Kind
    key: int
    identity: str
    group: str
    title: str
    note: str = ""


@dataclass(frozen=True)
class Group:
    """Tracks that collapse together: a device, its counters, or a process."""

    identity: str
    title: str
    note: str = ""


@dataclass(frozen=True)
class Tracks:
    """All tracks in their first order: iterations, then each device and its counters, then each process's threads.

    Streams and threads without records are left out; `unlisted` counts them. `devices` are short names by number.
    """

    groups: tuple[Group, ...]
    tracks: tuple[Track, ...]
    unlisted: int
    devices: Mapping[str, str] = field(default_factory=dict)
    counts: Counts | None = field(default=None, compare=False, repr=False)

    @classmethod
    def build(cls, trace: Trace) -> Tracks:
        """O(rows) counting per table, nothing else."""
        return cls._made(trace, Counts(trace, None))

    @classmethod
    def extend(cls, old: Tracks, trace: Trace) -> Tracks:
        """New rows are counted; the rest is O(tracks). Tracks keep their places, whichever is busiest by now."""
        made = cls._made(trace, Counts(trace, old.counts))
        places = {track.identity: at for at, track in enumerate(old.tracks)}
        groups = {group.identity: at for at, group in enumerate(made.groups)}

        def place(track: Track) -> tuple[int, int]:
            return groups[track.group], places.get(track.identity, len(places))

        return replace(made, tracks=tuple(sorted(made.tracks, key=place)))

    @classmethod
    def _made(cls, trace: Trace, counts: Counts) -> Tracks:
        groups: list[Group] = []
        tracks: list[Track] = []
        if trace.num_work() or len(trace["iterations"]):
            groups.append(Group("iterations", "Iterations"))
            tracks.append(Track("iterations", -1, "iterations", "iterations", "iterations"))
        unlisted = _add_devices(trace, counts, groups, tracks)
        unlisted += _add_threads(trace, counts, groups, tracks)
        numbers = trace["devices"]["number"].tolist()
        devices = {str(number): trace.device_short(device) for device, number in enumerate(numbers)}
        return cls(tuple(groups), tuple(tracks), unlisted, devices, counts)

    def owner(self, track: Track) -> str:
        """'GPU 1', 'rank 0' or 'process 4711': what a track belongs to, in short; '' for nothing in particular."""
        kind, _, number = track.group.partition(" ")
        title = next((group.title for group in self.groups if group.identity == track.group), "")
        if kind in ("device", "counters"):
            return self.devices.get(number, "")
        if title.startswith("rank "):
            return title.split(" · ")[0]
        return track.group if kind == "process" else ""


def spans(trace: Trace, table: str) -> tuple[Int, Int]:
    """Starts and ends of every record of a table that has tracks; instants begin and end at once."""
    columns = trace[table]
    return (columns["time"], columns["time"]) if table == "marks" else (columns["start"], columns["end"])


class Counts:
    """How many rows of a table each stream or thread has: those of an earlier generation, and the new ones."""

    def __init__(self, trace: Trace, old: Counts | None) -> None:
        before = old._found if old is not None else {}
        self._found: dict[str, tuple[int, int, Int]] = {}
        for table, column in (*((table, "stream") for table in WORK_TABLES), *((t, "thread") for t in HOST_TABLES)):
            rows, revision, counts = before.get(table, (0, -1, np.zeros(0, np.int64)))
            if revision != trace[table].revision:
                rows, counts = 0, counts[:0]
            size = len(trace[f"{column}s"])
            found = np.bincount(trace[table][column][rows:] + 1, minlength=size + 1)
            found[: len(counts)] += counts
            self._found[table] = len(trace[table]), trace[table].revision, found

    def of(self, table: str) -> Int:
        """For each stream or thread."""
        return self._found[table][2][1:]


def _add_devices(trace: Trace, found: Counts, groups: list[Group], tracks: list[Track]) -> int:
    streams, devices = trace["streams"], trace["devices"]
    size = len(streams)
    counts = np.zeros(size, np.int64)
    for table in WORK_TABLES:
        counts += found.of(table)
    several = len(trace["processes"]) > 1
    for device in np.argsort(devices["number"], kind="stable").tolist():
        number = int(devices["number"][device])
        group = f"device {number}"
        mine = np.flatnonzero((streams["device"] == device) & (counts > 0)) if size else np.empty(0, np.int64)
        series = np.flatnonzero(trace["series"]["device"] == device)
        if not len(mine) and not len(series):
            continue
        if len(mine):
            groups.append(Group(group, trace.device_name(device), _memory_note(trace, device)))
            tracks.append(Track("busy", device, f"busy {number}", group, "busy", "share of time"))
            tracks.append(Track("causes", device, f"idle {number}", group, "idle, why"))
        order = np.lexsort((streams["number"][mine], streams["process"][mine]))
        for stream in mine[order].tolist():
            process = int(streams["process"][stream])
            owner = _process(trace, process)
            note = owner if several and process >= 0 else f"{int(counts[stream]):,} records"
            identity = f"stream {number}/{owner}/{int(streams['number'][stream])}"
            title = "forward passes" if trace.device_kind(device) == "CPU" else trace.stream_name(stream)
            tracks.append(Track("stream", stream, identity, group, title, note))
        if len(series):
            group = f"counters {number}"
            groups.append(Group(group, f"{trace.device_short(device)} counters", f"{len(series)} series"))
            tracks.extend(_counter(trace, int(row), group) for row in series)
    return int(np.count_nonzero(counts == 0))


def _process(trace: Trace, process: int) -> str:
    """'process 4711'; where several files hold the same number, with its row."""
    pids = trace["processes"]["pid"]
    if process < 0:
        return "process unknown"
    alone = np.count_nonzero(pids == pids[process]) == 1
    return f"process {int(pids[process])}" if alone else f"process {int(pids[process])} #{process}"


def _memory_note(trace: Trace, device: int) -> str:
    memory = int(trace["devices"].get("memory")[device])
    return f"{memory / 2**30:.0f} GiB" if memory > 0 else ""


def _counter(trace: Trace, series: int, group: str) -> Track:
    table = trace["series"]
    name, unit = trace.names[int(table["name"][series])], trace.names[int(table["unit"][series])]
    return Track("counter", series, f"counter {group}/{name}", group, name, unit)


def _add_threads(trace: Trace, found: Counts, groups: list[Group], tracks: list[Track]) -> int:
    threads, processes = trace["threads"], trace["processes"]
    size = len(threads)
    counts = {table: found.of(table) for table in HOST_TABLES}
    total = sum(counts.values(), np.zeros(size, np.int64))
    lone = np.flatnonzero(trace["series"]["device"] < 0)
    kinds = {trace.device_kind(device) for device in range(len(trace["devices"]))}
    # In the order of ranks, those that launch work before those that do not.
    known = threads["process"] >= 0
    launching = np.bincount(threads["process"][known], counts["host_calls"][known], len(processes)) > 0
    for process in np.lexsort((processes["pid"], ~launching, processes["rank"])).tolist():
        group = _process(trace, process)
        mine = np.flatnonzero((threads["process"] == process) & (total > 0)) if size else np.empty(0, np.int64)
        series = lone[trace["series"]["process"][lone] == process]
        if not len(mine) and not len(series):
            continue
        groups.append(Group(group, trace.process_name(process)))
        # Threads that launch come first, then the busiest.
        order = np.lexsort((mine, -total[mine], -counts["host_calls"][mine]))
        for thread in mine[order].tolist():
            name = trace.thread_name(thread)
            for table, kind in HOST_TABLES.items():
                if counts[table][thread]:
                    identity = f"{kind} {group}/{int(threads['tid'][thread])}"
                    title = "forward passes" if kind == "calls" and kinds == {"CPU"} else _KIND_TITLES[kind]
                    tracks.append(Track(kind, thread, identity, group, title, name))
        tracks.extend(_counter(trace, int(row), group) for row in series)
    rest = lone[trace["series"]["process"][lone] < 0]
    if len(rest):
        groups.append(Group("counters", "Counters"))
        tracks.extend(_counter(trace, int(row), "counters") for row in rest)
    return int(np.count_nonzero(total == 0))
