from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from inspector.analysis.busy import busy
from inspector.analysis.causes import CAUSES, Causes
from inspector.picture.palette import INKS, category_ink, ink
from inspector.picture.tracks import Tracks
from inspector.picture.viewport import Viewport
from inspector.readers.nsys_sqlite import read
from inspector.readers.reader import silent
from inspector.trace.selection import NOTHING, Selection, Window
from inspector.trace.trace import Trace
from tests.analysis.generate import traces
from tests.drawn import Drawn, draw
from tests.ui.user import User
from ui.export import write_csv, write_svg
from ui.questions import Asker
from ui.session import Session
from ui.settings import SettingsFile
from ui.theme import Theme
from ui.timeline.headers import busy_share, iteration_owners
from ui.timeline.layout import Row
from ui.timeline.tip import tip
from ui.views.timeline import Timeline
from ui.views.view import Host, State

# What the offscreen platform says of itself.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")

SAMPLES = Path(__file__).parents[2] / "sample_traces"
Show = Callable[[Trace], Timeline]
LAUNCHES = """
    gpu 0 stream 7    ...AAAA.....BB..CC
    gpu 0 stream 13   ....dd............
    thread 1 calls    L.C..SSSSSL...L...
    thread 1 nvtx     XXXXXXXXXXXXXXXX..
    thread 1 nvtx     ....YYYY..........
    iterations        gggggggggccccccccc
"""


def sent(
    view: Timeline, kind: QEvent.Type, x: float, y: float, button: Qt.MouseButton, keys: Qt.KeyboardModifier
) -> None:
    canvas = view.canvas
    place = QPointF(x, y)
    down = button if kind in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseMove) else Qt.MouseButton.NoButton
    changed = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else button
    QApplication.sendEvent(canvas, QMouseEvent(kind, place, canvas.mapToGlobal(place), changed, down, keys))


