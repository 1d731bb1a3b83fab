"""What stands beside the causes of idle time, and what it does to the verdict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.busy import Unions
from inspector.analysis.causes import CAUSES, Causes
from inspector.analysis.completeness import verdict
from inspector.analysis.edges import Edges, edges
from inspector.analysis.origins import at_work_meanwhile, by_pause, by_probe
from inspector.trace.builder import Builder
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo
from tests.drawn import draw

MS = 1_000_000


def lengths(trace: Trace, mask: Any, device: int = 0) -> int:
    slices = trace.index(Causes).devices[device]
    return int((slices.end - slices.start)[mask].sum())


def test_a_pause_is_told_from_having_no_request() -> None:
    drawn = draw(
        """
      gpu 0 stream 7   .AA...............BB
      thread 1 calls   L...............LL..
      thread 1 nvtx    ..QQQQXXXXXXX.......
      thread 1 os      ..O..O.O............
    """,
        ranges={"X": "paused by the user"},
    )
    slices = drawn.trace.index(Causes).devices[0]
    assert lengths(drawn.trace, slices.cause == CAUSES.index("no requests")) == 10_000
    assert lengths(drawn.trace, by_pause(drawn.trace, slices)) == 7_000


def test_what_the_programs_own_probe_did_is_told_from_what_the_program_did() -> None:
    drawn = draw(
        """
      gpu 0 stream 7   .AA...............BB
      thread 1 calls   L...............LL..
      thread 1 nvtx    ..YYYYXXXXXXX.......
    """,
        ranges={"X": "inflight probe: reading operators", "Y": "inflight"},
    )
    slices = drawn.trace.index(Causes).devices[0]
    assert lengths(drawn.trace, by_probe(drawn.trace, slices)) == 7_000


ROW = st.text("AB.", min_size=12, max_size=30)


@settings(max_examples=60)
@given(one=ROW, two=ROW, low=st.integers(0, 20), length=st.integers(1, 20))
def test_every_moment_of_waiting_for_a_peer_counts_once(one: str, two: str, low: int, length: int) -> None:
    trace, window = _waiting(one, two), Window(low * 1000, (low + length) * 1000)
    slices = trace.index(Causes).devices[0]
    start, end = (np.clip(side, window.start, window.end) for side in (slices.start, slices.end))
    peer = [
        (int(s), int(e))
        for s, e, cause in zip(start, end, slices.cause, strict=True)
        if CAUSES[cause] == "waiting for a peer"
    ]
    wanted: dict[int, int] = {}
    for s, e in peer:
        for at in range(s, e, 1000):
            busy = [
                device
                for device in (1, 2)
                for low_, high in zip(*trace.index(Unions).devices[device]["all"], strict=True)
                if low_ <= at < high
            ]
            first = min(busy, default=-1)
            wanted[first] = wanted.get(first, 0) + 1000
    found = at_work_meanwhile(trace, slices, start, end)
    assert dict(found) == wanted
    assert [ns for _, ns in found] == sorted((ns for _, ns in found), reverse=True)


def _waiting(one: str, two: str) -> Trace:
    """Device 0 waits in `receive` between two kernels, devices 1 and 2 are busy as the letters say; us."""
    builder = Builder()
    process = builder.process(1)
    thread = builder.thread(process, 1)
    name = builder.names.add
    for device, row in enumerate(("A" + "." * 25 + "B", one, two)):
        stream = builder.stream(process, builder.device(device), 7)
        at = [index for index, letter in enumerate(row) if letter != "."]
        # Only device 0 has launches: the others are looked at for when they were busy.
        ids = [at_ + 1 if device == 0 else 0 for at_ in at]
        builder.add(
            "kernels",
            start=np.array(at, np.int64) * 1000,
            end=(np.array(at, np.int64) + 1) * 1000,
            stream=stream,
            name=name("k"),
            correlation=ids,
        )
    for at_ in (0, 26):
        builder.add(
            "host_calls", start=at_ * 1000, end=at_ * 1000 + 1, thread=thread, name=name("launch"), correlation=at_ + 1
        )
    receive, none = name("receive"), -1
    builder.add("ranges", start=[1000, 15000], end=[11000, 24000], thread=thread, name=receive, kind=0, domain=none)
    return builder.build(TraceInfo(paths=("drawn",), kind="drawn"))


def test_time_before_the_first_work_and_after_the_last_is_told() -> None:
    picture = """
      gpu 0 stream 7   ........AABBAABBAA......
      thread 1 calls   ..L.LLLL...............S
      thread 1 nvtx    .XXXXXXXXX..............
    """
    drawn = draw(picture.replace("L.LLLL", "L.lLlL"), unit=MS)
    assert edges(drawn.trace, 0) == Edges(7 * MS, 6 * MS)
    # A device that works from the first record to the last has nothing beside its span.
    assert edges(draw("\n gpu 0 stream 7   .AABB\n thread 1 calls   L.L..\n", unit=1000).trace, 0) == Edges(0, 0)


def standing(marks: list[tuple[int, str]], domain: str = "engine") -> Edges:
    """Edges of a device that worked from 0 to 1 s in a trace of 5 s with those marks (s, what)."""
    builder = Builder()
    process = builder.process(1)
    stream, thread, name = builder.stream(process, builder.device(0), 0), builder.thread(process, 1), builder.names.add
    builder.add("kernels", start=0, end=1000 * MS, stream=stream, name=name("k"), correlation=0)
    builder.add("ranges", start=4999 * MS, end=5000 * MS, thread=thread, name=name("r"), kind=0, domain=-1)
    for second, what in marks:
        builder.add("marks", time=second * 1000 * MS, thread=thread, name=name(what), domain=name(domain))
    return edges(builder.build(TraceInfo(paths=("drawn",), kind="drawn")), 0)


def test_a_pause_that_has_not_ended_is_told_although_no_gap_ends_in_it() -> None:
    assert standing([]) == Edges(0, 4000 * MS)
    assert standing([(2, "paused by the user")]) == Edges(0, 4000 * MS, 3000 * MS)
    assert standing([(2, "paused by the user"), (3, "rate = 4")]) == Edges(0, 4000 * MS, 3000 * MS)
    assert standing([(2, "paused by the user"), (3, "goes on")]) == Edges(0, 4000 * MS)
    assert standing([(1, "paused by the user"), (2, "goes on"), (3, "paused by the user")]).paused_ns == 2000 * MS
    # Anybody may have a mark of that name.
    assert standing([(2, "paused by the user")], "mine").paused_ns == 0


HEAD = """
      gpu 0 stream 7   {}
      gpu 0 stream 8   ....................BB..
      thread 1 calls   L..l....................
