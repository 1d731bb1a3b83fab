"""The Trace: tables, names, quality, and the indexes that were built over them. An immutable snapshot."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

import numpy as np

from inspector.configuration.settings import BY_NAME, Configuration, merged, shown
from inspector.trace.layers import EngineLayers
from inspector.trace.names import Names
from inspector.trace.quality import Quality
from inspector.trace.results import Results
from inspector.trace.schema import SCHEMAS, WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.table import Array, Table

Basis = Literal["measured", "modelled", "simulated"]
NO_GPU = " (no GPU)"
"""How the name of a device ends that is none: a processor on which an engine's forward passes ran."""


@dataclass(frozen=True)
class TraceInfo:
    """Where a trace came from.

    `origin_ns` is the file's own time of trace time 0; `start_epoch_ns` the wall clock of trace time 0 (ns since 1970)
    where the file tells it; `duration_ns` from the first to the last record. `details` holds what the file says of its
    capture, for people. `missing` says for a table why it has no rows and how to get them. `configuration` is what is
    known of the model and of how its server was set.
    """

    paths: tuple[str, ...]
    kind: str
    producer: str = ""
    schema_version: str = ""
    origin_ns: int = 0
    duration_ns: int = 0
    start_epoch_ns: int | None = None
    basis: Basis = "measured"
    details: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    configuration: Configuration = field(default_factory=Configuration)


@dataclass(frozen=True)
class Kept:
    """What is at hand of a run that goes on: its older part is in the file only, until the run has ended.

    Rows that ended before `from_ns` are not at hand, nor requests that had left by then. Page events numbered below
    `page_sequence` are of before as well: no more of them than tell how the pages were then. They tell it of all pages
    with `pages_known`, else of those that they name.
    """

    from_ns: int = 0
    page_sequence: int = -(1 << 63)
    pages_known: bool = True


class Index(Protocol):
    """Something built once per trace; a class with `build`. The trace keeps it, keyed by the class.

    A class may also have `extend(old, trace)`: `old` is its index of an earlier generation, whose tables hold the same
    rows in front of the new ones, unless their `revision` has changed. It may share memory with the new one and must
    not change.
    """

    @classmethod
    def build(cls: type[T], trace: Trace) -> T:
        """Make it; called at most once per trace and class."""
        ...


T = TypeVar("T")

# A question about the last generation may still be at work while the first about the newest is.
_KEPT = 2


class Lineage:
    """The newest indexes of one growing trace that can be extended, each with the generation that it is of."""

    def __init__(self) -> None:
        self._found: dict[type, list[tuple[int, object]]] = {}
        self._lock = threading.Lock()

    def before(self, kind: type, generation: int) -> object | None:
        """The newest index of that class that is of no later generation; None when there is none."""
        with self._lock:
            return next((found for at, found in self._found.get(kind, ()) if at <= generation), None)

    def keep(self, kind: type, generation: int, index: object) -> None:
        """Keep an index for later generations."""
        with self._lock:
            found = [*self._found.get(kind, ()), (generation, index)]
            self._found[kind] = sorted(found, key=lambda pair: -pair[0])[:_KEPT]


