"""Counters that never change stand aside, those without any value are no rows; a run that grows changes its mind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.picture.steady import Steadiness
from inspector.picture.tracks import Tracks
from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo
from ui.timeline.layout import Arrangement, lay_out

_NAN, _INF = float("nan"), float("inf")


def trace_of(values: list[list[float]]) -> Trace:
    """A series of a process for each list, a sample every 10 ns."""
    builder = Builder()
    process = builder.process(pid=7, name="server")
    for at, samples in enumerate(values):
        series = builder.series(f"figure {at}", "blocks", process=process)
        builder.add("counters", time=10 * np.arange(len(samples)), series=series, value=samples)
    return builder.build(TraceInfo((), "recording"))


_VALUES = st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.5, _NAN, _INF]), max_size=4), max_size=6)


@given(_VALUES)
def test_what_stands_still_is_found(values: list[list[float]]) -> None:
    found = Steadiness.of(trace_of(values), None)
    for at, samples in enumerate(values):
        real = [value for value in samples if np.isfinite(value)]
        assert found.has_value(at) == bool(real)
        assert bool(found.moves[at]) == (len(set(real)) > 1)
        if real:
            assert found.first[at] == real[0]


@given(_VALUES, st.data())
def test_it_grows_with_the_counters(values: list[list[float]], data: st.DataObject) -> None:
    trace = trace_of(values)
    whole = Steadiness.of(trace, None)
    rows = data.draw(st.integers(0, len(trace["counters"])))
    early = Steadiness.of(trace, replace(whole, rows=0, first=np.empty(0), moves=np.empty(0, bool)))
    series, value = trace["counters"]["series"][:rows], trace["counters"]["value"][:rows]
    for at in range(len(values)):
        mine = value[series == at]
        real = mine[np.isfinite(mine)]
        early.first[at] = real[0] if len(real) else _NAN
        early.moves[at] = len(set(real.tolist())) > 1
    then = Steadiness.of(trace, replace(early, rows=rows))
    assert np.array_equal(then.first, whole.first, equal_nan=True)
    assert then.moves.tolist() == whole.moves.tolist()


def test_one_line_says_how_many_never_change() -> None:
    trace = trace_of([[1, 2], [16, 16, 16], [_NAN], [0, 0], []])
    tracks = trace.index(Tracks)
    assert [group.title for group in tracks.groups] == ["server 7", "2 counters that never change"]
    aside = tracks.groups[1]
    assert aside.note == "figure 1 16 blocks, figure 3 0 blocks"
    assert [track.title for track in tracks.tracks] == ["figure 0", "figure 1", "figure 3"]
    arrangement = Arrangement.of(None, tracks)

    def rows(arrangement: Arrangement) -> list[str]:
        return [row.identity for row in lay_out(tracks, arrangement, lambda track: (1, False)).rows]

    assert rows(arrangement) == ["process 7", "counter process 7/figure 0", aside.identity]
    opened = rows(arrangement.toggle_fold(aside.identity))
    assert opened[3:] == ["counter process 7/figure 1", "counter process 7/figure 3"]
    # Of a folded group of interest one counter stands for all; of these none says anything of the others.
    folded = lay_out(tracks, arrangement, lambda track: (1, False)).rows[-1]
    assert (folded.folded, folded.summary) == (True, None)


def test_one_alone_is_no_line_of_its_own() -> None:
    tracks = trace_of([[1, 2], [16, 16]]).index(Tracks)
    assert [group.title for group in tracks.groups] == ["server 7"]
    assert [track.title for track in tracks.tracks] == ["figure 0", "figure 1"]


@pytest.mark.parametrize("opened", [False, True])
def test_a_run_that_grows_moves_what_changes(opened: bool) -> None:
    early, late = trace_of([[1, 1], [2, 2], [3, 3]]), trace_of([[1, 1, 5], [2, 2], [3, 3]])
    before = early.index(Tracks)
    arrangement = Arrangement.of(None, before)
    if opened:
        arrangement = arrangement.toggle_fold("steady process 7")
    after = Tracks.extend(before, late)
    assert [(track.title, track.group) for track in after.tracks] == [
        ("figure 0", "process 7"),
        ("figure 1", "steady process 7"),
        ("figure 2", "steady process 7"),
    ]
    assert before.tracks[0].identity == after.tracks[0].identity
    now = arrangement.with_new(after, before.groups)
    assert ("steady process 7" in now.folded) == (not opened)
