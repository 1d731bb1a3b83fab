from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from inspector.picture.tracks import Group, Track, Tracks
from inspector.trace.selection import Window
from ui.timeline.layout import SEPARATOR, Arrangement, Row, lane_spans, lay_out
from ui.widgets.ruler import ticks

GROUPS = (Group("iterations", "Iterations"), Group("device 0", "GPU 0"), Group("process 1", "python 1"))
TRACKS = Tracks(
    GROUPS,
    (
        Track("iterations", -1, "iterations", "iterations", "iterations"),
        Track("busy", 0, "busy 0", "device 0", "busy"),
        Track("causes", 0, "idle 0", "device 0", "idle"),
        Track("stream", 0, "stream 7", "device 0", "stream 7"),
        Track("stream", 1, "stream 13", "device 0", "stream 13"),
        Track("calls", 0, "calls 1", "process 1", "calls"),
        Track("ranges", 0, "ranges 1", "process 1", "ranges"),
    ),
    0,
)
NAMES = [track.identity for track in TRACKS.tracks]


def one_lane(_: Track) -> tuple[int, bool]:
    return 1, False


def names(arrangement: Arrangement) -> list[str]:
    return [row.identity for row in lay_out(TRACKS, arrangement, one_lane).rows]


def test_groups_have_a_bar_and_iterations_have_none() -> None:
    assert names(Arrangement()) == [
        "iterations",
        "device 0",
        *NAMES[1:5],
        "process 1",
        *NAMES[5:],
    ]


def test_a_folded_group_keeps_its_bar_only() -> None:
    assert names(Arrangement().toggle_fold("device 0")) == ["iterations", "device 0", "process 1", *NAMES[5:]]
    assert Arrangement().toggle_fold("device 0").toggle_fold("device 0") == Arrangement()


def test_a_pinned_track_stands_above_and_nowhere_else() -> None:
    made = lay_out(TRACKS, Arrangement().toggle_pin("stream 7").toggle_pin("calls 1"), one_lane)
    assert [row.identity for row in made.pinned] == ["stream 7", "calls 1"]
    assert "stream 7" not in [row.identity for row in made.rows]
    assert made.pinned_height == sum(row.height for row in made.pinned) + SEPARATOR
    assert Arrangement(pinned=("stream 7",)).toggle_pin("stream 7") == Arrangement()


def test_a_track_moves_before_another_of_its_group() -> None:
    moved = Arrangement().moved(TRACKS.tracks, "stream 13", "busy 0")
    assert names(moved)[2:6] == ["stream 13", "busy 0", "idle 0", "stream 7"]
    back = moved.moved(TRACKS.tracks, "stream 13", None)
    assert names(back) == names(Arrangement())
    # A place in another group means the end of its own.
    assert names(Arrangement().moved(TRACKS.tracks, "busy 0", "calls 1"))[2:6] == [*NAMES[2:5], "busy 0"]


@given(
    st.frozensets(st.sampled_from([*NAMES, "device 0", "gone"])),
    st.lists(st.sampled_from([*NAMES, "gone"]), unique=True),
    st.lists(st.sampled_from([*NAMES, "gone"]), unique=True),
    st.integers(1, 9),
    st.integers(0, 3000),
)
def test_rows_tile_the_height_and_every_track_is_there_once(
    folded: frozenset[str], pinned: list[str], order: list[str], lanes: int, room: int
) -> None:
    arrangement = Arrangement(folded, frozenset(pinned), tuple(pinned), tuple(order))
    assert Arrangement.of(arrangement.to_keep(), TRACKS) == arrangement
    made = lay_out(TRACKS, arrangement, lambda _: (lanes, False), 1.0, room)
    assert (made.pinned_height > sum(row.height for row in made.pinned)) == bool(made.pinned)
    for rows, height in ((made.rows, made.height), (made.pinned, sum(row.height for row in made.pinned))):
        tops = [row.top for row in rows]
        assert tops == [sum(row.height for row in rows[:at]) for at in range(len(rows))]
        assert height == sum(row.height for row in rows)
    shown = [row.identity for row in (*made.pinned, *made.rows) if row.track is not None]
    hidden = {"device 0"} & folded
    assert sorted(shown) == sorted(
        track.identity for track in TRACKS.tracks if track.group not in hidden or track.identity in pinned
    )
    plain = lay_out(TRACKS, arrangement, lambda _: (lanes, False), 1.0)
    assert made.height + made.pinned_height <= max(room, plain.height + plain.pinned_height)
    for top in range(0, made.height, 7):
        seen = [row.identity for row in made.visible(top, top + 5)]
        assert seen == [row.identity for row in made.rows if row.top < top + 5 and row.top + row.height > top]


@given(st.integers(12, 300), st.integers(1, 40), st.booleans(), st.booleans())
def test_lanes_lie_inside_their_row_in_order(height: int, lanes: int, brackets: bool, folded: bool) -> None:
    spans = lane_spans(Row(0, height, TRACKS.tracks[3], folded=folded), lanes, brackets, 1.0)
    assert len(spans) == lanes
    assert all(top < bottom for top, bottom in spans)
    assert all(top > 0 for top, _ in spans)
    assert [span[0] for span in spans] == sorted(span[0] for span in spans)


def test_what_was_kept_badly_is_left_out() -> None:
    assert Arrangement.of(None, TRACKS) == Arrangement.of([1], TRACKS) == Arrangement()
    kept = {"folded": ["a", 3], "pinned": "no", "order": [None, "b"]}
    assert Arrangement.of(kept, TRACKS) == Arrangement(frozenset(["a"]), order=("b",))


def test_many_counters_start_folded_and_the_most_telling_stands_for_them() -> None:
    group = Group("counters 0", "GPU 0 counters")
    titles = ("GPC Clock", "SMs Active", "DRAM Read", "DRAM Write")
    counters = tuple(Track("counter", at, title, "counters 0", title) for at, title in enumerate(titles))
    tracks = Tracks((*GROUPS, group), (*TRACKS.tracks, *counters), 0)
    first = Arrangement.of(None, tracks)
    assert first.folded == {"counters 0"}
    bar = lay_out(tracks, first, one_lane).rows[-1]
    assert bar.summary is not None
    assert bar.summary.title == "SMs Active"
    few = Tracks((*GROUPS, group), (*TRACKS.tracks, *counters[:2]), 0)
    assert not Arrangement.of(None, few).folded


@given(st.integers(0, 10**13), st.integers(10, 10**12), st.integers(120, 4000))
def test_ticks_are_round_apart_and_tell_times_apart(start: int, length: int, width: int) -> None:
    window = Window(start, start + length)
    found = ticks(window, width)
    times = [time for time, _ in found.major]
    assert all(window.start <= time <= window.end for time in (*times, *found.minor))
    steps = {later - earlier for earlier, later in itertools.pairwise(times)}
    assert len(steps) <= 1
    for step in steps:
        assert step * width / length >= 96
        assert step * width / length <= max(260, 2.6 * width / length)
        assert str(step).rstrip("0") in ("1", "2", "5")
    labels = [text for _, text in found.major]
    assert len(set(labels)) == len(labels)
    assert all(len(text) <= 14 for text in labels)
    assert len(set(found.minor) & set(times)) == 0
