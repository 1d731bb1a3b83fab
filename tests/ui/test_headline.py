"""What the first three figures say, and that no two of them contradict each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.analysis.causes import CAUSES
from inspector.analysis.edges import Edges
from inspector.trace.selection import Selection, Window
from tests.drawn import draw
from tests.ui.user import User
from ui.figures import Figures, figures
from ui.headline_words import (
    busy_value,
    busy_words,
    cause_words,
    next_tip,
    range_words,
    rule_words,
)
from ui.timeline.headers import busy_note
from ui.views.timeline import Timeline

# A first kernel, a wait in the queue that nothing explains, and a gap of the host's.
QUEUED = """
    gpu 0 stream 7   A{}B.......C
    thread 1 calls   Ll{}......L
"""


def queued(length: int) -> Figures:
    return figures(draw(QUEUED.format("." * length, "." * (length - 1))).trace, 0, None)


def test_where_nothing_can_change_the_largest_cause_it_says_so_and_looks_further() -> None:
    found = queued(60)
    assert found.cause is not None
    assert found.next is not None
    assert (found.cause.name, CAUSES[found.next.cause]) == ("queue latency", "host code")
    assert rule_words(found.cause, found.next)[0] == (
        "not queue latency: the trace has no reason; most in one gap of the rest"
    )
    assert "the largest cause, queue latency: the trace has no reason" in next_tip(found.cause, found.next)


def test_where_no_cause_can_be_changed_it_says_that_it_names_the_longest() -> None:
    drawn = draw(
        """
    gpu 0 stream 7   A..B......C
    thread 1 calls   L..........
    """,
        unlinked="BC",
    )
    found = figures(drawn.trace, 0, None)
    assert found.cause is not None
    assert found.next is not None
    assert (CAUSES[found.next.cause], found.next.cause_ns, found.next.can_change) == ("unattributed", 6000, False)
    assert rule_words(found.cause, found.next)[0] == "no cause here can be changed; the longest"


def test_a_wait_for_a_peer_can_be_changed_and_says_who_was_at_work() -> None:
    drawn = draw(
        """
    gpu 0 stream 7             A.............B....C
    gpu 1 stream 7 process 2   .DDDDDD.............
    thread 1 calls             L............LL....L
    thread 1 process 2 calls   L...................
    thread 1 nvtx              .RRRRRRRRRRR........
    """,
        ranges={"R": "receive"},
    )
    found = figures(drawn.trace, 0, None)
    assert found.cause is not None
    assert found.next is not None
    assert (found.cause.name, CAUSES[found.next.cause]) == ("waiting for a peer", "waiting for a peer")
    words = cause_words(drawn.trace, found.cause, found.busy.idle_ns)
    assert words[0].endswith("meanwhile at work: GPU 1 54.5 %, no other device 45.5 %")
    assert rule_words(found.cause, found.next)[0] == "most in one gap of a cause that can be changed"


def test_a_pause_is_called_one() -> None:
    drawn = draw(
        """
    gpu 0 stream 7   .AA...............BB
    thread 1 calls   L...............LL..
    thread 1 nvtx    ..QQQQXXXXXXX.......
    thread 1 os      ..O..O.O............
    """,
        ranges={"X": "paused by the user"},
    )
    found = figures(drawn.trace, 0, None)
    assert found.cause is not None
    assert found.next is not None
    assert (found.cause.name, found.cause.total_ns) == ("paused by the user", 7000)
    assert cause_words(drawn.trace, found.cause, 15_000)[0] == "7.00 µs of 15.0 µs idle, counted as no requests"
    assert rule_words(found.cause, found.next)[1] == "not paused by the user: it stood still because it was told to"


def test_nobody_is_sent_to_what_the_programs_own_probe_did() -> None:
    drawn = draw(
        """
    gpu 0 stream 7   .A..........B....C
    thread 1 calls   L...........L....L
    thread 1 nvtx    ...XXXXXXX........
    """,
        ranges={"X": "inflight probe: reading operators"},
    )
    found = figures(drawn.trace, 0, None)
    assert found.next is not None
    assert (found.probe_ns, found.next.span.length, found.next.cause_ns) == (7000, 4000, 4000)
    assert "50.0 % of it by inflight's own probe" in busy_words(found)[0]


def test_a_device_that_mostly_copies_is_not_called_busy_and_no_more() -> None:
    found = figures(draw("\n gpu 0 stream 7   aaaaaaaaAA.b\n thread 1 calls   C.......L..C\n").trace, 0, None)
    assert busy_value(found) == "91.7 %, mostly copies"
    assert busy_words(found)[0].startswith("copies 75.0 %, kernels 16.7 %, idle 1.00 µs in 1 gap")
    mostly = figures(draw("\n gpu 0 stream 7   aaAAAA.\n thread 1 calls   C.L....\n").trace, 0, None)
    assert busy_value(mostly) == "100.0 %"


def test_time_in_no_gap_is_told_beside_the_range() -> None:
    assert range_words(10_700_000, "GPU", Edges(0, 0))[0] == "10.7 ms, first to last GPU work"
    said = range_words(10_700_000, "GPU", Edges(8_370_000, 0))
    assert said[0] == "10.7 ms, first to last GPU work, starts 8.37 ms after the host's first record"
    assert all("8.37 ms" in form for form in said)
    paused = range_words(10_700_000, "CPU", Edges(0, 1_200_000_000, 900_000_000))
    assert paused[0] == "10.7 ms, first to last CPU work, paused by the user for 900 ms"
    assert all("1.20 s" in form for form in range_words(10_700_000, "CPU", Edges(8_370_000, 1_200_000_000)))


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("kineto/vllm_decode_graph_execution.json.gz", ("starts 8.37 ms after the host's first record",)),
        (
            "kineto/sglang_qwen3_8b_prefilldecode.json.gz",
            (
                "not queue latency: the trace has no reason",
                "partly to be trusted: earlier work seems missing: the first of stream 3",
            ),
        ),
        ("nsys/h100x2_fsdp_1s.sqlite", ("99.3 %, mostly copies", "copies 97.0 %, kernels 2.3 %")),
    ],
)
def test_real_traces_are_not_praised(user: User, corpus: Path, file: str, told: tuple[str, ...]) -> None:
    user.open(corpus / file)
    for words in told:
        assert words in user.headline.text


def test_a_share_says_of_what(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "planted_causes.sqlite")
    assert "of first to last work" in user.headline.text
    user.session.select(Selection(window=Window(3_000_000, 9_000_000)))
    assert "GPU busy simulated of the range" in user.headline.text
    view = user.window.views["timeline"]
    assert isinstance(view, Timeline)
    notes = [busy_note(view.canvas.scene, row) for row, _ in view.canvas.scene.rows() if row.group is not None]
    assert any(note.endswith("% of the view") for note in notes)
