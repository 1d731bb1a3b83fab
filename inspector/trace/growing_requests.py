"""Requests as they become known: rows of one request of one producer are one row, in which later values replace."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import NEVER, SCHEMAS
from inspector.trace.table import Array, Table

Int = npt.NDArray[np.int64]
_SCHEMA = SCHEMAS["requests"]
_FIRST_ROWS = 256


class GrowingRequests:
    """All requests, sorted by (arrival, producer, place). Others refer to one by its serial, which never changes."""

    def __init__(self) -> None:
        self.table = Table("requests")
        self.row_of: Int = np.empty(0, np.int64)
        """The row of each serial, -1 for those that are not shown."""
        self._columns = {column.name: np.full(_FIRST_ROWS, column.unknown, column.dtype) for column in _SCHEMA.columns}
        self._given: set[str] = set()
        self._order: Array = np.empty((_FIRST_ROWS, 2), np.int64)
        self._serials: dict[tuple[int, int], int] = {}
        self._shown: Int = np.empty(0, np.int64)
        self._changed = False
        self._revision = 0

    @property
    def is_late(self) -> bool:
        """Whether there are requests that belong before those that are shown."""
        return bool(len(self._late()))

    @property
    def num_waiting(self) -> int:
        """Requests that are not shown yet."""
        return len(self._serials) - len(self._shown)

    def add(self, columns: Mapping[str, Array], producer: int, place: int) -> Int:
        """Take rows, of a producer's those from `place` on; the serial of the request of each."""
        self._given |= set(columns)
        unknown = {key: NEVER if _SCHEMA.column(key).may_be_never else -1 for key in columns}
        found = []
        for at, request in enumerate(columns["request"].tolist()):
            serial = self._serials.get((producer, request))
            if serial is None:
                serial = self._serials[producer, request] = len(self._serials)
                self._make_room(serial)
                self._order[serial] = producer, place + at
                for key, values in columns.items():
                    self._columns[key][serial] = values[at]
            else:
                for key, values in columns.items():
                    if values[at] != unknown[key]:
                        self._columns[key][serial] = values[at]
            self._changed = True
            found.append(serial)
        return np.array(found, np.int64)

    def settle(self, horizon: int, ranks: Array) -> None:
        """Show those that arrived before `horizon`, but late ones."""
        hidden = self._hidden()
        new = hidden[self._columns["arrival"][hidden] < horizon]
        if len(self._shown):
            new = new[~np.isin(new, self._late())]
        if len(new) or self._changed:
            self._show(np.concatenate((self._shown, self._sorted(new, ranks))))

    def repair(self, ranks: Array) -> Int:
        """Put late ones in their places: where each of the rows now stands, by the row where it stood."""
        old = self._shown
        serials = np.concatenate((old, self._late()))
        self._show(self._sorted(serials, ranks))
        return self.row_of[old]

    def is_sorted(self, ranks: Array) -> bool:
        """Whether no arrival has been corrected such that rows have to move."""
        return bool(np.array_equal(self._sorted(self._shown, ranks), self._shown))

    def _hidden(self) -> Int:
        return np.flatnonzero(self._rows() < 0)

    def _late(self) -> Int:
        if not len(self._shown):
            return self._shown
        hidden, arrival = self._hidden(), self._columns["arrival"]
        late: Int = hidden[arrival[hidden] <= arrival[self._shown[-1]]]
        return late

    def _rows(self) -> Int:
        size = len(self._serials)
        return np.append(self.row_of, np.full(size - len(self.row_of), -1, np.int64))

    def _sorted(self, serials: Int, ranks: Array) -> Int:
        producer, place = self._order[serials, 0], self._order[serials, 1]
        return serials[np.lexsort((place, ranks[producer], self._columns["arrival"][serials]))]

    def _show(self, shown: Int) -> None:
        self._revision += self._changed or not np.array_equal(shown[: len(self._shown)], self._shown)
        self._shown, self._changed = shown, False
        rows = np.full(len(self._serials), -1, np.int64)
        rows[shown] = np.arange(len(shown))
        self.row_of = rows
        columns = {key: values[shown] for key, values in self._columns.items() if key in self._given}
        self.table = Table("requests", columns if len(shown) else None, self._revision)

    def _make_room(self, serial: int) -> None:
        if serial < len(self._order):
            return
        self._order = np.concatenate((self._order, np.empty_like(self._order)))
        for column in _SCHEMA.columns:
            old = self._columns[column.name]
            self._columns[column.name] = np.concatenate((old, np.full(len(old), column.unknown, column.dtype)))
