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
NOT_YET, GONE = -1, -2


class GrowingRequests:
    """Requests, sorted by (arrival, producer, place). Others refer to one by its serial, which never changes.

    Within, a request has a slot, which changes when others are forgotten.
    """

    def __init__(self) -> None:
        self.table = Table("requests")
        self.row_of: Int = np.empty(0, np.int64)
        """The row of each serial, NOT_YET for those that are not shown, GONE for those that were forgotten."""
        self._columns = {column.name: np.full(_FIRST_ROWS, column.unknown, column.dtype) for column in _SCHEMA.columns}
        self._given: set[str] = set()
        # Producer, place, serial.
        self._order: Array = np.empty((_FIRST_ROWS, 3), np.int64)
        self._slots: dict[tuple[int, int], int] = {}
        self._serials = 0
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
        return len(self._slots) - len(self._shown)

    def add(self, columns: Mapping[str, Array], producer: int, place: int) -> Int:
        """Take rows, of a producer's those from `place` on; the serial of the request of each."""
        self._given |= set(columns)
        unknown = {key: NEVER if _SCHEMA.column(key).may_be_never else -1 for key in columns}
        found = []
        for at, request in enumerate(columns["request"].tolist()):
            slot = self._slots.get((producer, request))
            if slot is None:
                slot = self._slots[producer, request] = len(self._slots)
                self._make_room(slot)
                self._order[slot] = producer, place + at, self._serials
                self._serials += 1
                for key, values in columns.items():
                    self._columns[key][slot] = values[at]
            else:
                for key, values in columns.items():
                    if values[at] != unknown[key]:
                        self._columns[key][slot] = values[at]
            self._changed = True
            found.append(self._order[slot, 2])
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
        self._show(self._sorted(np.concatenate((old, self._late())), ranks))
        now: Int = self.row_of[self._order[old, 2]]
        return now

    def forget(self, before: int, held: Int) -> Int | None:
        """Leave out those that had left before that time, but rows `held`; None where there are none.

        Where each of the rows now stands, by the row where it stood; -1 for those that are left out.
        """
        left = self._columns["finished" if "finished" in self._given else "last_token"]
        shown = np.zeros(len(self._slots), bool)
        shown[self._shown] = True
        shown[self._shown[held]] = False
        gone = shown & (left[: len(shown)] != NEVER) & (left[: len(shown)] < before)
        if not gone.any():
            return None
        old, serials = self._shown, self._order[self._shown, 2]
        kept = np.flatnonzero(~gone)
        slot = np.full(len(shown), -1, np.int64)
        slot[kept] = np.arange(len(kept))
        self._slots = {key: int(slot[at]) for key, at in self._slots.items() if slot[at] >= 0}
        self.row_of[self._order[np.flatnonzero(gone), 2]] = GONE
        room = np.arange(max(_FIRST_ROWS, 2 * len(kept))) < len(kept)
        order, columns = self._order, self._columns
        self._order = np.zeros((len(room), 3), np.int64)
        self._order[room] = order[kept]
        self._columns = {key: np.full(len(room), _SCHEMA.column(key).unknown, columns[key].dtype) for key in columns}
        for key, values in self._columns.items():
            values[room] = columns[key][kept]
        self._changed = True
        self._show(slot[old[~gone[old]]])
        now = self.row_of[serials]
        return np.where(now == GONE, -1, now)

    def is_sorted(self, ranks: Array) -> bool:
        """Whether no arrival has been corrected such that rows have to move."""
        return bool(np.array_equal(self._sorted(self._shown, ranks), self._shown))

    def _hidden(self) -> Int:
        hidden = np.ones(len(self._slots), bool)
        hidden[self._shown] = False
        return np.flatnonzero(hidden)

    def _late(self) -> Int:
        if not len(self._shown):
            return self._shown
        hidden, arrival = self._hidden(), self._columns["arrival"]
        late: Int = hidden[arrival[hidden] <= arrival[self._shown[-1]]]
        return late

    def _sorted(self, slots: Int, ranks: Array) -> Int:
        producer, place = self._order[slots, 0], self._order[slots, 1]
        return slots[np.lexsort((place, ranks[producer], self._columns["arrival"][slots]))]

    def _show(self, shown: Int) -> None:
        self._revision += self._changed or not np.array_equal(shown[: len(self._shown)], self._shown)
        self._shown, self._changed = shown, False
        rows = np.append(self.row_of, np.full(self._serials - len(self.row_of), NOT_YET, np.int64))
        rows[self._order[shown, 2]] = np.arange(len(shown))
        self.row_of = rows
        columns = {key: values[shown] for key, values in self._columns.items() if key in self._given}
        self.table = Table("requests", columns if len(shown) else None, self._revision)

    def _make_room(self, slot: int) -> None:
        if slot < len(self._order):
            return
        self._order = np.concatenate((self._order, np.empty_like(self._order)))
        for column in _SCHEMA.columns:
            old = self._columns[column.name]
            self._columns[column.name] = np.concatenate((old, np.full(len(old), column.unknown, column.dtype)))
