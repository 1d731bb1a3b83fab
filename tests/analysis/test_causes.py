"""Every cause, drawn: what is seen in the picture is what the slices say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inspector.analysis.causes import CAUSES, EXPLANATIONS, Causes, attribute, of_host
from inspector.analysis.rollup import rollup
from inspector.picture.details import details
from tests.drawn import draw

# No requests, sync, allocation, module load, launching, os blocked, gc, host code, launch overhead, graph internal,
# peer, dependency, elsewhere, queue latency, unattributed.
LETTERS = dict(zip("nsamlbghoipdequ", CAUSES, strict=True))


def check(picture: str, bound_us: int = 3, **names: Any) -> list[tuple[str, str, bool]]:
    """Hold the slices of every drawn gpu against the picture; (cause, host, return latency) of each slice."""
    drawn = draw(picture, **names)
    told = []
    for number, expected in drawn.expected.items():
        slices = attribute(drawn.trace, drawn.device(number), bound_us * 1000)
        found = [
            (int(start), int(end), CAUSES[cause])
            for start, end, cause in zip(slices.start, slices.end, slices.cause, strict=True)
        ]
        assert _joined(found) == [(s.start, s.end, LETTERS[s.letter]) for s in expected]
        told += [
            (CAUSES[c], drawn.trace.names[int(h)], bool(r))
            for c, h, r in zip(slices.cause, slices.host, slices.return_latency, strict=True)
        ]
    return told


def _joined(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Neighbours of one cause as one: the picture does not show where the host's name changed."""
    joined: list[tuple[int, int, str]] = []
    for start, end, cause in found:
        if joined and joined[-1][1:] == (start, cause):
            start = joined.pop()[0]
        joined.append((start, end, cause))
    return joined


def test_every_cause_has_a_letter_and_an_explanation() -> None:
    assert list(LETTERS.values()) == list(CAUSES)
    assert set(EXPLANATIONS) == set(CAUSES)


def test_sync_then_launch() -> None:
    told = check("""
      gpu 0 stream 7   ...AAAA.....BB
      thread 1 calls   L....SSSSSL...
      expected         .......sssoo..
    """)
    assert told == [("sync", "cudaStreamSynchronize", True), ("launch overhead", "cudaLaunchKernel", False)]


def test_a_launch_in_time_is_launch_overhead_up_to_the_bound() -> None:
    check("""
      gpu 0 stream 7   ..AA....BB
      thread 1 calls   L..LL.....
      expected         ....oooo..
    """)


def test_the_call_itself_may_outlast_everything() -> None:
    check("""
      gpu 0 stream 7   ..AA....BB
      thread 1 calls   L..LLLLLLL
      expected         ....oooo..
    """)


def test_host_code_has_the_innermost_range() -> None:
    told = check("""
      gpu 0 stream 7   .AA..............BB
      thread 1 calls   L..............LL..
      thread 1 nvtx    ....XXXXXXXXX......
      thread 1 nvtx    ......YYY..........
      expected         ...hhhhhhhhhhhhoo..
    """)
    assert [host for cause, host, _ in told if cause == "host code"] == ["", "X", "Y", "X", ""]


def test_first_host_cause_that_covers_the_moment() -> None:
    check("""
      gpu 0 stream 7        .AA...................................BB
      gpu 0 stream 9        ...c...................................
      thread 1 calls        LC..SSS.MMM.JJJ.C...................LL..
      thread 1 calls        ....................Q...................
      thread 1 os           .....OOOO...........OOO.R...............
      thread 1 nvtx         ........................GGGG.XXX........
      thread 1 scheduled    +...............................-+......
      gpu 0 stream 9        .......................................d
      expected              ....sssbaaahmmmhlhhhbbbhgggghhhhbhhhoo..
    """)


