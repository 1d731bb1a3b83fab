"""What the recorder itself measures, as rows of a producer of its own: counters of processes, GPUs and the machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from inspector.trace.ring_rows import OWN_TABLES
from inspector.trace.schema import PROBE_STATES, SCHEMAS
from probes.streams import Streams


class Samples:
    """Rows gathered until `flush`. Times are CLOCK_MONOTONIC, ns."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._names: dict[str, int] = {}
        self._keys: dict[str, dict[Any, int]] = {"processes": {}, "devices": {}, "series": {}}
        self._length = {"processes": 0, "devices": 0, "series": 0}
        self._texts: list[str] = []
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._flushed = 0

    def process(self, pid: int, name: str = "") -> int:
        """The row of a process; a name makes a row that has it."""
        return self._row("processes", pid, bool(name), {"pid": pid, "name": self._name(name), "rank": -1})

    def device(self, number: int, name: str = "", memory: int = -1, bandwidth: int = -1) -> int:
        """The row of a GPU; `memory` in bytes, `bandwidth` in bytes/s."""
        row = {
            "number": number,
            "name": self._name(name),
            "memory": memory,
            "bandwidth": bandwidth,
            "sm_count": -1,
        }
        return self._row("devices", number, bool(name), row)

    def counter(self, time_ns: int, name: str, unit: str, value: float, *, pid: int = -1, device: int = -1) -> None:
        """A sample of a counter of a process, of a GPU, or of the machine."""
        row = {
            "name": self._name(name),
            "unit": self._name(unit),
            "device": self.device(device) if device >= 0 else -1,
            "process": self.process(pid) if pid >= 0 else -1,
        }
        series = self._row("series", (name, pid, device), False, row)
        self._rows.setdefault("counters", []).append({"time": time_ns, "series": series, "value": value})

    def probe(
        self, time_ns: int, name: str, state: str, records: int, lost: int, cost_ns: int, message: str = ""
    ) -> None:
        """What a probe of the recorder says of itself; `state` is one of PROBE_STATES."""
        row = {
            "time": time_ns,
            "process": -1,
            "name": self._name(name),
            "state": PROBE_STATES.index(state),
            "records": records,
            "lost": lost,
            "cost": cost_ns,
            "message": self._name(message),
        }
        self._rows.setdefault("probes", []).append(row)

    def flush(self) -> None:
        """Write what was gathered. Raises OSError."""
        tables = {
            table: {
                column.name: np.array([row[column.name] for row in rows], column.dtype)
                for column in SCHEMAS[table].columns
                if column.name in rows[0]
            }
            for table, rows in self._rows.items()
        }
        texts, self._texts, self._rows = self._texts, [], {}
        self._flushed += 1
        self._streams.append(texts, _ordered(tables), self._flushed)

    def _name(self, text: str) -> int:
        if not text:
            return -1
        number = self._names.get(text)
        if number is None:
            number = self._names[text] = len(self._names)
            self._texts.append(text)
        return number

    def _row(self, table: str, key: Any, says_more: bool, row: dict[str, Any]) -> int:
        known = self._keys[table].get(key)
        if known is not None and not says_more:
            return known
        self._rows.setdefault(table, []).append(row)
        self._length[table] += 1
        return self._keys[table].setdefault(key, self._length[table] - 1)


def _ordered(tables: dict[str, Any]) -> dict[str, Any]:
    first = [table for table in OWN_TABLES if table in tables]
    return {table: tables[table] for table in [*first, *(table for table in tables if table not in first)]}
