"""Host events to rows: calls, operators, ranges, Python frames, overheads, instants."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from operator import attrgetter

import numpy as np

from inspector.readers.kineto.event import Event, Scalar, known_args
from inspector.readers.kineto.numbers import Int, exact_ns, integer, integers
from inspector.trace.builder import Builder
from inspector.trace.schema import RANGE_KINDS
from inspector.trace.table import Array

_KINDS = {
    "cpu_op": RANGE_KINDS.index("operator"),
    "operator": RANGE_KINDS.index("operator"),
    "user_annotation": RANGE_KINDS.index("annotation"),
    "python_function": RANGE_KINDS.index("python"),
}
OTHER = RANGE_KINDS.index("other")
KINETO_RANGES = frozenset(_KINDS)
Chunk = dict[str, Array]
_NAME, _PLACE = attrgetter("name"), attrgetter("pid", "tid")
_TS, _DUR = attrgetter("ts"), attrgetter("dur")


class _Threads(dict[tuple[Scalar, Scalar], int]):
    """Rows of threads by (process id, thread id), either of which may be text."""

    def __init__(self, builder: Builder) -> None:
        super().__init__()
        self._builder = builder
        self._numbers: dict[tuple[int, int], int] = {}

    def __missing__(self, key: tuple[Scalar, Scalar]) -> int:
        (pid, _), (tid, name) = numbered(key[0]), numbered(key[1])
        row = self[key] = self._numbers[pid, tid] = self._builder.thread(self.process(key[0]), tid, name)
        return row

    def known(self, pid: Scalar, tid: Scalar) -> int:
        """Row of threads, -1 where nothing stands on such a thread: device rows have such ids, too."""
        return self._numbers.get((numbered(pid)[0], numbered(tid)[0]), -1)

    def process(self, pid: Scalar) -> int:
        """Row of processes."""
        return self._builder.process(*numbered(pid))


class _Names(dict[Scalar, int]):
    """Ids of names."""

    def __init__(self, builder: Builder) -> None:
        super().__init__()
        self._add = builder.names.add

    def __missing__(self, name: Scalar) -> int:
        if isinstance(name, str):
            self[name] = self._add(name)
            return self[name]
        # Not kept: to a dictionary, 1 and true are one.
        return self._add(str(name))


class Host:
    """Adds rows to the builder as events come. Launch calls wait in `launches` for what only the end can tell.

    `first` and `last` bound the times seen so far, ns.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self.threads = _Threads(builder)
        self._names = _Names(builder)
        self.launches: list[Chunk] = []
        self.unlinked = False
        self.first, self.last = 2**63 - 1, -(2**63)
        self._rounded = self._without_length = self._odd = 0

    def starts(self, events: Sequence[Event]) -> tuple[Int, Array]:
        """Times of events, ns, and which have none that can be read."""
        times = exact_ns(list(map(bytes, map(_TS, events))))
        self._rounded += times.rounded
        return times.ns, times.unreadable

    def ends(self, events: Sequence[Event], starts: Int) -> Int:
        """Ends of complete events, ns."""
        texts = list(map(bytes, map(_DUR, events)))
        lengths = exact_ns(texts)
        self._rounded += lengths.rounded
        self._without_length += int(np.count_nonzero(lengths.unreadable))
        ends = starts + lengths.ns
        self.seen(starts)
        self.seen(ends)
        return ends

    def seen(self, times: Int) -> None:
        """Widen the bounds by these times."""
        if len(times):
            self.first, self.last = min(self.first, int(times.min())), max(self.last, int(times.max()))

    def numbers(self, values: Sequence[object], missing: int = 0, most: int = 2**62) -> Int:
        """Ids and sizes out of arguments; those that are no number are counted and read as `missing`."""
        found, odd = integers(values, missing, most)
        self._odd += odd
        return found

    def names(self, events: Iterable[Event]) -> list[int]:
        """Name ids."""
        return list(map(self._names.__getitem__, map(_NAME, events)))

    def thread_rows(self, events: Iterable[Event]) -> list[int]:
        """Rows of threads."""
        return list(map(self.threads.__getitem__, map(_PLACE, events)))

    def calls(self, events: Sequence[Event], start: Int) -> None:
        """Runtime and driver calls."""
        ids = [args.correlation for args in known_args(events)]
        self.unlinked |= None in ids
        self.launches.append(
            {
                "start": start,
                "end": self.ends(events, start),
                "thread": np.array(self.thread_rows(events), np.int32),
                "name": np.array(self.names(events), np.int32),
                "correlation": self.numbers(ids),
            }
        )

    def ranges(self, category: str, events: Sequence[Event], start: Int) -> None:
        """Operators, annotations, Python frames and whatever else has a length."""
        self._builder.add(
            "ranges",
            start=start,
            end=self.ends(events, start),
            thread=self.thread_rows(events),
            name=self.names(events),
            kind=_KINDS.get(category.lower(), OTHER),
            domain=self._builder.names.add(category) if category else -1,
            correlation=self.numbers(external_ids(events)),
        )

    def overheads(self, events: Sequence[Event], start: Int) -> None:
        """What the profiler took for itself; under process -1 it does not say where."""
        self._builder.add(
            "overheads",
            start=start,
            end=self.ends(events, start),
            thread=[-1 if event.pid == -1 else self.threads[event.pid, event.tid] for event in events],
            name=self.names(events),
        )

    def marks(self, events: Sequence[Event], time: Int) -> None:
        """Instants; one of global scope is of no thread."""
        self.seen(time)
        add = self._builder.names.add
        self._builder.add(
            "marks",
            time=time,
            thread=[-1 if event.scope == "g" else self.threads[event.pid, event.tid] for event in events],
            name=self.names(events),
            domain=[-1 if event.cat is None else add(str(event.cat)) for event in events],
        )

    def finish(self) -> None:
        """Add the calls, and note what was found wrong on the way."""
        for chunk in self.launches:
            self._builder.add("host_calls", **chunk)
        for code, text, count in (
            ("unclosed", "complete events without a duration: taken as 0", self._without_length),
            ("assumed", "times with digits beyond the nanosecond: rounded to it", self._rounded),
            ("invalid", "arguments that are no number where one belongs: read as none", self._odd),
        ):
            if count:
                self._builder.quality.add(code, text, count)


def external_ids(events: Sequence[Event]) -> list[object]:
    """What links operators to device work; old profilers wrote it small."""
    return [args.old_external if args.external is None else args.external for args in known_args(events)]


def text_id(text: object) -> int:
    """A stable negative number for a process or thread id that is text."""
    return -1 - (zlib.crc32(str(text).encode()) & 0x7FFFFFFF)


def numbered(value: Scalar) -> tuple[int, str]:
    """A process or thread id as a number, and its text where it is none."""
    number = integer(value, 2**62)
    return (number, "") if number < 2**62 else (text_id(value), str(value))