def drag(
    view: Timeline,
    start: tuple[float, float],
    end: tuple[float, float],
    button: Qt.MouseButton = Qt.MouseButton.LeftButton,
    keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    sent(view, QEvent.Type.MouseButtonPress, *start, button, keys)
    for place in (middle, end):
        sent(view, QEvent.Type.MouseMove, *place, button, keys)
    sent(view, QEvent.Type.MouseButtonRelease, *end, button, keys)


def click(view: Timeline, x: float, y: float) -> None:
    for kind in (QEvent.Type.MouseButtonPress, QEvent.Type.MouseButtonRelease):
        sent(view, kind, x, y, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)


def wheel(view: Timeline, x: float, turned: int, keys: Qt.KeyboardModifier) -> None:
    place = QPointF(x, 200)
    event = QWheelEvent(
        place,
        view.canvas.mapToGlobal(place),
        QPointF(0, 0).toPoint(),
        QPointF(0, turned).toPoint(),
        Qt.MouseButton.NoButton,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(view.canvas, event)


def row_of(view: Timeline, kind: str, key: int = 0) -> tuple[Row, int]:
    return next(
        (row, y)
        for row, y in view.canvas.scene.rows()
        if row.track is not None and (row.track.kind, row.track.key) == (kind, key)
    )


def middle_of(view: Timeline, kind: str, key: int = 0, lane: int = 0) -> float:
    row, y = row_of(view, kind, key)
    top, bottom = view.canvas.scene.spans(row)[lane]
    return y + (top + bottom) / 2


def pixel(view: Timeline, x: float, y: float) -> str:
    return QColor(view.canvas.grab().toImage().pixel(round(x), round(y))).name()


@pytest.fixture
def show(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> Iterator[Show]:
    settings = SettingsFile(tmp_path / "settings.json")
    settings.values.theme = "light"
    asker = Asker(synchronous=True)
    theme = Theme(qapp, settings)
    session = Session(asker, settings)

    def with_trace(trace: Trace) -> Timeline:
        view = Timeline(Host(session, asker, theme, settings))
        qtbot.addWidget(view)
        view.resize(1200, 800)
        view.show()
        session.set_trace(trace)
        assert view.state is State.ANSWER
        return view

    yield with_trace
    session.close()


@pytest.fixture
def shown(show: Show) -> Timeline:
    return show(draw(LAUNCHES).trace)


@pytest.fixture
def drawn() -> Drawn:
    return draw(LAUNCHES)


@pytest.fixture
def view(show: Show, drawn: Drawn) -> Timeline:
    return show(drawn.trace)


def x_of(view: Timeline, drawn: Drawn, column: float) -> float:
    return view.canvas.scene.x(drawn.at(0) + column * drawn.unit)


def column(drawn: Drawn, text: float) -> float:
    """Columns count from the first character of the drawn rows."""
    return drawn.first + text


def test_kernels_have_the_colour_of_their_category_and_idle_has_none(view: Timeline, drawn: Drawn) -> None:
    y = middle_of(view, "stream", 0)
    ground = view.theme.tokens.surface
    names = drawn.trace["kernels"]["name"]
    assert len(names) == 3
    from inspector.analysis.categories import Categories

    colour = INKS[category_ink(int(drawn.trace.index(Categories).of_name[names[0]]))].light.lower()
    # Below the text, right of the edge.
    top = row_of(view, "stream", 0)[1] + view.canvas.scene.spans(row_of(view, "stream", 0)[0])[0][0] + 1
    assert pixel(view, x_of(view, drawn, column(drawn, 5)), top) == colour
    assert pixel(view, x_of(view, drawn, column(drawn, 9.4)), y) == ground


def test_the_idle_strip_is_coloured_by_cause_and_the_busy_strip_is_full_or_empty(view: Timeline, drawn: Drawn) -> None:
    row, y = row_of(view, "busy")
    assert pixel(view, x_of(view, drawn, column(drawn, 5)), y + row.height / 2) == INKS[ink("busy")].light.lower()
    assert pixel(view, x_of(view, drawn, column(drawn, 9.4)), y + row.height / 2) == view.theme.tokens.surface
    row, y = row_of(view, "causes")
    sync = INKS[ink("sync")].light.lower()
    assert pixel(view, x_of(view, drawn, column(drawn, 9.4)), y + view.canvas.scene.spans(row)[0][0] + 1) == sync


def test_while_an_answer_is_outstanding_the_old_picture_moves_along(view: Timeline, drawn: Drawn) -> None:
    row, y = row_of(view, "busy")
    middle, busy_ink = y + row.height / 2, INKS[ink("busy")].light.lower()
    scene = view.canvas.scene
    before = scene.pictures
    for window in (Window(2000, 12_000), Window(4500, 5000)):
        view.canvas.set_window(Viewport(window, scene.viewport.width))
        assert pixel(view, x_of(view, drawn, column(drawn, 4.83)), middle) == busy_ink
    view.canvas.set_window(Viewport(Window(2000, 14_000), scene.viewport.width))
    assert pixel(view, x_of(view, drawn, column(drawn, 9.4)), middle) == view.theme.tokens.surface
    assert scene.pictures is before


def test_the_share_in_view_is_that_of_the_analysis(view: Timeline, drawn: Drawn) -> None:
    for window in (view.session.whole, Window(1234, 8321), Window(4500, 4600), Window(8000, 9000)):
        view.session.look(window)
        inside = max(min(window.end, drawn.trace.end_ns), window.start)
        wanted = busy(drawn.trace, 0, Window(window.start, inside)).busy_ns / window.length
        assert busy_share(view.canvas.scene, "device 0") == pytest.approx(wanted, abs=1e-12)


def test_a_click_selects_and_the_panel_says_exactly_what(view: Timeline, drawn: Drawn) -> None:
    click(view, x_of(view, drawn, column(drawn, 5)), middle_of(view, "stream", 0))
    selection = view.session.selection
    assert (selection.table, selection.row, selection.stream, selection.device) == ("kernels", 0, 0, 0)
    rows = view.panel.rows()
    assert rows is not None
    facts = dict(rows.rows)
    assert facts["duration"] == "4,000 ns"
    assert facts["launch call"] == "cudaLaunchKernel"
    assert view.canvas.scene.selected is not None
    assert [hit.source for hit in view.canvas.scene.linked] == ["host_calls"]
    click(view, x_of(view, drawn, column(drawn, 9.4)), middle_of(view, "stream", 0))
    assert view.session.selection == NOTHING
    assert view.panel.rows() is None


def test_arrows_lead_from_the_call_to_the_kernel_and_back(view: Timeline, drawn: Drawn) -> None:
    click(view, x_of(view, drawn, column(drawn, 0.5)), middle_of(view, "calls", 0))
    assert view.session.selection.table == "host_calls"
    view.follow_back()
    assert view.session.selection.table == "host_calls"
    view.follow_forward()
    assert (view.session.selection.table, view.session.selection.row) == ("kernels", 0)
    view.follow_forward()
    assert view.session.selection.table == "kernels"
    view.follow_back()
    assert view.session.selection.table == "host_calls"


def test_a_gap_is_selected_by_its_cause(view: Timeline, drawn: Drawn) -> None:
    click(view, x_of(view, drawn, column(drawn, 9.4)), middle_of(view, "causes"))
    selection = view.session.selection
    slices = drawn.trace.index(Causes).devices[0]
    assert (selection.device, selection.gap, selection.thread) == (0, int(slices.start[0]), 0)
    assert CAUSES[int(slices.cause[0])] == "sync"
    assert view.panel.rows() is not None


def test_an_iteration_is_selected_by_its_number(view: Timeline, drawn: Drawn) -> None:
    click(view, x_of(view, drawn, column(drawn, 2)), middle_of(view, "iterations", -1))
    assert view.session.selection.iteration is not None


def test_a_drag_selects_a_range_that_adds_up(view: Timeline, drawn: Drawn) -> None:
    y = middle_of(view, "stream", 0)
    # Both ends are near an edge of a kernel, so they snap to it.
    drag(view, (x_of(view, drawn, column(drawn, 3)) + 2, y), (x_of(view, drawn, column(drawn, 14)) - 2, y))
    window = view.session.selection.window
    assert window is not None
    kernels = drawn.trace["kernels"]
    assert (window.start, window.end) == (int(kernels["start"][0]), int(kernels["end"][1]))
    rows = view.rows_for_copy()
    assert rows is not None
    values = {(row[0], row[1]): row[2] for row in rows.rows}
    assert values["busy", "GPU 0"] == 6000
    assert values["idle", "GPU 0"] == 5000
    causes = sum(int(time or 0) for (what, _), time in values.items() if what == "idle by cause")
    assert causes == 5000


def test_an_alt_drag_zooms_and_backspace_returns(view: Timeline, drawn: Drawn) -> None:
    before = view.session.window
    alt = Qt.KeyboardModifier.AltModifier
    drag(view, (500, 200), (800, 200), keys=alt)
    scene = view.canvas.scene
    assert view.session.selection.window is None
    assert view.session.window.length < before.length / 2
    view.session.back()
    assert view.session.window == before
    assert scene.viewport.window == before


def test_the_wheel_scrolls_pans_and_zooms_at_the_pointer(view: Timeline) -> None:
    control, shift = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
    before = view.canvas.scene.time(700)
    wheel(view, 700, 120, control)
    assert view.session.window.length < view.session.whole.length
    assert abs(view.canvas.scene.time(700) - before) <= 2
    zoomed = view.session.window
    wheel(view, 700, -120, shift)
    assert view.session.window.start > zoomed.start
    assert view.session.window.length == zoomed.length
    drag(view, (600, 300), (650, 300), Qt.MouseButton.MiddleButton)
    assert view.session.selection.window is None
    wheel(view, 700, -120, Qt.KeyboardModifier.NoModifier)
    assert view.session.window.length == zoomed.length


def test_keys_zoom_and_pan(view: Timeline) -> None:
    whole = view.session.window
    view.zoom_in()
    zoomed = view.session.window
    assert zoomed.length < whole.length
    view.pan_right()
    assert view.session.window.start > zoomed.start
    view.pan_left_far()
    view.pan_left_far()
    assert view.session.window.start == 0
    view.pan_right_far()
    view.zoom_out()
    view.zoom_out()
    assert view.session.window == whole


def test_fit_goes_to_the_selection_and_then_to_everything(view: Timeline) -> None:
    view.select_record("kernels", 1)
    view.fit_selection()
    kernels = view.host.session.trace
    assert kernels is not None
    start, end = int(kernels["kernels"]["start"][1]), int(kernels["kernels"]["end"][1])
    window = view.session.window
    assert window.start <= start
    assert end <= window.end
    assert window.length < 2 * (end - start)
    view.fit_selection()
    assert view.session.window == view.session.whole
    view.range_from_selection()
    assert view.session.selection.window == Window(start, end)


def test_next_and_previous_on_the_track_and_on_the_device(view: Timeline) -> None:
    view.select_record("kernels", 0)
    view.next_event()
    assert (view.session.selection.table, view.session.selection.row) == ("kernels", 1)
    view.previous_event()
    assert view.session.selection.row == 0
    view.previous_event()
    assert view.session.selection.row == 0
    view.next_kernel()
    assert view.session.selection.table == "memcpys"
    view.previous_kernel()
    assert view.session.selection.table == "kernels"


def test_the_selected_record_is_brought_into_view(view: Timeline, drawn: Drawn) -> None:
    view.session.look(Window(0, 2000))
    view.arrange(view.arrangement.toggle_fold("device 0"))
    view.select_record("kernels", 2)
    start = int(drawn.trace["kernels"]["start"][2])
    assert view.session.window.start <= start <= view.session.window.end
    assert "device 0" not in view.arrangement.folded
    assert view.session.window.length == 2000


def test_search_greys_the_rest_counts_and_walks(view: Timeline, drawn: Drawn) -> None:
    view.search()
    text = drawn.trace.names[int(drawn.trace["kernels"]["name"][1])]
    view.search_bar.names.setText(f"^{text}$")
    assert view.hits is not None
    assert len(view.hits) == 1
    top = row_of(view, "stream", 0)[1] + view.canvas.scene.spans(row_of(view, "stream", 0)[0])[0][0] + 1
    other = QColor(pixel(view, x_of(view, drawn, column(drawn, 5)), top))
    assert max(other.red(), other.green(), other.blue()) - min(other.red(), other.green(), other.blue()) <= 2
    view.next_hit()
    assert (view.session.selection.table, view.session.selection.row) == ("kernels", 1)
    view.search_bar.names.setText("(")
    assert view.search_bar.names.property("wrong")
    view.search_bar.names.setText("")
    view.search_bar.least.setText("4 µs")
    assert view.hits is not None
    assert len(view.hits) == int(
        sum(
            np.count_nonzero(t["end"] - t["start"] >= 4000)
            for t in (drawn.trace[n] for n in ("kernels", "memcpys", "host_calls", "ranges"))
        )
    )
    assert view.escape()
    assert view.search_bar.isHidden()
    assert not view.search_bar.filter
    assert not view.escape()


def test_a_name_selected_elsewhere_stands_out(view: Timeline, drawn: Drawn) -> None:
    view.session.select(Selection(name=int(drawn.trace["kernels"]["name"][2])))
    made = view.canvas.scene.pictures[0]
    assert made.matches is not None
    strip = next(each for each in made.tracks.values() if (each.track.kind, each.track.key) == ("stream", 0))
    until = made.matches.until[strip.first]
    assert until[-1] - until[0] == 2000


def test_marks_come_and_the_kept_ones_stay(view: Timeline) -> None:
    view.select_record("kernels", 0)
    view.mark()
    view.select_record("kernels", 1)
    view.mark()
    assert len(view.session.marks) == 1
    view.keep_mark()
    view.select_record("kernels", 2)
    view.keep_mark()
    assert [mark.kept for mark in view.session.marks] == [True, True]
    assert view.canvas.scene.marks == view.session.marks
    view.canvas.grab()


def test_tracks_fold_pin_and_keep_their_places(view: Timeline, show: Show, drawn: Drawn) -> None:
    row, y = row_of(view, "stream", 1)
    click(view, 60, y + 5)
    view.pin()
    assert [row.identity for row in view.canvas.scene.layout.pinned] == [row.identity]
    group = next(
        (row, y) for row, y in view.canvas.scene.rows() if row.group is not None and row.group.identity == "process 1"
    )
    click(view, 400, group[1] + 5)
    assert "process 1" in view.arrangement.folded
    again = show(drawn.trace)
    assert again.arrangement == view.arrangement
    again.go_to_track(next(name for name, _ in again.track_choices() if name.startswith("ranges")))
    assert "process 1" not in again.arrangement.folded


def test_what_a_run_has_not_told_yet_is_not_idle(view: Timeline, drawn: Drawn) -> None:
    trace, scene = drawn.trace, view.canvas.scene
    view.session.look(view.session.whole)
    settled = drawn.at(drawn.first + 5)
    going = Trace(trace.info, trace.tables, trace.names, trace.quality, generation=1, settled_ns=settled)
    scene.pictures = tuple(replace(picture, trace=going) for picture in scene.pictures)
    wanted = busy(trace, 0, Window(0, settled)).busy_ns / settled
    assert busy_share(scene, "device 0") == pytest.approx(wanted, abs=1e-12)
    view.canvas.set_window(Viewport(Window(settled + 10, settled + 100), scene.viewport.width))
    assert busy_share(scene, "device 0") is None


def test_what_a_run_has_not_told_yet_is_stroked(show: Show, drawn: Drawn) -> None:
    trace = drawn.trace
    settled = trace.end_ns // 2
    going = Trace(trace.info, trace.tables, trace.names, trace.quality, generation=1, settled_ns=settled)
    ended = Trace(trace.info, trace.tables, trace.names, trace.quality, generation=1)
    for kind, low in (("busy", 6), ("causes", 5)):
        strokes = []
        for each in (going, ended):
            view = show(each)
            row, y = row_of(view, kind)
            image = view.canvas.grab().toImage()
            at = y + row.height - low
            scene = view.canvas.scene
            middle, line = round(scene.x(settled)), QColor(view.theme.tokens.line)
            found = [x for x in range(scene.left + 1, image.width()) if image.pixelColor(x, at) == line]
            strokes.append((sum(x < middle for x in found), sum(x >= middle for x in found)))
        (before, after), (_, after_the_end) = strokes
        assert after > 5 * max(after_the_end, 1)
        assert before <= after_the_end + 8


def test_a_folded_device_still_shows_how_busy_it_is(view: Timeline, drawn: Drawn) -> None:
    view.arrange(view.arrangement.toggle_fold("device 0"))
    row, y = next(each for each in view.canvas.scene.rows() if each[0].identity == "device 0")
    middle = y + row.height / 2
    assert pixel(view, x_of(view, drawn, column(drawn, 5)), middle) == INKS[ink("busy")].light.lower()
    assert pixel(view, x_of(view, drawn, column(drawn, 9.4)), middle) == view.theme.tokens.surface


def test_a_track_is_dragged_before_another(view: Timeline) -> None:
    _, low = row_of(view, "stream", 1)
    _, high = row_of(view, "stream", 0)
    drag(view, (60, low + 5), (60, high + 5))
    order = [
        row.track.key for row, _ in view.canvas.scene.rows() if row.track is not None and row.track.kind == "stream"
    ]
    assert order == [1, 0]


def test_the_tip_names_what_is_under_the_pointer(view: Timeline, drawn: Drawn) -> None:
    x, y = x_of(view, drawn, column(drawn, 5)), middle_of(view, "stream", 0)
    none = Qt.MouseButton.NoButton
    place = QPointF(x, y)
    keys = Qt.KeyboardModifier.NoModifier
    moved = QMouseEvent(QEvent.Type.MouseMove, place, view.canvas.mapToGlobal(place), none, none, keys)
    QApplication.sendEvent(view.canvas, moved)
    hover = view.canvas.scene.hover
    assert hover is not None
    lines = dict(tip(drawn.trace, hover))
    assert lines["duration"].endswith("4,000 ns")
    assert lines["stream"] == "stream 7"
    view.canvas.grab()
    QApplication.sendEvent(view.canvas, QEvent(QEvent.Type.Leave))
    assert view.canvas.scene.hover is None


def test_the_menu_offers_what_fits(view: Timeline, drawn: Drawn) -> None:
    x, y = x_of(view, drawn, column(drawn, 5)), middle_of(view, "stream", 0)
    view.canvas.asked_menu.emit(view.canvas.mapToGlobal(QPointF(x, y)).toPoint(), view.canvas.scene.hit(x, y), "")
    menu = next(child for child in view.findChildren(QMenu) if child.isVisible())
    texts = {action.text(): action for action in menu.actions()}
    texts["Zoom to it"].trigger()
    assert view.session.window.length < view.session.whole.length
    texts["Copy name"].trigger()
    assert QApplication.clipboard().text() == drawn.trace.names[int(drawn.trace["kernels"]["name"][0])]
    menu.close()


def test_the_overview_drags_the_span_in_view(view: Timeline) -> None:
    view.session.look(Window(2000, 6000))
    strip = view.overview
    strip.grab()
    place = QPointF(strip._x(4000), 10)
    target = QPointF(strip._x(8000), 10)
    left, none, keys = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    for kind, at, button, held in (
        (QEvent.Type.MouseButtonPress, place, left, left),
        (QEvent.Type.MouseMove, target, none, left),
        (QEvent.Type.MouseButtonRelease, target, left, none),
    ):
        QApplication.sendEvent(strip, QMouseEvent(kind, at, strip.mapToGlobal(at), button, held, keys))
    assert view.session.window.length == 4000
    assert abs(view.session.window.start - 6000) <= 20


def test_pictures_and_numbers_can_be_taken_away(view: Timeline, tmp_path: Path, drawn: Drawn) -> None:
    rows = view.rows_for_copy()
    assert rows is not None
    write_csv(tmp_path / "view.csv", rows)
    lines = (tmp_path / "view.csv").read_text().splitlines()
    shown = sum(len(drawn.trace[table]) for table in ("kernels", "memcpys", "host_calls", "ranges"))
    heads = lines[0].split(",")
    assert heads[:7] == ["device", "process", "thread_or_stream", "track", "lane", "kind", "name"]
    assert len(lines) > shown
    sync = heads.index("sync_ns")
    listed = list(csv.reader(lines[1:]))
    slices = drawn.trace.index(Causes).devices[0]
    waits = slices.cause == CAUSES.index("sync")
    assert sum(int(line[sync] or 0) for line in listed) == int((slices.end - slices.start)[waits].sum())
    assert {line[0] for line in listed if line[3] == "stream 7"} == {"GPU 0"}
    # What is scrolled out of sight is there too; what is folded is not.
    view.canvas.resize(view.canvas.width(), 80)
    again = view.rows_for_copy()
    assert again is not None
    assert len(again.text().splitlines()) == len(lines)
    view.arrange(view.arrangement.toggle_fold("device 0"))
    folded = view.rows_for_copy()
    assert folded is not None
    assert "GPU 0" not in folded.text()
    write_svg(tmp_path / "view.svg", view.picture(), "timeline")
    assert (tmp_path / "view.svg").stat().st_size > 1000


def test_a_trace_without_events_says_so(show: Show, qtbot: QtBot) -> None:
    from inspector.trace.builder import Builder
    from inspector.trace.trace import TraceInfo

    view = show(draw(LAUNCHES).trace)
    view.session.set_trace(Builder().build(TraceInfo(("t",), "test")))
    assert view.state is State.NO_DATA
    view.session.set_trace(None)
    assert view.state is State.NO_TRACE
    view.zoom_in()
    view.search()
    view.mark()
    view.next_event()
    assert view.rows_for_copy() is None


def test_both_themes_and_the_presenter_size_paint(view: Timeline) -> None:
    y = middle_of(view, "stream", 0)
    light = pixel(view, 1100, y)
    view.theme.set_mode("dark")
    assert pixel(view, 1100, middle_of(view, "stream", 0)) != light
    height = view.canvas.scene.layout.height
    view.theme.toggle_presenter()
    assert view.canvas.scene.layout.height >= height
    view.canvas.grab()
    view.theme.toggle_presenter()
    view.theme.set_mode("light")


def test_a_real_file_at_every_zoom(show: Show, corpus: Path) -> None:
    trace = read(corpus / "nsys" / "h100x2_fsdp_mfu_before.sqlite", silent)
    view = show(trace)
    kernel = int(np.argmax(trace["kernels"]["end"] - trace["kernels"]["start"]))
    middle = int(trace["kernels"]["start"][kernel]) + 1
    for length in (trace.end_ns, 10**7, 10**5, 10**3, 60):
        view.session.look(Window(middle - length // 2, middle + length // 2))
        view.canvas.grab()
        made = view.canvas.scene.pictures[0]
        assert made.grid.origin <= view.session.window.start
        assert view.session.window.end <= made.grid.end
    view.select_record("kernels", kernel)
    assert view.canvas.scene.selected is not None
    rect = view.canvas.scene.rect(view.canvas.scene.selected)
    assert rect is not None
    assert rect.left() <= view.canvas.scene.x(middle) <= rect.right()


COMMANDS = [
    "zoom_in",
    "zoom_out",
    "pan_left",
    "pan_right",
    "pan_left_far",
    "pan_right_far",
    "scroll_up",
    "scroll_down",
    "fit_selection",
    "mark",
    "keep_mark",
    "range_from_selection",
    "search",
    "next_hit",
    "previous_hit",
    "next_event",
    "previous_event",
    "next_kernel",
    "previous_kernel",
    "follow_forward",
    "follow_back",
    "pin",
    "collapse",
    "escape",
    "toggle_details",
]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    traces(),
    st.lists(st.one_of(st.sampled_from(COMMANDS), st.tuples(st.integers(0, 1199), st.integers(0, 640))), max_size=20),
)
def test_whatever_one_does_the_view_stays_whole(
    shown: Timeline, trace: Trace, steps: list[str | tuple[int, int]]
) -> None:
    shown.session.set_trace(trace)
    for step in steps:
        if isinstance(step, str):
            getattr(shown, step)()
        else:
            click(shown, *step)
        window = shown.session.window
        assert shown.canvas.scene.viewport.window == window
        assert 0 <= window.start < window.end
    shown.canvas.grab()
    if shown.state is State.ANSWER:
        rows = shown.rows_for_copy()
        assert rows is not None
        assert len(rows.text()) > 0


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("N", "Nothing is searched for"),
        ("[", "Select a kernel first"),
        ("]", "Select a launch call first"),
        ("R", "Select a record first"),
        (".", "Click a track first"),
        ("P", "Click a track first"),
    ],
)
def test_a_key_that_can_do_nothing_says_why(user: User, key: str, words: str) -> None:
    user.open(SAMPLES / "two_processes.sqlite")
    user.press(key)
    assert user.sees(words)
    user.press("Tab")
    assert not user.sees(words)


def test_a_right_click_on_a_track_gives_a_menu(user: User) -> None:
    user.open(SAMPLES / "two_processes.sqlite")
    view = user.window.views["timeline"]
    assert isinstance(view, Timeline)
    place = view.canvas.mapTo(user.window, QPoint(60, 40))
    handle = user.window.windowHandle()
    QTest.mouseClick(handle, Qt.MouseButton.RightButton, Qt.KeyboardModifier.NoModifier, place)
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert "Pin track" in [action.text() for action in menu.actions()]
    menu.close()


def test_nothing_hit_on_another_device_says_whose_the_figures_are(user: User) -> None:
    user.open(SAMPLES / "two_processes.sqlite")
    view = user.window.views["timeline"]
    assert isinstance(view, Timeline)
    view.go_to_track("idle 1")
    y = middle_of(view, "causes", 1)
    drag(view, (400, y), (700, y))
    assert user.session.device == 0
    assert user.sees("the figures stay those of GPU 0")
    user.press("Esc")
    assert not user.sees("the figures stay")


def test_each_process_names_its_lanes_of_iterations(user: User) -> None:
    user.open(SAMPLES / "two_processes.sqlite")
    view = user.window.views["timeline"]
    assert isinstance(view, Timeline)
    track = view._track("iterations")
    assert track is not None
    assert set(iteration_owners(view.canvas.scene, track).values()) == {"python3 6100", "python3 6101"}


def test_an_instant_makes_no_range(view: Timeline) -> None:
    scene = view.canvas.scene
    view.select_record("kernels", 0)
    assert scene.selected is not None
    scene.selected = replace(scene.selected, end=scene.selected.start)
    view.range_from_selection()
    assert view.session.selection.window is None
    view.mark()
    assert view.session.selection.window is None


def test_pinned_tracks_name_their_device(show: Show) -> None:
    trace = read(SAMPLES / "two_processes.sqlite", silent)
    tracks = trace.index(Tracks)
    owners = {tracks.owner(track) for track in tracks.tracks}
    assert {"GPU 0", "GPU 1", "process 6100"} <= owners
