"""Looking for records by name and length: the filter that dims the rest, and the hits that one can walk through."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.errors import Usage
from inspector.picture.tracks import spans

if TYPE_CHECKING:
    from inspector.trace.table import Array
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
SEARCHED: tuple[str, ...] = (
    "kernels",
    "memcpys",
    "memsets",
    "graphs",
    "host_calls",
    "ranges",
    "marks",
    "os_calls",
    "overheads",
)


@dataclass(frozen=True)
class Filter:
    """What stays in full colour: records whose name the regular expression `pattern` finds (whatever the case), that
    last at least `least_ns`, and that carry the name id `name` (None: any). Empty: everything.
    """

    pattern: str = ""
    least_ns: int = 0
    name: int | None = None

    def __bool__(self) -> bool:
        return self.by_name or self.least_ns > 0

    @property
    def by_name(self) -> bool:
        """Whether names matter to it."""
        return bool(self.pattern) or self.name is not None

    def names(self, trace: Trace) -> npt.NDArray[np.bool_]:
        """For every name id whether it is wanted; one more entry answers for -1. Raises Usage for a bad pattern."""
        wanted = np.ones(len(trace.names) + 1, bool)
        if self.pattern:
            found = compiled(self.pattern)
            wanted[:-1] = [found.search(text) is not None for text in trace.names.texts]
            wanted[-1] = False
        if self.name is not None:
            wanted &= np.arange(len(wanted)) == self.name
        return wanted


def compiled(pattern: str) -> re.Pattern[str]:
    """The expression, ready to search; raises Usage with the place of the fault."""
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        place = "" if error.pos is None else f" at character {error.pos + 1}"
        raise Usage(
            f"not a regular expression: {pattern}", f"{error.msg}{place}", "write \\( for a plain bracket"
        ) from error


@dataclass(frozen=True)
class Hits:
    """Records that a filter lets through, by start: `table` indexes SEARCHED, `row` is the row there."""

    start: Int
    table: npt.NDArray[np.uint8]
    row: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start)

    def after(self, time: int, table: str | None = None, row: int | None = None) -> int:
        """Position of the first hit that follows the record (or the time); 0 after the last one; -1 without hits."""
        return self._step(time, table, row, 1)

    def before(self, time: int, table: str | None = None, row: int | None = None) -> int:
        """Position of the last hit before the record (or the time); the last of all before the first; -1 without."""
        return self._step(time, table, row, -1)

    def _step(self, time: int, table: str | None, row: int | None, by: int) -> int:
        if not len(self):
            return -1
        low, high = (int(np.searchsorted(self.start, time, side)) for side in ("left", "right"))
        here = [at for at in range(low, high) if SEARCHED[int(self.table[at])] == table and int(self.row[at]) == row]
        if here:
            return (here[0] + by) % len(self)
        return (high if by > 0 else low - 1) % len(self)


def hits(trace: Trace, wanted: Filter) -> Hits:
    """All records that the filter lets through, in all tables with names, by start."""
    names = wanted.names(trace)
    parts: list[tuple[Array, Array, Array]] = []
    for code, name in enumerate(SEARCHED):
        start, end = spans(trace, name)
        rows = np.flatnonzero(names[trace[name]["name"]] & (end - start >= wanted.least_ns))
        parts.append((start[rows], np.full(len(rows), code, np.uint8), rows.astype(np.int32)))
    starts, codes, found = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(starts, kind="stable")
    return Hits(starts[order], codes[order], found[order])
