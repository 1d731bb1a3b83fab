"""Ranges that stand in the file as two events, a begin and an end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

from inspector.readers.kineto.event import Event
from inspector.readers.kineto.host import OTHER, Host, external_ids
from inspector.readers.kineto.numbers import Int
from inspector.trace.builder import Builder

BEGINS = frozenset(("B", "b", "S"))
HALVES = BEGINS | {"E", "e", "F"}


class Halves:
    """Gathers begins and ends to the end of the file, since they need not come in order."""

    def __init__(self, builder: Builder, host: Host) -> None:
        self._builder = builder
        self._host = host
        self._tracks: dict[Hashable, int] = {}
        # Time, place in the file, track, whether it begins, thread, name, domain, external id.
        self._halves: list[tuple[int, int, int, bool, int, int, int, int]] = []

    def add(self, events: Sequence[Event], time: Int) -> None:
        """Events of phase B or E, which nest within their thread, or b, e, S or F, which belong together by id."""
        self._host.seen(time)
        add = self._builder.names.add
        ids = self._host.numbers(external_ids(events)).tolist()
        for at, thread, name, id_, event in zip(
            time.tolist(), self._host.thread_rows(events), self._host.names(events), ids, events, strict=True
        ):
            key: Hashable = thread if event.ph in "BE" else (event.category, str(event.id), _scope(event))
            track = self._tracks.setdefault(key, len(self._tracks))
            domain = add(event.category) if event.category else -1
            self._halves.append((at, len(self._halves), track, event.ph in BEGINS, thread, name, domain, id_))

    def finish(self) -> None:
        """Add the ranges. Those never closed end with the trace."""
        stacks: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        rows: list[tuple[int, ...]] = []
        without_begin: list[int] = []
        for time, _, track, begins, *what in sorted(self._halves):
            if begins:
                stacks[track].append((time, *what))
            elif stacks[track]:
                start, *rest = stacks[track].pop()
                rows.append((start, time, *rest))
            else:
                without_begin.append(time)
        open_ = [(start, self._host.last, *what) for stack in stacks.values() for start, *what in stack]
        rows += open_
        if rows:
            keys = ("start", "end", "thread", "name", "domain", "correlation")
            columns = dict(zip(keys, zip(*rows, strict=True), strict=True))
            self._builder.add("ranges", kind=OTHER, **columns)
        quality = self._builder.quality
        if open_:
            text = "ranges that were begun and never ended: they end with the trace"
            quality.add("unclosed", text, len(open_), f"at {open_[0][0]} ns")
        if without_begin:
            text = "ends of ranges that never began"
            quality.add("invalid", text, len(without_begin), f"at {without_begin[0]} ns")


def _scope(event: Event) -> Hashable:
    # An id of scope "local" is one of its process.
    if isinstance(event.id2, dict):
        local = event.id2.get("local")
        return str(event.id2.get("global")) if local is None else (event.pid, str(local))
    return str(event.scope)
