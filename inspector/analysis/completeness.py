"""Can this trace answer? A verdict before any figure, with the counted reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from inspector.analysis import calls as host
from inspector.analysis.busy import Unions
from inspector.analysis.categories import COLLECTIVES, Categories
from inspector.analysis.iterations import Iterations
from inspector.analysis.pipeline import contention_of
from inspector.trace.intervals import clip, measure, union
from inspector.trace.links import Links, process_of
from inspector.trace.schema import REJECTIONS, SCHEMAS, WORK_TABLES
from inspector.trace.work import DeviceWork, Work, launch_calls

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Rows = npt.NDArray[np.int32]
Level = Literal["trusted", "partly", "cannot say"]
# Shares of launch calls without work, or of iterations without a device record: beyond the first a figure is only
# partly to be trusted, beyond the second nothing can be said.
_SOME, _MANY = 0.01, 0.2
# How late a stream's first work may begin before something must have run that is not in the file, ns.
_HEAD_NS = 1_000_000
_LOSSES = ("profiler-loss", "truncated", "filtered", "invalid", "recovered")


@dataclass(frozen=True)
class Verdict:
    """How far the figures of a device can be trusted, why not further, and what would help, in sentences."""

    level: Level
    reasons: tuple[str, ...]
    advice: tuple[str, ...]


def verdict(trace: Trace, device: int) -> Verdict:
    """The verdict for a row of devices."""
    found = _Findings()
    work = trace.index(Work).devices[device]
    if not len(work):
        found.cannot("no work was recorded on this device", trace.info.missing.get("kernels", ""))
        return found.verdict()
    _whole_graphs(trace, device, found)
    _wrong_records(trace, device, found)
    for code in _LOSSES:
        for note in trace.quality.find(code):
            found.partly(f"{note.text} ({note.count:,})" if note.count > 1 else note.text, "")
    call = launch_calls(trace, work)
    _launches(trace, device, call, found)
    _head(trace, device, call, found)
    _contention(trace, device, found)
    _empty_iterations(trace, device, found)
    return found.verdict()


class _Findings:
    def __init__(self) -> None:
        self._level: Level = "trusted"
        self._reasons: list[str] = []
        self._advice: list[str] = []

    def partly(self, reason: str, advice: str) -> None:
        if self._level == "trusted":
            self._level = "partly"
        self._add(reason, advice)

    def cannot(self, reason: str, advice: str) -> None:
        self._level = "cannot say"
        self._add(reason, advice)

    def _add(self, reason: str, advice: str) -> None:
        self._reasons.append(reason)
        if advice and advice not in self._advice:
            self._advice.append(advice)

    def verdict(self) -> Verdict:
        return Verdict(self._level, tuple(self._reasons), tuple(self._advice))


def _whole_graphs(trace: Trace, device: int, found: _Findings) -> None:
    graphs = trace["graphs"]
    mine = trace.index(Work).counted["graphs"] & (trace.device_of(graphs["stream"]) == device)
    count = int(np.count_nonzero(mine))
    if count:
        found.partly(
            f"{count:,} CUDA graph launches were recorded as a whole: the kernels inside are not in this file",
            "record with --cuda-graph-trace=node to see them",
        )


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _wrong_records(trace: Trace, device: int, found: _Findings) -> None:
    wrong = trace["rejected"]
    mine = (wrong["stream"] >= 0) & (trace.device_of(np.maximum(wrong["stream"], 0)) == device)
    for code, reason in enumerate(REJECTIONS):
        for table in WORK_TABLES:
            rows = mine & (wrong["reason"] == code) & (wrong["table"] == list(SCHEMAS).index(table))
            count = int(np.count_nonzero(rows))
            if count:
                # As Python's integers: what wrong time stamps claim need not fit into 64 bits.
                spans = zip(wrong["start"][rows].tolist(), wrong["end"][rows].tolist(), strict=True)
                claimed = sum(max(end - start, 0) for start, end in spans)
                claim = f" (they claimed {claimed:,} ns)" if claimed else ""
                found.partly(f"{count:,} {table} left out: {reason}{claim}", "")


def _launches(trace: Trace, device: int, call: Rows, found: _Findings) -> None:
    if not len(trace["host_calls"]):
        found.partly(
            "no launch calls were recorded, so no gap can be attributed", "record the CUDA API too (nsys -t cuda)"
        )
        return
    work = trace.index(Work).devices[device]
    linked = np.flatnonzero(call >= 0)
    unlinked = np.flatnonzero(call < 0)
    # What ran before the first linked record was launched before the recording began; nothing is lost there.
    early = int(np.count_nonzero(unlinked < linked[0])) if len(linked) else 0
    if early > _SOME * len(work):
        found.partly(f"{early:,} records were launched before the recording began, so they have no launch call", "")
    if len(unlinked) - early > _SOME * len(work):
        found.partly(
            f"{len(unlinked) - early:,} of {len(work):,} records {_have(len(unlinked) - early)} no launch call", ""
        )
    lost, after, total = _launched_in_vain(trace)
    if after > _SOME * total:
        found.partly(f"{after:,} launch calls at the end have no device work: it ran after the recording ended", "")
    if lost > _MANY * total:
        found.cannot(
            f"{lost:,} of {total:,} launch calls {_have(lost)} no device work: records are missing",
            "record again with larger buffers or a shorter range",
        )
    elif lost > _SOME * total:
        found.partly(f"{lost:,} of {total:,} launch calls {_have(lost)} no device work in this file", "")


def _head(trace: Trace, device: int, call: Rows, found: _Findings) -> None:
    """A stream's first work that was launched at once and began late, while no device that was recorded did anything:
    what it waited for was launched before the recording, and profilers do not tell of that."""
    work = trace.index(Work).devices[device]
    least = max(_HEAD_NS, int(_SOME * trace.index(Unions).spans[device].length))
    hidden, which = 0, -1
    # The first record of each stream; one without a launch call was launched before the recording, and is known of.
    first = np.full(len(trace["streams"]), -1, np.int64)
    first[work.stream[::-1]] = np.arange(len(work))[::-1]
    for stream in np.flatnonzero(first >= 0).tolist():
        at = int(first[stream])
        if call[at] < 0 or _is_collective(trace, work, at):
            continue
        launched, start = int(trace["host_calls"]["end"][call[at]]), int(work.start[at])
        if start - launched <= least:
            continue
        idle = start - launched - _busy_in(trace, launched, start)
        if idle > max(least, hidden):
            hidden, which = idle, stream
    if which >= 0:
        name = f"stream {int(trace['streams']['number'][which])}"
        found.partly(
            f"earlier work seems missing: the first of {name} began {hidden / 1e6:,.1f} ms after its launch, though "
            "nothing that was recorded ran",
            "begin the recording with an idle device (synchronise first), or leave its first part out",
        )


def _busy_in(trace: Trace, start: int, end: int) -> int:
    """Time in [start, end) in which some device was busy, ns."""
    parts = [clip(kinds["all"], start, end) for kinds in trace.index(Unions).devices]
    return measure(union(np.concatenate([part.starts for part in parts]), np.concatenate([p.ends for p in parts])))


def _is_collective(trace: Trace, work: DeviceWork, at: int) -> bool:
    """A collective waits for its peers on the device: its start says nothing of what ran before."""
    name = int(work.pick(lambda table: trace[table]["name"], np.array([at]))[0])
    return bool(trace.index(Categories).of_name[name] == COLLECTIVES)


def _contention(trace: Trace, device: int, found: _Findings) -> None:
    worked, waited = contention_of(trace, device, trace.index(Unions).spans[device])
    if waited > _MANY * worked:
        found.partly(
            f"no core for {100 * waited / worked:.0f} % of its work: busy says less than it seems",
            "leave more processors to the run",
        )


def _launched_in_vain(trace: Trace) -> tuple[int, int, int]:
    """Launch calls that succeeded and started nothing: (among the others, after the last that started some, of all)."""
    calls = trace["host_calls"]
    started = np.zeros(len(calls), bool)
    for rows in trace.index(Links).launch.values():
        started[rows[rows >= 0]] = True
    if not started.any():
        return 0, 0, 0
    kinds = trace.index(host.CallKinds).of_row
    launching = (kinds == host.LAUNCHING) & (calls["correlation"] > 0) & (calls.get("result") == 0)
    # A runtime call and the driver call inside it share their id: either of them started the work.
    keys = process_of(trace, "host_calls").astype(np.int64) << 40 | calls["correlation"]
    vain = np.flatnonzero(launching & ~started)
    vain = vain[~np.isin(keys[vain], keys[started])]
    after = int(np.count_nonzero(vain > np.flatnonzero(started)[-1]))
    return len(vain) - after, after, int(np.count_nonzero(launching))


def _empty_iterations(trace: Trace, device: int, found: _Findings) -> None:
    iterations = trace.index(Iterations)
    if not len(iterations) or not iterations.by_launch:
        return
    owner = iterations.of_work(trace, trace.index(Work).devices[device])
    processes = np.unique(trace["streams"]["process"][trace["streams"]["device"] == device])
    mine = np.isin(iterations.process, processes) | (iterations.process < 0)
    runs = mine & ~((iterations.context == 0) & (iterations.generation == 0))
    # The work of earlier ones is not at hand, not missing.
    runs &= iterations.start >= trace.kept.from_ns
    # Nor is that of one at the edge of a run: it may still be on its way into the file.
    runs &= iterations.end <= trace.settled_ns
    seen = np.bincount(owner[owner >= 0], minlength=len(iterations)) > 0
    empty, total = int(np.count_nonzero(runs & ~seen)), int(np.count_nonzero(runs))
    if empty and empty > _MANY * total:
        found.cannot(f"{empty:,} of {total:,} iterations {_have(empty)} no device record", "")
    elif empty:
        found.partly(f"{empty:,} of {total:,} iterations {_have(empty)} no device record", "")
