from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from inspector.trace.nesting import innermost, nest
from tests.naive import Interval, cross, innermost_at, is_open, outer_first, parents


def spans(most: int) -> st.SearchStrategy[list[Interval]]:
    one = st.tuples(st.integers(0, 20), st.integers(0, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))
    return st.lists(one, max_size=most)


@st.composite
def nested(draw: st.DrawFn) -> list[Interval]:
    """Intervals that lie inside one another or apart, in any order, with ties, neighbours and empty ones."""
    found: list[Interval] = []

    def fill(low: int, high: int, depth: int) -> None:
        edges = sorted(draw(st.lists(st.integers(low, high), min_size=2, max_size=6)))
        for start, end in zip(edges[::2], edges[1::2], strict=False):
            found.append((start, end))
            if depth and end > start:
                fill(start, end, depth - 1)

    fill(0, 30, 3)
    return list(draw(st.permutations(found)))


def arrays(some: list[Interval]) -> tuple[np.ndarray, np.ndarray]:
    array = np.array(some, np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


def depths(parent: list[int]) -> list[int]:
    found = []
    for row in range(len(parent)):
        depth = 0
        while (row := parent[row]) >= 0:
            depth += 1
        found.append(depth)
    return found


@given(nested())
@example([(0, 4), (0, 4), (0, 4)])
@example([(3, 3), (3, 3), (0, 3), (3, 5)])
def test_parents_and_depth_of_nested_ones(some: list[Interval]) -> None:
    found = nest(*arrays(some))
    assert found.parent.dtype == found.depth.dtype == np.int32
    assert found.parent.tolist() == parents(some)
    assert found.depth.tolist() == depths(parents(some))


@given(spans(10))
def test_crossing_ones_lie_inside_what_was_open_and_never_on_top_of_another(some: list[Interval]) -> None:
    found = nest(*arrays(some))
    assert found.parent.tolist() == parents(some)
    order = outer_first(some)
    for place, row in enumerate(order):
        for other in order[:place]:
            assert not is_open(some, other, row) or found.depth[other] != found.depth[row]
    if not cross(some):
        assert found.depth.tolist() == depths(parents(some))


@given(st.one_of(spans(10), nested()))
def test_innermost(some: list[Interval]) -> None:
    found = innermost(*arrays(some))
    starts, owners = found.starts.tolist(), found.owners.tolist()
    assert starts == sorted(set(starts))
    assert all(a != b for a, b in pairwise(owners))
    for t in range(-1, 40):
        at = int(np.searchsorted(starts, t, "right")) - 1
        assert (owners[at] if at >= 0 else -1) == innermost_at(some, t)
