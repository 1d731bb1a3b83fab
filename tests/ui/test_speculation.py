"""The speculation view as a user meets it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent
from PySide6.QtWidgets import QApplication

from inspector.analysis.speculation import counts, passes
from inspector.picture.palette import ink
from inspector.picture.ribbon import KIND_INKS, told_requests
from inspector.trace.builder import Builder
from inspector.trace.selection import Selection, Window
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import Setup, engine_trace
from tests.ui.user import User
from ui.export import write_png, write_svg
from ui.inks import color_of
from ui.speculation.chart import Chart
from ui.speculation.figures import measures
from ui.views.speculation import Speculation
from ui.views.view import State

TRACE = engine_trace(Setup(work=40))


@pytest.fixture
def view(user: User) -> Speculation:
    return shown(user, TRACE)


def shown(user: User, trace: Trace) -> Speculation:
    user.session.set_trace(trace)
    return user.view(Speculation, 520)


def tip(chart: Chart, across: float) -> dict[str, str]:
    """Point at a share of the chart's width; what the tip says."""
    area = chart.area
    point = QPointF(area.left() + across * area.width(), area.center().y())
    none = Qt.MouseButton.NoButton
    moved = QMouseEvent(
        QEvent.Type.MouseMove, point, chart.mapToGlobal(point), none, none, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(chart, moved)
    assert chart.picture is not None
    return dict(chart.lines_at(point, area, chart.picture))


def test_the_two_rates_are_told_apart_by_name(view: Speculation) -> None:
    counted = counts(passes(TRACE))
    said = view.measures.text()
    assert f"Acceptance, all tokens {100 * counted.accepted / counted.drafted:.1f} %" in said
    assert "Acceptance, mean of requests" in said
    assert f"Tokens per pass {1 + counted.accepted / counted.passes:.2f} 1 + accepted / passes" in said
    assert "measured" in said
    assert "Best draft length" in said
    assert said.endswith("estimated")


def test_groups_of_prompts_stand_side_by_side(view: Speculation) -> None:
    assert "Acceptance, faq" in view.measures.text()
    assert "Acceptance, prose" in view.measures.text()
    words = view.by_position.accessibleDescription()
    assert words.count("1: ") == 2
    said = tip(view.by_position, 0.01)
    assert said["draft position"] == "1"
    assert "that drafted it" in said["faq"]
    assert said["faq"] != said["prose"]


def test_the_dashes_of_each_group_are_in_the_legend(view: Speculation) -> None:
    assert view.answer is not None
    lines = view.legend._lines
    assert list(lines) == [group.name for group in view.answer.groups]
    assert len(set(lines.values())) == len(lines) > 1
    # A piece of it is drawn behind its swatch.
    before = view.legend.grab().toImage()
    view.legend.set_entries(view.legend._entries)
    assert view.legend.grab().toImage() != before


def test_charts_say_what_is_measured_and_what_is_estimated(view: Speculation) -> None:
    assert all("measured" in heading for chart in (view.over_time, view.by_position) for heading in chart.headings())
    assert all("estimated" in heading for heading in view.by_length.headings())
    assert "best" in view.by_length.accessibleDescription()
    assert "extrapolated" in tip(view.by_length, 0.99)["faq"]
    assert "extrapolated" not in tip(view.by_length, 0.2)["faq"]
    assert tip(view.by_length, 0.2)["cost of a pass"].endswith("estimated")


def test_the_tip_over_time_counts_exactly(view: Speculation) -> None:
    picture = view.over_time.picture
    assert picture is not None
    found = picture.over_time
    at = len(found.drafted) // 2
    said = tip(view.over_time, (at + 0.5) / len(found.drafted))
    assert said["accepted"].startswith(f"{found.accepted[at]:,} of {found.drafted[at]:,}")


def test_a_range_restricts_every_figure(view: Speculation, user: User) -> None:
    window = Window(0, TRACE.end_ns // 3)
    user.session.select(Selection(window=window))
    counted = counts(passes(TRACE, window))
    assert f"{counted.passes:,} passes of the target, selected range" in view.scope.full
    assert f"{100 * counted.accepted / counted.drafted:.1f} %" in view.measures.text()


def test_a_row_of_the_table_selects_the_request_and_shows_its_tokens(view: Speculation, user: User) -> None:
    user.click_heading(view.table, "Request")
    content = view.table.content
    assert content is not None
    told = {int(TRACE["requests"]["request"][row]) for row in told_requests(TRACE)}
    row = next(row for row in range(len(content)) if content.exact(row, 0) in told)
    user.click_cell(view.table, row)
    request = content.exact(row, 0)
    assert user.session.selection.request == request
    assert view.ribbon_title.text() == f"Tokens of request {request}"
    assert view.ribbon.words().startswith(f"request {request}: ")
    other = next(row for row in range(len(content)) if content.exact(row, 0) not in told)
    user.click_cell(view.table, other)
    assert "were not recorded" in view.ribbon_title.text()


def test_giving_the_table_the_focus_selects_nothing(view: Speculation, user: User) -> None:
    view.take_focus()
    QApplication.processEvents()
    assert user.session.selection.request is None


def test_the_table_sorts_and_copies_exact_numbers(view: Speculation, user: User) -> None:
    user.click_heading(view.table, "Drafted")
    copied = view.rows_for_copy()
    assert copied is not None
    rows = [dict(zip(copied.heads, row, strict=True)) for row in copied.rows]
    drafted = [row["drafted"] for row in rows]
    assert drafted == sorted(drafted, reverse=True)  # type: ignore[type-var]
    counted = counts(passes(TRACE))
    assert sum(int(str(row["accepted"])) for row in rows) == counted.accepted
    assert sum(int(str(row["emitted"])) for row in rows) == counted.emitted


@pytest.mark.parametrize("dark", [False, True])
def test_tokens_are_marked_by_colour_and_by_sign(view: Speculation, user: User, dark: bool) -> None:
    user.window.theme.set_mode("dark" if dark else "light")
    QApplication.processEvents()
    image = view.ribbon.viewport().grab().toImage()
    ratio = image.devicePixelRatio()
    for chip in view.ribbon._chips[:12]:
        corner = (chip.rect.topLeft() + QPointF(4, 2)) * ratio
        expected = color_of(KIND_INKS[chip.token.kind], view.theme).name()
        assert image.pixelColor(round(corner.x()), round(corner.y())).name() == expected
    assert {chip.text[0] for chip in view.ribbon._chips if chip.token.kind in (1, 2, 3)} <= {"✓", "×", "↻"}
    assert ink("rejected") in KIND_INKS


def test_the_picture_can_be_taken_along(view: Speculation, tmp_path: Path) -> None:
    write_svg(tmp_path / "view.svg", view.picture(), view.TITLE)
    write_png(tmp_path / "view.png", view.picture())
    assert "<svg" in (tmp_path / "view.svg").read_text(encoding="utf-8")
    assert QImage(str(tmp_path / "view.png")).width() >= view.picture().width()


def test_large_type_and_back(view: Speculation, user: User) -> None:
    before = view.over_time.area.left()
    user.press("F5")
    assert view.over_time.area.left() > before
    user.press("F5")
    assert view.over_time.area.left() == before


def test_without_drafts_it_says_how_to_get_them(user: User) -> None:
    view = shown(user, engine_trace(Setup(draft=0)))
    assert view.note.full.startswith("Nothing was drafted: record with speculation on")
    assert view.over_time.accessibleDescription() == "Nothing was drafted here"
    assert view.by_length.grab().size().isValid()


def test_without_steps_iterations_still_tell_the_acceptance(user: User) -> None:
    trace = engine_trace(Setup(), leave_out=("steps", "tokens"))
    view = shown(user, trace)
    table = trace["iterations"]
    share = 100 * int(table["accepted"].sum()) / int(table["drafted"].sum())
    assert f"{share:.1f} %" in view.measures.text()
    assert "No steps of requests" in view.note.full
    assert view.ribbon.words() == "No token texts were recorded"
    copied = view.rows_for_copy()
    assert copied is not None
    assert sum(int(str(row[2])) for row in copied.rows) == int(table["drafted"].sum())


def test_without_a_cost_of_passes_only_tokens_per_pass_are_estimated(user: User) -> None:
    view = shown(user, engine_trace(Setup(), leave_out=("kernels",)))
    assert "speedup unknown" in view.by_length.headings()[0]
    assert "cost unknown" in view.measures.text()
    picture = view.by_length.picture
    assert picture is not None
    assert picture.everything is not None
    assert np.isnan(picture.everything.estimate.speedup).all()
    assert "tokens per pass" in tip(view.by_length, 0.3)["faq"]


def test_where_passes_do_not_tell_which_length_is_best_none_is_named(user: User) -> None:
    view = shown(user, engine_trace(Setup()))
    picture = view.answer
    assert picture is not None
    assert picture.everything is not None
    found = picture.everything.estimate
    doubt = replace(found, low=found.low * 0.5, high=found.high * 1.5, best=-1, among=(0, found.seen))
    groups = tuple(replace(each, estimate=doubt) for each in picture.groups)
    said = replace(picture, everything=replace(picture.everything, estimate=doubt), groups=groups)
    best = measures(said)[-1]
    assert (best.title, best.value) == ("Best draft length, all requests", "cannot tell")
    assert "change the draft length while it runs" in best.tip
    view.by_length.show_picture(said)
    assert "cannot be told" in view.by_length.headings()[0]
    assert "cannot tell" in view.by_length.accessibleDescription()
    assert " to " in tip(view.by_length, 0.3)["faq"]
    assert view.by_length.grab().size().isValid()
    # Known of all together and of one group: the chart names the others, the figure says that it is of all.
    said = replace(picture, groups=(picture.groups[0], *groups[1:]))
    one, other = (group.name for group in said.groups)
    view.by_length.show_picture(said)
    assert f"best {one} " in view.by_length.headings()[0]
    assert f"which is best for {other} alone cannot be told" in view.by_length.headings()[0]
    best = measures(said)[-1]
    assert best.value != "cannot tell"
    assert f"For {other} alone it cannot be told" in best.tip


def test_a_trace_without_an_engine_says_so(user: User) -> None:
    view = shown(user, Builder().build(TraceInfo(("t",), "kineto")))
    assert view.state is State.NO_DATA
    assert user.sees("No speculation to show")
