"""Flow events: arrows that the file gives, and the links of work to its launch call where nothing else tells them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from inspector.readers.kineto.event import Event, Scalar
from inspector.readers.kineto.host import Chunk, Host
from inspector.readers.kineto.numbers import Int, integer, row_number
from inspector.trace.builder import Builder
from inspector.trace.table import Array

# Drawn from each launch call to its work: the correlation ids tell the same.
_LAUNCHES = frozenset(("ac2g", "async", "async_cpu_to_gpu", "async_gpu"))
_START, _STEP, _END = range(3)
PHASES = {"s": _START, "t": _STEP, "f": _END}
# Time, phase, process and thread id, category.
_Flow = tuple[int, int, Scalar, Scalar, str]


class Arrows:
    """Gathers flow events to the end of the file."""

    def __init__(self, builder: Builder, host: Host) -> None:
        self._builder = builder
        self._host = host
        self._flows: dict[tuple[str, str, str], list[_Flow]] = defaultdict(list)
        self._starts: dict[tuple[Scalar, Scalar, int], int] = {}
        self._ends: dict[tuple[int, int, int], int] = {}
        self._num_launches = 0

    def are_told(self, category: str) -> bool:
        """Whether arrows of that category say only what correlation ids say."""
        return category in _LAUNCHES

    def pass_over(self, events: Sequence[Event]) -> None:
        """Arrows of launches that are not needed for links."""
        self._num_launches += len(events)

    def add(self, events: Sequence[Event], time: Int) -> None:
        """Events of phase s, t or f."""
        for event, at in zip(events, time.tolist(), strict=True):
            category, phase = event.category, PHASES[event.ph]
            if category not in _LAUNCHES:
                key = (category, str(event.name), str(event.id))
                self._flows[key].append((at, phase, event.pid, event.tid, category))
            elif phase == _START:
                self._starts[event.pid, event.tid, at] = integer(event.id)
            else:
                self._ends[row_number(None, event.pid), row_number(None, event.tid), at] = integer(event.id)
            self._num_launches += category in _LAUNCHES

    def link(self, calls: Sequence[Chunk], work: Sequence[Chunk]) -> None:
        """Fill in correlation ids that the file does not give, by the arrow between a call and its work.

        Such an arrow starts when its call does, on its thread, and ends when its work begins, on its device and stream.
        """
        linked = 0
        if self._ends:
            known = self._host.threads.known
            starts = {(known(pid, tid), at): number for (pid, tid, at), number in self._starts.items()}
            for chunk in calls:
                _fill(chunk["correlation"], starts, chunk["thread"], chunk["start"])
            for chunk in work:
                linked += _fill(chunk["correlation"], self._ends, chunk["device"], chunk["number"], chunk["start"])
        if linked:
            text = "work without a correlation id: linked to its launch call by the arrow that the file draws"
            self._builder.quality.add("assumed", text, linked)
        elif self._num_launches:
            text = "arrows from launch calls to their work: the correlation ids tell the same"
            self._builder.quality.add("ignored", text, self._num_launches)

    def finish(self) -> None:
        """Add the arrows; one of several steps is as many arrows."""
        arrows: list[tuple[_Flow, _Flow]] = []
        loose = 0
        for flows in self._flows.values():
            # A pair belongs together even where it arrives before it leaves; else an id may be used again and again.
            flows.sort(key=itemgetter(1) if len(flows) == 2 else itemgetter(0, 1))
            last: _Flow | None = None
            for flow in flows:
                if flow[1] == _START:
                    loose += last is not None and last[1] == _START
                elif last is None:
                    loose += 1
                    continue
                else:
                    arrows.append((last, flow))
                last = None if flow[1] == _END else flow
            loose += last is not None and last[1] == _START
        if loose:
            self._builder.quality.add("ignored", "arrows of which the file holds one end only", loose)
        known, add = self._host.threads.known, self._builder.names.add
        self._builder.add(
            "flows",
            start=np.array([start[0] for start, _ in arrows], np.int64),
            start_thread=np.array([known(start[2], start[3]) for start, _ in arrows], np.int32),
            end=np.array([end[0] for _, end in arrows], np.int64),
            end_thread=np.array([known(end[2], end[3]) for _, end in arrows], np.int32),
            kind=np.array([add(start[4]) for start, _ in arrows], np.int32),
        )


def _fill(ids: Array, found: Mapping[Any, int], *place: Array) -> int:
    rows = np.flatnonzero(ids == 0)
    numbers = [found.get(key, 0) for key in zip(*(column[rows].tolist() for column in place), strict=True)]
    ids[rows] = numbers
    return sum(number > 0 for number in numbers)
