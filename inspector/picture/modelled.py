"""What iterations must move at the least, beside what was measured: modelled, and labelled so wherever it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.iterations import Iterations
from inspector.analysis.modelled_bytes import ModelledBytes, modelled_bytes, ranks
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Least:
    """Of iterations, one value each, the share of `ranks` devices: `rate` in bytes/s and `share` of the peak (NaN
    unknown), from bytes of `weights`, of KV `read` and `written` (-1 unknown).
    """

    rate: Float
    share: Float
    weights: Int
    read: Int
    written: Int

    def take(self, rows: Int) -> Least:
        """Those."""
        parts = (self.rate, self.share, self.weights, self.read, self.written)
        return Least(*(each[rows] for each in parts))  # type: ignore[arg-type]


@dataclass(frozen=True)
class LeastFigures:
    """Over iterations that began in a range: `count` of which it is known, their mean `bytes_each`, the `rate` in
    bytes/s over their time, its `share` of the peak; NaN unknown. `ranks` devices share it, as `by` says. `kv_unknown`
    counts those of which only the weights are known; `why` says why nothing is.
    """

    count: int
    bytes_each: float
    rate: float
    share: float
    ranks: int
    by: str
    kv_unknown: int
    formula: str
    why: str = ""


def least(trace: Trace, peak: int, first: int, last: int) -> Least:
    """Of rows [first, last) of Iterations; `peak` is a device's, bytes/s, -1 unknown."""
    iterations = trace.index(Iterations)
    found, (devices, _) = modelled_bytes(trace, first, last), ranks(trace)
    length = (iterations.end[first:last] - iterations.start[first:last]).astype(np.float64)
    known = (found.total >= 0) & (length > 0) & (devices > 0)
    rate = np.full(last - first, np.nan)
    np.divide(found.total * 1e9, length * max(devices, 1), out=rate, where=known)
    share = rate / peak if peak > 0 else np.full(last - first, np.nan)
    return Least(rate, share, found.weights, found.read, found.written)


def least_figures(trace: Trace, peak: int, scope: Window) -> LeastFigures:
    """Of the iterations that began in `scope`."""
    iterations = trace.index(Iterations)
    first, last = (int(at) for at in np.searchsorted(iterations.start, [scope.start, scope.end]))
    found, (devices, by) = modelled_bytes(trace, first, last), ranks(trace)
    known = found.total >= 0
    count, moved = int(np.count_nonzero(known)), int(found.total[known].sum(dtype=np.int64))
    length = int((iterations.end[first:last] - iterations.start[first:last])[known].sum())
    nothing = float("nan")
    rate = moved * 1e9 / (length * devices) if length > 0 and devices else nothing
    return LeastFigures(
        count,
        moved / count if count else nothing,
        rate,
        rate / peak if peak > 0 else nothing,
        devices,
        by,
        int(np.count_nonzero(known & (found.weights > 0) & (found.read < 0))),
        _formula(found),
        found.why or ("" if count else "no iteration tells what it computed"),
    )


def _formula(found: ModelledBytes) -> str:
    kv = found.kv_of.formula or f"not known, since {found.kv_of.why}"
    return f"weights of a pass: {found.weights_of.formula}. KV of a token: {kv}"
