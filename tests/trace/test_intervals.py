from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace import intervals
from inspector.trace.intervals import Intervals
from tests.naive import Interval, moments, runs

points = st.integers(-20, 60)
spans = st.lists(st.tuples(points, st.integers(-3, 25)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=12)
sets = st.sets(points, max_size=40).map(runs)


def of(pairs: list[Interval]) -> Intervals:
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return Intervals(array[:, 0].copy(), array[:, 1].copy())


def pairs(found: Intervals) -> list[Interval]:
    assert found.starts.dtype == found.ends.dtype == np.int64
    return list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))


@given(spans)
def test_union(some: list[Interval]) -> None:
    assert pairs(intervals.union(*of(some))) == runs(moments(some))


@given(sets, points, points)
def test_clip_gaps_and_measure(some: list[Interval], low: int, high: int) -> None:
    inside = {t for t in moments(some) if low <= t < high}
    assert pairs(intervals.clip(of(some), low, high)) == runs(inside)
    assert pairs(intervals.gaps(of(some), low, high)) == runs(set(range(low, high)) - inside)
    assert intervals.measure(of(some)) == len(moments(some))


@given(sets, sets)
def test_intersection_and_difference(a: list[Interval], b: list[Interval]) -> None:
    assert pairs(intervals.intersection(of(a), of(b))) == runs(moments(a) & moments(b))
    assert pairs(intervals.difference(of(a), of(b))) == runs(moments(a) - moments(b))


@given(sets, st.lists(st.integers(-30, 70), min_size=1, max_size=15).map(sorted))
def test_cover(some: list[Interval], edges: list[int]) -> None:
    covered = moments(some)
    at = np.array(edges)
    assert intervals.covered_until(of(some), at).tolist() == [sum(t < edge for t in covered) for edge in edges]
    between = [sum(low <= t < high for t in covered) for low, high in pairwise(edges)]
    assert intervals.cover(of(some), at).tolist() == between


@given(st.lists(st.tuples(st.integers(-5, 50), st.integers(0, 6)), max_size=10))
def test_expand(some: list[tuple[int, int]]) -> None:
    array = np.array(some, np.int64).reshape(-1, 2)
    found = intervals.expand(array[:, 0], array[:, 1])
    assert found.tolist() == [first + step for first, times in some for step in range(times)]


def test_whole_int64_days_stay_exact() -> None:
    day = 86_400 * 10**9
    starts = np.array([0, 400 * day, 400 * day + 1])
    found = intervals.union(starts, starts + 1)
    assert pairs(found) == [(0, 1), (400 * day, 400 * day + 2)]
    assert intervals.measure(intervals.gaps(found, 0, 500 * day)) == 500 * day - 3
