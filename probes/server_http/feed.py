"""Rows with keys, as a workload would give them, into the streams of a recording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from inspector.trace.quality import Quality
from inspector.trace.ring import Taken
from inspector.trace.ring_rows import RingRows
from inspector.trace.schema import PROBE_STATES
from probes.inprocess.columns import LAYOUTS
from probes.server_http.words import shown
from probes.streams import Streams

_MOST_SPELLINGS = 1 << 16
_DTYPES = {table: np.dtype([(name, code) for name, code in layout]) for table, layout in LAYOUTS.items()}


class Feed:
    """Rows gathered until `flush`, in the layouts of `probes.inprocess.columns`. The first name is the process's."""

    def __init__(self, streams: Streams, pid: int, process: str) -> None:
        self._streams = streams
        self._rows = RingRows(pid)
        self._names: dict[str, int] = {}
        self._count = 0
        self._new: list[tuple[int, str]] = []
        self._tables: dict[str, list[tuple[Any, ...]]] = {}
        self._flushed = 0
        self.name(process)

    @property
    def quality(self) -> Quality:
        """What could not be taken in."""
        return self._rows.quality

    def num_rows(self, table: str) -> int:
        """Rows of a table written so far."""
        return self._streams.rows.get(table, 0)

    def name(self, text: str) -> int:
        """The id of a text, which is made harmless; -1 for ''."""
        if not text:
            return -1
        found = self._names.get(text)
        if found is None:
            harmless = shown(text)
            found = self._names.get(harmless, -1)
            if found < 0:
                found = self._names[harmless] = self._count
                self._count += 1
                self._new.append((found, harmless))
            if len(self._names) < _MOST_SPELLINGS:
                self._names[text] = found
        return found

    def add(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Rows of a table, values in the order of its layout."""
        self._tables.setdefault(table, []).extend(tuple(row) for row in rows)

    def counter(self, time_ns: int, name: str, unit: str, value: float) -> None:
        """A sample of a counter of the server; one that is no number, or beyond all of them, is noted instead."""
        if not math.isfinite(value):
            self.quality.add("invalid", "samples of counters that are no finite numbers")
            return
        self.add("counters", [(time_ns, self.name(name), self.name(unit), -1, value)])

    def probe(self, time_ns: int, name: str, state: str, records: int, lost: int, message: str) -> None:
        """How reading goes; `state` is one of PROBE_STATES. What it costs the server is not known."""
        row = (time_ns, self.name(name), PROBE_STATES.index(state), records, lost, -1, self.name(message))
        self.add("probes", [row])

    def flush(self) -> None:
        """Write what was gathered. Raises OSError."""
        if not self._tables and not self._new:
            return
        tables = {table: np.array(rows, _DTYPES[table]) for table, rows in self._tables.items() if rows}
        names, self._new, self._tables = self._new, [], {}
        since, self._flushed = self._flushed, self._flushed + 1
        texts, columns = self._rows.resolve(Taken(since, self._flushed, tables, names))
        self._streams.append(texts, columns, self._flushed)
