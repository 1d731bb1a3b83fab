"""Exact sums by key: int64 throughout, never through floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def sum_by(keys: npt.NDArray[Any], values: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    """Sums of `values` for keys 0..size-1, int64."""
    sums = np.zeros(size, np.int64)
    np.add.at(sums, keys, values)
    return sums
