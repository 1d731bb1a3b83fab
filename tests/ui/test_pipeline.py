"""The pipeline view, as a user meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from inspector import units
from inspector.analysis.busy import busy
from inspector.analysis.pipeline import IDLE, Pipeline, contention_of, pipeline_figures
from inspector.trace.builder import Builder
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import Setup, engine_trace
from tests.picture.test_pipeline import ranks
from tests.ui.user import User
from ui.export import write_png, write_svg
from ui.views.pipeline import PipelineView, against, notes
from ui.views.view import State
from ui.widgets.elided import Elided


@pytest.fixture(scope="module")
def engine() -> Trace:
    return engine_trace(Setup(seed=2, stages=3, micro_batches=4))


def open_pipeline(user: User, trace: Trace) -> PipelineView:
    user.session.set_trace(trace)
    return user.view(PipelineView)


def place_of(view: PipelineView, stage: int, time: int) -> QPoint:
    row = view.canvas.row_rect(stage)
    return QPoint(round(view.canvas._x(time)), round(row.center().y()))


def test_one_device_is_no_pipeline_and_says_how_to_get_one(user: User) -> None:
    view = open_pipeline(user, engine_trace(Setup()))
    assert user.sees("No pipeline to show")
    assert not view.canvas.isVisible()


def test_one_stage_is_no_pipeline_either_but_tells_its_contention(user: User) -> None:
    builder = Builder()
    stream = builder.stream(builder.process(1, "engine"), builder.device(0, "CPU stage 0 (no GPU)"), 0)
    start = np.arange(10) * 100
    builder.add("kernels", start=start, end=start + 80, stream=stream, name=-1, correlation=-1)
    cells = {"stage": 0, "iteration": np.arange(10), "micro_batch": 0, "process": 0, "cpu": 60}
    builder.add("stage_work", start=start, end=start + 80, **cells)
    open_pipeline(user, builder.build(TraceInfo((), "recording")))
    assert user.sees("there is one stage")
    assert user.sees("In 25.0 % of the time of its passes in view its thread had no processor")
    assert user.sees("25.0 % of the work without a core")


def test_it_says_the_share_of_bubbles_and_what_it_should_be(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    figures = pipeline_figures(engine.index(Pipeline), Window(0, engine.end_ns))
    assert user.sees(f"Bubbles {100 * figures.bubble:.1f} %")
    assert f"Equal stages would have {100 * figures.ideal:.1f} %" in view.against.full
    assert f"{100 * figures.unequal:.1f} %" in view.against.full
    causes = [IDLE[cause] for cause in np.flatnonzero(figures.idle_ns.sum(axis=0))]
    assert all(cause in view.legend.accessibleDescription() for cause in causes)
    lost = f"of the busy time, {100 * figures.contention:.1f} % without a processor"
    assert lost in view.legend.accessibleDescription()
    assert view.canvas.accessibleDescription().startswith("stage 0 busy")


def test_figures_are_those_of_what_is_in_view(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    window = Window(engine.end_ns // 2, engine.end_ns // 2 + engine.end_ns // 8)
    user.session.look(window)
    figures = pipeline_figures(engine.index(Pipeline), window)
    assert user.sees(f"Bubbles {100 * figures.bubble:.1f} %")
    assert view.canvas._answer is not None
    assert view.canvas._answer.window == window


def test_the_picture_is_as_wide_as_the_canvas_whoever_was_there_first(user: User, engine: Trace) -> None:
    user.window.show_view("pipeline")
    user.session.set_trace(engine)
    QApplication.processEvents()
    view = user.window.views["pipeline"]
    assert isinstance(view, PipelineView)
    for _ in range(2):
        assert view._asked is not None
        assert view._asked.args[2] == view.canvas.columns()
        assert view.canvas._x(user.session.window.end) == pytest.approx(view.canvas.width(), abs=1)
        user.window.resize(1000, 700)
        QApplication.processEvents()


def test_a_stage_is_busy_for_a_share_of_what_is_in_view_and_what_lies_between_has_a_name(
    user: User, engine: Trace
) -> None:
    view = open_pipeline(user, engine)
    window = Window(0, engine.end_ns)
    figures = pipeline_figures(engine.index(Pipeline), window)
    assert figures.between_ns
    said = view.canvas.accessibleDescription()
    assert said.startswith(f"stage 0 busy {units.share(int(figures.busy_ns[0]), window.length)} in view")
    between = units.share(figures.between_ns, window.length)
    assert f"between iterations {between} of what is in view" in view.legend.accessibleDescription()
    runs = engine.index(Pipeline).runs
    user.session.look(Window(int(runs.starts[3]), int(runs.ends[4])))
    middle = (int(runs.ends[3]) + int(runs.starts[4])) // 2
    lines = dict(view.canvas.hint(place_of(view, 0, middle)))
    assert lines[""] == "between iterations"
    assert "no requests" in lines["why"]


def test_why_bubbles_are_more_or_fewer_than_they_must_be_is_one_true_sentence(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    assert view._answer is not None
    figures = replace(view._answer.picture.figures, ideal=0.2, unequal=0.248, overlapping=0, cut=False)
    area = figures.active_ns * len(figures.busy_ns)

    def said(bubble: float, **changed: object) -> str:
        idle = np.zeros_like(figures.idle_ns)
        idle[0, 0] = round(area * bubble)
        return against(replace(figures, idle_ns=idle, **changed), "measured")[0].partition("; ")[2]  # type: ignore[arg-type]

    assert said(0.3) == "the rest is hand-over and late starts"
    assert said(0.248) == "nothing is lost beside"
    assert "iterations overlap" in said(0.247, overlapping=3)
    assert "only a part of an iteration" in said(0.247, cut=True)
    # A processor that was not there is within the cells: it is no reason for bubbles, and is not said to be one.
    assert "processor" not in said(0.3, cpu_ns=figures.wall_ns // 2)
    assert "is in no bubble" in " ".join(notes(view._answer, engine))


def test_one_iteration_can_be_looked_at_wherever_there_are_several_and_else_it_says_why_not(
    user: User, engine: Trace
) -> None:
    view = open_pipeline(user, engine)
    spans = engine.index(Pipeline).spans
    user.session.look(Window(int(spans.start[20]), int(spans.end[24])))
    assert view.canvas._answer is not None
    assert view.canvas._answer.pieces is not None
    user.click("Show one iteration")
    row = int(np.flatnonzero(spans.iteration == user.session.selection.iteration)[0])
    middle = (int(spans.start[row]) + int(spans.end[row])) // 2
    user.session.look(Window(middle, middle + 2))
    assert not view.closer.isEnabled()
    assert view.closer.toolTip().startswith("One iteration is in view")


def test_a_span_in_which_nothing_ran_has_no_share(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    user.session.look(Window(0, max(int(engine["stage_work"]["start"].min()) - 1, 1)))
    assert view.canvas._answer is not None
    assert view.canvas._answer.figures.active_ns == 0
    assert user.sees("Nothing in view")
    assert view.against.full == "no stage worked in what is in view"
    assert not view.legend.accessibleDescription()


def test_what_stands_under_the_pointer_is_told(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    spans, slices = engine.index(Pipeline).spans, engine.index(Pipeline).slices
    user.session.look(Window(int(spans.start[20]), int(spans.end[21])))
    cells = engine["stage_work"]
    at = int(np.flatnonzero(cells["iteration"] == spans.iteration[20])[1])
    middle = int(cells["start"][at] + cells["end"][at]) // 2
    lines = dict(view.canvas.hint(place_of(view, int(cells["stage"][at]), middle)))
    assert lines[""] == f"stage {cells['stage'][at]}, micro-batch {cells['micro_batch'][at]}"
    assert f"{int(cells['end'][at] - cells['start'][at]):,} ns" in lines["duration"]
    assert "no processor" in lines
    gap = int(np.flatnonzero(slices.iteration == spans.iteration[20])[0])
    middle = int(slices.start[gap] + slices.end[gap]) // 2
    lines = dict(view.canvas.hint(place_of(view, int(slices.stage[gap]), middle)))
    assert lines[""] == f"stage {int(slices.stage[gap])} idle: {IDLE[int(slices.cause[gap])]}"
    strip = QPoint(round(view.canvas._x(int(spans.start[20]) + 1)), round(view.canvas.strip_rect().center().y()))
    lines = dict(view.canvas.hint(strip))
    assert lines[""] == f"iteration {int(spans.iteration[20]):,}"
    assert {"bubbles", "equal stages", "cells as unequal as these"} <= set(lines)


def test_a_click_selects_the_iteration_and_a_double_click_looks_at_it(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    spans = engine.index(Pipeline).spans
    user.session.look(Window(int(spans.start[20]), int(spans.end[24])))
    place = place_of(view, 1, (int(spans.start[22]) + int(spans.end[22])) // 2)
    QTest.mouseClick(view.canvas, Qt.MouseButton.LeftButton, pos=place)
    assert user.session.selection.iteration == int(spans.iteration[22])
    QTest.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, pos=place)
    window = user.session.window
    assert window.start <= int(spans.start[22]) < int(spans.end[22]) <= window.end
    assert window.length < 2 * int(spans.end[22] - spans.start[22])
    view.canvas.setFocus()
    user.press("Right")
    assert user.session.selection.iteration == int(spans.iteration[23])
    assert user.session.window.start <= int(spans.start[23]) < user.session.window.end
    user.press("Left")
    user.press("Left")
    assert user.session.selection.iteration == int(spans.iteration[21])


def test_time_is_zoomed_and_panned(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    before = user.session.window
    place = QPointF(place_of(view, 0, before.length // 2))
    wheel = QWheelEvent(
        place, place, QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton, Qt.KeyboardModifier.ControlModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.canvas, wheel)
    zoomed = user.session.window
    assert zoomed.length < before.length
    start, end = place_of(view, 0, zoomed.start + zoomed.length // 2), place_of(view, 0, zoomed.start)
    QTest.mousePress(view.canvas, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(view.canvas, end)
    QTest.mouseRelease(view.canvas, Qt.MouseButton.LeftButton, pos=end)
    assert user.session.window.start > zoomed.start
    assert user.session.window.length == zoomed.length


def test_many_cells_become_shares_and_one_iteration_is_a_click_away(
    user: User, engine: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inspector.picture.pipeline.MOST_DRAWN", 200)
    view = open_pipeline(user, engine)
    assert view.canvas._answer is not None
    assert view.canvas._answer.pieces is None
    user.click("Show one iteration")
    assert view.canvas._answer.pieces is not None
    assert user.session.selection.iteration is not None


def test_devices_for_stages_and_the_alignment_error_are_said(user: User) -> None:
    trace = ranks(40_000, [0, 1, -1, 2, 0, 0])
    view = open_pipeline(user, trace)
    assert view._answer is not None
    said = " ".join(notes(view._answer, trace))
    assert "Devices stand for stages" in said
    assert "leaves collectives 40.0 µs" in said
    assert said == view.notes.text()
    # These devices only wait for each other.
    assert view.against.full == "no stage worked in what is in view"
    worked = replace(view._answer.picture.figures, active_ns=2_000)
    said = against(worked, "measured")[0]
    assert said == "measured, of 2.00 µs in which iterations ran; micro-batches are not known"


def test_numbers_and_pictures_can_be_had(user: User, engine: Trace, tmp_path: Path) -> None:
    view = open_pipeline(user, engine)
    rows = view.rows_for_copy()
    assert rows is not None
    found = list(rows.rows)
    spans = engine.index(Pipeline).spans
    assert [row[0] for row in found] == spans.iteration.tolist()
    assert [row[6] for row in found] == pytest.approx(spans.bubble(3))
    write_png(tmp_path / "pipeline.png", view.picture())
    write_svg(tmp_path / "pipeline.svg", view.picture(), view.TITLE)
    assert (tmp_path / "pipeline.png").stat().st_size > 2000
    assert "<svg" in (tmp_path / "pipeline.svg").read_text()


def test_it_lives_through_themes_sizes_and_selections(user: User, engine: Trace) -> None:
    view = open_pipeline(user, engine)
    user.window.theme.toggle()
    user.window.theme.toggle_presenter()
    QApplication.processEvents()
    assert view.state is State.ANSWER
    assert view.minimumSizeHint().width() <= 1366
    user.session.select(Selection(iteration=int(engine.index(Pipeline).spans.iteration[3])))
    view.picture().grab()
    # With 3 stages on 2 cores at most two thirds can be busy.
    object.__setattr__(engine.info, "details", {"cores": "2"})
    assert view._answer is not None
    assert any("at most 67 % can be busy" in each for each in notes(view._answer, engine))


def test_the_headline_says_what_of_the_work_had_no_processor(user: User, engine: Trace) -> None:
    user.session.set_trace(engine)
    worked, waited = contention_of(engine, 0, busy(engine, 0).span)
    assert worked > waited > 0
    said = f"{100 * waited / worked:.1f} % of the work without a core"
    assert any(each.full.endswith(said) for each in user.headline.findChildren(Elided))
