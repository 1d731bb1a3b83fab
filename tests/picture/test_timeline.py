from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.busy import busy
from inspector.analysis.causes import CAUSES
from inspector.analysis.iterations import Iterations
from inspector.analysis.rollup import idle_by_cause
from inspector.errors import Usage
from inspector.picture.palette import INKS, cause_ink, ink
from inspector.picture.rows import Content, TrackRows
from inspector.picture.search import SEARCHED, Filter, hits
from inspector.picture.timeline import Picture, find, hit, picture
from inspector.picture.tracks import HOST_TABLES, Track, Tracks, spans
from inspector.picture.viewport import Viewport
from inspector.readers.nsys_sqlite import read
from inspector.readers.reader import silent
from inspector.trace.builder import Builder
from inspector.trace.schema import SCHEMAS, WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo
from tests.analysis.generate import traces
from tests.drawn import draw


def picture_of(trace: Trace, wanted: Filter | None = None, width: int = 200) -> Picture:
    tracks = trace.index(Tracks).tracks
    viewport = Viewport(Window(0, max(trace.end_ns, 10)), width)
    return picture(trace, viewport.grid(), tracks, wanted or Filter())


def track(trace: Trace, kind: str, key: int = 0) -> Track:
    return next(each for each in trace.index(Tracks).tracks if (each.kind, each.key) == (kind, key))


def records(content: Content) -> list[tuple[str, int, int, int]]:
    """(source, row, start, end) of all lanes."""
    found = []
    for lane in content.lanes:
        ends = lane.pyramid.ends(slice(0, len(lane)))
        for at in range(len(lane)):
            found.append((lane.source(at), int(lane.row[at]), int(lane.pyramid.start[at]), int(ends[at])))
    return found


@given(traces())
def test_every_record_stands_in_one_lane_of_its_track(trace: Trace) -> None:
    shown: dict[str, list[int]] = {}
    for each in trace.index(Tracks).tracks:
        content = trace.index(TrackRows).of(each)
        for lane in content.lanes:
            starts, ends = lane.pyramid.start, lane.pyramid.ends(slice(0, len(lane)))
            assert (ends[:-1] <= starts[1:]).all()
        if each.kind in ("stream", *HOST_TABLES.values()):
            for source, row, start, end in records(content):
                assert (start, end) == tuple(int(times[row]) for times in spans(trace, source))
                column = "stream" if source in WORK_TABLES else "thread"
                assert trace[source][column][row] == each.key
                shown.setdefault(source, []).append(row)
    for table in ("kernels", "memcpys", *HOST_TABLES):
        assert sorted(shown.get(table, [])) == list(range(len(trace[table])))


@given(traces())
def test_busy_and_idle_strips_hold_exactly_what_the_analyses_say(trace: Trace) -> None:
    made = picture_of(trace)
    for each in made.tracks.values():
        if each.track.kind not in ("busy", "causes"):
            continue
        figures = busy(trace, each.track.key)
        wanted = figures.busy_ns if each.track.kind == "busy" else figures.idle_ns
        assert sum(lane.pyramid.before[-1] for lane in each.content.lanes) == wanted
        if each.track.kind == "causes" and each.content.lanes:
            pyramid = each.content.lanes[0].pyramid
            length = np.diff(pyramid.before)
            by_cause = {CAUSES[n]: int(length[pyramid.kind == cause_ink(n)].sum()) for n in range(len(CAUSES))}
            assert {name: time for name, time in by_cause.items() if time} == idle_by_cause(trace, each.track.key)


@given(traces(), st.integers(20, 300))
def test_what_is_painted_can_be_hit(trace: Trace, width: int) -> None:
    made = picture_of(trace, width=width)
    for each in made.tracks.values():
        for number, lane in enumerate(each.content.lanes):
            for at in range(len(lane)):
                wanted = hit(each.track, number, lane, at)
                middle = (wanted.start + wanted.end) / 2
                found = each.at(number, middle, 0)
                assert found is not None
                assert found.start <= middle <= found.end
                assert find(each.content, each.track, wanted.source, wanted.row, wanted.start) == wanted


