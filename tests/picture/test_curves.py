from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inspector.picture.curves import Samples, curve
from inspector.picture.viewport import Grid


@given(
    st.lists(st.tuples(st.integers(0, 200), st.floats(-5, 5)), max_size=40),
    st.integers(-20, 180),
    st.sampled_from([1, 4, 16]),
    st.integers(1, 30),
)
def test_columns_hold_lowest_and_highest(points: list[tuple[int, float]], origin: int, step: int, num: int) -> None:
    points.sort(key=lambda point: point[0])
    time = np.array([point[0] for point in points], np.int64)
    value = np.array([point[1] for point in points])
    samples = Samples.of(time, value)
    found = curve(samples, Grid(origin, step, num))
    for column in range(num):
        low, high = origin + column * step, origin + (column + 1) * step
        held = [point[1] for point in points if point[0] < low][-1:]
        here = held + [point[1] for point in points if low <= point[0] < high]
        if not here or low > max((point[0] for point in points), default=-99):
            assert math.isnan(found.low[column])
            assert math.isnan(found.high[column])
        else:
            assert (found.low[column], found.high[column]) == (min(here), max(here))


def test_the_scale_starts_at_zero_unless_something_is_below() -> None:
    time = np.array([0, 1])
    assert (Samples.of(time, np.array([2.0, 5.0])).bottom, Samples.of(time, np.array([2.0, 5.0])).top) == (0, 5)
    assert Samples.of(time, np.array([-2.0, 5.0])).bottom == -2
    assert Samples.of(time, np.array([math.nan, 5.0])).top == 5


def test_a_value_holds_until_the_next() -> None:
    samples = Samples.of(np.array([10, 20]), np.array([1.0, 2.0]))
    assert math.isnan(samples.at(9))
    assert samples.at(19.9) == 1
    assert samples.at(500) == 2
