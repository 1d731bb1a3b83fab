"""What tables and figures say, against sums that look at every gap."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytestqt.modeltest import ModelTester

from inspector.analysis.busy import busy
from inspector.analysis.causes import CAUSES, UNCHANGED, Causes
from inspector.analysis.gaps import Gaps
from inspector.analysis.hosts import UNMARKED, group_of
from inspector.analysis.kernels import kernels
from inspector.readers import open_trace
from inspector.trace.selection import Window
from inspector.trace.trace import Trace
from tests.drawn import draw
from ui.figures import Cause, figures
from ui.gap_rows import Answer, Options, find_gap, gap_rows
from ui.gap_table import GAP_COLUMNS, GapList, GroupList
from ui.headline_words import host_words
from ui.kernel_rows import COLUMNS, KernelList, kernel_rows
from ui.kernel_rows import Options as KernelOptions
from ui.widgets.graphics import Slices, Spark, Spread
from ui.widgets.table import TableModel


@pytest.fixture(scope="module")
def sample(sample_traces: Path) -> Trace:
    return open_trace(sample_traces / "planted_causes.sqlite")


def naive_slices(trace: Trace, device: int, window: Window | None) -> list[list[tuple[int, int, int]]]:
    """For each gap (cause, host, ns) of its slices inside the window."""
    found = trace.index(Causes).devices[device]
    gaps: list[list[tuple[int, int, int]]] = [[] for _ in range(len(trace.index(Gaps).devices[device]))]
    for at in range(len(found)):
        part = Window(int(found.start[at]), int(found.end[at]))
        part = part if window is None else part.clipped(window.start, window.end)
        if part.length:
            gaps[found.gap[at]].append((int(found.cause[at]), int(found.host[at]), part.length))
    return gaps


@st.composite
def pictures(draw_from: st.DrawFn) -> str:
    """A stream and the thread that launches its work, with waits and allocations between."""
    work = draw_from(st.text("AB.", max_size=30)) + "A"
    launches = len(re.findall("A+|B+", work))
    calls = draw_from(st.permutations(["L"] * launches + list(draw_from(st.text("SM.", max_size=20)))))
    # Neighbours need different letters to be two calls.
    letters = iter("Ll" * launches)
    text = "".join(next(letters) if call == "L" else call for call in calls)
    late = draw_from(st.integers(0, len(text)))
    return f"\n    gpu 0 stream 7   {'.' * late}{work}\n    thread 1 calls   {text}\n"


SPANS = st.none() | st.tuples(st.integers(-2, 50), st.integers(0, 50)).map(
    lambda span: Window(span[0] * 1000, (span[0] + span[1]) * 1000 + 500)
)
GROUPS = st.sampled_from(["gap", "cause", "host", "kernel", "iteration"])


@settings(max_examples=60)
@given(picture=pictures(), window=SPANS, shortest=st.integers(0, 8), by=GROUPS)
def test_listed_shorter_and_apart_are_all_idle_time(
    picture: str, window: Window | None, shortest: int, by: str
) -> None:
    drawn = draw(picture)
    options = Options(by=by, min_ns=shortest * 1000)
    answer = gap_rows(drawn.trace, 0, window, options)
    gaps = [sum(ns for _, _, ns in slices) for slices in naive_slices(drawn.trace, 0, window)]
    assert answer.listed_ns + answer.shorter_ns + answer.apart_ns == answer.idle_ns == sum(gaps)
    assert answer.idle_ns == busy(drawn.trace, 0, window).idle_ns
    assert answer.shorter == sum(0 < ns < options.min_ns for ns in gaps)
    assert sum(ns for _, ns in answer.by_cause) == answer.idle_ns
    content = answer.content
    exact = [content.exact(row, 1) for row in range(len(content))]
    assert sum(value for value in exact if isinstance(value, int)) == answer.listed_ns
    assert exact == sorted(exact, key=lambda value: -int(value or 0)) or by == "gap"
    if isinstance(content, GapList):
        assert sorted(int(value or 0) for value in exact) == sorted(ns for ns in gaps if ns and ns >= options.min_ns)


@pytest.mark.parametrize("window", [None, Window(3_000_000, 9_000_001)])
@pytest.mark.parametrize("device", [0, 1])
def test_the_main_cause_has_most_time_in_its_gap(sample: Trace, device: int, window: Window | None) -> None:
    answer = gap_rows(sample, device, None, Options())
    content = answer.content
    assert isinstance(content, GapList)
    naive = naive_slices(sample, device, None)
    for row in range(len(content)):
        totals: dict[int, int] = {}
        for cause, _, ns in naive[int(content.rows[row])]:
            totals[cause] = totals.get(cause, 0) + ns
        main = CAUSES.index(str(content.exact(row, 3)))
        assert totals[main] == max(totals.values())
        graphic = content.graphic(row, 2)
        assert isinstance(graphic, Slices)
        assert sum(share for share, _ in graphic.parts) == pytest.approx(1)


@pytest.mark.parametrize("column", [column for column in GAP_COLUMNS if column.key])
@pytest.mark.parametrize("descending", [False, True])
def test_gaps_are_in_the_order_that_was_asked_for(sample: Trace, column: object, descending: bool) -> None:
    at = GAP_COLUMNS.index(column)  # type: ignore[arg-type]
    content = gap_rows(sample, 0, None, Options(sort=GAP_COLUMNS[at].key, descending=descending)).content
    found = [content.exact(row, at) for row in range(len(content))]
    assert len(found) > 10
    keys = [-1 if value is None else value.casefold() if isinstance(value, str) else value for value in found]
    assert keys == sorted(keys, reverse=descending)  # type: ignore[type-var]


def test_one_group_alone_is_the_gaps_with_time_under_it(sample: Trace) -> None:
    naive = naive_slices(sample, 0, None)
    for cause in range(len(CAUSES)):
        answer = gap_rows(sample, 0, None, Options(only=("cause", cause)))
        content = answer.content
        assert isinstance(content, GapList)
        assert sorted(content.rows.tolist()) == [
            at for at, slices in enumerate(naive) if any(each == cause for each, _, _ in slices)
        ]
        assert answer.listed_ns + answer.apart_ns == answer.idle_ns


def test_from_gap_to_gap(sample: Trace) -> None:
    gaps = sample.index(Gaps).devices[0]
    seen = []
    at = find_gap(sample, 0, None, -1, 1)
    while at is not None:
        seen.append(at.span)
        at = find_gap(sample, 0, at.span.start, at.span.start, 1)
    assert [span.start for span in seen] == gaps.start.tolist()
    longest = find_gap(sample, 0, None, 0, 0)
    assert longest is not None
    assert longest.span.length == int((gaps.end - gaps.start).max())


@pytest.mark.parametrize("device", [0, 1])
@pytest.mark.parametrize("window", [None, Window(2_000_000, 5_000_000), Window(0, 1)])
def test_the_three_figures_against_every_slice(sample: Trace, device: int, window: Window | None) -> None:
    found = figures(sample, device, window)
    naive = naive_slices(sample, device, window)
    totals: dict[int, int] = {}
    for slices in naive:
        for cause, _, ns in slices:
            totals[cause] = totals.get(cause, 0) + ns
    assert sum(totals.values()) == found.busy.idle_ns
    if not totals:
        assert found.cause is None
        assert found.next is None
        return
    assert found.cause is not None
    assert found.next is not None
    top = found.cause.cause
    assert found.cause.total_ns == totals[top] == max(totals.values())
    pieces: dict[tuple[int, int], int] = {}
    for at, slices in enumerate(naive):
        for cause, _, ns in slices:
            pieces[at, cause] = pieces.get((at, cause), 0) + ns
    ours = {piece: ns for piece, ns in pieces.items() if CAUSES[piece[1]] not in UNCHANGED} or pieces
    assert found.next.cause_ns == max(ours.values())
    gaps = sample.index(Gaps).devices[device]
    gap = gaps.start.tolist().index(found.next.span.start)
    assert found.next.span.end == gaps.end[gap]
    assert ours[gap, found.next.cause] == found.next.cause_ns
    hosts: dict[str, int] = {}
    for slices in naive:
        for cause, host, ns in slices:
            if cause == top and top <= 8:
                label = group_of(sample.names[host]) if host >= 0 else UNMARKED
                hosts[label] = hosts.get(label, 0) + ns
    assert found.cause.host_ns == max(hosts.values(), default=0)
    assert (found.cause.host in hosts) == (top <= 8)


def test_a_host_is_named_only_where_the_host_was_late_and_as_most_only_from_half_on() -> None:
    assert host_words(Cause(7, 100, "decode", 50)) == "most of the host code in decode"
    assert host_words(Cause(7, 1000, "decode", 121)) == "12.1 % of the host code in decode"
    assert host_words(Cause(CAUSES.index("queue latency"), 100, "", 0)) == "launched in time"
    assert host_words(Cause(CAUSES.index("graph internal"), 100, "", 0)) == "no host call behind it"


def test_causes_say_what_their_names_do_not() -> None:
    drawn = draw(
        """
    gpu 0 stream 7             .AA...............BB
    gpu 1 stream 7 process 2   ...........CCCC.....
    thread 1 calls             L...............LL..
    thread 1 process 2 calls   L...................
    thread 1 nvtx              ..QQQQXXXRRRRRRYY...
    thread 1 os                ..O..O.O............
    """,
        ranges={"X": "paused by the user", "R": "receive", "Y": "inflight probe: reading operators"},
    )
    found = gap_rows(drawn.trace, 0, None, Options()).notes
    assert {CAUSES[cause]: words for cause, words in found.items()} == {
        "no requests": "paused by the user 3.00 µs",
        "host code": "inflight's own probe 1.00 µs",
        "waiting for a peer": "meanwhile at work: GPU 1 4.00 µs, no other device 2.00 µs",
    }
    # Of a range only what lies in it.
    assert gap_rows(drawn.trace, 0, Window(7_000, 9_000), Options()).notes == {0: "paused by the user 2.00 µs"}


def test_the_next_gap_is_the_longest_piece_of_any_cause_that_can_be_changed() -> None:
    # Host code has more in total, in two gaps; the one wait for the GPU is longer than either.
    drawn = draw("""
    gpu 0 stream 7   A.....B......C.......D
    thread 1 calls   L....L......LSSSSSSL..
    """)
    found = figures(drawn.trace, 0, None)
    assert found.cause is not None
    assert found.next is not None
    assert (CAUSES[found.cause.cause], CAUSES[found.next.cause]) == ("host code", "sync")


@pytest.mark.parametrize("by", ["name", "category"])
@pytest.mark.parametrize("window", [None, Window(1_000_000, 6_000_000)])
def test_kernels_are_those_of_the_analysis_and_their_time_lies_where_it_was(
    sample: Trace, by: str, window: Window | None
) -> None:
    content = kernel_rows(sample, window, KernelOptions(by, 0))  # type: ignore[arg-type]
    assert list(content.rows) == kernels(sample, by, window, 0)  # type: ignore[arg-type]
    for row in range(len(content)):
        drawings = {COLUMNS[at].title: content.graphic(row, at) for at in range(len(COLUMNS))}
        spark, spread = drawings["Over time"], drawings["Spread"]
        assert isinstance(spark, Spark)
        assert isinstance(spread, Spread)
        assert max(spark.heights) == 1
        assert min(spark.heights) >= 0
        assert 0 <= spread.low <= spread.median <= spread.high <= spread.longest <= 1


def test_a_spark_line_stands_where_the_kernel_ran() -> None:
    drawn = draw("\n    gpu 0 stream 7   A.......B.......................................A\n", unlinked="AB")
    content = kernel_rows(drawn.trace, None, KernelOptions())
    heights = {row.name: content.steps[at] for at, row in enumerate(content.rows)}
    for name, columns in (("A", (0, 48)), ("B", (8,))):
        steps = {column * 1000 * 48 // drawn.trace.end_ns for column in columns}
        assert {at for at, height in enumerate(heights[name].tolist()) if height} == steps


def test_kernels_filtered_and_sorted(sample: Trace) -> None:
    content = kernel_rows(sample, None, KernelOptions())
    for column in (column for column in COLUMNS if column.key):
        at = COLUMNS.index(column)
        for down in (True, False):
            found = [content.arranged(column.key, down, None).exact(row, at) for row in range(len(content))]
            keys = [-1 if value is None else value.casefold() if isinstance(value, str) else value for value in found]
            assert keys == sorted(keys, reverse=down)  # type: ignore[type-var]
    kept = content.arranged("name", False, re.compile("gemm|nvjet", re.IGNORECASE))
    wanted = {row.name for row in content.rows if re.search("(?i)gemm|nvjet", row.name)}
    assert {row.name for row in kept.rows} == wanted
    assert len(kept.steps) == len(kept)


@pytest.mark.parametrize("by", ["gap", "cause", "host", "kernel", "iteration"])
def test_tables_are_what_qt_expects(sample: Trace, by: str, qtmodeltester: ModelTester) -> None:
    answer: Answer = gap_rows(sample, 0, None, Options(by=by))
    assert isinstance(answer.content, GapList if by == "gap" else GroupList)
    model = TableModel()
    qtmodeltester.check(model)
    model.set_content(answer.content, "total", True)
    qtmodeltester.check(model)
    model.set_content(None)
    model.deleteLater()


def test_the_table_of_kernels_is_what_qt_expects(sample: Trace, qtmodeltester: ModelTester) -> None:
    model = TableModel()
    content: KernelList = kernel_rows(sample, None, KernelOptions())
    model.set_content(content)
    qtmodeltester.check(model)
    for row in range(len(content)):
        for column in range(len(COLUMNS)):
            tip = model.data(model.index(row, column), 3)
            value = content.exact(row, column)
            assert (tip is None) == (value is None)
            assert value is None or not isinstance(value, int) or f"{value:,}" in tip
    model.deleteLater()
