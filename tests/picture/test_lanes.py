from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inspector.picture import lanes as module
from inspector.picture.lanes import lanes


def first_free(start: np.ndarray, end: np.ndarray) -> list[int]:
    busy_until: list[int] = []
    chosen = []
    for begin, stop in zip(start.tolist(), end.tolist(), strict=True):
        for lane, until in enumerate(busy_until):
            if until <= begin:
                busy_until[lane] = stop
                chosen.append(lane)
                break
        else:
            busy_until.append(stop)
            chosen.append(len(busy_until) - 1)
    return chosen


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=40))
def test_every_record_gets_the_first_free_lane(spans: list[tuple[int, int]]) -> None:
    spans.sort(key=lambda span: span[0])
    start = np.array([span[0] for span in spans], np.int64)
    end = start + np.array([span[1] for span in spans], np.int64)
    assert lanes(start, end).tolist() == first_free(start, end)


def test_a_chain_of_slight_overlaps_alternates() -> None:
    start = np.arange(1000) * 10
    assert lanes(start, start + 11).tolist() == [0, 1] * 500


def test_one_long_pile_up_is_swept() -> None:
    # Longer than what is filled together, each overlapping the two after it.
    start = np.arange(module._TOGETHER + 10) * 10
    end = start + 25
    assert lanes(start, end).tolist() == first_free(start, end)
    assert lanes(start, end).max() == 2
