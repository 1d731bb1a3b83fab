"""Can this trace answer? A verdict before any figure, with the counted reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from inspector.analysis import calls as host
from inspector.analysis.iterations import Iterations
from inspector.trace.links import Links, process_of
from inspector.trace.schema import REJECTIONS, SCHEMAS, WORK_TABLES
from inspector.trace.work import Work, launch_calls

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Level = Literal["trusted", "partly", "cannot say"]
# Shares of launch calls without work, or of iterations without a device record: beyond the first a figure is only
# partly to be trusted, beyond the second nothing can be said.
_SOME, _MANY = 0.01, 0.2
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
    _launches(trace, device, found)
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


def _launches(trace: Trace, device: int, found: _Findings) -> None:
    if not len(trace["host_calls"]):
        found.partly(
            "no launch calls were recorded, so no gap can be attributed", "record the CUDA API too (nsys -t cuda)"
        )
        return
    work = trace.index(Work).devices[device]
    call = launch_calls(trace, work)
    linked = np.flatnonzero(call >= 0)
    unlinked = np.flatnonzero(call < 0)
    # What ran before the first linked record was launched before the recording began; nothing is lost there.
    early = int(np.count_nonzero(unlinked < linked[0])) if len(linked) else 0
    if early > _SOME * len(work):
        found.partly(f"{early:,} records were launched before the recording began, so they have no launch call", "")
    if len(unlinked) - early > _SOME * len(work):
        found.partly(f"{len(unlinked) - early:,} of {len(work):,} records have no launch call", "")
    lost, after, total = _launched_in_vain(trace)
    if after > _SOME * total:
        found.partly(f"{after:,} launch calls at the end have no device work: it ran after the recording ended", "")
    if lost > _MANY * total:
        found.cannot(
            f"{lost:,} of {total:,} launch calls have no device work: records are missing",
            "record again with larger buffers or a shorter range",
        )
    elif lost > _SOME * total:
        found.partly(f"{lost:,} of {total:,} launch calls have no device work in this file", "")


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
    seen = np.bincount(owner[owner >= 0], minlength=len(iterations)) > 0
    empty, total = int(np.count_nonzero(runs & ~seen)), int(np.count_nonzero(runs))
    if empty and empty > _MANY * total:
        found.cannot(f"{empty:,} of {total:,} iterations have no device record", "")
    elif empty:
        found.partly(f"{empty:,} of {total:,} iterations have no device record", "")
