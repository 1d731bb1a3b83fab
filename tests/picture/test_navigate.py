from __future__ import annotations

from hypothesis import given

from inspector.analysis.causes import CAUSES
from inspector.analysis.gaps import Gaps
from inspector.picture.details import details, range_statistics
from inspector.picture.navigate import (
    along,
    costliest_gap,
    launch_of,
    launched_by,
    next_gap,
    next_work,
    place_of,
)
from inspector.picture.rows import TrackRows
from inspector.picture.tracks import HOST_TABLES, Tracks, spans
from inspector.trace.schema import WORK_TABLES
from inspector.trace.selection import Window
from inspector.trace.trace import Trace
from inspector.trace.work import Work
from tests.analysis.generate import traces
from tests.drawn import draw


@given(traces())
def test_along_a_track_every_record_is_met_once_each_way(trace: Trace) -> None:
    for track in trace.index(Tracks).tracks:
        content = trace.index(TrackRows).of(track)
        total = sum(len(lane) for lane in content.lanes)
        for by, start, lane in ((1, -1, -1), (-1, 10**9, 10**6)):
            met = []
            while (found := along(content, track, start, lane, by)) is not None:
                met.append((found.start, found.lane, found.row))
                start, lane = found.start, found.lane
                assert len(met) <= total
            # Several without length can stand at one time in one lane; the walk meets one of them.
            distinct = {(int(at), number) for number, each in enumerate(content.lanes) for at in each.pyramid.start}
            assert [each[:2] for each in met] == sorted(distinct, reverse=by < 0)


@given(traces())
def test_next_work_goes_through_the_whole_device(trace: Trace) -> None:
    for device, work in enumerate(trace.index(Work).devices):
        met = []
        found = next_work(trace, device, -1, None, None, 1)
        while found is not None and len(met) <= len(work):
            met.append(found)
            found = next_work(trace, device, int(trace[found[0]]["start"][found[1]]), *found, 1)
        assert met == [(WORK_TABLES[t], r) for t, r in zip(work.table.tolist(), work.row.tolist(), strict=True)]


@given(traces())
def test_gaps_are_met_in_time_order_and_by_length(trace: Trace) -> None:
    for device, gaps in enumerate(trace.index(Gaps).devices):
        spans = list(zip(gaps.start.tolist(), gaps.end.tolist(), strict=True))
        met, time = [], -1
        while (found := next_gap(trace, device, time, 1)) is not None:
            met.append(found)
            time = found[0]
        assert met == spans
        longest, current = [], None
        for _ in spans:
            found = costliest_gap(trace, device, current)
            assert found is not None
            longest.append(found)
            current = found[0]
        assert sorted(longest) == spans
        assert [b - a for a, b in longest] == sorted((b - a for a, b in spans), reverse=True)
        assert (costliest_gap(trace, device, current) is None) == (not spans)


@given(traces())
def test_launches_lead_there_and_back(trace: Trace) -> None:
    for table in WORK_TABLES:
        for row in range(len(trace[table])):
            call = launch_of(trace, table, row)
            if call >= 0:
                assert (table, row) in launched_by(trace, call)
                assert details(trace, "host_calls", call).facts
    assert launch_of(trace, "host_calls", 0) == -1


@given(traces())
def test_every_record_has_its_place_and_its_details(trace: Trace) -> None:
    for table in (*WORK_TABLES, *HOST_TABLES):
        for row in range(len(trace[table])):
            place = place_of(trace, table, row)
            assert place is not None
            assert place[1:] == tuple(int(times[row]) for times in spans(trace, table))
            found = details(trace, table, row)
            facts = {fact.label: fact for fact in found.facts}
            assert facts["duration"].exact == f"{place[2] - place[1]:,} ns"
    assert place_of(trace, "requests", 0) is None
    assert place_of(trace, "kernels", 10**6) is None


def test_details_say_how_long_a_kernel_waited() -> None:
    drawn = draw(
        """
        gpu 0 stream 7    .....AAA
        thread 1 calls    LL......
        """
    )
    found = details(drawn.trace, "kernels", 0)
    facts = {fact.label: fact for fact in found.facts}
    assert facts["queue delay"].exact == "3,000 ns"
    assert facts["from launch"].exact == "5,000 ns"
    assert facts["launch call"].text == "cudaLaunchKernel"
    assert facts["call took"].exact == "2,000 ns"
    call = {fact.label: fact for fact in details(drawn.trace, "host_calls", 0).facts}
    assert call["queue delay"].exact == "3,000 ns"


def test_details_of_a_gap_say_why() -> None:
    drawn = draw(
        """
        gpu 0 stream 7   ...AAAA.....BB
        thread 1 calls   L....SSSSSL...
        """
    )
    facts = {fact.label: fact for fact in details(drawn.trace, "causes", 0, device=0).facts}
    assert facts["whole gap"].exact == "5,000 ns"
    assert "waited for the GPU" in facts["why"].text
    assert facts["duration"].exact == "3,000 ns"


@given(traces())
def test_the_causes_of_a_gap_add_up_to_it(trace: Trace) -> None:
    for device, gaps in enumerate(trace.index(Gaps).devices):
        for row in range(len(gaps)):
            facts = {fact.label: fact for fact in details(trace, "gaps", row, device).facts}
            parts = [int(facts[cause].exact.split()[0].replace(",", "")) for cause in CAUSES if cause in facts]
            assert sum(parts) == gaps.end[row] - gaps.start[row]


def test_a_range_adds_up() -> None:
    drawn = draw(
        """
        gpu 0 stream 7   ...AAAA.....BB
        thread 1 calls   L....SSSSSL...
        """
    )
    found = range_statistics(drawn.trace, Window(0, drawn.trace.end_ns), 0)
    assert found.busy.busy_ns == 6000
    assert found.busy.idle_ns == sum(found.idle.values()) == 5000
    assert sum(row.total_ns for row in found.kernels) == 6000
