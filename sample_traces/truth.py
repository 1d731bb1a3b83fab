"""The truth about every idle nanosecond of a simulated run, by the definition of the causes.

It is told from what the simulation wrote down while it ran: what each thread was doing, and which condition each piece
of work waited for last. Nothing here looks at a trace file or asks the program's own analyses.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sample_traces.device import Call, Graph, Work
from sample_traces.host import Moment, Run

# Work that starts within this time after its launch call returned came the usual way.
LATENCY_BOUND_NS = 20_000

_HELD = {"queue": "queue latency", "dependency": "stream dependency", "elsewhere": "device busy elsewhere"}


class Slice(NamedTuple):
    """[start, end) of an idle device: why, and the host call or range (None unmarked or none).

    `returning`: a wait of the host for work that had ended before the gap began.
    """

    start: int
    end: int
    cause: str
    host: str | None
    returning: bool = False


class Busy(NamedTuple):
    """One record of device work as the trace shows it: a piece of work, or a whole graph."""

    start: int
    end: int
    work: Work
    graph: Graph | None


@dataclass(frozen=True)
class DeviceTruth:
    """Slices tile the idle time between the first and the last work of the device."""

    span_ns: int
    idle_ns: int
    slices: tuple[Slice, ...]

    def by_cause(self) -> list[tuple[str, int]]:
        """Idle ns by cause, most first."""
        sums: dict[str, int] = {}
        for piece in self.slices:
            sums[piece.cause] = sums.get(piece.cause, 0) + piece.end - piece.start
        return sorted(sums.items(), key=lambda item: -item[1])


def records(works: Sequence[Work], whole_graphs: bool) -> list[Busy]:
    """What the trace shows of a device's work, by start."""
    shown: list[Busy] = []
    for work in works:
        if work.graph is None or not whole_graphs:
            shown.append(Busy(work.start, work.end, work, work.graph))
        elif work is work.graph.nodes[0]:
            nodes = work.graph.nodes
            shown.append(Busy(min(node.start for node in nodes), max(node.end for node in nodes), work, None))
    return sorted(shown, key=lambda busy: (busy.start, busy.end))


def truth_of(run: Run, number: int, whole_graphs: bool = False, os_calls: bool = True) -> DeviceTruth:
    """The truth about the GPU of that number, as far as a trace shows it that has `os_calls` or not."""
    shown = records(run.devices[number].work, whole_graphs)
    timelines = {}
    for tid, moments in run.moments.items():
        visible = moments if os_calls else [_without_os_calls(moment) for moment in moments]
        timelines[tid] = ([moment.start for moment in visible], visible)
    slices: list[Slice] = []
    before = shown[0]
    for row, busy in enumerate(shown):
        if busy.start > before.end:
            after = max(_together(shown, row), key=lambda other: other.work.call.start)
            slices += _cut(before, after, timelines)
        if busy.end >= before.end:
            before = busy
    idle = sum(piece.end - piece.start for piece in slices)
    return DeviceTruth(before.end - shown[0].start, idle, tuple(slices))


def _without_os_calls(moment: Moment) -> Moment:
    return moment._replace(cause="host code", host=moment.inside) if moment.cause == "os blocked" else moment


def _together(shown: Sequence[Busy], row: int) -> Iterator[Busy]:
    start = shown[row].start
    while row < len(shown) and shown[row].start == start:
        yield shown[row]
        row += 1


def _cut(before: Busy, after: Busy, timelines: dict[int, tuple[list[int], list[Moment]]]) -> Iterator[Slice]:
    start, end, work = before.end, after.start, after.work
    call = work.call
    if after.graph is not None and after.graph is before.graph:
        yield Slice(start, end, "graph internal", None)
    elif not call.recorded:
        yield Slice(start, end, "unattributed", None)
    else:
        begun = min(max(call.start, start), end)
        yield from _host_part(start, begun, call, timelines[call.thread])
        returned = end if end <= call.end + LATENCY_BOUND_NS else max(call.end, begun)
        name = call.name.split("_v")[0]
        if returned > begun:
            yield Slice(begun, returned, "launch overhead", name)
        if end > returned:
            yield Slice(returned, end, _held(work), name)


def _held(work: Work) -> str:
    """Why work that was launched in time started late."""
    waited = max(work.waits, key=lambda other: other.end, default=None)
    if work.meeting is not None or (work.held_by == "dependency" and waited is not None and waited.meeting is not None):
        return "waiting for a peer"
    return _HELD[work.held_by]


def _host_part(start: int, end: int, call: Call, timeline: tuple[list[int], list[Moment]]) -> Iterator[Slice]:
    starts, moments = timeline
    row, now = bisect_right(starts, start) - 1, start
    while now < end:
        moment = moments[row]
        until = min(moment.end, end)
        over = moment.awaited is not None and moment.awaited.end <= start
        yield Slice(now, until, moment.cause, moment.host, over)
        now, row = until, row + 1


def as_json(
    devices: Mapping[int, DeviceTruth], sentence: str, counts: dict[str, int], shift_ns: int = 0
) -> dict[str, Any]:
    """The truth as a JSON document: causes and hosts are numbered, a slice is
    [start, end, cause, host or -1, 1 when the awaited work was over]; times are the trace file's own, ns, which are
    those of the run less `shift_ns`."""
    causes = sorted({piece.cause for device in devices.values() for piece in device.slices})
    hosts = sorted({piece.host for device in devices.values() for piece in device.slices if piece.host is not None})
    cause_ids = {cause: row for row, cause in enumerate(causes)}
    host_ids: dict[str | None, int] = {host: row for row, host in enumerate(hosts)}
    told = []
    for number, device in devices.items():
        told.append(
            {
                "device": number,
                "span_ns": device.span_ns,
                "busy_ns": device.span_ns - device.idle_ns,
                "idle_ns": device.idle_ns,
                "idle_by_cause_ns": dict(device.by_cause()),
                "slices": [
                    [
                        piece.start - shift_ns,
                        piece.end - shift_ns,
                        cause_ids[piece.cause],
                        host_ids.get(piece.host, -1),
                        int(piece.returning),
                    ]
                    for piece in device.slices
                ],
            }
        )
    return {"simulated": sentence, "records": counts, "causes": causes, "hosts": hosts, "devices": told}
