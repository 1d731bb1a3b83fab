"""Iterations out of the kernel names alone: the longest pattern that repeats on a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]

_BASE = 0x9E3779B97F4A7C15
_MIN_REPEATS = 3
_MAX_CANDIDATES = 200
# A clearly better share wins; a longer pattern is not given up for a kernel more or less at the ends.
_ALIKE = 0.02


def find_period(names: npt.NDArray[Any]) -> tuple[Int, float]:
    """(positions at which the pattern begins, confidence). `names` are the name ids of a stream's kernels in order.

    A kernel that begins every repeat cuts the sequence into pieces; the confidence is the share of all kernels that
    stand in pieces equal to the most frequent one, or in a cut-off one at either end. Of the kernels that reach the
    best confidence the rarest gives the longest pattern, and of those the earliest its beginning. (empty, 0.0) where
    nothing repeats at least three times.
    """
    size = len(names)
    none = np.empty(0, np.int64)
    if size < 2 * _MIN_REPEATS:
        return none, 0.0
    names = names + 1  # kernels without a name (-1) are one name too
    count = np.bincount(names)
    candidates = np.flatnonzero((count >= _MIN_REPEATS) & (count <= size // 2))
    candidates = candidates[np.argsort(count[candidates], kind="stable")][:_MAX_CANDIDATES]
    before, inverse = _hashes(names)
    best, confidence = none, 0.0
    for name in candidates.tolist():
        first = np.flatnonzero(names == name)
        last = np.r_[first[1:], size]
        with np.errstate(over="ignore"):
            piece = (before[last] - before[first]) * inverse[first]
        _, group, times = np.unique(piece, return_inverse=True, return_counts=True)
        usual = int(np.argmax(times))
        if times[usual] < _MIN_REPEATS:
            continue
        whole = np.flatnonzero(group == usual)
        pattern = names[first[whole[0]] : last[whole[0]]]
        fitting = len(pattern) * len(whole) + _fitting_ends(names, pattern, int(first[0]), int(first[-1]))
        share = min(fitting / size, 1.0)
        longer_alike = share > confidence - _ALIKE and len(first) == len(best) and first[0] < best[0]
        if share > confidence + _ALIKE or longer_alike:
            best, confidence = first, share
    return best, confidence


def _fitting_ends(names: npt.NDArray[Any], pattern: npt.NDArray[Any], first: int, last: int) -> int:
    """Kernels before the first and from the last beginning on that are a cut-off repeat too."""
    head, tail = names[:first][::-1], names[last:]
    return _alike(head, pattern[::-1]) + (_alike(tail, pattern) if len(tail) < len(pattern) else 0)


def _alike(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> int:
    """How many leading entries are equal."""
    size = min(len(a), len(b))
    different = np.flatnonzero(a[:size] != b[:size])
    return int(different[0]) if len(different) else size


def _hashes(names: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Prefix sums of name x base^position modulo 2^64, and base^-position to compare pieces wherever they stand."""
    size = len(names)
    back = pow(_BASE, -1, 1 << 64)
    with np.errstate(over="ignore"):
        powers = np.cumprod(np.r_[np.uint64(1), np.full(size - 1, _BASE, np.uint64)], dtype=np.uint64)
        inverse = np.cumprod(np.r_[np.uint64(1), np.full(size - 1, back, np.uint64)], dtype=np.uint64)
        mixed = (names.astype(np.uint64) + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
        before = np.r_[np.uint64(0), np.cumsum(mixed * powers, dtype=np.uint64)]
    return before, inverse
