"""Counters that never change, and those that never had a value: what of a trace's series is worth a row of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class Steadiness:
    """For each row of series: the `first` value that is a number (NaN: none yet), and whether another one `moves` it.

    Of the first `rows` counters of that `revision`.
    """

    rows: int
    revision: int
    first: npt.NDArray[np.float64]
    moves: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace, old: Steadiness | None) -> Steadiness:
        """O(rows of counters that are new)."""
        counters, size = trace["counters"], len(trace["series"])
        if old is None or old.revision != counters.revision:
            old = cls(0, counters.revision, np.empty(0), np.empty(0, bool))
        first = np.full(size, np.nan)
        first[: len(old.first)] = old.first
        moves = np.zeros(size, bool)
        moves[: len(old.moves)] = old.moves
        series, value = counters["series"][old.rows :], counters["value"][old.rows :]
        real = np.isfinite(value) & (series >= 0)
        if not real.all():
            series, value = series[real], value[real]
        # Of several values of a series numpy keeps the one written last, which is the earliest.
        fresh = np.full(size, np.nan)
        fresh[series[::-1]] = value[::-1]
        first = np.where(np.isnan(first), fresh, first)
        moves[series[value != first[series]]] = True
        return cls(len(counters), counters.revision, first, moves)

    def has_value(self, series: int) -> bool:
        """Whether there was ever a number."""
        return not np.isnan(self.first[series])