@given(traces(), st.sampled_from(["gemm|Memcpy", "cuda", "^s", "nothing at all", ""]), st.integers(0, 30))
def test_a_filter_lets_through_what_its_words_say(trace: Trace, pattern: str, least: int) -> None:
    wanted = Filter(pattern, least)
    found = hits(trace, wanted)
    expected = []
    for code, table in enumerate(SEARCHED):
        columns = trace[table]
        starts, ends = spans(trace, table)
        for row in range(len(columns)):
            text = trace.names[int(columns["name"][row])]
            named = not pattern or any(word.strip("^").lower() in text.lower() for word in pattern.split("|"))
            if pattern == "^s":
                named = text.lower().startswith("s")
            if named and ends[row] - starts[row] >= least:
                expected.append((int(starts[row]), code, row))
    listed = list(zip(found.start.tolist(), found.table.tolist(), found.row.tolist(), strict=True))
    assert sorted(listed) == sorted(expected)
    assert [each[0] for each in listed] == sorted(each[0] for each in listed)
    if not wanted:
        return
    made = picture_of(trace, wanted)
    assert made.matches is not None
    let_through = {(SEARCHED[code], row) for _, code, row in expected}
    for each in made.tracks.values():
        if each.track.kind not in ("stream", *HOST_TABLES.values()):
            continue
        for number, lane in enumerate(each.content.lanes):
            mine = [
                np.diff(lane.pyramid.before)[at]
                for at in range(len(lane))
                if (lane.source(at), int(lane.row[at])) in let_through
            ]
            until = made.matches.until[each.first + number]
            assert until[-1] - until[0] == sum(mine)
            long = each.long[number]
            assert long.wanted is not None
            for at, is_wanted in zip(long.at.tolist(), long.wanted.tolist(), strict=True):
                assert is_wanted == ((lane.source(at), int(lane.row[at])) in let_through)


def test_walking_through_hits_goes_round() -> None:
    trace = draw(
        """
        gpu 0 stream 7   AA.BB.CC
        """,
        unlinked="ABC",
    ).trace
    found = hits(trace, Filter(".", 0))
    assert len(found) == 3
    assert found.after(0, "kernels", 0) == 1
    assert found.after(0) == 1
    assert found.after(10**9) == 0
    assert found.before(0, "kernels", 0) == 2
    assert hits(trace, Filter("none", 0)).after(0) == -1


def test_a_bad_pattern_says_where() -> None:
    with pytest.raises(Usage, match=r"not a regular expression: a\(.*character 2"):
        Filter("a(").names(draw("gpu 0 stream 7   AA", unlinked="A").trace)


def test_dependent_launches_alternate_between_two_lanes() -> None:
    builder = Builder()
    stream = builder.stream(builder.process(1), builder.device(0), 7)
    start = np.arange(6) * 100
    builder.add("kernels", start=start, end=start + 105, stream=stream, name=0, correlation=0)
    builder.names.add("k")
    trace = builder.build(TraceInfo(("t",), "test"))
    lanes = trace.index(TrackRows).of(track(trace, "stream")).lanes
    assert [lane.row.tolist() for lane in lanes] == [[0, 2, 4], [1, 3, 5]]


def test_graph_launches_are_brackets_over_their_nodes() -> None:
    drawn = draw(
        """
        gpu 0 stream 7 graph 1   .AABBC.........
        gpu 0 stream 7 graph 2   .........DD.EE.
        gpu 0 stream 7           ......ff.......
        thread 1 calls           G..C....g......
        """
    )
    content = drawn.trace.index(TrackRows).of(track(drawn.trace, "stream"))
    (bracket,) = content.brackets
    spans = list(
        zip(bracket.pyramid.start.tolist(), bracket.pyramid.ends(slice(0, len(bracket))).tolist(), strict=True)
    )
    first = drawn.trace["host_calls"]["start"][0]
    assert [(a - first, b - first) for a, b in spans] == [(1000, 6000), (9000, 14000)]
    assert {INKS[kind].name for kind in bracket.pyramid.kind} == {"graph launch"}


def test_a_graph_without_nodes_is_work_itself() -> None:
    trace = draw(
        """
        gpu 0 stream 7   ##..AA
        """,
        unlinked="#A",
    ).trace
    content = trace.index(TrackRows).of(track(trace, "stream"))
    assert [each[0] for each in records(content)] == ["graphs", "kernels"]
    assert not content.brackets
    assert INKS[content.lanes[0].pyramid.kind[0]].name == "whole graph"


def test_calls_wear_the_ink_of_the_idle_time_that_they_cause() -> None:
    trace = draw(
        """
        gpu 0 stream 7   ...A......
        thread 1 calls   L.SSMM.QQ.
        """
    ).trace
    lane = trace.index(TrackRows).of(track(trace, "calls")).lanes[0]
    assert [INKS[kind].name for kind in lane.pyramid.kind] == ["launching", "sync", "allocation", "other call"]


def test_nested_ranges_stand_below_each_other() -> None:
    trace = draw(
        """
        thread 1 nvtx    AAAAAAAAAA
        thread 1 nvtx    .BBB.CC...
        thread 1 nvtx    ..D.......
        """
    ).trace
    lanes = trace.index(TrackRows).of(track(trace, "ranges")).lanes
    assert [[trace.names[name] for name in lane.names(trace)] for lane in lanes] == [["A"], ["B", "C"], ["D"]]


def test_marks_are_instants_that_show_and_are_found() -> None:
    builder = Builder()
    thread = builder.thread(builder.process(1), 1)
    names = builder.names.add_all(["begin", "end"])
    builder.add("marks", time=[100, 100, 900], thread=thread, name=[names[0], names[0], names[1]], domain=-1)
    builder.add("ranges", start=[0], end=[1000], thread=thread, name=names[0], kind=0, domain=-1)
    trace = builder.build(TraceInfo(("t",), "test"))
    marks = track(trace, "marks")
    (lane,) = trace.index(TrackRows).of(marks).lanes
    assert lane.row.tolist() == [0, 1, 2]
    made = picture_of(trace).tracks[marks.identity]
    found = made.at(0, 901, 3)
    assert found is not None
    assert (found.source, found.row, found.start, found.end) == ("marks", 2, 900, 900)
    assert [SEARCHED[code] for code in hits(trace, Filter("end")).table] == ["marks"]