class Trace:
    """Named tables of columns on one clock. `trace["kernels"]["start"]` is an array.

    One that is still being recorded comes generation after generation, each an immutable snapshot; those of one
    recording share `lineage`. All that began before `settled_ns` is in it.
    """

    def __init__(
        self,
        info: TraceInfo,
        tables: Mapping[str, Table],
        names: Names,
        quality: Quality,
        generation: int = 0,
        settled_ns: int | None = None,
        lineage: Lineage | None = None,
    ) -> None:
        self.info = info
        self.names = names
        self.quality = quality
        self.generation = generation
        self.settled_ns = info.duration_ns if settled_ns is None else settled_ns
        self.kept = Kept()
        self.results: tuple[Results, ...] = ()
        self.layers: tuple[EngineLayers, ...] = ()
        self._lineage = lineage
        self._tables = {name: tables.get(name) or Table(name) for name in SCHEMAS}
        self._indexes: dict[type, object] = {}
        self._building: dict[type, threading.RLock] = {}

    def configured(self, more: Configuration) -> Trace:
        """The same trace with what `more` says as well; what it says itself holds, and where they differ a note tells.

        Rows and indexes are shared: no index depends on the configuration.
        """
        if not len(more) and not more.notes:
            return self
        quality = Quality(list(self.quality.notes))
        files = ", ".join(dict.fromkeys(each.file for each in more))
        quality.add("assumed", f"the configuration is that of this run, which nothing says: {files}")
        for note in more.notes:
            quality.add("absent", note)
        for each in more:
            own = self.info.configuration.settings.get(each.name)
            if own is not None and own.value != each.value:
                title = f"{BY_NAME[each.name].group}, {BY_NAME[each.name].title}"
                quality.add(
                    "assumed", f"{title} is {shown(own)}, as the trace says, and not {shown(each)} ({each.origin})"
                )
        found = copy.copy(self)
        found.info = replace(self.info, configuration=merged([self.info.configuration, more]))
        found.quality = quality
        found._indexes = dict(self._indexes)
        found._building = {}
        return found

    def __getitem__(self, table: str) -> Table:
        return self._tables[table]

    @property
    def tables(self) -> Mapping[str, Table]:
        """All tables of the schema; those without rows are empty."""
        return self._tables

    def index(self, kind: type[T]) -> T:
        """The index of that class, built on first use (by one thread; others that want the same one wait)."""
        found = self._indexes.get(kind)
        if found is not None:
            return found  # type: ignore[return-value]
        # A lock each, so that a picture never waits for an analysis that it does not need. Indexes that need each other
        # form no circle, so neither do threads that wait.
        with self._building.setdefault(kind, threading.RLock()):
            found = self._indexes.get(kind)
            if found is None:
                found = self._indexes[kind] = self._made(kind)
            return found  # type: ignore[return-value]

    def _made(self, kind: type) -> object:
        extend = getattr(kind, "extend", None) if self._lineage is not None else None
        if extend is None or self._lineage is None:
            return kind.build(self)  # type: ignore[attr-defined]
        old = self._lineage.before(kind, self.generation)
        found: object = extend(old, self) if old is not None else kind.build(self)  # type: ignore[attr-defined]
        self._lineage.keep(kind, self.generation, found)
        return found

    def records(self, table: str) -> int:
        """Rows that the file held for `table`, those found wrong included."""
        wrong = self._tables["rejected"]["table"]
        return len(self._tables[table]) + int(np.count_nonzero(wrong == list(SCHEMAS).index(table)))

    @property
    def end_ns(self) -> int:
        """Trace time of the end of the last record."""
        return self.info.duration_ns

    @property
    def begin_ns(self) -> int:
        """Trace time from which there are records: 0, or below it where a server told of iterations from before it was
        attached to.
        """
        return min(0, 0, *map(int, self._tables["iterations"]["start"][:1]))

    @property
    def whole(self) -> Window:
        """The time of which everything is at hand, at least 1 ns: all of it, but of a run that goes on."""
        start = self.kept.from_ns or self.begin_ns
        return Window(start, max(self.end_ns, start + 1))

    def device_of(self, streams: Array) -> Array:
        """Rows of devices for rows of streams, int32; -1 for -1."""
        # One more entry at the end answers for -1.
        return np.append(self._tables["streams"]["device"], np.int32(-1))[streams]

    def device_kind(self, device: int) -> str:
        """'GPU', or 'CPU' where the built-in engine had none and its forward passes stand for device work."""
        return "CPU" if self._device_text(device).endswith(NO_GPU) else "GPU"

    def device_short(self, device: int) -> str:
        """'GPU 0' or 'CPU stage 0' for a row of devices."""
        text = self._device_text(device)
        return (
            text.removesuffix(NO_GPU) if text.endswith(NO_GPU) else f"GPU {self._tables['devices']['number'][device]}"
        )

    def device_name(self, device: int) -> str:
        """'GPU 0 · NVIDIA H100' for a row of devices; 'CPU stage 0 (no GPU)' where there was none."""
        text = self._device_text(device)
        return text if text.endswith(NO_GPU) else self.device_short(device) + (f" · {text}" if text else "")

    def _device_text(self, device: int) -> str:
        return self.names[int(self._tables["devices"]["name"][device])]

    def process_name(self, process: int) -> str:
        """'python 4711' for a row of processes, with its rank where known; a number below 0 is none."""
        table = self._tables["processes"]
        name = self.names[int(table["name"][process])] or "process"
        rank, pid = int(table["rank"][process]), int(table["pid"][process])
        text = f"{name} {pid}" if pid >= 0 else name
        return f"rank {rank} · {text}" if rank >= 0 else text

    def thread_name(self, thread: int) -> str:
        """'main thread 4711' for a row of threads; '' for -1. A number below 0 is none."""
        if thread < 0:
            return ""
        table = self._tables["threads"]
        name, tid = self.names[int(table["name"][thread])] or "thread", int(table["tid"][thread])
        return f"{name} {tid}" if tid >= 0 else name

    def stream_name(self, stream: int) -> str:
        """'stream 7' with its own name for a row of streams; 'stage 0 forward passes' where there was no GPU."""
        table = self._tables["streams"]
        device = self._device_text(int(table["device"][stream]))
        if device.endswith(NO_GPU):
            return f"{device.removeprefix('CPU ').removesuffix(NO_GPU)} forward passes"
        name = self.names[int(table["name"][stream])]
        return f"stream {table['number'][stream]}" + (f" · {name}" if name else "")

    def num_work(self) -> int:
        """Rows in all the work tables."""
        return sum(len(self._tables[name]) for name in WORK_TABLES)

    def nbytes(self) -> int:
        """Bytes held by the columns of all tables."""
        return sum(table.nbytes() for table in self._tables.values())
