from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace import pyramid as module
from inspector.trace.pyramid import Pyramid


@st.composite
def disjoint(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorted, disjoint, some empty, many touching."""
    steps = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 14), st.integers(0, 3)), max_size=70))
    start, end, kind, now = [], [], [], draw(st.integers(-20, 20))
    for gap, length, number in steps:
        start.append(now + gap)
        end.append(now + gap + length)
        kind.append(number)
        now += gap + length
    return np.array(start, np.int64), np.array(end, np.int64), np.array(kind, np.uint8)


GRIDS = st.tuples(st.integers(-40, 200), st.sampled_from([1, 2, 4, 16, 64]), st.integers(1, 40))


@given(disjoint(), GRIDS)
def test_columns_are_those_of_a_walk_over_every_nanosecond(
    events: tuple[np.ndarray, ...], grid: tuple[int, int, int]
) -> None:
    start, end, kind = events
    origin, step, num = grid
    found = Pyramid.of(start, end, kind).columns(origin, step, num)
    for column in range(num):
        low, high = origin + column * step, origin + (column + 1) * step
        touching = [at for at in range(len(start)) if (low <= start[at] < high) or (start[at] < low < end[at])]
        covered = Counter[int]()
        for at in touching:
            covered[int(kind[at])] += max(min(end[at], high) - max(start[at], low), 0)
        assert found.until[column + 1] - found.until[column] == sum(covered.values())
        assert found.events[column] == len(touching)
        if covered:
            assert covered[int(found.kind[column])] == max(covered.values())
        else:
            assert found.kind[column] == 0


@given(disjoint(), GRIDS, st.integers(0, 12))
def test_long_events_are_found_and_no_others(
    events: tuple[np.ndarray, ...], grid: tuple[int, int, int], least: int
) -> None:
    start, end, kind = events
    low, high = grid[0], grid[0] + grid[1] * grid[2]
    found = Pyramid.of(start, end, kind).long(low, high, least).tolist()
    wanted = [
        at
        for at in range(len(start))
        if end[at] - start[at] >= least and (low <= start[at] < high or start[at] < low < end[at])
    ]
    assert found == wanted


@given(disjoint(), st.integers(-30, 300), st.integers(0, 5))
def test_a_place_hits_what_is_nearest(events: tuple[np.ndarray, ...], time: int, slack: int) -> None:
    start, end, kind = events
    found = Pyramid.of(start, end, kind).at(time, slack)
    away = [max(int(s) - time, time - int(e), 0) for s, e in zip(start, end, strict=True)]
    if not away or min(away) > slack:
        assert found == -1
    else:
        assert away[found] == min(away)


def test_crowded_columns_take_the_kind_with_most_time() -> None:
    # 64 times as many events as the exact way takes: nine of ten ns belong to kind 3.
    many = module.BLOCK * 64 * 8
    length = np.where(np.arange(many) % 2 == 0, 9, 1)
    start = np.cumsum(length) - length
    kind = np.where(np.arange(many) % 2 == 0, 3, 1).astype(np.uint8)
    found = Pyramid.of(start, start + length, kind).columns(0, int(length.sum()) // 8, 8)
    assert found.kind.tolist() == [3] * 8
    assert np.diff(found.until).tolist() == [int(length.sum()) // 8] * 8


def test_an_event_without_length_is_not_hidden() -> None:
    found = Pyramid.of(np.array([5]), np.array([5]), np.array([2], np.uint8)).columns(0, 4, 3)
    assert found.events.tolist() == [0, 1, 0]
    assert found.kind.tolist() == [0, 2, 0]
    assert found.until.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("num", [1, 5])
def test_nothing_gives_empty_columns(num: int) -> None:
    none = np.empty(0, np.int64)
    found = Pyramid.of(none, none, none.astype(np.uint8)).columns(0, 8, num)
    assert not found.events.any()
    assert len(found.until) == num + 1