def test_iterations_are_coloured_by_what_ran_in_them() -> None:
    trace = draw(
        """
        gpu 0 stream 7   AA.BB.CC.DD
        iterations       ccc.ggg.mmm
        """,
        unlinked="ABCD",
    ).trace
    lane = trace.index(TrackRows).of(track(trace, "iterations", -1)).lanes[0]
    names = ["context iteration", "generation iteration", "mixed iteration"]
    assert [INKS[kind].name for kind in lane.pyramid.kind] == names


def test_each_process_keeps_to_its_own_lane_of_iterations() -> None:
    builder = Builder()
    processes = [builder.process(1), builder.process(2)]
    stream = builder.stream(processes[0], builder.device(0), 7)
    builder.add("kernels", start=[0], end=[9], stream=stream, name=builder.names.add("k"), correlation=0)
    # Both end one iteration at 50 and begin the next, the second process first.
    start, end, owner = [0, 10, 50, 50], [50, 50, 90, 95], [0, 1, 1, 0]
    counts = dict.fromkeys((column.name for column in SCHEMAS["iterations"].columns if column.dtype == "int32"), 1)
    counts |= {"process": [processes[at] for at in owner]}  # type: ignore[dict-item]
    builder.add("iterations", start=start, end=end, iteration=[1, 1, 2, 2], **counts)
    trace = builder.build(TraceInfo(("t",), "test"))
    found = trace.index(Iterations)
    for lane in trace.index(TrackRows).of(track(trace, "iterations", -1)).lanes:
        assert len(set(found.process[lane.row].tolist())) == 1


def test_tracks_come_in_order_and_the_empty_ones_are_counted() -> None:
    builder = Builder()
    process = builder.process(7, "python")
    devices = [builder.device(number) for number in (1, 0)]
    streams = [builder.stream(process, device, number) for device in devices for number in (20, 7)]
    builder.stream(process, devices[0], 99)
    threads = [builder.thread(process, tid) for tid in (1, 2, 3)]
    builder.names.add("k")
    builder.add("kernels", start=[0, 1, 2, 3], end=[1, 2, 3, 4], stream=streams, name=0, correlation=0)
    builder.add("host_calls", start=[0, 1, 2], end=[1, 2, 3], thread=[threads[1]] * 3, name=0, correlation=0)
    builder.add("ranges", start=[0], end=[1], thread=threads[0], name=0, kind=0, domain=-1)
    series = builder.series("SM active", "%", device=devices[1])
    builder.add("counters", time=[0, 1], series=series, value=[1.0, 2.0])
    tracks = builder.build(TraceInfo(("t",), "test")).index(Tracks)
    assert [group.identity for group in tracks.groups] == [
        "iterations",
        "device 0",
        "counters 0",
        "device 1",
        "process 7",
    ]
    assert [(each.kind, each.title) for each in tracks.tracks if each.group == "device 0"] == [
        ("busy", "busy"),
        ("causes", "idle, why"),
        ("stream", "stream 7"),
        ("stream", "stream 20"),
    ]
    assert [each.title for each in tracks.tracks if each.group == "counters 0"] == ["SM active"]
    assert [each.key for each in tracks.tracks if each.group == "process 7"] == [threads[1], threads[0]]
    assert tracks.unlisted == 2
    assert len({each.identity for each in tracks.tracks}) == len(tracks.tracks)


def test_counters_become_curves() -> None:
    builder = Builder()
    series = builder.series("clock", "MHz", device=builder.device(0))
    builder.add("counters", time=[0, 100], series=series, value=[1000.0, 2000.0])
    trace = builder.build(TraceInfo(("t",), "test"))
    (made,) = picture_of(trace).tracks.values()
    assert made.curve is not None
    assert made.curve.samples.top == 2000
    assert made.num_lanes == 1


def test_a_real_file_adds_up(corpus: Path) -> None:
    trace = read(corpus / "nsys" / "h100x2_fsdp_1s.sqlite", silent)
    made = picture_of(trace, width=1600)
    assert {each.track.kind for each in made.tracks.values()} >= {"busy", "causes", "stream", "calls", "ranges"}
    for device in range(2):
        strip = next(each for each in made.tracks.values() if (each.track.kind, each.track.key) == ("busy", device))
        until = made.stack.until[strip.first]
        assert int(until[-1] - until[0]) == busy(trace, device).busy_ns
    streams = [each for each in made.tracks.values() if each.track.kind == "stream"]
    shown = sum(len(lane) for each in streams for lane in each.content.lanes)
    assert shown == trace.num_work()
    assert INKS[ink("busy")].name == "busy"