"""


@pytest.mark.parametrize(
    ("stream_7", "hidden"),
    [
        (".A......................", "16.0 ms"),
        # It waited for what is in the file.
        (".AAAAAAAAAAAAAAAAAAAAAA.", ""),
        (".AAAAAAAAAAA............", "8.0 ms"),
    ],
)
def test_work_that_nothing_recorded_held_up_means_that_the_head_is_missing(stream_7: str, hidden: str) -> None:
    found = verdict(draw(HEAD.format(stream_7), unit=MS).trace, 0)
    if not hidden:
        assert found.level == "trusted"
        return
    assert found.level == "partly"
    assert found.reasons == (
        f"earlier work seems missing: the first of stream 8 began {hidden} after its launch, though nothing that was "
        "recorded ran",
    )


def test_a_collective_that_waits_for_its_peers_misses_nothing() -> None:
    drawn = draw(
        HEAD.format(".A......................"), unit=MS, kernels={"B": "ncclDevKernel_AllReduce_Sum_f32_RING"}
    )
    assert verdict(drawn.trace, 0).level == "trusted"


def test_an_iteration_whose_work_may_still_come_is_not_missing_it() -> None:
    trace = draw("""
      gpu 0 stream 7   .AA..BB........
      thread 1 calls   L...L..........
      iterations       ggggmmmmccccccc
    """).trace
    assert verdict(trace, 0).reasons == ("1 of 3 iterations has no device record",)
    growing = Trace(trace.info, trace.tables, trace.names, trace.quality, settled_ns=14_999)
    assert verdict(growing, 0).level == "trusted"


def stages(cpu: int) -> Trace:
    builder = Builder()
    process = builder.process(1)
    for number in range(2):
        stream = builder.stream(process, builder.device(number, f"CPU stage {number} (no GPU)"), 0)
        times = {"start": [0, 20 * MS], "end": [10 * MS, 30 * MS]}
        builder.add("kernels", **times, stream=stream, name=builder.names.add("stage forward"), correlation=0)
        spent = [cpu, 9 * MS] if number else [10 * MS, -1]
        builder.add("stage_work", **times, process=process, stage=number, iteration=[1, 2], micro_batch=0, cpu=spent)
    return builder.build(TraceInfo(paths=("drawn",), kind="drawn"))


def test_busy_time_without_a_processor_is_told() -> None:
    trace = stages(2 * MS)
    reasons = [" ".join(verdict(trace, device).reasons) for device in range(2)]
    assert "no core" not in reasons[0]
    assert "no core for 45 % of its work" in reasons[1]
    assert "no core" not in " ".join(verdict(stages(9 * MS), 1).reasons)
