"""Old page events that are left out change nothing of what is said of the pages later."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.page_log import PageLog
from inspector.analysis.page_replay import FREE, KEPT, Replay
from inspector.analysis.pages import Pages, page_table, pages_at
from inspector.trace.page_lives import still_needed
from inspector.trace.table import Table
from inspector.trace.trace import Kept, Trace
from tests.engine_traces import Setup, engine_trace


def without(trace: Trace, table: Table, kept: Kept | None = None) -> Trace:
    """The trace with another table of page events."""
    found = Trace(trace.info, {**trace.tables, "page_events": table}, trace.names, trace.quality)
    found.kept = kept or Kept()
    return found


def taken(table: Table, rows: npt.NDArray[np.bool_]) -> Table:
    return Table(table.name, {name: values[rows] for name, values in table.columns.items()})


def forgotten(trace: Trace, before: int) -> Trace:
    """As a run that goes on forgets."""
    table = trace["page_events"]
    keep, since, known = still_needed(table, before, trace.kept.page_sequence, trace.kept.pages_known)
    return without(trace, taken(table, keep), Kept(before, since, known))


def said(trace: Trace, pages: Pages) -> dict[str, list[object]]:
    """All that is shown of the pages, in words that do not depend on which events are there."""
    log = trace.index(Replay).log
    hashes = log.column(trace, "hash")
    sequence = np.append(log.sequence, -1)
    owned = pages.status != FREE
    return {
        "counts": [pages.counts],
        "status": pages.status.tolist(),
        "refs": pages.refs.tolist(),
        "owner": pages.owner.tolist(),
        "since": np.where(owned, pages.since, -1).tolist(),
        "hash": np.where(pages.content >= 0, np.append(hashes, 0)[pages.content], 0).tolist(),
        "host": pages.host_status.tolist(),
        "host since": np.where(pages.host_status == KEPT, pages.host_since, -1).tolist(),
        "host hash": np.where(pages.host_content >= 0, np.append(hashes, 0)[pages.host_content], 0).tolist(),
        "held": sorted(sequence[pages.held].tolist()),
        "tables": [
            (table.index.tolist(), table.block.tolist(), table.filled.tolist())
            for table in (page_table(trace, pages, row) for row in range(len(trace["requests"])))
        ],
    }


setups = st.builds(
    Setup,
    seed=st.integers(0, 1 << 16),
    blocks=st.integers(16, 40),
    host_blocks=st.integers(0, 8),
)


@settings(max_examples=40, deadline=None)
@given(setups, st.lists(st.floats(0.05, 1.0), min_size=1, max_size=4), st.data())
def test_what_is_forgotten_changes_nothing_later(setup: Setup, shares: list[float], data: st.DataObject) -> None:
    trace = engine_trace(setup)
    size = len(trace["page_events"])
    lost = []
    if data.draw(st.booleans(), "holes"):
        lost = data.draw(st.lists(st.integers(0, max(size - 1, 0)), max_size=3), "lost")
        trace = without(trace, taken(trace["page_events"], ~np.isin(np.arange(size), lost)))
    end = trace.end_ns
    short = trace
    for share in sorted(shares):
        before = round(end * share)
        short = forgotten(short, before)
        times = trace["page_events"]["time"]
        for time in {before, *times[times >= before][:: max(size // 10, 1)].tolist(), end}:
            found, wanted = pages_at(short, time), pages_at(trace, time)
            if lost:
                # Where a page was not known from its beginning, its holders are those that were seen since.
                sure = wanted.certain
                assert found.certain[sure].all()
                assert found.status[sure].tolist() == wanted.status[sure].tolist()
                assert found.refs[sure].tolist() == wanted.refs[sure].tolist()
                assert found.owner[sure].tolist() == wanted.owner[sure].tolist()
            else:
                assert said(short, found) == said(trace, wanted)
        log = trace.index(PageLog)
        missing = int(np.count_nonzero(log.time[log.holes] >= before)) if len(log) else 0
        assert len(short.index(PageLog).holes) <= missing + 1


def test_what_is_missing_where_it_is_cut_is_missing_from_the_next_event_on() -> None:
    whole = engine_trace(Setup(seed=188, blocks=21, host_blocks=5))
    table = whole["page_events"]
    trace = without(whole, taken(table, table["sequence"] != 150))
    times = trace["page_events"]["time"]
    before = (int(times[149]) + int(times[150])) // 2
    short = forgotten(forgotten(trace, before), before)
    for time in (before, int(times[150])):
        assert pages_at(short, time).counts == pages_at(trace, time).counts
    assert pages_at(trace, before).counts.unknown == 0
    assert pages_at(trace, int(times[150])).counts.unknown > 0
    assert short.index(PageLog).missing == 1


def test_of_a_page_that_was_shared_a_thousand_times_few_events_stay() -> None:
    setup = Setup()
    trace = engine_trace(setup)
    table = trace["page_events"]
    first = {name: values[:1] for name, values in table.columns.items()}
    kinds = [1, 2] + [3, 0] * 1000
    many = len(kinds)
    columns = {name: np.repeat(values, many) for name, values in first.items()}
    columns["kind"] = np.array(kinds, np.int8)
    columns["sequence"] = np.arange(1, many + 1)
    columns["time"] = np.arange(many) * 10
    keep, since, known = still_needed(Table("page_events", columns), 10 * many, -1, True)
    assert keep.sum() == 4
    assert (since, known) == (many + 1, True)


events = st.tuples(*(st.integers(*bounds) for bounds in ((-2, 9), (-1, 3), (0, 6), (-2, 5), (0, 1), (0, 3))))


@given(st.lists(events, max_size=80), st.integers(0, 30))
def test_events_that_make_no_sense_are_kept_or_not_but_never_an_error(rows: list[tuple[int, ...]], before: int) -> None:
    names = ("block", "request", "kind", "other", "tier", "sequence")
    columns = {name: np.array([row[at] for row in rows], np.int64) for at, name in enumerate(names)}
    columns["time"] = np.arange(len(rows))
    columns["sequence"] = np.cumsum(columns["sequence"])
    keep, since, _ = still_needed(Table("page_events", columns), before, -(1 << 63), True)
    assert len(keep) == len(rows)
    assert keep[columns["sequence"] >= since].all()
