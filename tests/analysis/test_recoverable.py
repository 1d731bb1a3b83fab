"""Estimates of what would go with a cause."""

from __future__ import annotations

from inspector.analysis.recoverable import recoverable
from tests.drawn import draw


def found(picture: str) -> dict[str, int]:
    return {each.cause: each.total_ns // 1000 for each in recoverable(draw(picture).trace, 0)}


def test_a_wait_costs_what_it_kept_from_being_launched_ahead() -> None:
    assert found("""
      gpu 0 stream 7   .AA..........BB
      thread 1 calls   L..SSS....LL...
    """) == {"sync": 10, "host code": 4, "launch overhead": 0}


def test_one_graph_launch_closes_the_gaps_inside_a_generation_iteration() -> None:
    picture = """
      gpu 0 stream 7   .AA..BB..CC..DD
      thread 1 calls   L...L...L...L..
      iterations       {}
    """
    assert found(picture.format("ccccccccggggggg"))["launch overhead"] == 1
    assert found(picture.format("ggggggggggggggg"))["launch overhead"] == 3


def test_nothing_but_requests_helps_an_idle_engine() -> None:
    assert (
        found("""
      gpu 0 stream 7   .AA.........BB
      thread 1 calls   L..........L..
      iterations       cccceeeeeeeccc
    """)["no requests"]
        == 0
    )