def test_descheduled_is_os_blocked() -> None:
    told = check("""
      gpu 0 stream 7        .AA..........BB
      thread 1 calls        L..........LL..
      thread 1 scheduled    +...-....+.....
      expected              ...hbbbbbhhoo..
    """)
    assert [cause for cause, *_ in told] == ["host code", "os blocked", "host code", "launch overhead"]


def test_no_requests_while_the_executor_waits_for_its_queue() -> None:
    check("""
      gpu 0 stream 7   .AA...............BB
      thread 1 calls   L.......S.......LL..
      thread 1 nvtx    ....QQQQQQQQQ.......
      thread 1 os      .....OOOO...........
      expected         ...hnnnnnnnnnhhhoo..
    """)


@pytest.mark.parametrize("name", ["receive", "recv_schedule_from_prev_pp", "recv_sample_state", "wait for stages"])
def test_a_stage_that_waits_for_another_waits_for_a_peer(name: str) -> None:
    told = check(
        """
      gpu 0 stream 7   .AA...............BB
      thread 1 calls   L.......SS......LL..
      thread 1 nvtx    ....RRRRRRRRR.......
      thread 1 os      .....OOOO...........
      expected         ...hppppppppphhhoo..
    """,
        ranges={"R": name},
    )
    assert ("waiting for a peer", name, False) in told


def test_a_stage_that_waits_for_one_without_requests_has_no_requests() -> None:
    picture = """
      gpu 0 stream 7            .AA...............BB
      thread 1 calls            L...............LL..
      thread 1 nvtx             ....RRRRRRRRR.......
      thread 2 process 2 nvtx   ..QQQQQQ............
      thread 2 process 2 os     .....O..............
      {}
      expected                  ...h{}hhhoo..
    """
    check(picture.format("", "nnnnppppp"), ranges={"R": "receive"})
    # Whose requests would they have been?
    check(picture.format("thread 3 process 3 nvtx   .Q..................", "ppppppppp"), ranges={"R": "receive"})


def test_an_engine_that_stands_still_has_no_requests() -> None:
    told = check(
        """
      gpu 0 stream 7   .AA...............BB
      thread 1 calls   L...............LL..
      thread 1 nvtx    ....XXXXXXXXX.......
      thread 1 os      .....O..............
      expected         ...hnnnnnnnnnhhhoo..
    """,
        ranges={"X": "paused by the user"},
    )
    assert ("no requests", "paused by the user", False) in told


def test_a_look_into_the_queue_that_does_not_block_is_host_code() -> None:
    told = check("""
      gpu 0 stream 7   .AA........BB
      thread 1 calls   L........LL..
      thread 1 nvtx    ....QQ.......
      expected         ...hhhhhhoo..
    """)
    assert ("host code", "_fetch_new_requests", False) in told


def test_no_requests_by_engine_records() -> None:
    check("""
      gpu 0 stream 7   .AA............BB
      thread 1 calls   L....SSSS....LL..
      iterations       gggeeeeeeeggggggg
      expected         ...nnnnnnnhhhoo..
    """)


def test_nodes_of_one_graph_launch() -> None:
    check("""
      gpu 0 stream 7 graph 1   ..AA..BB......
      gpu 0 stream 7 graph 2   ..........CC.D
      thread 1 calls           G...S...G.....
      expected                 ....ii..oo..i.
    """)


def test_graphs_recorded_as_a_whole() -> None:
    check("""
      gpu 0 stream 7   ..####....####
      thread 1 calls   G....SSSG.....
      expected         ......ssoo....
    """)


def test_waiting_for_a_peer() -> None:
    check(
        """
      gpu 0 stream 7   .AA.........BB
      thread 1 calls   Ll............
      expected         ...ppppppppp..
    """,
        kernels={"B": "ncclDevKernel_AllReduce_Sum_bf16"},
    )


def test_a_recorded_wait_for_another_stream() -> None:
    check("""
      gpu 0 stream 7           .AA.........BB
      gpu 0 stream 9           .CCC..........
      gpu 0 stream 9 records   ...X..........
      gpu 0 stream 7 waits     ...X..........
      thread 1 calls           Ll..L.........
      thread 1 calls           ..RW..........
      expected                 ....oddddddd..
    """)


