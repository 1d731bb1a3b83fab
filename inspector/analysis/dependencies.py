"""Why work that was launched in time started late: the first of the device-side causes that holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.categories import COLLECTIVES, Categories
from inspector.trace.work import DeviceWork, Work, launch_calls, launch_times

if TYPE_CHECKING:
    from inspector.analysis.gaps import DeviceGaps
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

# Work that starts so soon after work of another stream ended was waiting for it.
FOLLOWS_NS = 5_000
STREAM_WAIT = 2
# Indexes into causes.CAUSES, in the order in which they are asked.
_PEER, _DEPENDENCY, _ELSEWHERE, _QUEUE = 10, 11, 12, 13


class Dependencies:
    """Asks, for work of one device, what it was waiting for on the device side."""

    def __init__(self, trace: Trace, device: int, work: DeviceWork) -> None:
        self._trace = trace
        self._device = device
        self._work = work

    def of(self, found: DeviceGaps, gaps: Int, call: Rows) -> npt.NDArray[np.int8]:
        """Cause (index into causes.CAUSES) of the queued part of those rows of `found`; `call` launched each."""
        causes = np.full(len(gaps), _QUEUE, np.int8)
        if not len(gaps):
            return causes
        trace, work = self._trace, self._work
        after, before = found.next[gaps], found.previous[gaps]
        known = before >= 0
        streams = trace["streams"]
        mine, theirs = work.stream[after], work.stream[before]
        process = streams["process"]
        same = known & (process[mine] == process[theirs])
        causes[known & ~same] = _ELSEWHERE
        causes[known & (self._context(after) != self._context(before))] = _ELSEWHERE
        collective = self._is_collective(after)
        waited = self._recorded_wait(after, call)
        end = found.end[gaps]
        # An event is known within its process: work of another one that ends just then is a coincidence.
        follows = same & (mine != theirs) & (end - found.start[gaps] <= FOLLOWS_NS)
        follows |= self._follows_other_device(end, process[mine]) | self._follows_callback(end)
        causes[follows | (waited >= 0)] = _DEPENDENCY
        # What the stream waits for may itself be a collective.
        behind = waited >= 0
        behind[behind] = self._last_is_collective(waited[behind], end[behind])
        causes[collective | behind] = _PEER
        return causes

    def _context(self, positions: Rows) -> Int:
        return self._work.pick(lambda table: self._trace[table].columns.get("context"), positions, missing=0)

    def _is_collective(self, positions: Rows) -> npt.NDArray[np.bool_]:
        names = self._work.pick(lambda table: self._trace[table]["name"], positions)
        answer: npt.NDArray[np.bool_] = self._trace.index(Categories).of_name[names] == COLLECTIVES
        return answer

    def _recorded_wait(self, positions: Rows, call: Rows) -> Rows:
        """Row of streams whose event the work's stream was told to wait for, after that stream's work before it was
        launched and before the work itself was; -1 none."""
        trace = self._trace
        syncs, calls = trace["syncs"], trace["host_calls"]
        answer = np.full(len(positions), -1, np.int32)
        waits = np.flatnonzero(syncs["kind"] == STREAM_WAIT)
        if not len(waits):
            return answer
        sources = event_sources(trace, waits)
        launch = launch_times(trace, launch_calls(trace, self._work))
        mine = self._work.stream[positions]
        for stream in np.unique(mine).tolist():
            here = waits[syncs["stream"][waits] == stream]
            if not len(here):
                continue
            asked, source = syncs["start"][here], sources[np.searchsorted(waits, here)]
            on_stream = np.flatnonzero(self._work.stream == stream)
            at = np.flatnonzero(mine == stream)
            place = np.searchsorted(on_stream, positions[at])
            earlier = launch[on_stream[np.maximum(place - 1, 0)]]
            since = np.where(place > 0, earlier, np.iinfo(np.int64).min)
            last = np.searchsorted(asked, calls["start"][call[at]], "right") - 1
            hit = (last >= 0) & (asked[np.maximum(last, 0)] > since)
            other = source[np.maximum(last, 0)]
            answer[at] = np.where(hit & (other != stream), np.where(other >= 0, other, len(trace["streams"])), -1)
        return answer

    def _last_is_collective(self, streams: Rows, at: Int) -> npt.NDArray[np.bool_]:
        """Whether the last work of each stream that ended by `at` was a collective."""
        answer = np.zeros(len(streams), bool)
        kinds = self._is_collective(np.arange(len(self._work), dtype=np.int32))
        for stream in np.unique(streams).tolist():
            rows = np.flatnonzero(self._work.stream == stream)
            if not len(rows):
                continue
            mine = streams == stream
            last = np.searchsorted(self._work.end[rows], at[mine], "right") - 1
            answer[mine] = (last >= 0) & kinds[rows[np.maximum(last, 0)]]
        return answer

    def _follows_other_device(self, starts: Int, processes: Rows) -> npt.NDArray[np.bool_]:
        answer = np.zeros(len(starts), bool)
        owners = self._trace["streams"]["process"]
        for other in self._trace.index(Work).devices:
            if other.device == self._device or not len(other):
                continue
            theirs = owners[other.stream]
            for process in np.unique(processes).tolist():
                ends = np.sort(other.end[theirs == process])
                if len(ends):
                    last = np.searchsorted(ends, starts, "right") - 1
                    near = (last >= 0) & (starts - ends[np.maximum(last, 0)] <= FOLLOWS_NS)
                    answer |= near & (processes == process)
        return answer

    def _follows_callback(self, starts: Int) -> npt.NDArray[np.bool_]:
        """Work that starts right after a host function that a stream called (cudaLaunchHostFunc) returned."""
        ranges = self._trace["ranges"]
        name = self._trace.names.find("CUDA host callback")
        ends = np.sort(ranges["end"][ranges["name"] == name]) if name >= 0 else np.empty(0, np.int64)
        if not len(ends):
            return np.zeros(len(starts), bool)
        last = np.searchsorted(ends, starts, "right") - 1
        return (last >= 0) & (starts - ends[np.maximum(last, 0)] <= FOLLOWS_NS)


def event_sources(trace: Trace, waits: Int) -> Rows:
    """Row of streams that recorded the event of each wait: by the pairing id where the file has it, else the last
    record of that event number in the process; -1 unknown."""
    syncs, records = trace["syncs"], trace["event_records"]
    answer = np.full(len(waits), -1, np.int32)
    if not len(records):
        return answer
    pairs = dict(zip(records.get("event_sync").tolist(), records["stream"].tolist(), strict=True))
    pairs.pop(0, None)
    owners = trace["streams"]["process"][records["stream"]]
    events = dict(
        zip(zip(owners.tolist(), records["event"].tolist(), strict=True), records["stream"].tolist(), strict=True)
    )
    for at, row in enumerate(waits.tolist()):
        pair = int(syncs.get("event_sync")[row]) if "event_sync" in syncs else 0
        key = (int(syncs["process"][row]), int(syncs["event"][row]))
        answer[at] = pairs.get(pair, events.get(key, -1))
    return answer
