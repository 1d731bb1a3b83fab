"""Engine iterations: from the engine's records, its NVTX ranges, torch steps, or the kernel sequence itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.sequence import find_period
from inspector.trace.intervals import union
from inspector.trace.links import process_of
from inspector.trace.schema import WORK_TABLES
from inspector.trace.table import Array
from inspector.trace.work import DeviceWork, Work, launch_calls, launch_times

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

SOURCES: tuple[str, ...] = ("engine records", "executor ranges", "profiler steps", "kernel sequence", "none")
MIN_CONFIDENCE = 0.8

# TensorRT-LLM's executor in its three spellings (1.0 without number, 1.1 to 1.2, later with context tokens), the
# annotations of its later profiler, and vLLM's.
_STEPS = (
    re.compile(
        r"\[Executor\] _forward_step(?: (?P<number>[0-9]{1,18}))?: (?P<context>[0-9]{1,9}) ctx reqs"
        r"(?:, (?P<tokens>[0-9]{1,9}) ctx tokens)?, (?P<generation>[0-9]{1,9}) gen reqs"
    ),
    re.compile(r"^step\[(?P<phase>EXTEND|DECODE|MIXED)\b(?: bs=(?P<size>[0-9]{1,9})(?![0-9]))?[^\]]*\]$"),
    re.compile(r"^execute_(?:\d+_)?context_(?P<context>[0-9]{1,9})\([^)]*\)_generation_(?P<generation>[0-9]{1,9})\("),
    re.compile(r"^ProfilerStep#(?P<number>[0-9]{1,18})$"),
)
_EXECUTOR = (0, 1, 2)


@dataclass(frozen=True)
class Iterations:
    """Iterations in time order of start.

    `start`, `end` tile the time of the thread that ran them, from one step's beginning to the next one's, ns; `host_ns`
    is the step range itself. `context` and `generation` count requests, -1 unknown. With `by_launch` work belongs to
    the iteration that launched it, else (found from the kernel sequence) to the one in which it started.
    """

    source: str
    confidence: float
    by_launch: bool
    start: Int
    end: Int
    host_ns: Int
    number: Int
    process: Rows
    context: Rows
    generation: Rows

    def __len__(self) -> int:
        return len(self.start)

    def kind(self, row: int) -> str:
        """'context', 'generation', 'mixed', 'empty', or '' where the trace does not say."""
        context, generation = int(self.context[row]), int(self.generation[row])
        if context < 0 or generation < 0:
            return ""
        if context and generation:
            return "mixed"
        return "context" if context else "generation" if generation else "empty"

    @classmethod
    def build(cls, trace: Trace) -> Iterations:
        """The first source that has something; the kernel sequence only with a confidence of MIN_CONFIDENCE."""
        if len(trace["iterations"]):
            return _from_records(trace)
        for source, spellings in (("executor ranges", _EXECUTOR), ("profiler steps", (3,))):
            found = _from_ranges(trace, source, spellings)
            if found is not None:
                return found
        return _from_kernels(trace)

    def of_times(self, times: Int, processes: Rows) -> Rows:
        """Row of the iteration that holds each time in that process; -1 none."""
        rows = np.full(len(times), -1, np.int32)
        for process in np.unique(self.process).tolist():
            mine = np.flatnonzero(self.process == process)
            at = np.flatnonzero((processes == process) | (process < 0))
            last = np.searchsorted(self.start[mine], times[at], "right") - 1
            held = mine[np.maximum(last, 0)]
            rows[at] = np.where((last >= 0) & (times[at] < self.end[held]), held, -1)
        return rows

    def of_work(self, trace: Trace, work: DeviceWork) -> Rows:
        """Row of the iteration of every record of a device's work, int32; -1 none."""
        times = work.start
        if self.by_launch:
            times = launch_times(trace, launch_calls(trace, work))
        return self.of_times(times, self._engines(trace, work.pick(lambda table: process_of(trace, table))))

    def _engines(self, trace: Trace, processes: Rows) -> Rows:
        """The processes whose iterations count: pipeline stages without any of their own work in those of the engine,
        where there is one engine."""
        own = np.unique(self.process)
        if len(own) != 1:
            return processes
        stages = np.setdiff1d(trace["stage_work"]["process"], own)
        return np.where(np.isin(processes, stages), own[0], processes).astype(np.int32)


