"""From what a ring holds to rows of the trace's tables: keys become rows of the producer's own tables.

A thread id becomes a row of the producer's `threads`, (device, stream) one of its `streams`, and so on; such rows are
made when a key first comes. Rows are numbered in the order in which they are given out, as in the producer's streams in
the recording; a thread, device or request of which more was learnt has several rows there, each with all that is known
of it by then, and any of them stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.trace.header import TIME_LIMIT_NS
from inspector.trace.quality import Quality
from inspector.trace.ring import Taken
from inspector.trace.schema import NEVER, SCHEMAS
from inspector.trace.table import Array

Columns = dict[str, Array]
OWN_TABLES: tuple[str, ...] = ("processes", "devices", "threads", "streams", "series", "iterations", "requests")
"""Tables that others of the producer refer to, in the order in which they have to be written: before the others."""
_RESUMED = {
    "threads": ("tid",),
    "devices": ("number",),
    "streams": ("device", "number"),
    "series": ("name", "unit", "device"),
    "iterations": ("iteration",),
    "requests": ("request",),
}
# Nothing refers to iterations or requests that are so many behind the last one.
_KEPT = 1 << 18


class RingRows:
    """The tables of one producer, as they grow. `quality` counts what had to be dropped."""

    def __init__(self, pid: int, rank: int = -1) -> None:
        self.quality = Quality()
        self.num_names = 0
        """Texts of the producer so far; the ids of its names are below."""
        self._pid, self._rank = pid, rank
        self._rows: dict[str, dict[Any, int]] = {table: {} for table in _RESUMED}
        self._length = dict.fromkeys(OWN_TABLES, 0)
        self._new: dict[str, list[tuple[Any, ...]]] = {}

    def resume(self, held: Mapping[str, Mapping[str, Array]], num_names: int) -> None:
        """Go on after what the producer's streams hold: all rows of each of OWN_TABLES, and the number of texts.

        The rest of the ring is then `resolve(ring.take(to))`, with the position `to` of each stream's last batch.
        """
        self.num_names = num_names
        for table in OWN_TABLES:
            columns = held.get(table)
            if columns is None:
                continue
            self._length[table] = len(next(iter(columns.values())))
            if table not in _RESUMED:
                continue
            values = [columns[key].tolist() for key in _RESUMED[table]]
            if table in ("streams", "series"):
                numbers = [*held.get("devices", {}).get("number", np.empty(0, np.int32)).tolist(), -1]
                at = _RESUMED[table].index("device")
                values[at] = [numbers[row] if -1 <= row < len(numbers) else -1 for row in values[at]]
            keys: Iterable[Any] = values[0] if len(values) == 1 else zip(*values, strict=True)
            rows = self._rows[table]
            for row, key in enumerate(keys):
                rows[key] = row if table == "iterations" else rows.get(key, row)

    def resolve(self, taken: Taken) -> tuple[list[str], dict[str, Columns]]:
        """New texts, and new rows by table in the order in which they have to be written, with the schema's dtypes.

        Times stay those of the ring. Rows whose iteration or request was lost, or that hold what cannot be, are left
        out and counted.
        """
        texts = self._texts(taken.names)
        found: dict[str, Columns] = {}
        self._new = {table: [] for table in ("processes", "devices", "threads", "streams", "series")}
        if not self._length["processes"]:
            self._length["processes"] = 1
            self._new["processes"].append((self._pid, 0 if self.num_names else -1, self._rank))
        for table in ("devices", "threads"):
            if table in taken.tables:
                self._named(table, taken.tables[table])
        for table in sorted(taken.tables, key=lambda name: (name not in OWN_TABLES, name)):
            if table in ("devices", "threads"):
                continue
            if table not in SCHEMAS:
                self.quality.add("ignored", f"table {table} of a ring, which this program does not know")
                continue
            try:
                columns = self._columns(table, taken.tables[table])
            except _AbsentError as absent:
                rows = len(taken.tables[table])
                self.quality.add("invalid", f"{table}: the ring does not tell {absent}", rows)
                continue
            if len(next(iter(columns.values()))):
                found[table] = columns
        new = {table: _table(table, rows) for table, rows in self._new.items() if rows}
        return texts, {
            **{table: (new | found)[table] for table in OWN_TABLES if table in new or table in found},
            **{table: columns for table, columns in found.items() if table not in OWN_TABLES},
        }

    def _texts(self, names: list[tuple[int, str]]) -> list[str]:
        texts: list[str] = []
        for number, text in names:
            if number == self.num_names:
                texts.append(text)
                self.num_names += 1
            else:
                self.quality.add("invalid", "names out of their order", first=text[:80])
        return texts

    def _named(self, table: str, raw: Array) -> None:
        """Threads and devices of which the workload says more than their key."""
        key = "thread" if table == "threads" else "number"
        if not {key, "name"} <= set(raw.dtype.names or ()):
            self.quality.add("invalid", f"{table}: the ring does not tell {key}", len(raw))
            return
        names = self._names(table, "name", raw["name"])
        for at, number in enumerate(raw[key].tolist()):
            if table == "threads":
                row: tuple[Any, ...] = (0, number, int(names[at]))
            else:
                memory = int(raw["memory"][at]) if "memory" in (raw.dtype.names or ()) else -1
                row = (number, int(names[at]), memory)
            self._append(table, number, row)

    def _append(self, table: str, key: Any, row: tuple[Any, ...]) -> int:
        """A new row of a table of ours; the row that stands for the key."""
        self._new[table].append(row)
        self._length[table] += 1
        return self._rows[table].setdefault(key, self._length[table] - 1)

    def _columns(self, table: str, raw: Array) -> Columns:
        fields = set(raw.dtype.names or ())
        raw = self._sound(table, raw)
        columns: Columns = {}
        for column in SCHEMAS[table].columns:
            key, refers = column.name, column.refers
            if refers == "processes":
                columns[key] = np.zeros(len(raw), np.int32)
            elif refers == "streams" and {"device", "stream"} <= fields:
                columns[key] = self._stream_rows(raw["device"], raw["stream"])
            elif refers == "series" and {"series", "unit", "device"} <= fields:
                columns[key] = self._series_rows(raw)
            elif key not in fields:
                if not column.optional:
                    raise _AbsentError(key)
            elif refers == "names":
                columns[key] = self._names(table, key, raw[key])
            elif refers == "threads":
                columns[key] = self._thread_rows(raw[key])
            elif refers in ("iterations", "requests"):
                columns[key] = self._look(refers, raw[key])
            else:
                columns[key] = np.ascontiguousarray(raw[key], column.dtype)
        if table in ("steps", "tokens"):
            columns = self._belonging(table, columns)
        elif table == "page_events":
            lost = int(np.count_nonzero((columns["request"] < 0) & (raw["request"] >= 0)))
            self._count("page_events: the request that they belong to was lost", lost)
        elif table in ("iterations", "requests"):
            self._number(table, raw[table[:-1]])
        return columns

    def _sound(self, table: str, raw: Array) -> Array:
        """The rows whose kinds are known and whose times can be reckoned with."""
        wrong = np.zeros(len(raw), bool)
        for column in SCHEMAS[table].columns:
            if column.name not in (raw.dtype.names or ()) or not (column.below or column.unit == "ns"):
                continue
            values = raw[column.name]
            low, high = (0, column.below) if column.below else (-TIME_LIMIT_NS, TIME_LIMIT_NS)
            beyond = (values < low) | (values >= high)
            if column.may_be_never:
                beyond &= values != NEVER
            wrong |= beyond
        if not wrong.any():
            return raw
        self.quality.add("invalid", f"{table}: rows of a ring that hold what cannot be", int(np.count_nonzero(wrong)))
        return raw[~wrong]

    def _belonging(self, table: str, columns: Columns) -> Columns:
        """Those that belong to an iteration and a request that are there."""
        keep = (columns["iteration"] >= 0) & (columns["request"] >= 0)
        self._count(f"{table}: the iteration or request that they belong to was lost", int(np.count_nonzero(~keep)))
        return columns if keep.all() else {key: values[keep] for key, values in columns.items()}

    def _number(self, table: str, keys: Array) -> None:
        """Give rows to iterations or requests, and forget those far behind."""
        rows, first = self._rows[table], self._length[table]
        for row, key in enumerate(keys.tolist(), first):
            if table == "iterations":
                # An engine that began to count anew means the new one.
                rows[key] = row
            else:
                rows.setdefault(key, row)
        self._length[table] = first + len(keys)
        if len(rows) > 2 * _KEPT:
            for key in list(islice(rows, len(rows) - _KEPT)):
                del rows[key]

    def _names(self, table: str, key: str, ids: Array) -> Array:
        unknown = (ids < -1) | (ids >= self.num_names)
        if not unknown.any():
            return np.ascontiguousarray(ids, np.int32)
        self.quality.add("invalid", f"{table}.{key}: names that are not there", int(np.count_nonzero(unknown)))
        return np.where(unknown, -1, ids).astype(np.int32)

    def _look(self, table: str, keys: Array) -> Array:
        distinct, places = np.unique(keys, return_inverse=True)
        rows = self._rows[table]
        return np.array([rows.get(key, -1) for key in distinct.tolist()], np.int32)[places]

    def _thread_rows(self, tids: Array) -> Array:
        distinct, places = np.unique(tids, return_inverse=True)
        rows = self._rows["threads"]
        return np.array(
            [rows[tid] if tid in rows else self._append("threads", tid, (0, tid, -1)) for tid in distinct.tolist()],
            np.int32,
        )[places]

    def _device(self, number: int) -> int:
        if number < 0:
            return -1
        row = self._rows["devices"].get(number)
        return self._append("devices", number, (number, -1, -1)) if row is None else row

    def _stream_rows(self, devices: Array, streams: Array) -> Array:
        keys, places = _distinct(devices, streams)
        rows = self._rows["streams"]
        return np.array(
            [
                rows[key] if key in rows else self._append("streams", key, (0, self._device(key[0]), key[1], -1))
                for key in keys
            ],
            np.int32,
        )[places]

    def _series_rows(self, raw: Array) -> Array:
        names, units = self._names("counters", "series", raw["series"]), self._names("counters", "unit", raw["unit"])
        keys, places = _distinct(names, units, np.maximum(raw["device"], -1))
        rows = self._rows["series"]
        found = []
        for key in keys:
            if key in rows:
                found.append(rows[key])
            else:
                device = self._device(key[2])
                found.append(self._append("series", key, (key[0], key[1], device, 0 if device < 0 else -1)))
        return np.array(found, np.int32)[places]

    def _count(self, text: str, count: int) -> None:
        if count:
            self.quality.add("profiler-loss", text, count)


class _AbsentError(Exception):
    """A ring lacks a column that its table must have."""


def _distinct(*columns: Array) -> tuple[list[tuple[int, ...]], npt.NDArray[np.intp]]:
    """The different rows of some columns, and for each row which of them it is."""
    places = np.zeros(len(columns[0]), np.intp)
    for column in columns:
        if (column == column[:1]).all():
            continue
        kinds, inverse = np.unique(column, return_inverse=True)
        # Numbered anew each time, so that the product of two numbers of rows is the most that can come.
        places = np.unique(places * len(kinds) + inverse, return_inverse=True)[1]
    first = np.unique(places, return_index=True)[1]
    return [tuple(int(column[at]) for column in columns) for at in first.tolist()], places


def _table(table: str, rows: list[tuple[Any, ...]]) -> Columns:
    """Columns of the first so many of the schema, in its order."""
    columns = SCHEMAS[table].columns[: len(rows[0])]
    return {
        column.name: np.array(values, column.dtype)
        for column, values in zip(columns, zip(*rows, strict=True), strict=True)
    }
