"""What the numbers of a server's records tell: which did not come, which came twice, and that it was restarted."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal

Place = Literal["next", "late", "same", "again", "anew"]
_JUMP = 2**32
"""No server makes so many records between two answers: it counts from somewhere else."""
_MOST_KNOWN = 1 << 16


class Numbering:
    """Places each record by its number and contents, in the order in which they come. `restarts` counts them.

    - next: a larger number than all before; what lies between has not come yet.
    - late: a smaller one that had been left out.
    - same: a number that came before, of the same contents: it was told twice.
    - again: the newest number once more, of other contents.
    - anew: any other: the server was restarted, and counts from there. Of a server that begins as it began the time
      before, the first records are "same" until one differs, or goes beyond.

    Numbers and contents of the last 65,536 records are known. With `every_nth` the server may tell every n-th only.
    """

    def __init__(self, every_nth: bool = False) -> None:
        self.restarts = 0
        self._every_nth = every_nth
        self._lost = 0
        self._known: OrderedDict[int, int] = OrderedDict()
        self._first = self._last = -1
        self._count = self._step = 0

    @property
    def lost(self) -> int:
        """Numbers between those that came; where a server tells every n-th, those that are as far apart as all that
        came.
        """
        return self._lost + self._missing()

    def place(self, number: int, record: Mapping[str, Any]) -> Place:
        """What the record with that number (0 or more) is."""
        contents = _contents(record)
        if self._count == 0:
            self._begin(number)
            found: Place = "next"
        elif number > self._last and number - self._last < _JUMP:
            found = "next"
        elif self._known.get(number) == contents:
            return "same"
        elif number == self._last:
            found = "again"
        elif self._known and min(self._known) < number < self._last and number not in self._known:
            found = "late"
        else:
            self._lost += self._missing()
            self.restarts += 1
            self._known.clear()
            self._begin(number)
            found = "anew"
        if found != "again":
            self._count += 1
            self._step = math.gcd(self._step, number - self._first)
            self._last = max(self._last, number)
        self._known[number] = contents
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return found

    def _begin(self, number: int) -> None:
        self._first = self._last = number
        self._count = self._step = 0

    def _missing(self) -> int:
        if not self._count:
            return 0
        step = (self._step or 1) if self._every_nth else 1
        return (self._last - self._first) // step + 1 - self._count


def _contents(record: Mapping[str, Any]) -> int:
    try:
        return hash(json.dumps(record, sort_keys=True, default=str))
    except (RecursionError, TypeError, ValueError):
        # Too deep, or no JSON: like no other.
        return id(record)
