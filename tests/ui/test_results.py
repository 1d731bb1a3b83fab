"""The view of recipe results, as a user meets it, and its rows against a naive sort and search."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.results import ResultColumn, ResultTable
from tests.readers.recipe_results import frames_of, write_results
from tests.ui.user import User
from ui.result_rows import Wanted, result_rows
from ui.views.results import RecipeResults
from ui.views.view import State


def view_of(user: User) -> RecipeResults:
    found = user.window.views["results"]
    assert isinstance(found, RecipeResults)
    return found


def cells(view: RecipeResults, column: int) -> list[str]:
    content = view.table.content
    assert content is not None
    return [content.text(row, column) for row in range(len(content))]


def heading(view: RecipeResults, title: str) -> int:
    content = view.table.content
    assert content is not None
    return [column.title for column in content.columns].index(title)


def test_a_folder_of_results_opens_as_its_tables(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "cuda_gpu_kern_sum-1", "cuda_gpu_kern_sum"))
    view = view_of(user)
    assert view.isVisible()
    assert view.state is State.ANSWER
    assert [view.outputs.itemText(at) for at in range(view.outputs.count())] == ["all_stats", "rank_stats", "files"]
    assert cells(view, heading(view, "Name")) == ["gemm", "softmax"]
    assert cells(view, heading(view, "Sum")) == ["52 ns", "21 ns"]
    assert cells(view, heading(view, "Std"))[1] == ""
    rows = view.rows_for_copy()
    assert rows is not None
    assert "Mean_ns" in rows.heads
    assert rows.text().splitlines()[1].startswith("gemm\t5\t10.5")


def test_a_report_is_a_page_of_its_own(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "gpu_gaps-1", "gpu_gaps"))
    view = view_of(user)
    assert len(cells(view, 0)) == 4
    assert [view.reports.itemText(at) for at in range(view.reports.count())] == [
        "All reports",
        "0: report0",
        "1: report1",
    ]
    view.reports.setCurrentIndex(2)
    view.reports.activated.emit(2)
    assert cells(view, heading(view, "Rank")) == ["1", "1"]
    assert view.sums.text().startswith("2 of 4 rows. Double click")


def test_headings_sort_and_the_field_finds(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "nvtx_gpu_proj_trace-1", "nvtx_gpu_proj_trace"))
    view = view_of(user)
    user.click_heading(view.table, "Projected Duration")
    lengths = cells(view, heading(view, "Projected Duration"))
    assert lengths == ["7.00 µs"] * 2 + ["4.00 µs"] * 2 + ["2.00 µs"] * 2 + ["500 ns"] * 2
    view.filter.setText("^MLP$")
    assert set(cells(view, heading(view, "Name"))) == {"mlp"}
    view.filter.setText("(")
    assert set(cells(view, heading(view, "Name"))) == {"mlp"}
    assert view.filter.property("wrong") is True


def test_another_table_keeps_no_order_that_it_has_no_column_for(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "cuda_gpu_kern_sum-1", "cuda_gpu_kern_sum"))
    view = view_of(user)
    user.click_heading(view.table, "Sum")
    view.outputs.setCurrentIndex(2)
    view.outputs.activated.emit(2)
    assert cells(view, heading(view, "File")) == ["report0", "report1"]
    assert view.wanted.sort == ""


def test_a_trace_of_records_leaves_the_view_out_of_sight(user: User, tmp_path: Path, sample_traces: Path) -> None:
    user.open(write_results(tmp_path / "gpu_gaps-1", "gpu_gaps"))
    assert view_of(user).isVisible()
    user.open(sample_traces / "decode_server.sqlite")
    assert not view_of(user).isVisible()
    assert user.window.views["headline"].isVisible()
    user.window.show_view("results")
    assert view_of(user).state is State.NO_DATA
    assert user.sees("nsys recipe")


def test_an_unknown_recipe_says_that_its_units_are_not_known(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "new", "recipe_of_tomorrow", frames_of("recipe_of_tomorrow")))
    assert user.sees("does not know this recipe")
    assert cells(view_of(user), heading(view_of(user), "A thing")) == ["1", "2", "1", "2"]


_TEXTS = ("ab", "b", "Ab", "")


@given(data=st.data())
def test_rows_are_those_of_a_naive_sort_and_search(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 12))
    numbers = data.draw(st.lists(st.integers(-3, 3), min_size=size, max_size=size))
    absent = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    codes = data.draw(st.lists(st.integers(-1, len(_TEXTS) - 1), min_size=size, max_size=size))
    reports = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    columns = (
        ResultColumn("number", np.array(numbers, np.int64), None, np.array(absent, bool)),
        ResultColumn("text", np.array(codes, np.int32), _TEXTS),
        ResultColumn("Rank", np.array(reports, np.int64)),
    )
    table = ResultTable("t", columns, size, report=2)
    wanted = Wanted(
        data.draw(st.integers(-1, 2)),
        data.draw(st.sampled_from(["", "a", "^b$"])),
        data.draw(st.sampled_from(["", "number", "text"])),
        data.draw(st.booleans()),
    )
    rows = [row for row in range(size) if wanted.report in (-1, reports[row])]
    if wanted.pattern:
        rows = [r for r in rows if codes[r] >= 0 and re.search(wanted.pattern, _TEXTS[codes[r]], re.IGNORECASE)]
    if wanted.sort:
        column = columns[0 if wanted.sort == "number" else 1]
        there = [row for row in rows if column.at(row) is not None]
        # Texts that differ in case only keep the order in which they came into the column.
        order = sorted(range(len(_TEXTS)), key=lambda at: _TEXTS[at].casefold())
        key = (lambda row: numbers[row]) if wanted.sort == "number" else (lambda row: order.index(codes[row]))
        rows = sorted(there, key=key, reverse=wanted.descending) + [row for row in rows if column.at(row) is None]
    assert result_rows(table, wanted).order.tolist() == rows


def test_a_pattern_that_is_none_is_refused() -> None:
    table = ResultTable("t", (ResultColumn("a", np.zeros(1, np.int32), ("x",)),), 1)
    with pytest.raises(re.error):
        result_rows(table, Wanted(pattern="("))


def choose(user: User, view: RecipeResults, row: int) -> None:
    """Go to a row and press Enter."""
    view.table.setCurrentIndex(view.table.model().index(row, 0))
    view.table.setFocus()
    user.press("Return")


def test_a_row_with_a_time_opens_there_in_the_timeline(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "nvtx_gpu_proj_trace-1", "nvtx_gpu_proj_trace"))
    view, trace = view_of(user), user.session.trace
    assert trace is not None
    assert view.sums.text() == "8 rows. Double click or Enter shows a row in the timeline"
    starts = cells(view, heading(view, "Projected Start"))
    for row in (2, 5):
        choose(user, view, row)
        found, window = user.session.selection, user.session.window
        assert (found.table, trace.names[found.name or 0]) == ("ranges", cells(view, heading(view, "Name"))[row])
        begin, end = (int(trace["ranges"][key][found.row or 0]) for key in ("start", "end"))
        exact = view.table.content
        assert exact is not None
        assert begin + trace.info.origin_ns == exact.exact(row, heading(view, "Projected Start")), starts
        assert end - begin == exact.exact(row, heading(view, "Projected Duration"))
        assert window.start <= begin < end <= window.end
        assert window.length < 3 * (end - begin)
        # The second report is a process of its own, whose rows may look the same.
        assert int(trace["processes"]["rank"][found.process or 0]) == row // 4


def test_a_row_of_a_device_opens_at_its_counters(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "gpu_metric_util_map-1", "gpu_metric_util_map"))
    view, trace = view_of(user), user.session.trace
    assert trace is not None
    choose(user, view, 4)
    assert user.session.selection.device == 1
    assert user.session.window.start < 1_000_000 < user.session.window.end


def test_a_row_without_a_place_says_why(user: User, tmp_path: Path) -> None:
    user.open(write_results(tmp_path / "cuda_gpu_kern_sum-1", "cuda_gpu_kern_sum"))
    view = view_of(user)
    before = user.session.window
    assert "Enter" not in view.sums.text()
    choose(user, view, 0)
    assert user.sees("No column of this table is a time")
    assert user.session.window == before
    frames = frames_of("nvtx_gpu_proj_trace", 1)
    frames["trace"].loc[1, "Projected Start"] = float("nan")
    user.open(write_results(tmp_path / "nvtx_gpu_proj_trace-1", "nvtx_gpu_proj_trace", frames))
    choose(user, view, 1)
    assert user.sees("This row has no time")
    choose(user, view, 0)
    assert not user.sees("This row has no time")
    assert user.session.selection.table == "ranges"
