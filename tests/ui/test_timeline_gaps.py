"""Going to a gap: what one came for is in sight, however little room there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.trace.selection import Window
from tests.ui.user import User
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