def test_behind_a_collective_of_another_stream() -> None:
    check(
        """
      gpu 0 stream 7           .AA.........BB
      gpu 0 stream 9           .CCC..........
      gpu 0 stream 9 records   ...X..........
      gpu 0 stream 7 waits     ...X..........
      thread 1 calls           Ll..L.........
      thread 1 calls           ..RW..........
      expected                 ....oppppppp..
    """,
        kernels={"C": "ncclDevKernel_AllGather_RING_LL"},
    )


def test_right_after_work_of_another_stream() -> None:
    check("""
      gpu 0 stream 7   .AA.............
      gpu 0 stream 9   .........BB.....
      gpu 0 stream 7   ..............CC
      thread 1 calls   LlL.............
      expected         ...qqqqqq..ddd..
    """)


def test_another_process_held_the_device() -> None:
    check("""
      gpu 0 stream 7 process 1   ..........BB
      gpu 0 stream 7 process 2   .AA.........
      thread 1 process 1 calls   L...........
      thread 1 process 2 calls   L...........
      expected                   ...eeeeeee..
    """)


def test_queue_latency_when_nothing_else_is_visible() -> None:
    check("""
      gpu 0 stream 7   .AA.........BB
      thread 1 calls   Ll............
      expected         ...qqqqqqqqq..
    """)


def test_up_to_the_end_of_the_call_it_is_launch_overhead() -> None:
    check("""
      gpu 0 stream 7   .AA.........BB
      thread 1 calls   L...LLL.......
      expected         ...hoooqqqqq..
    """)


def test_no_launch_call() -> None:
    check(
        """
      gpu 0 stream 7   .AA....BB
      thread 1 calls   L........
      expected         ...uuuu..
    """,
        unlinked="B",
    )


def test_a_pageable_copy_to_the_host_is_a_wait_although_its_call_is_asynchronous() -> None:
    picture = """
      gpu 0 stream 7   .AA.........BB
      gpu 0 stream 7   ...cc.........
      thread 1 calls   L.CCCCCC..LL..
      expected         .....{}hhoo..
    """
    check(picture.format("sss"), pageable="c")
    check(picture.format("lll"))


def test_the_late_thread_is_the_one_that_launches() -> None:
    told = check("""
      gpu 0 stream 7   .AA......BB
      thread 1 calls   L..........
      thread 2 calls   ...SSSLL...
      thread 1 nvtx    ...XXXX....
      expected         ...sssooo..
    """)
    assert told[0][0] == "sync"


@pytest.mark.parametrize("bound", [1, 2, 3, 4])
def test_the_bound_is_the_line_between_overhead_and_queue(bound: int) -> None:
    rest = "oooo" if bound >= 3 else "oqqq"
    check(
        f"""
      gpu 0 stream 7   .AA....BB
      thread 1 calls   L..L.....
      expected         ...{rest}..
    """,
        bound,
    )


def test_what_waits_for_a_peer_on_the_host_is_the_hosts_everywhere() -> None:
    drawn = draw(
        """
      gpu 0 stream 7   .AA...............BB
      thread 1 calls   L...............LL..
      thread 1 nvtx    ...RRRRRRRRRRRRR....
    """,
        ranges={"R": "receive"},
    )
    trace = drawn.trace
    (slices,) = trace.index(Causes).devices
    at = int(np.flatnonzero(slices.cause == CAUSES.index("waiting for a peer"))[0])
    assert of_host(slices.cause, slices.host).all()
    assert {row.label: row.total_ns for row in rollup(trace, 0, "host")[0]}["receive"] == 13_000
    assert {row.label: row.total_ns for row in rollup(trace, 0, "class")[0]}["host wait"] == 13_000
    facts = {fact.label: fact.text for fact in details(trace, "causes", at, 0).facts}
    assert facts["host"] == "receive"
