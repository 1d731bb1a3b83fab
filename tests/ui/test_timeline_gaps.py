"""Going to a gap: what one came for is in sight, however little room there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication

from inspector.analysis.causes import LAUNCH_OVERHEAD, Causes
from inspector.picture.details import details
from inspector.picture.timeline import Hit
from inspector.picture.tracks import Tracks
from inspector.trace.selection import NOTHING, Window
from tests.ui.user import User
from ui.timeline.tip import tip
from ui.views.timeline import Timeline

# What the offscreen platform says of itself.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


def timeline(user: User) -> Timeline:
    view = user.window.views["timeline"]
    assert isinstance(view, Timeline)
    return view


def in_sight(view: Timeline, identity: str) -> bool:
    """Whether all of a row can be seen."""
    scene = view.canvas.scene
    return any(
        row.identity == identity and scene.top <= y and y + row.height <= view.canvas.height()
        for row, y in scene.rows()
    )


def strip_of(view: Timeline) -> str:
    selected = view.canvas.scene.selected
    assert selected is not None
    assert selected.source == "gaps"
    return selected.track.identity


@pytest.fixture
def traces() -> Path:
    return Path(__file__).parents[2] / "sample_traces"


@pytest.mark.parametrize("size", [(1000, 650), (1366, 768)])
@pytest.mark.parametrize("way", ["Show it", "G", "Shift+G", "Alt+G"])
def test_the_strip_and_the_late_thread_are_in_sight(user: User, traces: Path, size: tuple[int, int], way: str) -> None:
    user.window.resize(*size)
    user.open(traces / "two_processes.sqlite")
    view = timeline(user)
    if way == "Shift+G":
        user.session.look(Window(user.session.whole.end - 1000, user.session.whole.end))
    view.canvas.scroll_by(10_000)
    if way == "Show it":
        user.click(way)
    else:
        user.press(way)
    assert view.panel.isVisible()
    assert in_sight(view, strip_of(view))
    late = view.canvas.scene.late
    # The last gap of this trace is the device's own doing.
    assert late or way == "Shift+G"
    assert not late or any(in_sight(view, identity) for identity in late)


def test_after_the_jump_the_user_may_scroll_away(user: User, traces: Path) -> None:
    user.window.resize(1000, 650)
    user.open(traces / "two_processes.sqlite")
    view = timeline(user)
    user.press("Alt+G")
    strip = strip_of(view)
    view.canvas.scroll_by(10_000)
    user.press("W")
    assert not in_sight(view, strip)
    before = [row.identity for row in view.canvas.scene.layout.rows]
    user.press("Esc")
    after = [row.identity for row in view.canvas.scene.layout.rows]
    assert sorted(before) == sorted(after)
    assert after.index("stream 0/process 6100/7") == after.index("idle 0") + 1


def test_in_presenter_size_the_strip_goes_before_the_details(user: User, traces: Path) -> None:
    user.window.resize(1000, 650)
    user.open(traces / "two_processes.sqlite")
    user.press("F5")
    view = timeline(user)
    user.press("Alt+D")
    user.press("Alt+G")
    assert in_sight(view, strip_of(view))
    assert strip_of(view) == "idle 1"
    user.press("F5")
    assert in_sight(view, strip_of(view))
    assert view.panel.isVisible()


def test_a_gap_of_a_folded_device_unfolds_it(user: User, traces: Path) -> None:
    user.open(traces / "two_processes.sqlite")
    view = timeline(user)
    view.arrange(view.arrangement.toggle_fold("device 0"))
    user.press("Alt+G")
    assert in_sight(view, strip_of(view))


def test_another_trace_starts_at_the_top(user: User, traces: Path) -> None:
    user.window.resize(1000, 650)
    user.open(traces / "two_processes.sqlite")
    view = timeline(user)
    view.canvas.scroll_by(10_000)
    assert view.canvas.scene.scroll > 0
    user.open(traces / "planted_causes.sqlite")
    assert view.canvas.scene.scroll == 0
    user.click("Show it")
    assert in_sight(view, strip_of(view))


def test_choosing_a_range_moves_nothing(user: User, traces: Path) -> None:
    user.open(traces / "two_processes.sqlite")
    view = timeline(user)
    before = view.canvas.mapTo(user.window, QPoint(0, 0))
    user.session.select(NOTHING.but(window=Window(1000, 5_000_000)))
    QApplication.processEvents()
    assert user.sees("Whole trace")
    assert view.canvas.mapTo(user.window, QPoint(0, 0)) == before


def test_the_host_is_told_only_where_it_was_the_reason(user: User, traces: Path) -> None:
    user.open(traces / "planted_causes.sqlite")
    view, trace = timeline(user), user.session.trace
    assert trace is not None
    slices = trace.index(Causes).devices[0]
    track = next(each for each in trace.index(Tracks).tracks if each.kind == "causes")
    view.canvas.grab()
    for cause in np.unique(slices.cause).tolist():
        row = int(np.flatnonzero(slices.cause == cause)[0])
        told = dict(tip(trace, Hit(track, 0, "causes", row, int(slices.start[row]), int(slices.end[row]), 0)))
        facts = {fact.label for fact in details(trace, "causes", row, 0).facts}
        wanted = cause <= LAUNCH_OVERHEAD and int(slices.thread[row]) >= 0
        assert ("host" in told) == ("host" in facts) == wanted


def test_a_row_that_is_taller_than_its_room_is_sought_in_one_step(user: User, traces: Path) -> None:
    user.open(traces / "two_processes.sqlite")
    user.press("Alt+G")
    view = timeline(user)
    canvas = view.canvas
    canvas.setFixedHeight(canvas.scene.top + 4)
    QApplication.processEvents()
    canvas.scroll_to_all(strip_of(view), [])
    moved: list[int] = []
    canvas._bar.valueChanged.connect(moved.append)
    canvas.scroll_to_all(strip_of(view), [])
    assert moved == []
