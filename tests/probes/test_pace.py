from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from probes.inprocess.pace import Pace, rungs


def test_rungs_are_round_and_begin_where_they_should() -> None:
    assert rungs(1, 120) == [1, 2, 3, 5, 10, 20, 30, 50, 100]
    assert rungs(30, 500) == [30, 50, 100, 200, 300, 500]
    assert rungs(7, 20) == [7, 10, 20]


@given(
    least=st.sampled_from([1, 3, 30]),
    per_minute=st.integers(0, 100_000),
    burst=st.integers(1, 5_000),
    iterations=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 400)), max_size=150),
)
def test_the_budget_holds_and_n_is_the_truth(
    least: int, per_minute: int, burst: int, iterations: list[tuple[int, int]]
) -> None:
    pace = Pace(least, per_minute, burst)
    now = written = since = largest = 0
    for pause, size in iterations:
        now += pause
        since += 1
        one_in = pace.due(now)
        assert one_in in (0, since)
        if one_in:
            assert one_in in rungs(least, 10**6)
            since = 0
            written += size
            largest = max(largest, size)
            pace.spent(size)
        # At most one iteration too much: its size is known only afterwards.
        assert written <= burst + now * per_minute / 60e9 + largest + 1


@given(size=st.integers(1, 1_000), least=st.sampled_from([1, 30]))
def test_with_credit_enough_every_least_th_iteration_is_looked_at(size: int, least: int) -> None:
    pace = Pace(least, 0, 100 * size)
    seen = []
    for number in range(1, 10 * least + 1):
        if pace.due(number * 1_000):
            seen.append(number)
            pace.spent(size)
    assert seen == list(range(least, 10 * least + 1, least))


def test_in_the_long_run_it_uses_what_it_may() -> None:
    # 100 iterations a second of 200 records, 6,000 records a minute: every 200th iteration.
    pace = Pace(1, 6_000, 400)
    seen = []
    for number in range(100_000):
        if one_in := pace.due(number * 10_000_000):
            seen.append(one_in)
            pace.spent(200)
    assert seen[:2] == [1, 1]
    assert set(seen[3:]) == {200}
