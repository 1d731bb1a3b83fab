"""The KV pages view, as a user meets it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inspector.analysis.page_replay import USED
from inspector.analysis.pages import busiest, counts_at, page_table, pages_at
from inspector.trace.builder import Builder
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace, TraceInfo
from tests.analysis.test_pages import Event, add_events
from tests.engine_traces import Setup, engine_trace
from tests.ui.user import User
from ui.export import write_png, write_svg
from ui.pages.figures import figure_lines
from ui.views.pages import KvPages
from ui.views.view import State


@pytest.fixture(scope="module")
def engine() -> Trace:
    return engine_trace(Setup(seed=5, blocks=30, host_blocks=4))


def open_pages(user: User, trace: Trace) -> KvPages:
    user.session.set_trace(trace)
    return user.view(KvPages)


def used_page(view: KvPages, alone: bool = True) -> int:
    shown = view._shown
    assert shown is not None
    pages = shown.pages
    return int(np.flatnonzero((pages.status == USED) & ((pages.refs == 1) | (not alone)))[0])


def click(view: KvPages, page: int) -> None:
    QTest.mouseClick(view.map, Qt.MouseButton.LeftButton, pos=view.map.place_of(page))
    QApplication.processEvents()


def test_a_trace_without_page_records_says_how_to_get_them(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "decode_server.sqlite")
    user.window.show_view("pages")
    view = user.window.views["pages"]
    assert view.state is State.NO_DATA
    assert "No KV pages to show" in view.message.text


def test_it_opens_on_the_busiest_moment_and_says_its_figures(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    counts = counts_at(engine, busiest(engine))
    assert f"{counts.used:,} of {counts.blocks:,}" in view.figures.accessibleDescription()
    assert view.where.full.startswith("at ")
    assert "busiest" in view.where.full
    assert f"{counts.used} in use" in view.map.accessibleDescription()


def test_a_click_on_a_page_selects_who_holds_it_and_shows_the_page_table(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    page = used_page(view)
    click(view, page)
    pages = pages_at(engine, busiest(engine))
    row = int(pages.owner[page])
    selection = user.session.selection
    assert (selection.page, selection.request) == (page, int(engine["requests"]["request"][row]))
    table = page_table(engine, pages, row)
    model = view.table.model()
    assert [int(model.index(at, 1).data().replace(",", "")) for at in range(len(table))] == table.block.tolist()
    assert int(model.index(view.table.currentIndex().row(), 1).data()) == page
    assert view.side.key == "table"
    assert user.sees(f"Page table of request {user.session.selection.request}")
    # A row of the table leads back to its page.
    view.table.setCurrentIndex(model.index(0, 0))
    assert user.session.selection.page == int(table.block[0])
    assert user.session.selection.request == selection.request


def test_a_selected_request_stands_out_and_is_found_at_another_moment(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    shown = view._shown
    assert shown is not None
    held = {int(row) for row in shown.pages.owner.tolist()}
    elsewhere = next(row for row in range(len(engine["requests"])) if row not in held)
    request = int(engine["requests"]["request"][elsewhere])
    user.session.select(Selection(request=request))
    assert view._shown is not None
    assert view._shown.time != shown.time
    assert view._shown.mine is not None
    assert view._shown.mine.sum() == len(page_table(engine, view._shown.pages, elsewhere)) > 0
    user.session.select(Selection())
    assert view._shown.mine is None


def test_what_moved_to_the_host_stands_in_rows_of_its_own(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    view.seek(engine.end_ns)
    shown = view._shown
    assert shown is not None
    figures = shown.figures
    assert figures.offloaded
    said = view.figures.accessibleDescription()
    assert f"evicted {figures.evicted:,} so far" in said
    assert f"to host {figures.offloaded:,} so far · {figures.restored:,} back" in said
    assert f"dropped there {figures.host_dropped:,} so far" in said
    full = {
        label: text
        for label, text, _, _ in figure_lines(replace(shown, figures=replace(figures, growth=12.0, exhausted_ns=0)))
    }
    assert full["full"].startswith("now · +")


def test_dragging_the_line_and_stepping_move_the_moment(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    scrubber = view.scrubber
    ends = engine["iterations"]["end"].tolist()
    place = QPoint(round(scrubber.x_of(ends[10])), scrubber.height() // 2)
    QTest.mousePress(scrubber, Qt.MouseButton.LeftButton, pos=place)
    QTest.mouseRelease(scrubber, Qt.MouseButton.LeftButton, pos=place)
    assert view._shown is not None
    first = view._shown.time
    assert abs(scrubber.x_of(first) - place.x()) <= 1
    scrubber.setFocus()
    user.press("Right")
    assert view._shown.time == min(end for end in ends if end > first)
    user.press("Left")
    user.press("Left")
    assert view._shown.time == sorted(end for end in ends if end <= first)[-2]
    user.press("PgDown")
    assert view._shown.time > first
    user.click("Busiest")
    assert view._shown.time == busiest(engine)


def test_an_iteration_that_is_selected_elsewhere_is_the_moment(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    iterations = engine["iterations"]
    user.session.select(Selection(iteration=int(iterations["iteration"][12])))
    assert view._shown is not None
    assert view._shown.time == int(iterations["end"][12])
    user.session.select(Selection(iteration=10**9))
    assert view._shown.time == int(iterations["end"][12])


def test_playing_goes_on_until_the_end_and_stops(
    start_window: Callable[..., User], engine: Trace, qtbot: QtBot
) -> None:
    user = start_window()
    view = open_pages(user, engine)
    view.seek(engine.end_ns - engine.end_ns // 50)
    view.scrubber.setFocus()
    user.press("Space")
    assert view.scrubber.playing
    assert user.sees("Stop")
    qtbot.waitUntil(lambda: not view.scrubber.playing, timeout=10_000)
    assert user.sees("Play")
    assert view._shown is not None
    assert view._shown.time == engine.end_ns


def test_colours_figures_and_prefixes_can_be_chosen(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    for title, label in (
        ("Age", "older"),
        ("Holders", "3 to 4"),
        ("Place", "in use"),
        ("Request", "shared by several"),
    ):
        user.click(f"Colour pages by: {title}")
        assert label in view.legend.accessibleDescription()
    user.click("Beside the page map: Prefixes")
    assert view._shown is not None
    tree = view._shown.tree
    assert tree is not None
    assert f"{len(tree.tree)} contents" in view.tree.summary()
    view.tree.setFocus()
    user.press("Right")
    assert user.session.selection.page == int(tree.tree.block[tree.node[0, 0]])
    row = int(tree.node[0, 0])
    assert any("held by" in label for label, _ in view.tree.hint(row))


def test_arrow_keys_go_from_page_to_page(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    view.map.setFocus()
    user.press("Right")
    assert user.session.selection.page == 0
    user.press("Right")
    assert user.session.selection.page == 1
    user.press("Down")
    columns = view.map.layout_of_device().columns
    assert user.session.selection.page == min(1 + columns, 29) if 1 + columns < 30 else 1


def test_what_stands_under_the_pointer_is_told(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    page = used_page(view)
    lines = dict(view.map.hint(view.map.place_of(page)))
    assert lines[""] == f"page {page}"
    assert lines["held by"].startswith("request ")
    layout = view.map.layout_of_device()
    ratio = view.map.devicePixelRatioF()
    below = QPoint(2, round(layout.height / ratio) + view.map._caption() + 2)
    assert view.map.page_at(below) == (0, True)
    assert dict(view.map.hint(below))[""] == "host page 0"
    place = QPointF(view.scrubber.x_of(busiest(engine)), 20)
    moved = QMouseEvent(
        QEvent.Type.MouseMove, place, place, Qt.MouseButton.NoButton, Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(view.scrubber, moved)
    assert "in use" in dict(view.scrubber.hint(place.x()))


def test_larger_cells_keep_the_page_in_the_middle(user: User) -> None:
    builder = Builder()
    builder.add("pools", time=0, process=-1, blocks=64_000, host_blocks=0, tokens_per_block=32, block_bytes=-1)
    add_events(builder, [(at, at, Event("allocated", at * 7 % 64_000)) for at in range(2000)])
    view = open_pages(user, builder.build(TraceInfo((), "recording")))
    before = view.map.layout_of_device()
    assert before.count == 64_000
    view.map.setFocus()
    for _ in range(3):
        user.press("+")
    larger = view.map.layout_of_device()
    assert larger.cell > before.cell
    assert larger.height > view.map.height()
    view.map._bar.setValue(view.map._bar.maximum() // 2)
    middle = view.map.page_at(view.map.rect().center())[0]
    user.press("+")
    after = view.map.layout_of_device()
    assert after.cell > larger.cell
    assert abs(view.map.page_at(view.map.rect().center())[0] - middle) <= 2 * larger.columns
    view.map.fit()
    assert view.map.layout_of_device() == before


def test_missing_events_and_strange_ones_are_said(user: User) -> None:
    builder = Builder()
    builder.add("pools", time=0, process=-1, blocks=8, host_blocks=0, tokens_per_block=4, block_bytes=-1)
    rows = [(0, 0, Event("allocated", 0)), (1, 1, Event("allocated", 1)), (5, 2, Event("allocated", 2))]
    add_events(builder, [*rows, (6, 3, Event("allocated", 2)), (7, 4, Event("freed", -3))])
    view = open_pages(user, builder.build(TraceInfo((), "recording")))
    view.seek(4)
    said = view.figures._notes.text()
    assert "3 page events are missing" in said
    assert "1 event did not fit" in said
    assert "named a page that can be none" in said
    assert "7 unknown" in view.map.accessibleDescription()
    assert "unknown" in view.legend.accessibleDescription()


def test_a_trace_that_grows_is_followed_until_a_moment_is_sought(user: User, engine: Trace) -> None:
    def grown(generation: int) -> Trace:
        trace = engine_trace(Setup(seed=5, blocks=30, host_blocks=4, work=8 * generation))
        trace.generation = generation
        return trace

    view = open_pages(user, grown(1))
    assert view._shown is not None
    assert view._shown.time == user.session.whole.end or view._shown.time == view._shown.trace.end_ns
    assert "newest" in view.where.full
    user.session.set_trace(grown(2))
    assert view._shown.trace.generation == 2
    assert view._shown.time == view._shown.trace.end_ns
    view.seek(1_000_000)
    user.session.set_trace(grown(3))
    assert (view._shown.trace.generation, view._shown.time) == (3, 1_000_000)
    user.click("Follow")
    assert view._shown.time == view._shown.trace.end_ns
    view.seek(1_000_000)
    assert "newest" not in view.where.full
    # Asked for elsewhere, of the timeline.
    user.session.follow_end()
    assert view._shown.time == view._shown.trace.end_ns
    assert "newest" in view.where.full


def test_a_request_selected_beside_an_iteration_does_not_move_the_moment(user: User, engine: Trace) -> None:
    view = open_pages(user, engine)
    iterations = engine["iterations"]
    user.session.select(Selection(iteration=int(iterations["iteration"][3])))
    assert view._shown is not None
    at = int(iterations["end"][3])
    assert view._shown.time == at
    late = int(engine["requests"]["request"][np.argmax(engine["requests"]["arrival"])])
    user.session.select(user.session.selection.but(request=late))
    assert view._shown.time == at
    assert view._shown.table is not None
    assert len(view._shown.table) == 0


def test_a_selected_request_that_ends_does_not_hold_the_view_back(user: User) -> None:
    def grown(generation: int) -> Trace:
        trace = engine_trace(Setup(seed=5, blocks=30, host_blocks=4, work=8 * generation))
        end = int(trace["iterations"]["end"][15 * generation])
        rows = trace["page_events"]["time"] <= end
        tables = {**trace.tables, "page_events": trace["page_events"].take(rows)}
        return Trace(replace(trace.info, duration_ns=end), tables, trace.names, trace.quality, generation)

    view = open_pages(user, grown(1))
    shown = view._shown
    assert shown is not None
    row = int(shown.pages.owner[used_page(view)])
    request = int(shown.trace["requests"]["request"][row])
    user.session.select(Selection(request=request))
    for generation in (2, 3):
        # What a recording that grows does: the selection stays.
        user.session.trace = grown(generation)
        user.session.trace_changed.emit()
    assert view._shown is not None
    assert view._shown.table is not None
    assert len(view._shown.table) == 0
    assert view._shown.time == view._shown.trace.end_ns
    user.click("Beside the page map: Page table")
    assert user.sees(f"Request {request} holds no page")


def test_numbers_and_pictures_can_be_had(user: User, engine: Trace, tmp_path: Path) -> None:
    view = open_pages(user, engine)
    rows = view.rows_for_copy()
    assert rows is not None
    assert len(list(rows.rows)) == 30
    click(view, used_page(view))
    table = view.rows_for_copy()
    assert table is not None
    assert list(table.heads)[:2] == ["Logical", "Physical"]
    write_png(tmp_path / "pages.png", view.picture())
    write_svg(tmp_path / "pages.svg", view.picture(), view.TITLE)
    assert (tmp_path / "pages.png").stat().st_size > 2000
    assert "<svg" in (tmp_path / "pages.svg").read_text()


@pytest.mark.parametrize("presenter", [False, True])
def test_it_fits_where_there_is_little_room(user: User, engine: Trace, presenter: bool) -> None:
    if presenter:
        user.window.theme.toggle_presenter()
    view = open_pages(user, engine)
    assert view.minimumSizeHint().width() <= 1366
    assert view.map.width() >= view.map.minimumSizeHint().width()
    user.session.look(Window(0, engine.end_ns // 3))
    assert view.scrubber.x_of(0) < view.scrubber.x_of(engine.end_ns // 3)
    user.window.theme.toggle()
    assert view.state is State.ANSWER
