"""What is known of one record, in words and exact figures; and what a range of time holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from inspector import units
from inspector.analysis.busy import Busy, busy
from inspector.analysis.categories import CATEGORIES, Categories
from inspector.analysis.causes import CAUSES, EXPLANATIONS, Causes, of_host
from inspector.analysis.gaps import Gaps
from inspector.analysis.iterations import Iterations
from inspector.analysis.kernels import KernelRow, kernels
from inspector.analysis.rollup import idle_by_cause
from inspector.picture.labels import moment, short
from inspector.picture.navigate import launch_of, launched_by
from inspector.picture.palette import category_label
from inspector.picture.tracks import spans
from inspector.trace.schema import RANGE_KINDS, WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.work import DeviceWork, Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


_HOST_KINDS = {"host_calls": "CUDA call", "os_calls": "OS call", "overheads": "profiler", "marks": "mark"}


class Fact(NamedTuple):
    """One line: a label, the value for reading, and the exact one for copying where it differs ('')."""

    label: str
    text: str
    exact: str = ""


class Details(NamedTuple):
    """A title, what kind of thing it is, and its facts."""

    title: str
    kind: str
    facts: tuple[Fact, ...]


def _span(start: int, end: int) -> list[Fact]:
    return [
        Fact("start", moment(start), f"{units.exact(start)} ns"),
        Fact("end", moment(end), f"{units.exact(end)} ns"),
        Fact("duration", units.time(end - start), f"{units.exact(end - start)} ns"),
    ]


def details(trace: Trace, source: str, row: int, device: int = -1) -> Details:
    """All that the trace says of a record; sources as in `rows.Lane` or 'gaps' (row of DeviceGaps).

    `device` is the row of devices of causes and gaps.
    """
    if source in WORK_TABLES:
        return _work(trace, source, row)
    if source == "causes":
        return _cause(trace, device, row)
    if source == "gaps":
        return _gap(trace, device, row)
    if source == "iterations":
        return _iteration(trace, row)
    if source == "graph launch":
        return _graph(trace, row)
    return _host(trace, source, row)


def _work(trace: Trace, table: str, row: int) -> Details:
    columns = trace[table]
    start, end = int(columns["start"][row]), int(columns["end"][row])
    stream = int(columns["stream"][row])
    facts = _span(start, end)
    category = CATEGORIES[int(trace.index(Categories).of_name[columns["name"][row]])]
    if table != "graphs":
        facts.append(Fact("category", category_label(category)))
    if stream >= 0:
        owner = trace["streams"]
        facts.append(Fact("device", trace.device_name(int(owner["device"][stream]))))
        facts.append(Fact("stream", trace.stream_name(stream)))
        facts.append(Fact("process", trace.process_name(int(owner["process"][stream]))))
    if "bytes" in columns and int(columns["bytes"][row]) >= 0:
        size = int(columns["bytes"][row])
        facts.append(Fact("bytes", units.size(size), f"{units.exact(size)} bytes"))
        if end > start:
            facts.append(Fact("rate", units.rate(size * 1e9 / (end - start))))
    facts.extend(_launch(trace, table, row, start))
    for column, label in (("graph_node", "graph node"), ("graph", "graph"), ("context", "context")):
        if column in columns and int(columns[column][row]):
            facts.append(Fact(label, str(int(columns[column][row]))))
    return Details(trace.names[int(columns["name"][row])], table.removesuffix("s"), tuple(facts))


def _launch(trace: Trace, table: str, row: int, start: int) -> list[Fact]:
    correlation = int(trace[table]["correlation"][row])
    facts = [Fact("correlation", str(correlation) if correlation else "none")]
    call = launch_of(trace, table, row)
    if call < 0:
        return [*facts, Fact("launch call", "not in the trace")]
    calls = trace["host_calls"]
    begun, returned = int(calls["start"][call]), int(calls["end"][call])
    delay = start - returned
    facts.append(Fact("launch call", trace.names[int(calls["name"][call])]))
    facts.append(Fact("launched by", trace.thread_name(int(calls["thread"][call]))))
    facts.append(Fact("call took", units.time(returned - begun), f"{units.exact(returned - begun)} ns"))
    waited = f"{units.exact(delay)} ns" if delay >= 0 else f"began {units.exact(-delay)} ns before the call returned"
    facts.append(Fact("queue delay", units.time(max(delay, 0)), waited))
    facts.append(Fact("from launch", units.time(start - begun), f"{units.exact(start - begun)} ns"))
    return facts


def _host(trace: Trace, table: str, row: int) -> Details:
    if table not in trace.tables:
        return Details(table, "", ())
    columns = trace[table]
    start, end = spans(trace, table)
    facts = _span(int(start[row]), int(end[row]))
    thread = int(columns["thread"][row])
    if thread >= 0:
        facts.append(Fact("thread", trace.thread_name(thread)))
        facts.append(Fact("process", trace.process_name(int(trace["threads"]["process"][thread]))))
    kind = {"host_calls": "CUDA call", "os_calls": "OS call", "overheads": "profiler", "marks": "mark"}.get(
        table, "range"
    )
    if table == "ranges":
        kind = RANGE_KINDS[int(columns["kind"][row])] + " range"
    if "domain" in columns and int(columns["domain"][row]) >= 0:
        facts.append(Fact("domain", trace.names[int(columns["domain"][row])]))
    if table == "host_calls":
        correlation = int(columns["correlation"][row])
        facts.append(Fact("correlation", str(correlation) if correlation else "none"))
        if "result" in columns and int(columns["result"][row]):
            facts.append(Fact("result", f"error {int(columns['result'][row])}"))
        started = launched_by(trace, row)
        if started:
            first, at = started[0]
            facts.append(Fact("launched", trace.names[int(trace[first]["name"][at])]))
            if len(started) > 1:
                facts.append(Fact("records started", units.exact(len(started))))
            delay = int(trace[first]["start"][at]) - int(columns["end"][row])
            facts.append(Fact("queue delay", units.time(max(delay, 0)), f"{units.exact(delay)} ns"))
    return Details(trace.names[int(columns["name"][row])], kind, tuple(facts))


def _cause(trace: Trace, device: int, row: int) -> Details:
    slices, gaps = trace.index(Causes).devices[device], trace.index(Gaps).devices[device]
    gap = int(slices.gap[row])
    cause = CAUSES[int(slices.cause[row])]
    facts = _span(int(slices.start[row]), int(slices.end[row]))
    facts.append(Fact("why", EXPLANATIONS[cause]))
    host, thread = int(slices.host[row]), int(slices.thread[row])
    # What the host did meanwhile explains nothing where the device held itself up.
    if thread >= 0 and of_host(slices.cause[row], slices.host[row]):
        facts.append(Fact("host", trace.names[host] if host >= 0 else "unmarked"))
        facts.append(Fact("thread", trace.thread_name(thread)))
    if slices.return_latency[row]:
        facts.append(Fact("return latency", "the wait was over; the host had not come back yet"))
    length = int(gaps.end[gap] - gaps.start[gap])
    facts.append(Fact("whole gap", units.time(length), f"{units.exact(length)} ns"))
    facts.append(Fact("next work", _name_of(trace, _work_at(trace, device, int(gaps.next[gap])))))
    return Details(f"idle: {cause}", "idle gap", tuple(facts))


def _gap(trace: Trace, device: int, row: int) -> Details:
    slices, gaps = trace.index(Causes).devices[device], trace.index(Gaps).devices[device]
    facts = _span(int(gaps.start[row]), int(gaps.end[row]))
    mine = np.flatnonzero(slices.gap == row)
    length = (slices.end - slices.start)[mine]
    totals = {cause: int(length[slices.cause[mine] == cause].sum()) for cause in np.unique(slices.cause[mine]).tolist()}
    ranked = sorted(totals, key=lambda cause: -totals[cause])
    facts.extend(Fact(CAUSES[cause], units.time(totals[cause]), f"{units.exact(totals[cause])} ns") for cause in ranked)
    threads = slices.thread[mine][(slices.thread[mine] >= 0) & of_host(slices.cause[mine], slices.host[mine])]
    if len(threads):
        facts.append(Fact("late thread", trace.thread_name(int(threads[0]))))
    before, after = _work_at(trace, device, int(gaps.previous[row])), _work_at(trace, device, int(gaps.next[row]))
    facts.append(Fact("work before", _name_of(trace, before)))
    facts.append(Fact("work after", _name_of(trace, after)))
    found = trace.index(Iterations)
    if len(found) and len(after) and (iteration := int(found.of_work(trace, after)[0])) >= 0:
        facts.append(Fact("iteration", str(int(found.number[iteration]))))
    facts.append(Fact("device", trace.device_name(device)))
    if ranked:
        facts.append(Fact("why", EXPLANATIONS[CAUSES[ranked[0]]]))
    mostly = "mostly " if len(ranked) > 1 else ""
    return Details(f"idle: {mostly}{CAUSES[ranked[0]]}" if ranked else "idle", "gap", tuple(facts))


def _work_at(trace: Trace, device: int, position: int) -> DeviceWork:
    """One record of a device's work, alone; empty for -1."""
    work = trace.index(Work).devices[device]
    one = slice(position, position + 1) if position >= 0 else slice(0, 0)
    return DeviceWork(device, work.start[one], work.end[one], work.table[one], work.row[one], work.stream[one])


