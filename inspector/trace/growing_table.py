"""A table whose rows come in batches, late and out of order, and which only ever shows them sorted.

Rows wait until nothing is expected that belongs before them; then they are appended, which touches nothing that was
there. What comes later still waits for `repair`, which makes the table anew.

Rows are in the order of (key, producer, place within the producer), whatever the order in which they came.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from inspector.trace.growing import GrowingColumns
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Array, Table

Int = npt.NDArray[np.int64]

# Columns of ours beside those of the schema. The serial of a row is what others refer to it by while it may move.
_PRODUCER, _PLACE, SERIAL = " producer", " place", " serial"
_HIDDEN = {_PRODUCER: "int32", _PLACE: "int64", SERIAL: "int64"}
LAST = np.iinfo(np.int64).max


class GrowingTable:
    """The rows of table `name`, sorted by its sort key where it has one, else by column `key`.

    Without either, rows are appended as they come. `num_late` counts rows that came after those behind them.
    """

    def __init__(self, name: str, key: str = "") -> None:
        self.name = name
        self.key = key or SCHEMAS[name].sorted_by or ""
        self.table = Table(name)
        self.num_late = 0
        self._waiting: list[dict[str, Array]] = []
        self._late: list[dict[str, Array]] = []
        self._held = GrowingColumns({})
        self._columns: dict[str, Array] = {key: np.empty(0, dtype) for key, dtype in _HIDDEN.items()}
        self._revision = 0
        self._serials = 0
        self._late_by = 0

    def __len__(self) -> int:
        return len(self.table)

    @property
    def num_waiting(self) -> int:
        """Rows that are not shown yet."""
        return sum(len(chunk[SERIAL]) for chunk in (*self._waiting, *self._late))

    @property
    def is_late(self) -> bool:
        """Whether rows wait for `repair`."""
        return bool(self._late)

    def add(self, columns: Mapping[str, Array], producer: int, place: int) -> Int:
        """Take rows, of a producer's those from `place` on; their serials."""
        size = len(next(iter(columns.values())))
        serials = np.arange(self._serials, self._serials + size, dtype=np.int64)
        self._serials += size
        if not size:
            return serials
        self._waiting.append(
            {
                **columns,
                _PRODUCER: np.full(size, producer, np.int32),
                _PLACE: np.arange(place, place + size, dtype=np.int64),
                SERIAL: serials,
            }
        )
        return serials

    def waiting(self) -> dict[str, Array]:
        """The rows that are not shown yet and not late either, as one; {} for none."""
        if len(self._waiting) > 1:
            self._waiting = [self._joined(self._waiting)]
        return self._waiting[0] if self._waiting else {}

    def settle(self, ready: npt.NDArray[np.bool_], ranks: Array) -> int:
        """Show those of `waiting()`: the number of rows appended. `ranks` orders the producers."""
        chunk = self.waiting()
        if not ready.any():
            return 0
        rest = {key: values[~ready] for key, values in chunk.items()}
        self._waiting = [rest] if len(rest[SERIAL]) else []
        chunk = {key: values[ready] for key, values in chunk.items()}
        if self.key and len(self.table):
            late = self._before_last(chunk, ranks)
            if late.any():
                self.num_late += int(np.count_nonzero(late))
                self._late_by = max(self._late_by, int(self.table[self.key][-1] - chunk[self.key][late].min()))
                self._late.append({key: values[late] for key, values in chunk.items()})
                chunk = {key: values[~late] for key, values in chunk.items()}
        if len(chunk[SERIAL]):
            self._append(_ordered(chunk, self.key, ranks))
        return len(chunk[SERIAL])

    def take_late_by(self) -> int:
        """By how much of the key rows came too late since the last call."""
        late_by, self._late_by = self._late_by, 0
        return late_by

    def repair(self, ranks: Array) -> Int:
        """Put the late rows in their places: where each of the rows now stands, by the row where it stood."""
        columns = self._joined([self._columns, *self._late])
        self._late = []
        order = np.lexsort((columns[_PLACE], ranks[columns[_PRODUCER]], columns[self.key]))
        self._replace({key: values[order] for key, values in columns.items()})
        now = np.empty(len(order), np.int64)
        now[order] = np.arange(len(order))
        return now

    def follow_moved(self, column: str, now: Int) -> None:
        """The rows of another table to which `column` refers have moved: `now` says where each stands."""
        now = np.append(now, -1)
        for chunk in self._late:
            chunk[column] = now[chunk[column]].astype(np.int32)
        if len(self.table):
            self._replace({**self._columns, column: now[self._columns[column]].astype(np.int32)})

    def drop(self, rows: npt.NDArray[np.bool_]) -> dict[str, Array]:
        """Take rows out of the table; they are returned."""
        gone = {column: values[rows] for column, values in self.table.columns.items()}
        self._replace({column: values[~rows] for column, values in self._columns.items()})
        return gone

    def serials(self, since: int = 0) -> Int:
        """The serials of the rows shown, from row `since` on."""
        return self._columns[SERIAL][since:]

    def _before_last(self, chunk: dict[str, Array], ranks: Array) -> npt.NDArray[np.bool_]:
        """Which rows belong before the last one that is shown."""
        before = np.zeros(len(chunk[SERIAL]), bool)
        same = np.ones(len(before), bool)
        for key in (self.key, _PRODUCER, _PLACE):
            mine, last = chunk[key], self._columns[key][-1]
            if key == _PRODUCER:
                mine, last = ranks[mine], ranks[last]
            before |= same & (mine < last)
            same &= mine == last
        return before

    def _append(self, chunk: dict[str, Array]) -> None:
        if len(self.table) and set(chunk) - set(self._columns):
            self._replace(self._joined([self._columns, chunk]))
            return
        chunk = self._joined([chunk], {*chunk, *(self._columns if len(self.table) else ())})
        if not len(self.table):
            self._held = GrowingColumns({key: values.dtype for key, values in chunk.items()})
        self._held, self._columns = self._held.extended(len(self.table), chunk)
        self._show()

    def _replace(self, columns: dict[str, Array]) -> None:
        self._held = GrowingColumns({key: values.dtype for key, values in columns.items()})
        self._held, self._columns = self._held.extended(0, columns)
        self._revision += 1
        self._show()

    def _show(self) -> None:
        shown = {key: values for key, values in self._columns.items() if key not in _HIDDEN}
        self.table = Table(self.name, shown, self._revision)

    def _joined(self, chunks: list[dict[str, Array]], keys: set[str] | None = None) -> dict[str, Array]:
        """Chunks as one; where one lacks an optional column that another has, with what the schema has for unknown."""
        chunks = [chunk for chunk in chunks if len(chunk[SERIAL])]
        found: dict[str, Array] = {}
        for key in sorted(keys or set().union(*chunks)):
            parts = [chunk[key] if key in chunk else self._unknown(key, len(chunk[SERIAL])) for chunk in chunks]
            found[key] = np.concatenate(parts) if len(parts) > 1 else parts[0]
        return found

    def _unknown(self, key: str, size: int) -> Array:
        column = SCHEMAS[self.name].column(key)
        return np.full(size, column.unknown, column.dtype)


def _ordered(chunk: dict[str, Array], key: str, ranks: Array) -> dict[str, Array]:
    if not key:
        return chunk
    order = np.lexsort((chunk[_PLACE], ranks[chunk[_PRODUCER]], chunk[key]))
    return {name: values[order] for name, values in chunk.items()}