def _from_records(trace: Trace) -> Iterations:
    table = trace["iterations"]
    return Iterations(
        "engine records",
        1.0,
        True,
        table["start"],
        table["end"],
        table["end"] - table["start"],
        table["iteration"],
        table["process"],
        table["context_requests"],
        table["generation_requests"],
    )


def _from_ranges(trace: Trace, source: str, spellings: tuple[int, ...]) -> Iterations | None:
    ranges, texts = trace["ranges"], trace.names.texts
    matches: dict[int, re.Match[str]] = {}
    for name in np.flatnonzero(np.bincount(ranges["name"] + 1, minlength=1)[1:]).tolist():
        for spelling in spellings:
            match = _STEPS[spelling].search(texts[name])
            if match:
                matches[name] = match
    if not matches:
        return None
    rows = np.flatnonzero(np.isin(ranges["name"], list(matches)) & (ranges["thread"] >= 0))
    rows = _host_side(trace, rows)
    if not len(rows):
        return None
    threads = ranges["thread"][rows]
    start, end, number, host = [], [], [], []
    owner, context, generation = [], [], []
    for thread in np.unique(threads).tolist():
        mine = rows[threads == thread]
        mine = mine[_outer(ranges["start"][mine], ranges["end"][mine])]
        begins = ranges["start"][mine]
        start.append(begins)
        end.append(np.r_[begins[1:], ranges["end"][mine[-1:]]])
        host.append(ranges["end"][mine] - begins)
        owner.append(np.full(len(mine), trace["threads"]["process"][thread], np.int32))
        found = [_numbers(matches[name]) for name in ranges["name"][mine].tolist()]
        number.append(np.array([n if n >= 0 else at for at, (n, _, _) in enumerate(found)], np.int64))
        context.append(np.array([c for _, c, _ in found], np.int32))
        generation.append(np.array([g for _, _, g in found], np.int32))
    columns: list[Array] = [np.concatenate(x) for x in (start, end, host, number, owner, context, generation)]
    order = np.argsort(columns[0], kind="stable")
    return Iterations(source, 1.0, True, *(column[order] for column in columns))


def _host_side(trace: Trace, rows: Int) -> Int:
    """Without the copies of a range that a profiler draws on the device's rows."""
    names = trace["threads"]["name"][trace["ranges"]["thread"][rows]]
    device = trace.names.find("device")
    return rows[names != device] if device >= 0 else rows


def _outer(start: Int, end: Int) -> npt.NDArray[np.bool_]:
    """Those that begin after all earlier ones have ended: a step inside a step is the same step."""
    outer: npt.NDArray[np.bool_] = np.r_[True, start[1:] >= np.maximum.accumulate(end)[:-1]]
    return outer


def _numbers(match: re.Match[str]) -> tuple[int, int, int]:
    """(iteration, context requests, generation requests), -1 unknown."""
    found = match.groupdict()
    number = int(found["number"]) if found.get("number") else -1
    if found.get("phase"):
        size = int(found["size"] or -1)
        phase = found["phase"]
        return number, *((size, 0) if phase == "EXTEND" else (0, size) if phase == "DECODE" else (-1, -1))
    if found.get("context") is None:
        return number, -1, -1
    return number, int(found["context"]), int(found["generation"])


