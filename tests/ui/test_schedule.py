"""The schedule as a user meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector.analysis.steps import Steps
from inspector.picture.palette import ink
from inspector.trace.builder import Builder
from inspector.trace.selection import NOTHING, Selection, Window
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import Setup, engine_trace
from tests.ui.user import User
from ui.export import write_png, write_svg
from ui.inks import color_of
from ui.schedule.columns import NEWEST, Columns
from ui.views.schedule import Schedule
from ui.views.view import State

TRACE = engine_trace(Setup(work=40, gap=2_000_000, max_batch_size=4))


@pytest.fixture
def view(user: User) -> Schedule:
    return shown(user, TRACE)


def shown(user: User, trace: Trace) -> Schedule:
    user.session.set_trace(trace)
    return user.view(Schedule, 480)


def grow(user: User, trace: Trace) -> None:
    """A later generation of the trace that is open, as a recording that is followed brings it."""
    user.session.trace = trace
    user.session.trace_changed.emit()
    QApplication.processEvents()


def at(view: Schedule, request: int, iteration: int) -> QPoint:
    """The middle of a cell: rows of requests and iterations."""
    canvas, picture = view.canvas, view.answer
    assert picture is not None
    assert picture.axis is not None
    x = (canvas.span.x(iteration + 0.5)) * canvas.place.columns / canvas.span.width
    row = picture.top + picture.rows.tolist().index(request)
    area = canvas.place.rows(len(canvas.strips))
    return QPoint(round(canvas.place.left + x), round(area.top() + (row + 0.5) * canvas.row_height))


def move(view: Schedule, place: QPoint) -> None:
    none = Qt.MouseButton.NoButton
    point = QPointF(place)
    event = QMouseEvent(
        QEvent.Type.MouseMove, point, view.canvas.mapToGlobal(point), none, none, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(view.canvas, event)


def drag(view: Schedule, start: QPoint, end: QPoint) -> None:
    left, none = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    for kind, place, button in (
        (QEvent.Type.MouseButtonPress, start, left),
        (QEvent.Type.MouseMove, end, Qt.MouseButton.NoButton),
        (QEvent.Type.MouseButtonRelease, end, left),
    ):
        point = QPointF(place)
        held = left if kind != QEvent.Type.MouseButtonRelease else Qt.MouseButton.NoButton
        event = QMouseEvent(kind, point, view.canvas.mapToGlobal(point), button, held, none)
        QApplication.sendEvent(view.canvas, event)
    QApplication.processEvents()


def span(view: Schedule) -> tuple[float, float]:
    return view.canvas.span.low, view.canvas.span.high


def test_at_first_all_iterations_are_in_view_with_their_figures(view: Schedule) -> None:
    assert span(view) == (0, len(TRACE["iterations"]))
    table = TRACE["iterations"]
    batch = int((table["context_requests"] + table["generation_requests"]).sum())
    share = 100 * batch / (4 * len(table))
    assert f"Batch occupancy {share:.1f} %" in view.measures.text()
    assert "TTFT p50 / p90 / p99" in view.measures.text()
    assert view.canvas.picture is not None
    assert view.canvas.picture.alive == len(TRACE["requests"])
    assert [strip.title for strip in view.canvas.strips] == ["Batch", "Token budget", "Queue"]


def test_a_click_selects_request_and_iteration_and_a_click_beside_nothing(view: Schedule, user: User) -> None:
    steps = TRACE.index(Steps)
    request, iteration = 5, int(steps.begun[5])
    QTest.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=at(view, request, iteration))
    selection = user.session.selection
    assert selection.request == int(TRACE["requests"]["request"][request])
    assert selection.iteration == int(TRACE["iterations"]["iteration"][iteration])
    place = view.canvas.place
    QTest.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=QPoint(place.left + 5, place.ruler // 2))
    assert user.session.selection == NOTHING


def test_pointing_says_what_is_there(view: Schedule) -> None:
    steps = TRACE["steps"]
    row = int(np.flatnonzero((steps["drafted"] > 1) & (steps["emitted"] > 1))[0])
    move(view, at(view, int(steps["request"][row]), int(steps["iteration"][row])))
    found = view.canvas.tip()
    assert found is not None
    assert ("drafts", f"{steps['accepted'][row]} of {steps['drafted'][row]} accepted") in found.lines


def test_the_keys_of_the_timeline_move_the_schedule_that_has_the_focus(view: Schedule, user: User) -> None:
    view.take_focus()
    before, window = span(view), user.session.window
    user.press("W")
    near = span(view)
    assert near[1] - near[0] < before[1] - before[0]
    user.press("D")
    later = span(view)
    assert later[0] > near[0]
    user.press("Left")
    assert span(view)[0] < later[0]
    user.press("0")
    assert span(view) == before
    # The timeline stayed where it was, and moves when it has the focus.
    assert user.session.window == window
    user.window.show_view("timeline")
    user.window.views["timeline"].take_focus()
    user.press("W")
    assert span(view) == before
    assert user.session.window.length < window.length


def test_the_wheel_zooms_at_the_pointer_and_pans(view: Schedule) -> None:
    place = QPointF(view.canvas.place.left + 100, 200)

    def turn(keys: Qt.KeyboardModifier, amount: int) -> None:
        event = QWheelEvent(
            place,
            view.canvas.mapToGlobal(place),
            QPoint(),
            QPoint(0, amount),
            Qt.MouseButton.NoButton,
            keys,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(view.canvas, event)

    ratio = view.canvas.span.width / view.canvas.place.columns
    under = view.canvas.span.at(100 * ratio)
    turn(Qt.KeyboardModifier.ControlModifier, 240)
    assert view.canvas.span.length < len(TRACE["iterations"])
    assert view.canvas.span.at(100 * ratio) == pytest.approx(under, abs=0.01)
    low = view.canvas.span.low
    turn(Qt.KeyboardModifier.ShiftModifier, -120)
    assert view.canvas.span.low > low


def test_a_drag_selects_the_time_of_the_iterations_and_figures_follow(view: Schedule, user: User) -> None:
    drag(view, at(view, 3, 10), at(view, 3, 19))
    table = TRACE["iterations"]
    assert user.session.selection.window == Window(int(table["start"][10]), int(table["end"][19]))
    assert "10 iterations, selected range" in view.scope.full


def test_with_time_across_the_schedule_shows_what_all_views_show(view: Schedule, user: User) -> None:
    user.click("Columns: Time")
    window = Window(TRACE.end_ns // 4, TRACE.end_ns // 2)
    user.session.look(window)
    assert span(view) == (window.start, window.end)
    view.take_focus()
    user.press("W")
    assert user.session.window.length < window.length
    assert span(view) == (user.session.window.start, user.session.window.end)


def test_what_is_selected_elsewhere_comes_into_view(view: Schedule, user: User) -> None:
    view._look_at(0, 10)
    number = int(TRACE["iterations"]["iteration"][50])
    user.session.select(Selection(iteration=number))
    low, high = span(view)
    assert low <= 50 < high
    last = int(TRACE["requests"]["request"][-1])
    view._look_at(0, 5)
    user.session.select(Selection(request=last))
    low, high = span(view)
    assert low < int(TRACE.index(Steps).begun[-1]) < high


def test_comma_and_full_stop_go_through_iterations(view: Schedule, user: User) -> None:
    view.take_focus()
    user.press(".")
    user.press(".")
    assert user.session.selection.iteration == int(TRACE["iterations"]["iteration"][1])
    user.press(",")
    assert user.session.selection.iteration == int(TRACE["iterations"]["iteration"][0])


def test_static_batching_is_drawn_below_and_said_to_be_modelled(view: Schedule, user: User) -> None:
    tall = view.canvas.row_height
    user.click("Static batching")
    assert view.canvas.picture is not None
    assert view.canvas.picture.static is not None
    assert "modelled" in view.note.full
    assert "padding" in view.note.full
    entries = view.legend.accessibleDescription().split(", ")
    # Not among the last, which are left out where it is narrow.
    assert "padding" in entries[:4]
    assert view.canvas.row_height >= tall
    heads = view.rows_for_copy()
    assert heads is not None
    assert "static_begin_ns_modelled" in heads.heads


def test_rows_for_those_that_only_wait_come_when_asked_for(view: Schedule, user: User) -> None:
    view._look_at(0, 6)
    assert view.canvas.picture is not None
    served, waits = view.canvas.picture.alive, view.canvas.picture.waiting
    user.click("Waiting")
    assert view.canvas.picture.alive == served + waits > served


def test_copied_are_the_exact_times_of_every_request_in_view(view: Schedule) -> None:
    copied = view.rows_for_copy()
    assert copied is not None
    rows = [dict(zip(copied.heads, row, strict=True)) for row in copied.rows]
    table = TRACE["requests"]
    assert [row["request"] for row in rows] == table["request"].tolist()
    assert [row["ttft_ns"] for row in rows] == (table["first_token"] - table["arrival"]).tolist()
    assert [row["queue_wait_ns"] for row in rows] == (table["scheduled"] - table["arrival"]).tolist()


def test_a_growing_trace_is_followed_until_the_user_looks_back(view: Schedule, user: User) -> None:
    small, large = engine_trace(Setup(work=20)), engine_trace(Setup(work=30))
    large.generation = 1
    count, total = len(small["iterations"]), len(large["iterations"])
    shown(user, small)
    assert span(view) == (0, count)
    grow(user, large)
    # What showed everything goes on to.
    assert span(view) == (0, total)
    shown(user, small)
    view._look_at(count - 10, count)
    grow(user, large)
    assert span(view) == (total - 10, total)
    shown(user, small)
    view._look_at(5, 15)
    assert view.newest.isVisible()
    grow(user, large)
    assert span(view) == (5, 15)
    user.click("Go to the newest iteration")
    assert span(view) == (total - 10, total)
    assert not view.newest.isVisible()


def test_of_a_run_the_newest_iterations_stay_in_view() -> None:
    columns = Columns()
    columns.settle((0, 5), 5)
    columns.settle((0, 9), 100)
    assert columns.span == (0, 100)
    columns.settle((0, 100), 1000)
    assert columns.span == (1000 - NEWEST, 1000)
    columns.look(0, 1000)
    columns.settle((0, 1000), 2000)
    assert columns.span == (0, 2000)
    columns.look(500, 700)
    columns.settle((500, 700), 3000)
    assert columns.span == (500, 700)
    assert not columns.follows
    columns.follow()
    assert columns.span == (2800, 3000)
    columns.look(2999.5, 3001)
    assert columns.span == (2996, 3000)


def test_rows_that_do_not_fit_scroll(user: User) -> None:
    trace = engine_trace(Setup(work=600, gap=300_000, longest_output=6, longest_prompt=8))
    view = shown(user, trace)
    picture = view.answer
    assert picture is not None
    # It begins where all rows fit, or as many iterations as one sees each of.
    assert span(view) == (0, NEWEST)
    assert picture.axis is not None
    last = int(picture.axis.batches.number[-1])
    user.session.select(Selection(iteration=last))
    QApplication.processEvents()
    low, high = span(view)
    assert low < len(picture.axis.batches) - 0.5 < high
    served = np.flatnonzero(trace["iterations"]["iteration"] == last)[0]
    mine = trace["steps"]["request"][trace["steps"]["iteration"] == served]
    assert view.answer is not None
    assert set(mine.tolist()) <= set(view.answer.rows.tolist())
    user.session.select(NOTHING)
    view.fit()
    QApplication.processEvents()
    picture = view.answer
    assert picture.alive == 600
    user.session.select(Selection(iteration=last))
    assert view.canvas._bar.value() > 0
    QApplication.processEvents()
    assert set(mine.tolist()) <= set(view.answer.rows.tolist())
    assert len(picture.rows) < 600
    view.canvas.scroll_to_end()
    QApplication.processEvents()
    assert view.answer is not None
    assert int(view.answer.rows[-1]) == 599
    view.canvas.scroll_to(0)
    QApplication.processEvents()
    assert int(view.answer.rows[0]) == 0


@pytest.mark.parametrize("dark", [False, True])
def test_colours_are_those_of_the_palette(view: Schedule, user: User, dark: bool) -> None:
    user.window.theme.set_mode("dark" if dark else "light")
    steps = TRACE["steps"]
    row = int(np.flatnonzero(steps["phase"] == 1)[3])
    iteration = int(steps["iteration"][row])
    view._look_at(iteration - 5, iteration + 5)
    QApplication.processEvents()
    image: QImage = view.canvas.grab().toImage()
    place = at(view, int(steps["request"][row]), iteration) * image.devicePixelRatio()
    assert image.pixelColor(place).name() == color_of(ink("context chunk"), view.theme).name()


def test_the_picture_can_be_taken_along(view: Schedule, tmp_path: Path) -> None:
    write_svg(tmp_path / "view.svg", view.picture(), view.TITLE)
    write_png(tmp_path / "view.png", view.picture())
    assert "<svg" in (tmp_path / "view.svg").read_text(encoding="utf-8")
    assert QImage(str(tmp_path / "view.png")).width() >= view.picture().width()


def test_large_type_keeps_everything_in_its_place(view: Schedule, user: User) -> None:
    before = view.canvas.place.left
    user.press("F5")
    assert view.canvas.place.left > before
    assert view.canvas.picture is not None
    assert view.measures.minimumHeight() > 30


def test_a_trace_with_less_says_what_is_missing(user: User) -> None:
    view = shown(user, engine_trace(Setup(), leave_out=("steps", "requests", "tokens", "page_events")))
    assert "No request records" in view.note.full
    assert [strip.title for strip in view.canvas.strips] == ["Batch", "Token budget", "Queue"]
    bare = shown(user, Builder().build(TraceInfo(("t",), "kineto")))
    assert bare.state is State.NO_DATA
    assert user.sees("No schedule to show")


def some_tokens(told: int) -> Trace:
    """A trace in which only the first iterations tell their tokens, and nobody is left in the queue at any."""
    trace = engine_trace(Setup(work=40))
    trace["iterations"]["tokens"][told:] = -1
    trace["iterations"]["queued_requests"][:] = 0
    trace["iterations"]["paused_requests"][:] = 0
    return trace


def test_a_mean_of_some_iterations_is_not_said_to_be_that_of_all(user: User) -> None:
    trace = some_tokens(7)
    view, table = shown(user, trace), trace["iterations"]
    tokens, room = int(table["tokens"][:7].sum()), int(table["max_num_tokens"][:7].sum())
    said = view.measures.text()
    assert f"Token budget, 7 of {len(table):,} iterations {100 * tokens / room:.1f} % of those that tell it" in said
    assert "tokens measured" not in said
    assert f"7 of {len(table):,} iterations tell them" in view.note.full
    # Where all tell it, it is the mean of all.
    every = shown(user, TRACE)
    assert "mean" in every.measures.text()
    assert "of those that tell it" not in every.measures.text()


def test_an_empty_queue_does_not_say_that_nobody_waited(user: User) -> None:
    view = shown(user, some_tokens(7))
    assert "Queue wait p50" in view.measures.text()
    (queue,) = (strip for strip in view.canvas.strips if strip.title == "Queue")
    assert queue.empty.startswith("nobody was left over at any iteration")
    assert "Queue wait" in queue.empty


def test_numbers_of_requests_are_grouped_as_those_of_iterations(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = engine_trace(Setup(work=4))
    trace["requests"]["request"][:] += 4000
    names = {f"{number:,}" for number in trace["requests"]["request"].tolist()}
    assert names & set(drawn(shown(user, trace), monkeypatch))


def test_no_iteration_is_named_where_the_picture_does_not_reach(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    view = shown(user, TRACE)
    assert view.canvas.picture is not None
    view.canvas.picture = replace(
        view.canvas.picture,
        ask=replace(view.canvas.picture.ask, span=replace(view.canvas.picture.ask.span, high=30.0)),
    )
    texts = drawn(view, monkeypatch)
    assert "20" in texts
    assert not {"40", "60", "80"} & set(texts)


def drawn(view: Schedule, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the canvas writes."""
    said: list[str] = []
    write = QPainter.drawText

    def listen(painter: QPainter, *args: object) -> None:
        said.extend(each for each in args if isinstance(each, str))
        write(painter, *args)  # type: ignore[call-overload]

    monkeypatch.setattr(QPainter, "drawText", listen)
    view.canvas.grab()
    monkeypatch.undo()
    return said


