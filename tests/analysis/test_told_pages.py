"""Pages in use by records of iterations, against counting with sets: what is told holds, what is not stays open."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.pages import busiest, counts_at, pages_at
from inspector.analysis.told_pages import ToldPages
from inspector.picture.occupancy import occupancy
from inspector.trace.builder import Builder
from inspector.trace.schema import PAGE_EVENTS, SCHEMAS
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import engine_trace
from ui.pages.figures import figure_lines
from ui.pages.moment import Wanted, moment

_SIZE = 12


@st.composite
def states(draw: st.DrawFn) -> tuple[int, set[int], set[int], bool]:
    """A pool, who is in use, who holds contents, and whether the engine tells how many of the latter are free."""
    size = draw(st.integers(1, _SIZE))
    pages = st.sets(st.integers(0, size - 1))
    return size, draw(pages), draw(pages), draw(st.booleans())


def server_trace(found: list[tuple[int, set[int], set[int], bool]], size: int) -> Trace:
    """A state each 10 ns: contents change first, then the iteration that tells begins."""
    builder = Builder()
    process = builder.process(pid=1, name="server")
    events: list[tuple[int, int, str]] = []
    before: set[int] = set()
    for at, (_, _, contents, _) in enumerate(found):
        events += [(10 * at, page, "evicted") for page in sorted(before - contents)]
        events += [(10 * at, page, "cached") for page in sorted(contents - before)]
        before = contents
    if events:
        builder.add(
            "page_events",
            time=[time for time, _, _ in events],
            sequence=np.arange(len(events)),
            block=[page for _, page, _ in events],
            request=-1,
            kind=[PAGE_EVENTS.index(kind) for _, _, kind in events],
            index=-1,
            hash=np.array([page + 1 for _, page, _ in events], np.uint64),
        )
    builder.add("pools", process=process, time=[0], blocks=[size], host_blocks=0, tokens_per_block=32, block_bytes=-1)
    starts = 10 * np.arange(len(found)) + 1
    told = [len(contents - used) if tells else -1 for _, used, contents, tells in found]
    columns = {
        "used_blocks": [len(used) for _, used, _, _ in found],
        "free_blocks": [size - len(used) for _, used, _, _ in found],
        "cached_blocks": told,
    }
    unknown = {
        column.name: -1
        for column in SCHEMAS["iterations"].columns
        if column.name not in (*columns, "start", "end", "iteration", "process") and not column.optional
    }
    builder.add(
        "iterations",
        start=starts,
        end=starts + 5,
        iteration=np.arange(len(found)),
        process=process,
        **columns,
        **unknown,
    )
    return builder.build(TraceInfo((), "recording"))


@given(st.lists(states(), min_size=1, max_size=6))
def test_the_truth_lies_in_what_is_told(found: list[tuple[int, set[int], set[int], bool]]) -> None:
    trace = server_trace(found, _SIZE)
    told = trace.index(ToldPages)
    assert told.applies
    for time, (_, used, contents, tells) in zip(told.start.tolist(), found, strict=True):
        counts = pages_at(trace, time).counts
        cached = len(contents - used)
        assert (counts.blocks, counts.used) == (_SIZE, len(used))
        assert counts.kept <= cached <= counts.kept + counts.unknown
        assert counts.used + counts.kept + counts.unknown + counts.free == _SIZE
        assert min(counts.kept, counts.unknown, counts.free) >= 0
        if tells:
            assert (counts.kept, counts.unknown) == (cached, 0)
    assert counts_at(trace, busiest(trace)).used == max(len(used) for _, used, _, _ in found)
    window = Window(0, int(told.start[-1]) + 10)
    shown = occupancy(trace, window, 1)
    assert shown.is_told
    assert int(shown.used[0]) == max(len(used) for _, used, _, _ in found)


def test_what_is_told_in_words() -> None:
    trace = server_trace([(12, {0, 1, 2, 3}, {2, 3, 4, 5, 6}, False)], _SIZE)
    lines = {label: value for label, value, _, _ in figure_lines(moment(trace, Wanted()))}
    assert lines["in use"] == "4 of 12 · 33.3 %"
    # Five hold contents and four are in use: at least one of the others is cached.
    assert lines["can be had"] == "8 · 1 to 5 of them cached"
    assert lines["hold contents"] == "5 that can be reused"
    assert "unknown" not in lines
    early = {label: value for label, value, _, _ in figure_lines(moment(trace, Wanted(time=-5)))}
    assert early["in use"] == "not told yet"
    exact = server_trace([(12, {0, 1, 2, 3}, {2, 3, 4, 5, 6}, True)], _SIZE)
    lines = {label: value for label, value, _, _ in figure_lines(moment(exact, Wanted()))}
    assert lines["can be had"] == "8 · 5 free, 3 cached"


def test_the_busiest_moment_lies_in_the_trace() -> None:
    """A server tells of iterations from before it was asked; the trace begins where it was."""
    found = [(12, set(range(12)), set(), False), (12, {1}, set(), False), (12, {1, 2}, set(), False)]
    trace = server_trace(found, _SIZE)
    assert busiest(trace) == 1
    trace["iterations"]["start"][:] -= 9
    late = Trace(trace.info, dict(trace.tables), trace.names, trace.quality)
    assert busiest(late) == 12


def test_where_events_tell_who_holds_a_page_they_count() -> None:
    trace = engine_trace()
    assert (trace["iterations"]["used_blocks"] >= 0).any()
    assert not trace.index(ToldPages).applies