def _from_kernels(trace: Trace) -> Iterations:
    """The repeats on the busiest stream of every process whose kernels repeat; the confidence is the smallest."""
    kernels, streams = trace["kernels"], trace["streams"]
    length = np.zeros(len(streams), np.int64)
    known = np.flatnonzero(kernels["stream"] >= 0)
    np.add.at(length, kernels["stream"][known], (kernels["end"] - kernels["start"])[known])
    best, parts = 0.0, []
    for process in np.unique(streams["process"]).tolist():
        mine = np.flatnonzero(streams["process"] == process)
        rows = np.flatnonzero(kernels["stream"] == mine[np.argmax(length[mine])])
        first, confidence = find_period(kernels["name"][rows])
        best = max(best, confidence)
        if confidence >= MIN_CONFIDENCE:
            start = kernels["start"][rows[first]]
            end = np.r_[start[1:], int(kernels["end"][rows].max())]
            parts.append((confidence, start, end, np.full(len(start), process, np.int32), np.arange(len(start))))
    if not parts:
        none = np.empty(0, np.int64)
        small = none.astype(np.int32)
        return Iterations("none", best, False, none, none, none, none, small, small, small)
    start, end, owner, number = (np.concatenate([part[column] for part in parts]) for column in range(1, 5))
    order = np.argsort(start, kind="stable")
    unknown = np.full(len(start), -1, np.int32)
    return Iterations(
        "kernel sequence",
        min(part[0] for part in parts),
        False,
        start[order],
        end[order],
        np.zeros(len(start), np.int64),
        number[order].astype(np.int64),
        owner[order],
        unknown,
        unknown,
    )


@dataclass(frozen=True)
class IterationFigures:
    """Figures per row of Iterations, int64: `busy_ns` is the union of its work on all devices of its process added up,
    `idle_ns` the gaps before its work, `idle_by_cause_ns` (rows x CAUSES) the same by cause. `outside_ns` is idle that
    belongs to no iteration, by device."""

    work: Int
    graph_launches: Int
    busy_ns: Int
    idle_ns: Int
    idle_by_cause_ns: Int
    outside_ns: Int


def iterations(trace: Trace) -> IterationFigures:
    """Work, busy and idle of every iteration. Idle over all iterations plus `outside_ns` is all idle, exactly."""
    from inspector.analysis.causes import CAUSES, Causes
    from inspector.analysis.gaps import Gaps

    found = trace.index(Iterations)
    size = len(found)
    work, graphs, busy = (np.zeros(size, np.int64) for _ in range(3))
    idle = np.zeros((size, len(CAUSES)), np.int64)
    outside = np.zeros(len(trace["devices"]), np.int64)
    calls = np.full(len(trace["host_calls"]), -1, np.int32)
    for device, mine in enumerate(trace.index(Work).devices):
        owner = found.of_work(trace, mine)
        own = np.flatnonzero(owner >= 0)
        work += np.bincount(owner[own], minlength=size)[:size]
        busy += union_by(owner[own], mine.start[own], mine.end[own], size)
        _mark_graph_launches(trace, mine, owner, calls)
        gaps, slices = trace.index(Gaps).devices[device], trace.index(Causes).devices[device]
        of_gap = np.where(gaps.next >= 0, owner[gaps.next], -1)[slices.gap] if len(slices) else slices.gap
        length = slices.end - slices.start
        inside = of_gap >= 0
        np.add.at(idle, (of_gap[inside], slices.cause[inside]), length[inside])
        outside[device] = length[~inside].sum()
    graphs += np.bincount(calls[calls >= 0], minlength=size)[:size]
    return IterationFigures(work, graphs, busy, idle.sum(axis=1), idle, outside)


def _mark_graph_launches(trace: Trace, work: DeviceWork, owner: Rows, calls: Rows) -> None:
    """Write the iteration of each graph launch call into `calls`, once however many nodes it started."""
    nodes = work.pick(lambda table: trace[table].columns.get("graph_node"), missing=0) != 0
    nodes |= work.table == WORK_TABLES.index("graphs")
    at = np.flatnonzero(nodes)
    call = launch_calls(trace, work, at)
    calls[call[call >= 0]] = owner[at[call >= 0]]


def union_by(keys: Array, start: Int, end: Int, size: int) -> Int:
    """Measure of the union of intervals for each key 0..size-1, int64 ns."""
    sums = np.zeros(size, np.int64)
    if not len(keys):
        return sums
    # Each key gets a stretch of time of its own, so that one union serves all of them.
    origin = int(start.min())
    stretch = int(end.max()) - origin + 1
    shift = keys.astype(np.int64) * stretch - origin
    merged = union(start + shift, end + shift)
    np.add.at(sums, merged.starts // stretch, merged.ends - merged.starts)
    return sums
