"""Indexes of a growing trace are extended to what building them anew gives; earlier ones stay as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.calls import CallKinds
from inspector.analysis.categories import Categories
from inspector.picture.rows import Content, TrackRows
from inspector.picture.tracks import Tracks
from inspector.readers.recording.follow import Following
from inspector.trace.growing import GrowingArray
from inspector.trace.pyramid import Pyramid
from inspector.trace.trace import Trace
from tests.readers.test_follow import MS, PIECES, Clock, Piece, folder, write


def lanes_of(content: Content) -> list[tuple[Any, ...]]:
    """All that a picture may ask of a track."""
    return [
        (
            lane.pyramid.start.tolist(),
            lane.pyramid.before.tolist(),
            lane.pyramid.kind.tolist(),
            lane.pyramid.longest.tolist(),
            lane.pyramid.kinds.tolist(),
            lane.pyramid.votes.tolist(),
            lane.row.tolist(),
            [lane.source(at) for at in range(len(lane))],
        )
        for lane in (*content.lanes, *content.brackets)
    ]


def contents(trace: Trace, rows: TrackRows) -> dict[str, list[tuple[Any, ...]]]:
    tracks = trace.index(Tracks).tracks
    return {each.identity: lanes_of(rows.of(each)) for each in tracks if each.kind in ("stream", "ranges", "calls")}


@settings(max_examples=40, deadline=None)
@given(PIECES, st.data())
def test_tracks_that_are_extended_are_those_that_are_built(pieces: list[Piece], data: st.DataObject) -> None:
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        done: dict[str, int] = {}
        seen: list[tuple[Trace, dict[str, Any]]] = []
        for piece in (*pieces, None):
            if piece is None:
                made.end()
            else:
                write(made, piece, done)
            clock.now += data.draw(st.integers(0, 300)) * MS
            trace = following.poll()
            if trace is None or not data.draw(st.booleans()):
                continue
            extended, built = trace.index(Tracks), Tracks.build(trace)
            assert (extended.groups, extended.unlisted) == (built.groups, built.unlisted)
            assert set(extended.tracks) == set(built.tracks)
            found = contents(trace, trace.index(TrackRows))
            assert found == contents(trace, TrackRows.build(trace))
            assert trace.index(Categories).of_name.tolist() == Categories.build(trace).of_name.tolist()
            assert trace.index(CallKinds).of_row.tolist() == CallKinds.build(trace).of_row.tolist()
            seen.append((trace, found))
        for trace, found in seen:
            assert contents(trace, trace.index(TrackRows)) == found


def test_ranges_that_begin_together_and_come_one_after_the_other_lie_in_lanes_of_their_own() -> None:
    at_once: list[Piece] = [("one", [(0, 0)])] * 3 + [("two", [(0, 0)])] * 2 + [("two", [(52, 0)])]
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        done: dict[str, int] = {}
        for pieces in (at_once, [("one", [(0, 0)])], [("two", [(17, 0)])]):
            for piece in pieces:
                write(made, piece, done)
            clock.now += 151 * MS
            trace = following.poll()
            if trace is not None:
                assert contents(trace, trace.index(TrackRows)) == contents(trace, TrackRows.build(trace))
        made.end()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 4)), max_size=120),
    st.lists(st.integers(0, 40), min_size=1, max_size=5),
)
def test_a_pyramid_grows_to_what_it_would_be_at_once(events: list[tuple[int, int, int]], cuts: list[int]) -> None:
    gaps, lengths = np.array([e[0] for e in events], np.int64), np.array([e[1] for e in events], np.int64)
    ends = np.cumsum(gaps + lengths)
    starts, kinds = ends - lengths, np.array([e[2] for e in events], np.uint8)
    at = cuts[0]
    grown = Pyramid.of(starts[:at], ends[:at], kinds[:at])
    earlier = []
    for size in (*cuts[1:], len(events)):
        part = slice(at, at + size)
        copy = [values.copy() for values in (grown.start, grown.before, grown.kind, grown.longest, grown.votes)]
        earlier.append((grown, copy))
        grown = grown.extended(starts[part], ends[part], kinds[part])
        at += size
    whole = Pyramid.of(starts, ends, kinds)
    for name in ("start", "before", "kind", "longest", "kinds", "votes"):
        assert np.array_equal(getattr(grown, name), getattr(whole, name)), name
    for pyramid, copy in earlier:
        now = (pyramid.start, pyramid.before, pyramid.kind, pyramid.longest, pyramid.votes)
        assert all(np.array_equal(a, b) for a, b in zip(now, copy, strict=True))


def test_a_long_column_lies_in_a_file_and_branches_are_copies() -> None:
    column, whole = GrowingArray("int64"), np.arange(400_000)
    snapshots = []
    for at in range(0, 400_000, 50_000):
        same, snapshot = column.extended(at, whole[at : at + 50_000])
        assert same is column
        snapshots.append(snapshot)
    for number, snapshot in enumerate(snapshots, 1):
        assert np.array_equal(snapshot, whole[: number * 50_000])
        assert not snapshot.flags.writeable
    other, branch = column.extended(100, whole[:10])
    assert other is not column
    assert branch.tolist() == [*range(100), *range(10)]
    again, same_rows = column.extended(100, whole[100:300])
    assert again is column
    assert np.array_equal(same_rows, whole[:300])
