"""The layers of engines as a user meets them: opened, dropped, searched, sorted, and one beside another."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.readers import engine_layers as files
from tests.ui.user import User
from ui.layer_rows import LayerList
from ui.views.layers import Layers
from ui.views.view import State


def view_of(user: User) -> Layers:
    found = user.window.views["layers"]
    assert isinstance(found, Layers)
    return found


def content_of(view: Layers) -> LayerList:
    content = view.table.content
    assert isinstance(content, LayerList)
    return content


def cells(view: Layers, title: str) -> list[str]:
    content = content_of(view)
    column = [column.title for column in content.columns].index(title)
    return [content.text(row, column) for row in range(len(content))]


def times_of(layers: list[dict[str, object]]) -> list[tuple[str, float]]:
    return [(str(layer["Name"]), 0.5 + at) for at, layer in enumerate(layers)]


@pytest.fixture
def whole(tmp_path: Path) -> tuple[Path, Path]:
    """A layer file and its profile."""
    layers = files.of_8_6()
    return (
        files.write(tmp_path / "layers.json", files.detailed(layers)),
        files.write(tmp_path / "profile.json", files.profile(times_of(layers), 641)),
    )


def test_layers_and_their_profile_open_as_one_table(user: User, whole: tuple[Path, Path]) -> None:
    user.open(*whole)
    view = view_of(user)
    assert view.isVisible()
    assert view.state is State.ANSWER
    assert cells(view, "#") == ["1", "2", "3", "4", "5"]
    assert cells(view, "Type") == ["Reformat", "CaskConvActPool", "Reformat", "NoOp", "Myelin"]
    assert cells(view, "Holds") == ["0", "2", "1", "1", "2+"]
    assert cells(view, "In") == ["FP32", "FP16", "FP16", "–", "INT8, INT32"]
    assert cells(view, "Average") == ["500 µs", "1.50 ms", "2.50 ms", "3.50 ms", "4.50 ms"]
    assert cells(view, "Share") == ["4.0 %", "12.0 %", "20.0 %", "28.0 %", "36.0 %"]
    assert cells(view, "Input shapes")[0] == "1×3×8×8"
    assert cells(view, "Bytes")[0] == "1.15 kB"
    assert view.figures[0].text.startswith("Layers as listed 5")
    assert "12.5 ms" in view.figures[1].text
    assert "measured by trtexec" in view.figures[1].text
    assert "modelled" in view.figures[2].text
    assert not view.engines.isVisible()
    assert not user.window.views["headline"].isVisible()


def test_files_can_be_dropped(user: User, qtbot: QtBot, whole: tuple[Path, Path]) -> None:
    user.drop(*whole)
    qtbot.waitUntil(lambda: "layers" in user.window.views and view_of(user).state is State.ANSWER)
    assert len(content_of(view_of(user))) == 5


def test_the_layer_that_is_current_is_told_in_full(user: User, whole: tuple[Path, Path]) -> None:
    user.open(*whole)
    view = view_of(user)
    user.click_cell(view.table, 1, 1)
    said = view.about.toPlainText()
    assert "/conv1/Conv" in said
    assert "by its metadata" in said
    assert "ConvWeights: 108 of Half" in said
    assert "x': 1×3×8×8, Channel major FP16" in said


def test_headings_sort_and_the_field_finds_what_was_fused(user: User, whole: tuple[Path, Path]) -> None:
    user.open(*whole)
    view = view_of(user)
    user.click_heading(view.table, "Average")
    assert cells(view, "#") == ["5", "4", "3", "2", "1"]
    view.filter.setText("relu1/Relu")
    assert cells(view, "Layer") == ["conv1 + relu1"]
    assert "1 of 5 layers" in view.sums.text()
    view.filter.setText("(")
    assert view.filter.property("wrong") is True
    assert len(content_of(view)) == 1


def test_before_and_after_fusion_stand_side_by_side(user: User, tmp_path: Path) -> None:
    before = files.write(tmp_path / "before.json", files.detailed([*files.of_8_6(), *files.of_8_2()]))
    after = files.write(tmp_path / "after.json", files.detailed(files.of_8_6()))
    user.open(before, after)
    view = view_of(user)
    assert [view.engines.itemText(at) for at in range(view.engines.count())] == ["before.json", "after.json"]
    assert "5 in after.json (+40.0 %)" in view.figures[0].text
    view.engines.setCurrentIndex(1)
    view.engines.activated.emit(1)
    assert len(content_of(view)) == 5
    assert "7 in before.json (−28.6 %)" in view.figures[0].text
    assert "in before.json (−" in view.figures[2].text
    assert "unknown" in view.figures[1].text


def test_names_alone_leave_the_rest_unknown_not_zero(user: User, tmp_path: Path) -> None:
    user.open(files.write(tmp_path / "l.json", files.named([files.COPY, "a + b"])))
    view = view_of(user)
    for title in ("Type", "In", "Out", "Average", "Median", "Share", "Bytes", "Tactic"):
        assert cells(view, title) == ["–", "–"], title
    assert all("unknown" in figure.text for figure in view.figures[1:])
    assert user.sees("profilingVerbosity=detailed")
    rows = view.rows_for_copy()
    assert rows is not None
    assert rows.text().splitlines()[1].startswith("1\t" + files.COPY)


def test_a_profile_alone_shows_its_times(user: User, tmp_path: Path) -> None:
    user.open(files.write(tmp_path / "p.json", files.profile([("a", 1), ("b", 3)])))
    view = view_of(user)
    assert cells(view, "Share") == ["25.0 %", "75.0 %"]
    assert "exportLayerInfo" in view.figures[2].text


def test_a_trace_of_records_leaves_the_view_out_of_sight(
    user: User, whole: tuple[Path, Path], sample_traces: Path
) -> None:
    user.open(*whole)
    assert view_of(user).isVisible()
    user.open(sample_traces / "decode_server.sqlite")
    assert not view_of(user).isVisible()
    user.window.show_view("layers")
    assert view_of(user).state is State.NO_DATA
    assert user.sees("trtexec --exportLayerInfo")
