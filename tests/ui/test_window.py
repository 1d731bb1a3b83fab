"""A user's day: open, look, find the gap, follow it, take figures away, come back."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from inspector.analysis.busy import busy
from inspector.trace.selection import Selection, Window
from tests.ui.user import User
from ui.gap_table import GapList
from ui.views.view import State
from ui.widgets.elided import Elided


@pytest.fixture
def sample(sample_traces: Path) -> Path:
    return sample_traces / "decode_server.sqlite"


def test_first_there_is_a_page_to_start_from(user: User, sample: Path) -> None:
    assert user.sees("Open trace…")
    assert user.sees("Nothing yet")
    assert user.sees("Decode server")
    user.click("Decode server")
    assert user.window.windowTitle() == "decode_server.sqlite (simulated) – Inflight Inspector"


def test_the_first_screen_says_how_busy_why_idle_and_what_next(user: User, sample: Path) -> None:
    user.drop(sample)
    trace = user.session.trace
    assert trace is not None
    found = busy(trace, 0)
    assert f"{100 * found.busy_ns / found.span_ns:.1f} %" in user.headline.text
    assert "Largest cause of idle time simulated host code" in user.headline.text
    assert "figures can be trusted" in user.headline.text
    user.click("Show it")
    gap = user.session.selection.gap
    assert gap is not None
    assert user.session.selection.thread is not None
    assert user.session.window.start < gap < user.session.window.end
    assert user.session.window.length < trace.end_ns


@pytest.mark.parametrize("large", [False, True])
def test_in_a_small_window_no_figure_is_cut(user: User, sample_traces: Path, large: bool) -> None:
    user.open(sample_traces / "planted_causes.sqlite")
    if large:
        user.press("F5")
    for width in (1000, 1366, 1000):
        user.window.resize(width, 650)
        QApplication.processEvents()
        figures = [each for each in user.headline.findChildren(Elided) if each.isVisible() and "%" in each.full]
        assert [each.text() for each in figures] == [each.full for each in figures]
        notes = [each.text() for each in user.headline.findChildren(Elided) if " idle" in each.full]
        assert not any("…" in each for each in notes)


def test_figures_follow_the_range_that_is_selected(user: User, sample: Path) -> None:
    user.open(sample)
    trace = user.session.trace
    assert trace is not None
    part = Window(10_000_000, 20_000_000)
    user.session.select(Selection(window=part))
    found = busy(trace, 0, part)
    assert "selected range, 10.0 ms" in user.headline.text
    assert f"{100 * found.busy_ns / found.span_ns:.1f} %" in user.headline.text
    assert user.sees(f"{found.gaps:,} gaps listed")
    busy_share = user.headline.text.splitlines()[3]
    user.press("Tab")
    assert user.session.selection.row is not None
    assert "selected range, 10.0 ms" in user.headline.text
    assert busy_share in user.headline.text
    user.click("Figures of the whole trace")
    assert "first to last GPU work" in user.headline.text


def test_a_gap_leads_to_its_place_with_the_thread_that_was_late(user: User, sample: Path) -> None:
    user.open(sample)
    view = user.gaps
    assert isinstance(view.table.content, GapList)
    span, thread = view.table.content.span(2), view.table.content.thread_of(2)
    user.click_cell(view.table, 2, twice=True)
    assert user.session.selection.gap == span.start
    assert user.session.selection.thread == thread
    assert user.session.window == Window(span.start - span.length // 2, span.end + span.length // 2)
    user.press("Backspace")
    assert user.session.window == user.session.whole


def test_a_cause_is_explained_and_narrows_the_list(user: User, sample: Path) -> None:
    user.open(sample)
    view = user.gaps
    user.click("Group idle time: By cause")
    assert user.sees("The host's interpreter collected garbage.")
    row = next(at for at in range(view.table.model().rowCount()) if view.table.model().index(at, 0).data() == "gc")
    user.click_cell(view.table, row, twice=True)
    assert user.sees("only gc  ×")
    assert user.sees("3 gaps listed")
    assert user.sees("The host's interpreter collected garbage.")
    user.click("Show all gaps, not only gc")
    assert user.sees("5,279 gaps listed")


def test_short_gaps_are_summed_not_lost(user: User, sample: Path) -> None:
    user.open(sample)
    assert user.gaps
    user.fill("Shortest gap to list", "5 us")
    sums = user.gaps.sums.toolTip()
    parts, _, total = sums.partition(" = ")
    assert "shorter than 5.00 µs" in parts
    numbers = [int(part.rpartition(": ")[2].removesuffix(" ns").replace(",", "")) for part in parts.split("  +  ")]
    trace = user.session.trace
    assert trace is not None
    assert sum(numbers) == busy(trace, 0).idle_ns
    assert total.startswith(f"{busy(trace, 0).idle_ns:,} ns")
    user.fill("Shortest gap to list", "soon")
    assert user.gaps.shortest.property("wrong")
    assert user.gaps.sums.toolTip() == sums


def test_going_from_gap_to_gap(user: User, sample: Path) -> None:
    user.open(sample)
    user.press("Alt+G")
    longest = user.session.selection.gap
    content = user.gaps.table.content
    assert isinstance(content, GapList)
    assert longest == content.start_of(0)
    user.press("G")
    after = user.session.selection.gap
    assert longest is not None
    assert after is not None
    assert after > longest
    user.press("Shift+G")
    assert user.session.selection.gap == longest
    user.press("Shift+G")
    assert len(user.gaps.table.selected_rows()) == 1
    user.press("G")
    user.press("Esc")
    assert user.session.selection.gap is None
    user.press("Ctrl+Z")
    assert user.session.selection.gap == longest


def test_another_range_begins_at_the_top_of_the_table(user: User, sample: Path) -> None:
    user.open(sample)
    table = user.gaps.table
    table.scrollToBottom()
    assert table.rowAt(0) > 0
    user.session.select(Selection(window=Window(0, 40_000_000)))
    assert table.rowAt(0) == 0
    table.scrollToBottom()
    user.click_heading(table, "Start")
    assert table.rowAt(0) == 0


def test_names_take_the_room_that_is_left(user: User, sample: Path) -> None:
    user.open(sample)
    table = user.kernels.table
    user.window.resize(1366, 768)
    narrow = table.columnWidth(0)
    user.window.resize(2400, 768)
    assert table.columnWidth(0) > narrow + 500
    table.setColumnWidth(0, 200)
    user.window.resize(2300, 768)
    assert table.columnWidth(0) == 200


def test_kernels_are_sorted_filtered_and_selected_everywhere(user: User, sample: Path) -> None:
    user.open(sample)
    view = user.kernels
    assert user.sees("norm, element-wise")
    user.click_heading(view.table, "Count")
    counts = [int(str(view.table.model().index(row, 2).data()).replace(",", "")) for row in range(5)]
    assert counts == sorted(counts, reverse=True)
    user.click_heading(view.table, "Count")
    assert view.table.model().headerData(2, Qt.Orientation.Horizontal) == "Count ↑"
    user.fill("Filter kernel names", "^nvjet.*splitK")
    names = [view.table.model().index(row, 0).data() for row in range(view.table.model().rowCount())]
    assert names
    assert all(name.startswith("nvjet") and "splitK" in name for name in names)
    assert user.sees(f"{len(names)} of 22 rows")
    user.click_cell(view.table, 0)
    trace = user.session.trace
    assert trace is not None
    assert user.session.selection.name is not None
    assert trace.names[user.session.selection.name] == names[0]
    user.fill("Filter kernel names", "(")
    assert view.filter.property("wrong")


def test_numbers_are_taken_away(user: User, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user.open(sample)
    user.kernels.table.setFocus()
    user.press("Ctrl+C")
    copied = QGuiApplication.clipboard().text().splitlines()
    assert copied[0].split("\t")[:4] == ["name", "category", "count", "total_ns"]
    assert len(copied) == 23
    target = tmp_path / "kernels.csv"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
    user.press("Ctrl+Shift+E")
    with target.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [line.split("\t")[0] for line in copied[1:]]
    for action, suffix, begin in (("export_png", "png", b"\x89PNG"), ("export_svg", "svg", b"<?xml")):
        target = tmp_path / f"kernels.{suffix}"
        getattr(user.window, action)()
        assert target.read_bytes().startswith(begin)
    target = tmp_path / "no" / "such" / "folder.csv"
    user.press("Ctrl+Shift+E")
    assert user.sees("cannot write")


def test_everything_is_in_the_command_palette(user: User, sample: Path) -> None:
    user.open(sample)
    user.press("Ctrl+K")
    user.type("dark")
    assert user.window.palette_box.titles()[0] == "Dark or light"
    before = user.window.theme.dark
    user.press("Return")
    assert user.window.theme.dark != before
    assert not user.window.palette_box.isVisible()
    for word, title in (
        ("theme", "Dark or light"),
        ("shortcuts", "Keys"),
        ("save", "Save recording"),
        ("spreadsheet", "Export numbers"),
        ("worst", "Longest"),
    ):
        user.press("Ctrl+K")
        user.type(word)
        assert user.window.palette_box.titles()[0].startswith(title)
        user.press("Esc")
    user.press("Ctrl+Shift+P")
    user.type("longest idle")
    user.press("Return")
    assert user.session.selection.gap is not None
    user.press("Ctrl+K")
    assert user.window.palette_box.isVisible()
    user.press("Esc")
    assert not user.window.palette_box.isVisible()
    assert user.session.selection.gap is not None


def test_letters_typed_into_a_field_are_text(user: User, sample: Path) -> None:
    user.open(sample)
    user.fill("Filter kernel names" if user.kernels else "", "wasdgqlf0")
    assert user.kernels.filter.text() == "wasdgqlf0"
    assert user.session.selection.gap is None
    assert user.session.window == user.session.whole


def test_keys_and_legend_can_be_looked_up(user: User, sample: Path) -> None:
    user.open(sample)
    user.press("F1")
    assert user.sees("Next idle gap\tG")
    user.press("Esc")
    user.press("?")
    assert user.window.key_sheet.isVisible()
    user.press("Esc")
    user.press("L")
    assert user.sees("queue latency\tThe next work was launched in time and started late")
    user.press("Esc")
    assert not user.window.legend_sheet.isVisible()


def test_what_is_wrong_with_a_trace_is_one_click_away(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "decode_graph_level.sqlite")
    assert "kernels inside graphs are not in this file" in user.headline.text
    assert user.kernels.sums.text().endswith("record with --cuda-graph-trace=node")
    user.press("Ctrl+B")
    assert user.sees("About this trace")
    assert user.sees("CUDA graph")
    user.press("Ctrl+B")
    assert not user.sees("About this trace")


def test_the_notes_in_the_status_line_lead_to_the_notes(user: User, corpus: Path) -> None:
    user.open(corpus / "nsys" / "h100x2_fsdp_1s.sqlite")
    assert user.sees("2 quality notes, 1 of loss")
    user.click("2 quality notes, 1 of loss")
    assert user.sees("About this trace")
    heading = next(each for each in user.window.findChildren(QLabel) if each.text() == "Quality: 2 notes")
    assert not heading.visibleRegion().isEmpty()


def test_tables_say_of_which_device_and_range_they_are(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "planted_causes.sqlite")
    user.press("Alt+D")
    assert user.gaps.scope.full.startswith("GPU 1")
    assert user.gaps.scope.full.endswith(", whole trace")
    user.session.select(user.session.selection.but(window=Window(0, 5_000_000)))
    assert user.kernels.scope.full.startswith("GPU 1")
    assert user.kernels.scope.full.endswith(", selected range, 5.00 ms")


def test_several_devices_can_be_chosen_from(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "planted_causes.sqlite")
    first = user.headline.text
    user.press("Alt+D")
    assert user.session.device == 1
    assert user.headline.text != first
    content = user.gaps.table.content
    assert isinstance(content, GapList)
    assert content.device == 1


def test_a_file_that_is_none_is_told_in_one_line_and_the_open_trace_stays(
    user: User, sample: Path, tmp_path: Path
) -> None:
    user.open(sample)
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"SQLite format 3\0" + b"\1" * 500)
    user.drop(broken)
    assert "broken.sqlite" in user.window.opening.text
    assert "\n" not in user.window.opening.text
    assert user.window.windowTitle().startswith("decode_server.sqlite")
    user.click("Dismiss: opening")
    assert user.window.opening.text == ""
    user.drop(tmp_path / "gone.sqlite")
    assert "gone.sqlite" in user.window.opening.text


def test_a_trace_without_a_gpu_says_what_is_missing(user: User, corpus: Path) -> None:
    user.open(corpus / "kineto" / "cpu_only_rank34.json.gz")
    if user.session.trace is None:
        pytest.skip("this format is not read yet")
    assert user.window.views["gaps"].state is State.NO_DATA
    assert "no work on a device was recorded" in user.gaps.message.text
    assert "No kernels to show" in user.kernels.message.text


def test_a_real_trace_of_two_ranks_on_two_gpus(user: User, corpus: Path) -> None:
    user.open(corpus / "nsys" / "h100x2_fsdp_1s.sqlite")
    assert "measured" in user.headline.text
    trace = user.session.trace
    assert trace is not None
    for device in range(2):
        user.session.select(Selection(device=device))
        idle = busy(trace, device).idle_ns
        assert user.gaps.sums.toolTip().endswith(f"= {idle:,} ns, all idle time")


def test_things_are_as_they_were_left(start_window: Callable[..., User], sample: Path) -> None:
    user = start_window()
    user.open(sample)
    user.press("Ctrl+B")
    user.press("F5")
    user.session.look(Window(1_000_000, 3_000_000))
    user.leave()
    again = start_window()
    assert again.sees("decode_server.sqlite")
    assert again.window.theme.presenter
    again.click("decode_server.sqlite")
    assert again.session.window == Window(1_000_000, 3_000_000)
    assert again.sees("About this trace")
    again.window.reset_arrangement()
    assert not again.sees("About this trace")


def test_a_damaged_settings_file_is_set_aside(start_window: Callable[..., User], tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "settings.json").write_text("{ no", encoding="utf-8")
    user = start_window()
    assert user.sees("the settings file could not be read")
    assert (tmp_path / "config" / "settings.damaged.json").read_text(encoding="utf-8") == "{ no"
    user.window.theme.set_mode("dark")
    assert json.loads((tmp_path / "config" / "settings.json").read_text(encoding="utf-8"))["theme"] == "dark"


def test_everything_can_be_used_by_keyboard_and_has_a_name(user: User, sample: Path) -> None:
    user.open(sample)
    user.press("Ctrl+B")
    kinds = (QAbstractButton, QLineEdit, QComboBox, QAbstractItemView)
    inner = ("qt_", "ScrollLeftButton", "ScrollRightButton")
    for view in ("gaps", "kernels"):
        user.window.show_view(view)
        nameless = [
            f"{type(each).__name__} in {each.parent().objectName()}"
            for each in user.window.findChildren(QWidget)
            if isinstance(each, kinds)
            and each.isVisible()
            and not each.objectName().startswith(inner)
            and type(each).__name__ not in ("QLineEditIconButton", "QTableCornerButton")
            and not (each.accessibleName() or (isinstance(each, QAbstractButton) and each.text()))
        ]
        assert nameless == []
    seen = set()
    for _ in range(8):
        user.press("Ctrl+Tab")
        view = user.window.current_view()
        assert view is not None
        seen.add(view.ID)
    assert {"headline", "timeline", "kernels", "facts"} <= seen


def test_no_view_fails_without_a_trace_again(user: User, sample: Path) -> None:
    user.open(sample)
    user.press("Ctrl+W")
    assert user.session.trace is None
    assert user.sees("Open trace…")
    assert user.window.windowTitle() == "Inflight Inspector"
    for key in ("G", "Alt+G", "0", "Backspace", "Ctrl+C", "L", "Esc", "Q"):
        user.press(key)
    user.press("Esc")
    user.open(sample)
    assert user.sees("5,279 gaps listed")


def test_end_and_home_are_the_ends_of_a_table_and_elsewhere_those_of_time(user: User, sample: Path) -> None:
    user.open(sample)
    gaps = user.gaps
    gaps.table.setFocus()
    window = user.session.window
    user.press("End")
    assert gaps.table.selected_rows() == [gaps.table.model().rowCount() - 1]
    user.press("Home")
    assert gaps.table.selected_rows() == [0]
    user.window.views["timeline"].take_focus()
    user.session.look(Window(window.start + 1000, window.start + 2000))
    user.press("End")
    assert user.session.window == Window(user.session.whole.end - 1000, user.session.whole.end)
    user.press("Home")
    assert user.session.window == user.session.whole


def test_what_is_said_stands_beside_the_rest_of_the_status_line_and_goes_again(
    user: User, sample: Path, qtbot: QtBot
) -> None:
    user.open(sample)
    status = user.window.status
    before = status.text
    status.showMessage("Saved it", 30)
    labels = [label for label in status.findChildren(QLabel) if label.isVisible() and label.text()]
    assert any(label.text() == "Saved it" for label in labels)
    assert all(not one.geometry().intersects(other.geometry()) for one, other in itertools.combinations(labels, 2))
    assert status.text == before
    qtbot.waitUntil(lambda: not status.currentMessage())


def test_coming_to_a_table_selects_nothing_and_a_step_down_its_first_row(user: User, sample: Path) -> None:
    user.open(sample)
    user.window.show_view("gaps")
    user.gaps.table.setFocus()
    assert user.session.selection.gap is None
    assert user.gaps.table.selected_rows() == []
    user.press("Down")
    assert user.gaps.table.selected_rows() == [0]
    content = user.gaps.table.content
    assert isinstance(content, GapList)
    assert user.session.selection.gap == content.start_of(0)
