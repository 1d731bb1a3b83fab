"""Slow, obvious references: what the trace core must give, told moment by moment and pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[int, int]


def moments(intervals: Iterable[Interval]) -> set[int]:
    """Every nanosecond that some interval covers."""
    return {t for start, end in intervals for t in range(start, end)}


def runs(covered: set[int]) -> list[Interval]:
    """Maximal intervals of a set of nanoseconds, in order."""
    found: list[list[int]] = []
    for t in sorted(covered):
        if found and found[-1][1] == t:
            found[-1][1] = t + 1
        else:
            found.append([t, t + 1])
    return [(start, end) for start, end in found]


def outer_first(intervals: Sequence[Interval]) -> list[int]:
    """Rows from the outside in: by start, then the longer one, then the earlier row."""
    return sorted(range(len(intervals)), key=lambda row: (intervals[row][0], -intervals[row][1], row))


def is_open(intervals: Sequence[Interval], row: int, other: int) -> bool:
    """Whether `row` is open when `other`, which comes after it from the outside in, begins.

    An empty interval is open for what is empty, too, and begins where it does: it lies inside the ones before it.
    """
    (start, end), (at, other_end) = intervals[row], intervals[other]
    return end > at or (start == end == at == other_end)


def parents(intervals: Sequence[Interval]) -> list[int]:
    """For every row, the last one to begin before it that is open when it begins; -1 none."""
    order = outer_first(intervals)
    parent = [-1] * len(intervals)
    for place, row in enumerate(order):
        for other in order[:place]:
            if is_open(intervals, other, row):
                parent[row] = other
    return parent


def cross(intervals: Sequence[Interval]) -> bool:
    """Whether any two overlap without one being inside the other."""
    return any(a[0] < b[0] < a[1] < b[1] for a in intervals for b in intervals)


def innermost_at(intervals: Sequence[Interval], t: int) -> int:
    """The row of those covering `t` that began last; -1 none."""
    covering = [row for row in outer_first(intervals) if intervals[row][0] <= t < intervals[row][1]]
    return covering[-1] if covering else -1
