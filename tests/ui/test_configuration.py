"""The configuration in the window: with a trace, dropped on one, of a run, in sight and copied."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from inspector import units
from inspector.analysis.configured import Line
from inspector.configuration.settings import Setting, of
from inspector.trace import header
from inspector.trace.save import save
from inspector.trace.selection import Window
from inspector.trace.table import Table
from inspector.trace.trace import Trace
from tests.configuration.shapes import LLAMA_3_8B
from tests.drawn import draw
from tests.engine_traces import Setup, engine_trace
from tests.ui.user import User
from ui.run import launch
from ui.run.options import decode
from ui.run.settings_sheet import Group, split
from ui.views.pages import KvPages
from ui.views.pipeline import PipelineView
from ui.views.run import Run
from ui.views.schedule import Schedule

_WAIT_MS = 60_000


@pytest.fixture(autouse=True)
def own_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "recordings", lambda: tmp_path / "recordings")
    monkeypatch.setattr("ui.views.run.read_options", lambda: decode(b"[]"))


@pytest.fixture
def stopped(user: User, qtbot: QtBot) -> Iterator[User]:
    """What still runs is stopped, however the test ends: a window that closes would ask."""
    yield user
    child = user.window.desk.child
    if child.is_alive:
        child.stop()
        qtbot.waitUntil(lambda: not child.is_alive, timeout=_WAIT_MS)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    save(engine_trace(Setup()), tmp_path / "run.inflight")
    return tmp_path / "run.inflight"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_8B))
    return tmp_path / "config.json"


def run_view(user: User) -> Run:
    return user.view(Run)


def test_a_trace_with_a_configuration(user: User, recording: Path, model: Path) -> None:
    options = model.with_name("mine.yaml")
    options.write_text("max_batch_size: 16\ntensor_parallel_size: 4\n")
    user.open(recording, options, model)
    view = run_view(user)
    for text in ("run.inflight", "Layers", "131 kB", "Modelled, all ranks together", "recorded: 6"):
        assert user.sees(text)
    assert user.sees("Said nowhere: ")
    assert user.sees("Memory share")
    assert view.middle.sheet.shown is not None
    lines = {line.name: line for _, line in view.middle.sheet.shown.lines}
    assert lines["tensor_parallel"].where == "tensor_parallel_size in mine.yaml"
    assert "kv_fraction" not in lines
    assert not view.output.isVisible()
    user.click("Copy the configuration")
    copied = [line.split("\t") for line in QApplication.clipboard().text().splitlines()]
    assert ["Model", "layers", "32", "", f"num_hidden_layers in {model}", ""] in copied
    assert ["Limits", "max_batch_size", "16", "requests", f"max_batch_size in {options}", "recorded: 6"] in copied
    rows = view.rows_for_copy()
    assert rows is not None
    assert rows.text() == QApplication.clipboard().text()


def test_a_trace_without_says_so_and_how_to_bring_it(user: User, recording: Path, model: Path) -> None:
    assert model.parent == recording.parent
    user.open(recording)
    view = run_view(user)
    assert user.sees("Nothing is known of how this was set")
    assert not user.sees("Said nowhere")
    assert not view.middle.copy.isVisible()
    user.click("New run…")
    assert user.sees("Built-in engine")
    user.click("This trace")
    assert user.sees("Nothing is known of how this was set")


def test_what_is_dropped_joins_the_open_trace(user: User, recording: Path, model: Path) -> None:
    user.open(recording)
    view = run_view(user)
    user.session.look(Window(1000, 2_000_000))
    user.session.select(user.session.selection.but(iteration=3))
    window, selection = user.session.window, user.session.selection
    user.drop(model)
    assert user.sees("num_hidden_layers in config.json")
    assert (user.session.window, user.session.selection) == (window, selection)
    assert user.session.trace is not None
    assert user.session.trace.info.paths == (str(recording),)
    options = model.with_name("more.yml")
    options.write_text("max_num_tokens: 48\n")
    user.drop(options)
    assert view.middle.sheet.shown is not None
    assert {"layers", "max_num_tokens"} <= {line.name for _, line in view.middle.sheet.shown.lines}
    assert user.session.failure is None


def test_a_configuration_without_a_trace_and_one_that_is_none(user: User, recording: Path, model: Path) -> None:
    user.drop(model)
    assert user.sees("config.json is no trace")
    assert user.session.trace is None
    user.open(recording)
    assert user.session.failure is None
    model.write_text("{")
    user.drop(model)
    assert user.sees("cannot read")
    assert user.session.trace is not None
    assert len(user.session.trace.info.configuration) == 0


def test_what_was_put_beside_a_recording_is_saved_with_it(
    user: User, recording: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.open(recording, model)
    target = tmp_path / "kept.inflight"
    monkeypatch.setattr("ui.run.desk.QFileDialog.getSaveFileName", lambda *_: (str(target), ""))
    user.press("Ctrl+S")
    kept = {each.name: each for each in header.read(target).configuration}
    assert kept["layers"].value == 32
    assert kept["layers"].file == str(model)
    assert header.read(recording).configuration == []
    user.open(target)
    run_view(user)
    assert user.sees("num_hidden_layers in config.json")


def test_of_a_run_while_it_goes_on(stopped: User, qtbot: QtBot, model: Path, tmp_path: Path) -> None:
    user = stopped
    serve = tmp_path / "trtllm-serve"
    serve.write_text(f"#!{sys.executable}\nimport time\nprint('at work', flush=True)\ntime.sleep(600)\n")
    serve.chmod(0o755)
    wanted = launch.command(f"{serve} {model.parent} --tp_size 2 --max_batch_size 8")
    user.window.desk._start(lambda: wanted)
    view = user.window.views["run"]
    assert isinstance(view, Run)
    qtbot.waitUntil(lambda: "at work" in view.output.text.toPlainText(), timeout=_WAIT_MS)
    assert view.output.isVisible()
    user.click("Show of the run: Configuration")
    qtbot.waitUntil(lambda: user.sees("num_hidden_layers in config.json"), timeout=_WAIT_MS)
    assert user.sees("Tensor parallel")
    assert not view.output.isVisible()
    options = tmp_path / "more.yaml"
    options.write_text("max_seq_len: 4321\n")
    user.drop(options)
    # It holds for the generations that come, too.
    generation = user.session.trace.generation if user.session.trace is not None else 0
    qtbot.waitUntil(
        lambda: user.session.trace is not None and user.session.trace.generation > generation + 2, timeout=_WAIT_MS
    )
    assert user.session.trace is not None
    assert user.session.trace.info.configuration.integer("max_seq_len") == 4321
    qtbot.waitUntil(lambda: user.sees("4,321 tokens"), timeout=_WAIT_MS)
    user.click("Stop")
    qtbot.waitUntil(lambda: not user.window.desk.child.is_alive, timeout=_WAIT_MS)
    qtbot.waitUntil(lambda: user.session.live.state == "complete", timeout=_WAIT_MS)
    assert user.sees("4,321 tokens")


def test_groups_fill_columns_in_their_order() -> None:
    line = Line("layers", "Layers", "3", 3, "", "x", "x")
    groups: list[Group] = [(name, (line,) * size) for name, size in (("a", 9), ("b", 1), ("c", 1), ("d", 4))]
    assert [[name for name, _ in column] for column in split(groups, 1)] == [["a", "b", "c", "d"]]
    assert [[name for name, _ in column] for column in split(groups, 2)] == [["a"], ["b", "c", "d"]]
    assert [[name for name, _ in column] for column in split(groups, 9)] == [["a"], ["b", "c", "d"]]
    assert split([], 3) == [[]]


def configured(trace: Trace, **values: int | str | bool) -> Trace:
    return trace.configured(of(Setting(name, value, "/x/o.yaml", name) for name, value in values.items()))


def without_limits() -> Trace:
    trace = engine_trace(Setup())
    columns = {name: values for name, values in trace["iterations"].columns.items() if not name.startswith("max_")}
    tables = {**trace.tables, "iterations": Table("iterations", columns)}
    return Trace(trace.info, tables, trace.names, trace.quality)


def test_limits_of_the_schedule_come_from_the_configuration(user: User) -> None:
    bare = without_limits()
    user.session.set_trace(bare)
    view = user.view(Schedule)
    assert user.sees("max_batch_size is not in this trace")
    assert "max_batch_size unknown" in view.measures.text()
    user.session.set_trace(configured(bare, max_batch_size=7, max_num_tokens=99))
    assert user.sees("max_batch_size 7 was not recorded: it is max_batch_size in /x/o.yaml")
    assert not user.sees("max_batch_size is not in this trace")
    assert "of 7, as set" in view.measures.text()
    assert "of 99, as set" in view.measures.text()
    assert view.answer is not None
    assert view.answer.strips is not None
    assert set(view.answer.strips.room.tolist()) <= {7, -1}
    user.session.set_trace(configured(engine_trace(Setup()), max_batch_size=7))
    assert not user.sees("was not recorded")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "With tensor parallelism all devices"),
        ({"tensor_parallel": 2, "pipeline_parallel": 1}, "pipeline parallel 1 (pipeline_parallel in o.yaml), all dev"),
        ({"tensor_parallel": 1, "pipeline_parallel": 2}, "each device is a stage"),
        ({"tensor_parallel": 2}, "tensor parallel 2 (tensor_parallel in o.yaml). Where tensor parallelism splits"),
    ],
)
def test_the_pipeline_says_what_is_set_where_the_trace_does_not(user: User, values: dict[str, int], says: str) -> None:
    trace = draw(
        """
      gpu 0 stream 7  ...AA.BB
      gpu 1 stream 7  ..CCC..D
    """,
        unlinked="ABCD",
    ).trace
    user.session.set_trace(configured(trace, **values))
    user.view(PipelineView)
    assert user.sees(says)


def test_a_page_as_recorded_and_as_the_model_makes_it(user: User) -> None:
    trace = engine_trace(Setup())
    recorded = int(trace["pools"]["block_bytes"][0])
    model: dict[str, int | str] = {"layers": 1, "kv_heads": 1, "dtype": "fp8", "tokens_per_block": 8}
    user.session.set_trace(trace)
    view = user.view(KvPages, tall=500)
    assert not user.sees("modelled")
    user.session.set_trace(configured(trace, **model, head_dim=recorded // 16))
    assert user.sees("modelled the same")
    user.session.set_trace(configured(trace, **model, head_dim=recorded // 8))
    assert user.sees(f"modelled {units.size(2 * recorded)}")
    assert view.isVisible()
