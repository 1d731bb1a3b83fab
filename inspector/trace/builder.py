"""From a reader's chunks to a Trace: rows gathered, wrong records set aside, tables sorted, one origin.

Every reader goes through here, so that all formats are held to the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.trace.names import Names
from inspector.trace.quality import Quality
from inspector.trace.schema import NEVER, REJECTIONS, SCHEMAS, WORK_TABLES
from inspector.trace.table import Array, Table
from inspector.trace.trace import Trace, TraceInfo

# Nobody records for this long: a record so far from the middle one was stamped by another clock.
FAR_NS = 86_400 * 10**9
_LAST_EPOCH_NS = 2**61
# Nodes of one graph launch that may lie between a kernel and those that contradict its end.
_LOOK_AHEAD = 256
_REVERSED, _OUTSIDE, _UNSTAMPED, _CONTRADICTED = range(4)
# Tables whose rows others refer to and that are sorted; _ROW is a column of ours while they are.
_REFERRED = {"devices", "iterations", "requests"}
_ROW = " row"
_NOTE_CODES = ("reversed", "outside", "unstamped", "contradicted")


class _Rows:
    """A small table that is looked up by key while reading."""

    def __init__(self) -> None:
        self.keys: dict[object, int] = {}
        self.rows: list[dict[str, Any]] = []

    def row(self, key: object, values: Mapping[str, Any]) -> int:
        row = self.keys.get(key)
        if row is None:
            row = self.keys[key] = len(self.rows)
            self.rows.append(dict(values))
            return row
        for name, value in values.items():
            if value != -1:  # what was learnt later fills what was unknown
                self.rows[row][name] = value
        return row


class Builder:
    """Collects the rows of one file. Times are the file's own, in ns, until `build` moves them to the origin."""

    def __init__(self) -> None:
        self.names = Names()
        self.quality = Quality()
        self._small = {name: _Rows() for name in ("devices", "processes", "threads", "streams", "series")}
        self._chunks: dict[str, list[dict[str, Array]]] = {name: [] for name in SCHEMAS}

    def _name(self, text: str) -> int:
        return self.names.add(text) if text else -1

    def process(self, pid: int, name: str = "", rank: int = -1, host: int = 0) -> int:
        """Row of processes for `pid`; name and rank fill in what is not known yet. `host` tells apart those of one
        number on several hosts.
        """
        key = (host, pid) if host else pid
        return self._small["processes"].row(key, {"pid": pid, "name": self._name(name), "rank": rank})

    def thread(self, process: int, tid: int, name: str = "") -> int:
        """Row of threads for (row of processes, tid)."""
        values = {"process": process, "tid": tid, "name": self._name(name)}
        return self._small["threads"].row((process, tid), values)

    def device(self, number: int, name: str = "", memory: int = -1, bandwidth: int = -1, sm_count: int = -1) -> int:
        """Row of devices for the number that the file uses; memory in bytes, bandwidth in bytes/s."""
        values = {
            "number": number,
            "name": self._name(name),
            "memory": memory,
            "bandwidth": bandwidth,
            "sm_count": sm_count,
        }
        return self._small["devices"].row(number, values)

    def stream(self, process: int, device: int, number: int, name: str = "") -> int:
        """Row of streams for (row of processes, row of devices, stream number)."""
        values = {"process": process, "device": device, "number": number, "name": self._name(name)}
        return self._small["streams"].row((process, device, number), values)

    def series(self, name: str, unit: str = "", device: int = -1, process: int = -1) -> int:
        """Row of series for that counter of that device or process."""
        values = {"name": self._name(name), "unit": self._name(unit), "device": device, "process": process}
        return self._small["series"].row((name, device, process), values)

    def add(self, table: str, /, **columns: npt.ArrayLike) -> None:
        """Append rows: one array per column of the schema, of equal length, scalars repeated.

        Optional columns may be left out; rows of a chunk without hold the schema's `unknown` where another has them.
        What refers to iterations or requests holds their rows in the order in which they were added. Raises KeyError,
        ValueError.
        """
        schema = SCHEMAS[table]
        length = max((len(v) for v in columns.values() if not np.isscalar(v) and np.ndim(v)), default=1)  # type: ignore[arg-type]
        if length == 0:
            return
        chunk: dict[str, Array] = {}
        for name, values in columns.items():
            array = np.asarray(values, schema.column(name).dtype)
            chunk[name] = np.broadcast_to(array, length) if array.ndim == 0 else array
            if len(chunk[name]) != length:
                raise ValueError(f"{table}.{name} has {len(array)} rows, not {length}")
        self._chunks[table].append(chunk)

    def column(self, table: str, /, *columns: str) -> tuple[Array, ...]:
        """Columns of what was added to a table so far, in the order of adding."""
        chunks = self._chunks[table]
        none = [np.empty(0, SCHEMAS[table].column(column).dtype) for column in columns]
        return tuple(
            np.concatenate([empty, *(chunk[column] for chunk in chunks)])
            for column, empty in zip(columns, none, strict=True)
        )

    def owners(self, table: str, column: str) -> Array:
        """A column of a small table (processes, threads, devices, streams, series) as it stands now."""
        return np.array([row[column] for row in self._small[table].rows], SCHEMAS[table].column(column).dtype)

    def small(self) -> dict[str, dict[str, Array]]:
        """The small tables that have rows, as they stand now, in the order in which their rows were made."""
        return {
            name: {
                key: np.array([row[key] for row in rows.rows], SCHEMAS[name].column(key).dtype) for key in rows.rows[0]
            }
            for name, rows in self._small.items()
            if rows.rows
        }

    def keys(self, table: str) -> tuple[Any, ...]:
        """The keys of a small table by row: a pid, (process, tid), a device number, ..."""
        return tuple(self._small[table].keys)

    def reject(self, table: str, reason: str, columns: Mapping[str, Array], rows: Array) -> None:
        """Set the masked or indexed `rows` of a chunk aside; the caller leaves them out of `add`. Notes the count."""
        start = np.asarray(columns["start"], np.int64)[rows]
        if not len(start):
            return
        code = REJECTIONS.index(reason)
        none = np.full(len(start), -1, np.int32)
        self.add(
            "rejected",
            start=start,
            end=np.asarray(columns["end"], np.int64)[rows],
            table=np.full(len(start), list(SCHEMAS).index(table)),
            reason=np.full(len(start), code),
            **{key: columns[key][rows] if key in columns else none for key in ("name", "stream", "thread")},
        )
        self.quality.add(_NOTE_CODES[code], f"{table}: {REJECTIONS[code]}", len(start), f"at {int(start[0])} ns")

    def build(self, info: TraceInfo, session_start: int | None = None) -> Trace:
        """The trace. Work that ends before it starts, lies before `session_start` (file time) or was stamped by another
        clock is moved to `rejected` and noted; tables are sorted; times are counted from the first record.
        """
        tables = {name: self._gather(name) for name in SCHEMAS if self._chunks[name]}
        self._chunks = {name: [] for name in SCHEMAS}
        tables |= self.small()
        added = {name: _number_rows(tables[name]) for name in _REFERRED & set(tables)}
        for name in list(tables):
            if "start" in tables[name] and "end" in tables[name] and name not in ("rejected", "flows"):
                self._check(name, tables[name], session_start)
        for name, columns in tables.items():
            _sort(name, columns)
        for name, count in added.items():
            _follow_rows(tables, name, count)
        if "kernels" in tables:
            self._drop("kernels", tables["kernels"], contradicted(tables["kernels"]), _CONTRADICTED)
        if self._chunks["rejected"]:
            found = self._gather("rejected")
            old = tables.get("rejected")
            tables["rejected"] = found if old is None else {k: np.r_[old[k], found[k]] for k in found}
        origin, last = _extent(tables, session_start)
        for name, columns in tables.items():
            for key, values in columns.items():
                column = SCHEMAS[name].column(key)
                if column.may_be_never:
                    values[values != NEVER] -= origin
                elif column.is_moment:
                    values -= origin
        epoch = None if info.start_epoch_ns is None else info.start_epoch_ns + origin
        if epoch is not None and not 0 <= epoch < _LAST_EPOCH_NS:
            self.quality.add("clock", "the wall clock of the file is out of all bounds, so it is not used")
            epoch = None
        info = replace(info, origin_ns=origin, duration_ns=last - origin, start_epoch_ns=epoch)
        return Trace(info, {name: Table(name, columns) for name, columns in tables.items()}, self.names, self.quality)

    def _gather(self, table: str) -> dict[str, Array]:
        chunks, self._chunks[table] = self._chunks[table], []
        lengths = [len(next(iter(chunk.values()))) for chunk in chunks]
        columns: dict[str, Array] = {}
        keys = set().union(*chunks)
        for column in SCHEMAS[table].columns:
            if column.name not in keys:
                if column.optional:
                    continue
                raise ValueError(f"{table}.{column.name} is not optional")
            parts = []
            for chunk, length in zip(chunks, lengths, strict=True):
                part = chunk.pop(column.name, None)
                if part is None:
                    if not column.optional:
                        raise ValueError(f"{table}.{column.name} is not optional")
                    part = np.full(length, column.unknown, column.dtype)
                parts.append(part)
            # One column at a time, so that a big table is never held twice.
            columns[column.name] = np.concatenate(parts, dtype=column.dtype)
        return columns

    def _check(self, name: str, columns: dict[str, Array], session_start: int | None) -> None:
        start, end = columns["start"], columns["end"]
        self._drop(name, columns, end < start, _REVERSED)
        start, end = columns["start"], columns["end"]
        if not len(start):
            return
        wrong = np.zeros(len(start), bool)
        if session_start is not None:
            early = start < session_start
            if name in WORK_TABLES:
                wrong |= early
            else:
                # A range that was open when the capture began is real; one that ended before is not of this session.
                wrong |= early & (end <= session_start)
                kept = int(np.count_nonzero(early & ~wrong))
                if kept:
                    self.quality.add("outside", f"{name}: began before the session", kept)
        # As floats, since a difference of two hostile numbers may not fit.
        wrong |= end.astype(np.float64) - start > FAR_NS
        if int(start.max()) - int(start.min()) > FAR_NS:
            middle = np.int64(np.partition(start, len(start) // 2)[len(start) // 2])
            wrong |= (start < middle - FAR_NS) | (start > middle + FAR_NS)
        self._drop(name, columns, wrong, _OUTSIDE)

    def _drop(self, name: str, columns: dict[str, Array], wrong: npt.NDArray[np.bool_], reason: int) -> None:
        if not wrong.any():
            return
        self.reject(name, REJECTIONS[reason], columns, wrong)
        keep = ~wrong
        for key in columns:
            columns[key] = columns[key][keep]


def contradicted(columns: Mapping[str, Array]) -> npt.NDArray[np.bool_]:
    """Which kernels (sorted) three or more later kernels of their stream overlap, nodes of one graph launch apart.

    A stream runs its kernels one after the other, so such an end is wrong; a small overlap with the next one is
    ordinary. Only candidates (few) are looked at one by one.
    """
    start, end = columns["start"], columns["end"]
    wrong = np.zeros(len(start), bool)
    # What three of its stream overlap, three of all streams do.
    if not (start[3:] < end[:-3]).any():
        return wrong
    zeros = np.zeros(len(start), np.int64)
    node, correlation = columns.get("graph_node", zeros), columns["correlation"]
    key = columns["stream"].astype(np.int64) << 32 | columns.get("context", zeros)
    order = np.arange(len(start)) if (key == key[:1]).all() else np.argsort(key, kind="stable")
    s, e, key = start[order], end[order], key[order]
    for at in np.flatnonzero((key[3:] == key[:-3]) & (s[3:] < e[:-3])).tolist():
        later = slice(at + 1, at + 1 + _LOOK_AHEAD)
        rows = order[later][(key[later] == key[at]) & (s[later] < e[at])]
        mine = order[at]
        same_launch = (correlation[rows] == correlation[mine]) & (node[rows] != 0) & (node[mine] != 0)
        wrong[mine] = np.count_nonzero(~same_launch) >= 3
    return wrong


def _number_rows(columns: dict[str, Array]) -> int:
    """Add the column that tells where each row stood when it was added; how many rows there are."""
    count = len(next(iter(columns.values())))
    columns[_ROW] = np.arange(count)
    return count


def _follow_rows(tables: Mapping[str, dict[str, Array]], name: str, count: int) -> None:
    """Turn references to rows of `name` as they were added into rows as they stand now, -1 for those dropped."""
    old = tables[name].pop(_ROW)
    # One more entry at the end answers for -1.
    now = np.full(count + 1, -1, np.int32)
    now[old] = np.arange(len(old))
    for other, columns in tables.items():
        for column in SCHEMAS[other].columns:
            if column.refers == name:
                columns[column.name] = now[columns[column.name]]


def _sort(name: str, columns: dict[str, Array]) -> None:
    key = SCHEMAS[name].sorted_by
    if key is None or not np.any(columns[key][1:] < columns[key][:-1]):
        return
    order = np.argsort(columns[key], kind="stable")
    for column in columns:
        columns[column] = columns[column][order]


def _extent(tables: Mapping[str, Mapping[str, Array]], session_start: int | None) -> tuple[int, int]:
    """First and last time of the kept records, file time; (0, 0) for an empty trace."""
    low: list[int] = []
    high: list[int] = []
    for name, columns in tables.items():
        if name in ("rejected", "event_records", "flows"):
            continue
        key = SCHEMAS[name].sorted_by
        if key is None or not len(columns[key]) or SCHEMAS[name].column(key).unit != "ns":
            continue
        times = columns[key]
        if session_start is not None:
            times = times[np.searchsorted(times, session_start) :]
            if not len(times):
                continue
        low.append(int(times[0]))
        high.append(int(columns["end"].max() if "end" in columns else times[-1]))
    return (min(low), max(high)) if low else (session_start or 0, session_start or 0)