def _name_of(trace: Trace, work: DeviceWork) -> str:
    if not len(work):
        return "none"
    return short(trace.names[int(trace[WORK_TABLES[int(work.table[0])]]["name"][work.row[0]])])


def _iteration(trace: Trace, row: int) -> Details:
    found = trace.index(Iterations)
    facts = _span(int(found.start[row]), int(found.end[row]))
    host = int(found.host_ns[row])
    facts.append(Fact("host time", units.time(host), f"{units.exact(host)} ns"))
    if found.kind(row):
        facts.append(Fact("kind", found.kind(row)))
        facts.append(Fact("context requests", str(int(found.context[row]))))
        facts.append(Fact("generation requests", str(int(found.generation[row]))))
    if int(found.process[row]) >= 0:
        facts.append(Fact("process", trace.process_name(int(found.process[row]))))
    facts.append(Fact("found from", found.source))
    if found.confidence < 1:
        facts.append(Fact("confidence", f"{found.confidence:.2f}"))
    return Details(f"iteration {int(found.number[row]):,}", "iteration", tuple(facts))


def _graph(trace: Trace, row: int) -> Details:
    kernels_ = trace["kernels"]
    facts = [Fact("first node starts", units.time(int(kernels_["start"][row])))]
    facts.extend(_launch(trace, "kernels", row, int(kernels_["start"][row])))
    call = launch_of(trace, "kernels", row)
    if call >= 0:
        facts.append(Fact("nodes in the trace", units.exact(len(launched_by(trace, call)))))
    return Details("CUDA graph launch", "graph launch", tuple(facts))


@dataclass(frozen=True)
class RangeStatistics:
    """One device over a window: busy and idle, idle ns by cause (largest first), the names with most time."""

    window: Window
    device: int
    name: str
    busy: Busy
    idle: dict[str, int]
    kernels: tuple[KernelRow, ...]


def range_statistics(trace: Trace, window: Window, device: int) -> RangeStatistics:
    """What a row of devices did in a window; kernels are those that started in it, at full length."""
    return RangeStatistics(
        window,
        device,
        trace.device_name(device),
        busy(trace, device, window),
        idle_by_cause(trace, device, window),
        tuple(kernels(trace, window=window, device=device)),
    )
