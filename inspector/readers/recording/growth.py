"""All that was read of a recording so far, and the traces that come of it: the same ones in whatever pieces it came."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from inspector.readers.recording.moments import first_moment, last_moment
from inspector.readers.recording.producer import SHARED, Columns, Producer
from inspector.readers.recording.rings import with_losses
from inspector.trace.builder import FAR_NS, Builder, contradicted
from inspector.trace.growing_requests import GONE, NOT_YET, GrowingRequests
from inspector.trace.growing_table import LAST, SERIAL, GrowingTable
from inspector.trace.page_lives import still_needed
from inspector.trace.quality import Quality
from inspector.trace.schema import NEVER, REJECTIONS, SCHEMAS
from inspector.trace.table import Array, Table
from inspector.trace.trace import Kept, Lineage, Trace, TraceInfo

Int = npt.NDArray[np.int64]
_REVERSED, _OUTSIDE, _, _CONTRADICTED = range(4)
# Rows of these are in the order of what they belong to.
_KEYS = {"steps": "iteration", "tokens": "iteration"}
# What ended long ago of these can be left to the file. Few things are told in the others.
_LEFT = (
    *("kernels", "memcpys", "memsets", "graphs", "syncs", "host_calls", "os_calls", "overheads", "ranges"),
    *("stage_work", "counters", "marks", "schedulings"),
)
# Putting late rows in their places takes no more than this share of the time.
_REPAIRING = 0.05


class Growth:
    """The tables of a recording. Times are those of the records until rows are taken; `origin` is trace time 0, where
    None the first record's.
    """

    def __init__(self, origin: int | None) -> None:
        self.builder = Builder()
        self.newest: int | None = None
        """The largest moment of all rows that were taken, trace time."""
        self.num_repairs = 0
        self.kept = Kept()
        self.generation = 0
        self._origin = origin
        self._tables = {
            name: GrowingTable(name, _KEYS.get(name, "")) for name in SCHEMAS if name not in (*SHARED, "requests")
        }
        self._requests = GrowingRequests()
        self._row_of = {"iterations": np.empty(0, np.int64), "requests": self._requests.row_of}
        self._producers: list[str] = []
        self._small: dict[str, Table] = {}
        self._small_columns: dict[str, Columns] = {}
        self._places: Int = np.empty(0, np.int64)
        self._lineage = Lineage()
        self._last = 0
        self._repair_at = 0.0

    def add_producer(self, name: str) -> int:
        """The number of a new producer."""
        self._producers.append(name)
        return len(self._producers) - 1

    def take(self, read: list[tuple[Producer, list[str], dict[str, Columns]]]) -> int:
        """Take what was read of the producers; how many rows that were. Raises Unreadable."""
        count = 0
        for producer, texts, tables in read:
            producer.know(texts)
            for table in SHARED:
                if table in tables:
                    count += len(next(iter(tables[table].values())))
                    producer.share(table, producer.translate(table, tables[table]))
        if self._origin is None:
            self._origin = first_moment([tables for _, _, tables in read])
        for producer, _, tables in read:
            for table, columns in tables.items():
                if table not in SHARED:
                    count += self._add(producer, table, columns)
            for table in producer.cut:
                producer.reached.setdefault(table, -FAR_NS)
        return count

    def _add(self, producer: Producer, table: str, columns: Columns) -> int:
        size = len(next(iter(columns.values())))
        place = producer.num_rows[table]
        producer.num_rows[table] += size
        columns = self._from_origin(table, producer.translate(table, columns))
        keep = self._sound(table, columns)
        if not keep.all():
            columns = {key: values[keep] for key, values in columns.items()}
        if table == "requests":
            serials = self._requests.add(columns, producer.number, place)
        else:
            serials = self._tables[table].add(columns, producer.number, place)
        if table in self._row_of:
            given = np.full(size, -1, np.int64)
            given[keep] = serials
            producer.refer(table, given)
        self._look_at_times(producer, table, columns)
        return size

    def _from_origin(self, table: str, columns: Columns) -> Columns:
        found = dict(columns)
        for key, values in columns.items():
            column = SCHEMAS[table].column(key)
            if column.may_be_never:
                found[key] = np.where(values == NEVER, NEVER, values - (self._origin or 0))
            elif column.is_moment:
                found[key] = values - (self._origin or 0)
        return found

    def _sound(self, table: str, columns: Columns) -> npt.NDArray[np.bool_]:
        """Which rows to keep; intervals that cannot be are set aside."""
        if "end" not in columns or table == "flows":
            return np.ones(len(next(iter(columns.values()))), bool)
        start, end = columns["start"], columns["end"]
        reverse = end < start
        # As floats, since a difference of two hostile numbers may not fit.
        far = ~reverse & ((end.astype(np.float64) - start > FAR_NS) | (np.abs(start.astype(np.float64)) > FAR_NS))
        for wrong, reason in ((reverse, _REVERSED), (far, _OUTSIDE)):
            self._reject(table, reason, columns, wrong)
        return ~(reverse | far)

    def _reject(self, table: str, reason: int, columns: Columns, rows: npt.NDArray[np.bool_]) -> None:
        if not rows.any():
            return
        self.builder.reject(table, REJECTIONS[reason], columns, rows)
        names = [column.name for column in SCHEMAS["rejected"].columns]
        chunk = dict(zip(names, self.builder.column("rejected", *names), strict=True))
        have = self._tables["rejected"]
        new = {key: values[len(have) + have.num_waiting :] for key, values in chunk.items()}
        have.add(new, 0, len(have))

    def _look_at_times(self, producer: Producer, table: str, columns: Columns) -> None:
        key = SCHEMAS[table].sorted_by
        if key is None or SCHEMAS[table].column(key).unit != "ns" or not len(columns[key]):
            return
        producer.reached[table] = max(int(columns[key].max()), producer.reached.get(table, -FAR_NS))
        newest = int(columns["end" if "end" in columns and table != "flows" else key].max())
        self.newest = newest if self.newest is None else max(newest, self.newest)

    def settle(self, horizon: int) -> bool:
        """Show all rows that begin before `horizon` (trace time) and wait for nothing; whether there were any.

        Late rows are put in their places now and then.
        """
        ranks = self._ranks()
        shown = self._settle_all(horizon, ranks)
        now = time.monotonic()
        if now >= self._repair_at and self._repair(ranks):
            shown = True
            took = time.monotonic() - now
            self._repair_at = now + took / _REPAIRING
            self._settle_all(horizon, ranks)
        return shown

    def forgettable(self, horizon: int, least_ns: int, least_rows: int) -> int | None:
        """Before which time (trace time) things can be forgotten such that so much stays; None for not yet.

        That is when there is half as much again, so that it is seldom done: what was made of the rest is made anew.
        """
        since = self.kept.from_ns
        before = horizon - least_ns if 2 * (horizon - since) > 3 * least_ns else None
        for name in ("kernels", "host_calls"):
            rows = self._tables[name].table
            if 2 * len(rows) > 3 * least_rows:
                before = max(int(rows["start"][-least_rows]), before or 0)
        return before if before is not None and before > since else None

    def forget(self, before: int) -> None:
        """Leave to the file what ended before that time, but what still tells how the pages are."""
        for name in _LEFT:
            table = self._tables[name]
            old = table.table["end" if "end" in table.table else table.key] < before
            if old.any():
                table.drop(old)
        self._forget_iterations(before)
        self._forget_page_events(before)
        steps = [self._tables[name].table["request"] for name in _KEYS]
        held = np.unique(np.concatenate(steps))
        moved = self._requests.forget(before, held[held >= 0])
        if moved is not None:
            self._row_of["requests"] = self._requests.row_of
            self._follow_moved("requests", moved)

    def _forget_iterations(self, before: int) -> None:
        table = self._tables["iterations"]
        old = table.table["end"] < before
        if not old.any():
            return
        self._row_of["iterations"][table.serials()[old]] = GONE
        now = np.where(old, -1, np.cumsum(~old) - 1)
        table.drop(old)
        self._number_iterations(0)
        for name in _KEYS:
            steps = self._tables[name]
            belong = old[steps.table["iteration"]] & (steps.table["iteration"] >= 0)
            if belong.any():
                steps.drop(belong)
        self._follow_moved("iterations", now)

    def _forget_page_events(self, before: int) -> None:
        table, kept = self._tables["page_events"], self.kept
        keep, since, known = still_needed(table.table, before, kept.page_sequence, kept.pages_known)
        if not keep.all():
            table.drop(~keep)
        self.kept = Kept(before, since, known)

    def finish(self) -> None:
        """Nothing more will come: show everything."""
        ranks = self._ranks()
        self._settle_all(LAST, ranks)
        while self._repair(ranks):
            self._settle_all(LAST, ranks)
        for name in ("steps", "tokens", "page_events"):
            self._give_up(name)
        self._settle_all(LAST, ranks)
        self._repair(ranks)
        self._drop_contradicted()
        self._last = max((last_moment(table.table) for table in self._tables.values()), default=0)
        self._last = max(self._last, last_moment(self._requests.table))

    def _settle_all(self, horizon: int, ranks: Array) -> bool:
        before = self._requests.table
        self._requests.settle(horizon, ranks)
        shown = self._requests.table is not before
        self._row_of["requests"] = self._requests.row_of
        if len(self._requests.table):
            self._last = max(self._last, int(self._requests.table["arrival"][-1]))
        for name in ("iterations", *(other for other in self._tables if other != "iterations")):
            table = self._tables[name]
            chunk = table.waiting()
            if not chunk:
                continue
            old = len(table)
            table.settle(self._ready(name, chunk, horizon), ranks)
            if len(table) == old:
                continue
            shown = True
            self._last = max(self._last, last_moment(table.table, old))
            if name == "iterations":
                self._number_iterations(old)
        return shown

    def _number_iterations(self, since: int) -> None:
        table = self._tables["iterations"]
        serials = table.serials(since)
        rows = self._row_of["iterations"]
        most = int(serials.max(initial=-1)) + 1
        if most > len(rows):
            rows = np.append(rows, np.full(max(most - len(rows), len(rows)), -1, np.int64))
        rows[serials] = np.arange(since, since + len(serials))
        self._row_of["iterations"] = rows

    def _ready(self, name: str, chunk: Columns, horizon: int) -> npt.NDArray[np.bool_]:
        """Which rows of a chunk can be shown; their references become rows."""
        key = SCHEMAS[name].sorted_by
        ready = np.ones(len(chunk[SERIAL]), bool) if key is None else chunk[key] < horizon
        if name == "rejected":
            return ready
        for column in SCHEMAS[name].columns:
            if column.refers not in self._row_of or column.name not in chunk:
                continue
            serials = chunk[column.name]
            rows = self._rows(column.refers, serials)
            unknown = (rows == NOT_YET) & (serials >= 0)
            ready &= ~unknown
            if key is not None and unknown.any():
                # Those behind it would be shown before it.
                ready &= chunk[key] < chunk[key][unknown].min()
        for column in SCHEMAS[name].columns:
            if column.refers in self._row_of and column.name in chunk:
                serials = chunk[column.name]
                rows = np.maximum(self._rows(column.refers, serials), -1)
                chunk[column.name] = np.where(ready, rows, serials).astype(np.int32)
        return ready

    def _rows(self, table: str, serials: Array) -> Int:
        rows = np.append(self._row_of[table], -1)
        found: Int = rows[np.where((serials >= 0) & (serials < len(rows) - 1), serials, len(rows) - 1)]
        return found

    def _give_up(self, name: str) -> None:
        """What rows refer to has been set aside: they belong to nothing."""
        chunk = self._tables[name].waiting()
        for column in SCHEMAS[name].columns:
            if column.refers in self._row_of and column.name in chunk:
                known = self._rows(column.refers, chunk[column.name]) >= 0
                chunk[column.name] = np.where(known, chunk[column.name], -1).astype(np.int32)

    def _repair(self, ranks: Array) -> bool:
        """Put late rows in their places; whether there were any."""
        done = False
        if self._requests.is_late or not self._requests.is_sorted(ranks):
            now = self._requests.repair(ranks)
            self._row_of["requests"] = self._requests.row_of
            self._follow_moved("requests", now)
            done = True
        for name in ("iterations", *(other for other in self._tables if other != "iterations")):
            table = self._tables[name]
            if not table.is_late:
                continue
            now = table.repair(ranks)
            done = True
            if name == "iterations":
                self._number_iterations(0)
                self._follow_moved("iterations", now)
        self.num_repairs += done
        return done

    def _follow_moved(self, moved: str, now: Int) -> None:
        for name, table in self._tables.items():
            for column in SCHEMAS[name].columns:
                if column.refers == moved and len(table) and column.name in table.table:
                    table.follow_moved(column.name, now)
                    if table.key == column.name:
                        table.repair(self._ranks())

    def _drop_contradicted(self) -> None:
        kernels = self._tables["kernels"]
        if len(kernels):
            wrong = contradicted(kernels.table.columns)
            if wrong.any():
                self._reject("kernels", _CONTRADICTED, dict(kernels.drop(wrong)), np.ones(wrong.sum(), bool))
                self._settle_all(LAST, self._ranks())

    def _ranks(self) -> Array:
        ranks = np.zeros(max(len(self._producers), 1), np.int64)
        order = sorted(range(len(self._producers)), key=self._producers.__getitem__)
        ranks[order] = np.arange(len(order))
        return ranks

    def trace(self, info: TraceInfo, settled: int | None, notes: Quality) -> Trace:
        """A snapshot of what is shown; all that began before `settled` (None: everything) is in it.

        `notes` come before those of the reading; origin and duration of `info` are what was found.
        """
        self.generation += 1
        self._update_small()
        tables = {name: table.table for name, table in self._tables.items()}
        if self._is_unsorted() and len(tables["allocations"]):
            tables["allocations"] = self._with_devices("allocations", tables["allocations"].columns, 0)
        tables |= self._small | {"requests": self._requests.table}
        quality = with_losses(notes, self.builder.quality)
        info = replace(info, origin_ns=self._origin or 0, duration_ns=self._last)
        trace = Trace(info, tables, self.builder.names, quality, self.generation, settled, self._lineage)
        trace.kept = self.kept
        return trace

    def late_by(self) -> int:
        """By how much rows came too late since the last call, ns; 0 where none did."""
        return max((table.take_late_by() for name, table in self._tables.items() if name not in _KEYS), default=0)

    def _is_unsorted(self) -> bool:
        return not np.array_equal(self._places, np.arange(len(self._places)))

    def _with_devices(self, name: str, columns: Mapping[str, Array], revision: int) -> Table:
        places = np.append(self._places, -1).astype(np.int32)
        moved = {
            column.name: places[columns[column.name]] if column.refers == "devices" else columns[column.name]
            for column in SCHEMAS[name].columns
            if column.name in columns
        }
        return Table(name, moved, revision)

    def _update_small(self) -> None:
        small = self.builder.small()
        numbers = small["devices"]["number"] if "devices" in small else np.empty(0, np.int32)
        order = np.argsort(numbers, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        if not np.array_equal(places[: len(self._places)], self._places):
            # Devices have moved, and with them all that is known by device.
            self._lineage = Lineage()
        self._places = places
        for name, columns in small.items():
            if name == "devices":
                columns = {key: values[order] for key, values in columns.items()}
            table = self._small.get(name)
            moved = self._with_devices(name, columns, table.revision if table is not None else 0)
            if table is not None and len(table) and not _begins(moved, table):
                moved = Table(name, moved.columns, table.revision + 1)
            self._small[name] = moved


def _begins(table: Table, old: Table) -> bool:
    return all(np.array_equal(table[key][: len(old)], values) for key, values in old.columns.items())
