"""Which of old page events still tell how the pages are: those of the life that each page has now.

A page's life begins when it is allocated or restored, and ends when it is free again. What was taken and given back in
between tells nothing any more, but the last time, since which the page rests.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from inspector.trace.engine_tables import PAGE_EVENTS
from inspector.trace.table import Table

Int = npt.NDArray[np.int64]
_FREED, _ALLOCATED, _CACHED, _REUSED, _EVICTED, _OFFLOADED, _RESTORED = range(len(PAGE_EVENTS))


@dataclass
class _Life:
    """Rows of events: those that stay, the open references by request, the last one that was given back."""

    rows: list[int]
    open: dict[int, list[int]] = field(default_factory=dict)
    last: tuple[int, ...] = ()
    began: int = -1
    has_contents: bool = False

    def all(self) -> list[int]:
        return [*self.rows, *self.last, *(row for rows in self.open.values() for row in rows)]


class _Lives:
    """Device pages that are not free, and host pages that are full, as the events that tell so."""

    def __init__(self, known: bool) -> None:
        self.known = known
        self._pages: dict[int, _Life] = {}
        self._host: dict[int, list[int]] = {}
        # Where not all is known, a page is free only where something says so.
        self._free: dict[int, list[int]] = {}

    def lose(self) -> None:
        """Events are missing: nothing is known any more."""
        self.known = False
        for each in (self._pages, self._host, self._free):
            each.clear()

    def rows(self) -> list[int]:
        found = [row for life in self._pages.values() for row in life.all()]
        found += [row for rows in self._host.values() for row in rows]
        return [*found, *(row for rows in self._free.values() for row in rows)]

    def take(self, row: int, block: int, request: int, kind: int, other: int) -> None:
        self._free.pop(block, None)
        life = self._pages.get(block)
        if kind == _EVICTED:
            self._end(block, [row])
        elif kind == _OFFLOADED:
            self._end(block, [row])
            self._host[other] = [*(life.all() if life is not None else ()), row]
        elif kind == _RESTORED:
            self._pages[block] = _Life([*self._host.pop(other, ()), row], has_contents=True)
        elif life is None or (kind == _ALLOCATED and not life.open):
            self._pages[block] = life = _Life([row], began=row, has_contents=kind in (_CACHED, _REUSED))
            if kind in (_ALLOCATED, _REUSED):
                life.rows, life.open[request] = [], [row]
            elif kind == _FREED:
                self._end(block, [row])
        elif kind in (_ALLOCATED, _REUSED):
            life.open.setdefault(request, []).append(row)
        elif kind == _FREED:
            self._give_back(life, block, request, row)
        else:
            life.rows.append(row)
            life.has_contents = True

    def take_host(self, row: int, page: int, kind: int) -> None:
        if kind == _EVICTED:
            self._host.pop(page, None)
        else:
            self._host.setdefault(page, []).append(row)

    def _give_back(self, life: _Life, block: int, request: int, row: int) -> None:
        taken = life.open.get(request)
        if not taken:
            life.rows.append(row)
        else:
            first = taken.pop()
            if not taken:
                del life.open[request]
            if first == life.began:
                life.rows += (first, row)
            else:
                life.last = (first, row)
        if not life.open and not life.has_contents:
            self._end(block, life.all())

    def _end(self, block: int, rows: list[int]) -> None:
        self._pages.pop(block, None)
        if not self.known:
            self._free[block] = rows


def still_needed(table: Table, before: int, since: int, known: bool) -> tuple[npt.NDArray[np.bool_], int, bool]:
    """Which rows of page_events to keep when those of before the time `before` (ns) are left out.

    Returns (rows to keep, the number from which on all events are kept, whether the others tell of all pages): a page
    that none of them names is free then, else it is not known. `since` is that number of the last time, `known` whether
    all was known then. An event that is missing where it is cut is missing later, not before.
    """
    sequence, time = table["sequence"], table["time"]
    if not len(sequence):
        return np.empty(0, bool), since, known
    cut = int(sequence[time >= before].min(initial=int(sequence.max()) + 1))
    old = np.flatnonzero(sequence < cut)
    old = old[np.lexsort((time[old], sequence[old]))]
    cut = max(since, int(sequence[old[-1]]) + 1) if len(old) else since
    holes = _holes(sequence[old], since)
    lives = _Lives(known)
    columns = (table["block"][old], table["request"][old], table["kind"][old], table.get("other")[old])
    tier = table.get("tier")[old].tolist()
    # Equal events that came twice count once.
    last: tuple[int, ...] = ()
    rows, numbers = old.tolist(), sequence[old].tolist()
    for at, (block, request, kind, other) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if at in holes:
            lives.lose()
        now = (numbers[at], block, request, kind, other)
        if now == last:
            continue
        last = now
        if tier[at]:
            lives.take_host(rows[at], block, kind)
        else:
            lives.take(rows[at], block, request, kind, other)
    keep = sequence >= cut
    keep[lives.rows()] = True
    return keep, cut, lives.known


def _holes(sequence: Int, since: int) -> set[int]:
    """Before which of the old events others are missing. Between those of before `since` most are, on purpose."""
    missing = np.flatnonzero(np.diff(sequence) > 1) + 1
    found = set(missing[sequence[missing] > since].tolist())
    # The number of the first event ever is 0 or 1, as engines count.
    if len(sequence) and int(sequence[0]) > max(since, 1):
        found.add(0)
    return found
