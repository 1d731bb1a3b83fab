"""Counters as curves: what a sampled value did in every column, lowest and highest, so that no spike is lost."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.picture.viewport import Grid

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """One counter: times sorted (ns), values, and the scale that all of its pictures share.

    A value holds until the next sample. `bottom` is 0 unless a value is negative.
    """

    time: Int
    value: Float
    bottom: float
    top: float

    @classmethod
    def of(cls, time: Int, value: Float) -> Samples:
        """Samples with their scale; values that are no numbers are kept as they are and left out of the scale."""
        real = value[np.isfinite(value)]
        bottom = min(float(real.min()), 0.0) if len(real) else 0.0
        return cls(time, value, bottom, max(float(real.max()), bottom) if len(real) else 0.0)

    def at(self, time: float) -> float:
        """The value that holds at `time`; NaN before the first sample."""
        row = int(np.searchsorted(self.time, time, "right")) - 1
        return float(self.value[row]) if row >= 0 else float("nan")


@dataclass(frozen=True)
class Curve:
    """Lowest and highest value in each column, NaN where there is none; float64."""

    samples: Samples
    low: Float
    high: Float


@dataclass
class CounterSamples:
    """The samples of each series that was asked for."""

    _trace: weakref.ref[Trace]
    _found: dict[int, Samples] = field(default_factory=dict)

    @property
    def trace(self) -> Trace:
        """The trace that has this index."""
        found = self._trace()
        assert found is not None
        return found

    @classmethod
    def build(cls, trace: Trace) -> CounterSamples:
        """Nothing yet."""
        return cls(weakref.ref(trace))

    def of(self, series: int) -> Samples:
        """Samples of a row of series."""
        if series not in self._found:
            rows = np.flatnonzero(self.trace["counters"]["series"] == series)
            columns = self.trace["counters"]
            self._found[series] = Samples.of(columns["time"][rows], columns["value"][rows])
        return self._found[series]


def curve(samples: Samples, grid: Grid) -> Curve:
    """The samples on a grid. In a column stand the value that holds when it begins and all that come in it."""
    edges = grid.origin + grid.step * np.arange(grid.num + 1, dtype=np.int64)
    row = np.searchsorted(samples.time, edges)
    held = np.full(grid.num, np.nan)
    known = row[:-1] > 0
    held[known] = samples.value[row[:-1][known] - 1]
    low, high = held.copy(), held.copy()
    some = np.flatnonzero(row[1:] > row[:-1])
    if len(some):
        inside = samples.value[row[0] : row[-1]]
        first = row[some] - row[0]
        low[some] = np.fmin(held[some], np.fmin.reduceat(inside, first))
        high[some] = np.fmax(held[some], np.fmax.reduceat(inside, first))
    # Nothing is known after the last sample.
    after = edges[:-1] > (samples.time[-1] if len(samples.time) else grid.origin)
    low[after], high[after] = np.nan, np.nan
    return Curve(samples, low, high)