def test_an_executors_ranges_alone_show_the_batch(user: User) -> None:
    builder = Builder()
    thread = builder.thread(builder.process(1), 1)
    names = [builder.names.add(f"[Executor] _forward_step {n}: {n % 2} ctx reqs, 3 gen reqs") for n in range(30)]
    starts = [10_000 * n for n in range(30)]
    builder.add(
        "ranges", start=starts, end=[start + 8_000 for start in starts], thread=thread, name=names, kind=0, domain=-1
    )
    view = shown(user, builder.build(TraceInfo(("t",), "nsys-sqlite")))
    assert [strip.title for strip in view.canvas.strips] == ["Batch"]
    assert "max_batch_size is not in this trace" in view.note.full


def test_the_window_starts_over_with_another_trace(view: Schedule, user: User) -> None:
    view._look_at(3, 9)
    other = engine_trace(Setup(work=5))
    shown(user, other)
    assert span(view) == (0, len(other["iterations"]))


def test_requests_that_do_not_all_fit_are_sought_in_one_step(user: User) -> None:
    view = shown(user, TRACE)
    canvas = view.canvas
    canvas.setFixedHeight(100)
    QApplication.processEvents()
    scrolled: list[None] = []
    canvas.scrolled.connect(lambda: scrolled.append(None))
    for number in TRACE["iterations"]["iteration"][[60, 3, -1, 30, 0]].tolist():
        scrolled.clear()
        assert canvas.bring(number)
        assert len(scrolled) <= 1
        # It is where it is to be, and stays there.
        scrolled.clear()
        assert canvas.bring(number)
        assert not scrolled


def test_space_presses_the_button_that_has_the_focus(user: User, view: Schedule) -> None:
    view.static.setFocus(Qt.FocusReason.TabFocusReason)
    user.press("Space")
    assert view.static.isChecked()
