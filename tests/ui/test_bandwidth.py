"""The memory bandwidth view, as a user meets it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from pytestqt.qtbot import QtBot

from inspector import units
from inspector.analysis.bandwidth import Bandwidths
from inspector.analysis.iterations import Iterations
from inspector.analysis.modelled_bytes import modelled_bytes
from inspector.configuration.settings import Configuration, Setting, of
from inspector.picture.bandwidth import bandwidth_picture
from inspector.readers import open_trace
from inspector.trace.builder import Builder
from inspector.trace.save import save
from inspector.trace.schema import SCHEMAS
from inspector.trace.selection import Window
from inspector.trace.trace import TraceInfo
from tests.engine_traces import Setup, engine_trace
from tests.ui.user import User
from ui.bandwidth.bars import has_bars
from ui.views.bandwidth import MemoryBandwidth
from ui.views.view import State


@pytest.fixture
def view(user: User, sample_traces: Path) -> MemoryBandwidth:
    user.open(sample_traces / "decode_server.sqlite")
    user.window.show_view("bandwidth")
    found = user.window.views["bandwidth"]
    assert isinstance(found, MemoryBandwidth)
    return found


def test_its_figures_are_those_of_the_analysis(view: MemoryBandwidth, sample_traces: Path) -> None:
    trace = open_trace(sample_traces / "decode_server.sqlite")
    found = trace.index(Bandwidths).of(0)
    assert found is not None
    assert f"{100 * found.both.mean(0, trace.end_ns):.1f} %" in view.used.text
    assert "simulated" in view.used.text
    assert "samples 100 µs apart" in view.used.text
    assert "4.80 TB/s" in view.peak.text


def test_a_range_that_is_dragged_is_what_the_figures_are_of(view: MemoryBandwidth, qtbot: QtBot) -> None:
    strips = view.strips
    before = view.used.text
    y = strips.height() // 2
    qtbot.mousePress(strips, Qt.MouseButton.LeftButton, pos=QPoint(strips.left + 10, y))
    place = QPointF(strips.left + 60, y)
    left = Qt.MouseButton.LeftButton
    strips.mouseMoveEvent(
        QMouseEvent(QEvent.Type.MouseMove, place, strips.mapToGlobal(place), left, left, Qt.KeyboardModifier.NoModifier)
    )
    qtbot.mouseRelease(strips, left, pos=QPoint(strips.left + 60, y))
    chosen = view.session.selection.window
    assert chosen is not None
    assert view.used.text != before
    assert view.answer is not None
    assert view.answer.scope == chosen


def test_a_click_on_an_iteration_selects_it(view: MemoryBandwidth, qtbot: QtBot) -> None:
    rect = next(rect for rect, strip in view.strips.places() if strip is None)
    qtbot.mouseClick(view.strips, Qt.MouseButton.LeftButton, pos=rect.center().toPoint())
    number = view.session.selection.iteration
    assert number is not None
    title, share, length = view.strips.tip_at(rect.center().x(), rect.center().y())
    assert title[1].startswith(f"iteration {number:,}")
    assert share[0] == "HBM bandwidth"
    assert share[1].endswith("of peak, simulated")
    assert length[0] == "duration"


def test_what_is_copied_are_the_samples_in_view(view: MemoryBandwidth) -> None:
    view.session.look(Window(0, 10_000_000))
    rows = view.rows_for_copy()
    assert rows is not None
    table = list(rows.rows)
    assert all(0 <= row[2] <= 10_000_000 for row in table)  # type: ignore[operator]
    assert {row[1] for row in table} >= {"HBM read", "HBM write"}


def test_a_trace_without_counters_says_how_to_get_them(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "decode_kineto.json.gz")
    user.window.show_view("bandwidth")
    assert "no device counters" in user.window.views["bandwidth"].message.text


def test_a_run_without_dram_counters_says_how_to_get_them(user: User, tmp_path: Path) -> None:
    builder = Builder()
    process = builder.process(1, "engine")
    stream = builder.stream(process, builder.device(0, "CPU stage 0 (no GPU)"), 0)
    builder.add("kernels", start=[0, 50], end=[40, 90], stream=stream, name=-1, correlation=0)
    builder.add("counters", time=[0, 50], series=builder.series("memory", "bytes", process=process), value=[1.0, 2.0])
    unknown = {c.name: -1 for c in SCHEMAS["iterations"].columns if c.dtype == "int32" and not c.optional}
    builder.add("iterations", start=0, end=90, **{**unknown, "process": process}, iteration=0)
    save(builder.build(TraceInfo(("x",), "recording")), tmp_path / "x.inflight")
    user.open(tmp_path / "x.inflight")
    user.window.show_view("bandwidth")
    view = user.window.views["bandwidth"]
    assert isinstance(view, MemoryBandwidth)
    view.grab()
    assert user.sees("--gpu-metrics-devices")
    assert view.strips.places() == []


MODEL = {
    "family": "llama", "layers": 1, "hidden_size": 2048, "intermediate_size": 4096, "heads": 16, "kv_heads": 8,
    "head_dim": 128, "vocabulary": 32000, "tied": True, "dtype": "float16",
}  # fmt: skip
WEIGHTS = 2 * (32000 * 2048 + 2 * 2048 * 128 * (16 + 8) + 3 * 2048 * 4096)


def settings(**more: int) -> Configuration:
    return of(Setting(name, value, "config.json", name) for name, value in {**MODEL, **more}.items())


def test_what_the_model_must_move_stands_beside_what_was_measured(user: User, view: MemoryBandwidth) -> None:
    trace = view.session.trace
    assert trace is not None
    assert not view.least.isVisible()
    view.session.set_trace(trace.configured(settings()))
    assert view.answer is not None
    iterations = trace.index(Iterations)
    length = int((iterations.end - iterations.start).sum())
    expected = WEIGHTS * len(iterations) * 1e9 / length / view.answer.peak
    assert view.answer.least.share == pytest.approx(expected)
    assert f"{100 * expected:.1f} %" in view.least.text
    assert "modelled" in view.least.text
    assert "modelled" not in view.used.text
    rect = next(rect for rect, strip in view.strips.places() if strip is None)
    lines = view.strips.tip_at(rect.center().x(), rect.center().y())
    assert ("modelled least", f"weights {units.size(WEIGHTS)}, KV not known") in lines
    assert lines[1][1].endswith("of peak, simulated")
    view.session.set_trace(trace.configured(settings(tensor_parallel=4)))
    assert view.answer.least.share == pytest.approx(expected / 4)
    assert "4 ranks together" in view.strips.tip_at(rect.center().x(), rect.center().y())[2][1]
    view.session.set_trace(trace.configured(settings(layers=500)))
    assert user.sees("more than the peak: another model ran")


def test_without_counters_the_modelled_bytes_stand_alone(user: User) -> None:
    trace = engine_trace(Setup())
    known = trace.configured(settings())
    user.session.set_trace(known)
    picture = bandwidth_picture(known, 0, known.whole, None, 400)
    assert picture.bandwidth is None
    assert has_bars(picture)
    assert np.isnan(picture.least.share)
    moved = modelled_bytes(known, 0, len(trace["iterations"])).total
    length = trace["iterations"]["end"] - trace["iterations"]["start"]
    assert picture.least.rate == pytest.approx(moved.sum() * 1e9 / length.sum())
    assert picture.bars.top_rate == pytest.approx((moved * 1e9 / length).max())
    assert not has_bars(bandwidth_picture(trace, 0, trace.whole, None, 400))
    narrow = bandwidth_picture(known, 0, known.whole, None, 8)
    assert narrow.bars.of.sum() == len(trace["iterations"])
    assert narrow.bars.top_rate == picture.bars.top_rate


def test_counters_of_a_server_alone_are_no_bandwidth(user: User) -> None:
    builder = Builder()
    series = builder.series("active requests", "requests", process=builder.process(pid=1, name="server"))
    builder.add("counters", time=[0, 10], series=series, value=[1.0, 2.0])
    why = "a server does not tell of its GPUs"
    user.session.set_trace(builder.build(TraceInfo(("a.inflight",), "recording", missing={"devices": why})))
    user.window.show_view("bandwidth")
    found = user.window.views["bandwidth"]
    assert isinstance(found, MemoryBandwidth)
    assert found.state is State.NO_DATA
    assert user.sees("A server does not tell of its GPUs")
