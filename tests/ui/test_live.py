"""A run in the window: generations come, what the user did stays, the end is said."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from inspector.trace import header
from inspector.trace.header import Info
from inspector.trace.selection import Selection, Window
from tests.readers.test_follow import BOOT, MS, Clock, Folder, start
from tests.ui.user import User
from ui.live import SPAN_NS
from ui.run.launch import Launch
from ui.timeline.canvas import Canvas
from ui.views.timeline import Timeline
from ui.views.view import State, View


class Ticking(Clock):
    """Goes on by as much as a poll is apart from the next."""

    def __call__(self) -> int:
        self.now += 100 * MS
        return self.now


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    """A recording that the test writes."""
    from inspector.readers.recording import follow

    clock = Ticking()
    made = follow.Following
    monkeypatch.setattr(follow, "Following", lambda path: made(path, clock))
    with tempfile.TemporaryDirectory() as parent:
        folder = Folder(Path(parent) / "run.inflight")
        folder.begin()
        start(folder, "one", 10)
        try:
            yield folder
        finally:
            folder.end()


def kernels(folder: Folder, at_ms: int, count: int = 1) -> None:
    begin = [BOOT + (at_ms + number) * MS for number in range(count)]
    folder.rows("one", "kernels", start=begin, end=[b + MS // 2 for b in begin], stream=[0] * count, name=[1] * count)


@pytest.fixture
def watch(user: User, qtbot: QtBot) -> Callable[[Callable[[], object]], None]:
    """Let the window poll until something is so."""

    def until(true: Callable[[], object]) -> None:
        qtbot.waitUntil(lambda: bool(true()), timeout=20_000)

    return until


Watch = Callable[[Callable[[], object]], None]


def rows(user: User) -> int:
    trace = user.session.trace
    return 0 if trace is None else len(trace["kernels"])


def test_opening_a_folder_that_is_being_recorded_follows_it(user: User, run: Folder, watch: Watch) -> None:
    folder = run
    kernels(folder, 0, 5)
    user.drop(folder.path)
    watch(lambda: user.session.live.state == "live")
    watch(lambda: rows(user) == 5)
    kernels(folder, 2000, 3)
    watch(lambda: rows(user) == 8)
    assert "live · nothing lost" in user.window.status.text
    assert user.session.device == 0
    folder.end()
    watch(lambda: user.session.live.state == "recovered")
    assert rows(user) == 8
    assert "recovered" in user.window.status.text


def test_selection_and_zoom_stay_and_the_end_is_followed_again_on_demand(user: User, run: Folder, watch: Watch) -> None:
    folder = run
    kernels(folder, 0, 5)
    user.session.follow(folder.path)
    watch(lambda: rows(user) == 5)
    session = user.session
    session.select(Selection(table="kernels", row=2, device=0))
    kernels(folder, 30_000, 3)
    watch(lambda: rows(user) == 8)
    # Scrolled, with the length that fits in the beginning of a run.
    assert session.window.end == session.whole.end
    assert session.window.length <= SPAN_NS
    assert session.live.follows_end
    assert session.selection == Selection(table="kernels", row=2, device=0)
    user_window = Window(1 * MS, 4 * MS)
    session.look(user_window)
    assert not session.live.follows_end
    assert "Newest" in user.window.status.text
    kernels(folder, 31_000, 2)
    watch(lambda: rows(user) == 10)
    assert session.window == user_window
    session.follow_end()
    assert session.window.end == session.whole.end
    # From so far away that what is new is painted before it has passed.
    assert session.window.length == 2000 * MS
    kernels(folder, 35_000, 2)
    watch(lambda: rows(user) == 12)
    assert session.window.end == session.whole.end


def test_the_whole_of_a_run_stays_in_view_and_going_back_stays_where_it_went(
    user: User, run: Folder, watch: Watch
) -> None:
    folder = run
    kernels(folder, 0, 5)
    user.session.follow(folder.path)
    watch(lambda: rows(user) == 5)
    session = user.session
    kernels(folder, 60_000, 3)
    watch(lambda: rows(user) == 8)
    assert session.window.length == SPAN_NS
    user.press("0")
    assert session.window == session.whole
    kernels(folder, 61_000, 2)
    watch(lambda: rows(user) == 10)
    assert session.window == session.whole
    near = Window(0, 3000 * MS)
    session.look(near)
    # Close to the end, from the very beginning of the trace: as close as it was.
    user.press("End")
    assert session.window == Window(session.whole.end - near.length, session.whole.end)
    kernels(folder, 62_000, 2)
    watch(lambda: rows(user) == 12)
    assert session.window.length == near.length
    assert session.live.follows_end
    user.press("Backspace")
    assert session.window == near
    kernels(folder, 63_000, 2)
    watch(lambda: rows(user) == 14)
    assert session.window == near


@pytest.mark.parametrize("name", ["timeline", "pages", "pipeline"])
def test_end_resumes_a_held_picture_in_every_view(user: User, run: Folder, watch: Watch, name: str) -> None:
    folder = run
    kernels(folder, 0, 2)
    user.session.follow(folder.path)
    watch(lambda: rows(user) == 2)
    session = user.session
    session.hold()
    assert "picture held" in user.window.status.text
    assert "Resume picture" in user.window.status.text
    kernels(folder, 2000, 2)
    watch(lambda: session.live._held is not None and len(session.live._held["kernels"]) == 4)
    user.window.show_view(name)
    user.press("End")
    assert session.live.state == "live"
    assert rows(user) == 4
    assert session.window.end == session.whole.end


def test_a_held_picture_goes_on_where_the_run_is(user: User, run: Folder, watch: Watch) -> None:
    folder = run
    kernels(folder, 0, 2)
    user.session.follow(folder.path)
    watch(lambda: rows(user) == 2)
    timeline = user.window.views["timeline"]
    assert isinstance(timeline, Timeline)
    timeline.findChildren(Canvas)[0].setFocus()
    user.press("Space")
    assert user.session.live.state == "held"
    held = user.session.trace
    kernels(folder, 2000, 2)
    watch(lambda: user.session.live._held is not None and len(user.session.live._held["kernels"]) == 4)
    assert user.session.trace is held
    user.press("Space")
    assert user.session.live.state == "live"
    assert rows(user) == 4


def test_the_timeline_shows_what_comes(user: User, run: Folder, watch: Watch) -> None:
    folder = run
    kernels(folder, 0, 3)
    user.session.follow(folder.path)
    watch(lambda: rows(user) == 3)
    timeline = user.window.views["timeline"]
    assert isinstance(timeline, Timeline)

    def shown(identity_start: str) -> int:
        pictures = timeline.canvas.scene.pictures
        return max(
            (
                sum(len(lane) for lane in made.content.lanes)
                for picture in pictures
                for identity, made in picture.tracks.items()
                if identity.startswith(identity_start)
            ),
            default=0,
        )

    watch(lambda: shown("stream") == 3)
    began = [BOOT + 2000 * MS]
    folder.rows("one", "ranges", start=began, end=[began[0] + 9 * MS], thread=[0], name=[4], kind=[2])
    kernels(folder, 2000, 2)
    watch(lambda: shown("stream") == 5 and shown("ranges") == 1)


def test_what_is_at_hand_no_more_is_neither_in_view_nor_selected(
    user: User, run: Folder, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    from inspector.readers.recording import follow

    monkeypatch.setattr(follow, "KEPT_NS", 10_000 * MS)
    folder = run
    kernels(folder, 0, 5)
    user.drop(folder.path)
    watch(lambda: rows(user) == 5)
    session = user.session
    session.look(Window(0, 4 * MS))
    session.select(Selection(window=Window(2 * MS, 30_000 * MS)))
    kernels(folder, 20_000, 1)
    kernels(folder, 30_000, 1)
    watch(lambda: session.trace is not None and session.trace.kept.from_ns > 0)
    assert session.trace is not None
    since = session.trace.kept.from_ns
    assert session.whole.start == since
    assert session.window.start >= since
    assert session.selection.window == Window(since, 30_000 * MS)
    assert session.whole_words.startswith("since ")
    kernels(folder, 60_000, 1)
    kernels(folder, 80_000, 1)
    watch(lambda: session.selection.window is None)
    folder.end()
    watch(lambda: session.live.state == "recovered")
    assert session.whole.start == 0
    assert session.whole_words == "whole trace"


def test_another_trace_ends_the_following(user: User, run: Folder, watch: Watch) -> None:
    folder = run
    kernels(folder, 0, 2)
    user.session.follow(folder.path)
    watch(lambda: rows(user) == 2)
    user.session.set_trace(None)
    assert user.session.live.state == ""
    assert not user.session.live.is_on
    assert "live" not in user.window.status.text


def test_a_folder_that_is_no_recording_says_so(user: User, tmp_path: Path) -> None:
    user.session.follow(tmp_path)
    assert user.session.failure is not None
    assert user.session.live.state == ""


def test_before_the_first_records_it_says_that_they_are_waited_for(user: User, run: Folder, watch: Watch) -> None:
    folder = run
    user.session.follow(folder.path)
    watch(lambda: user.session.trace is not None)
    so_far = "So far no work on a device was recorded in this trace."
    assert user.headline.message.text == f"Waiting for the first records\n{so_far}"
    kernels(folder, 0, 3)
    watch(lambda: user.headline.state is State.ANSWER)
    user.window.show_view("pages")
    pages = user.window.views["pages"]
    assert isinstance(pages, View)
    watch(lambda: "Waiting for the first records" in pages.message.text)
    folder.end()
    watch(lambda: user.session.live.state == "recovered")
    assert pages.message.text.startswith("No KV pages to show")


def test_space_holds_the_picture_of_a_run_that_was_just_started(user: User, run: Folder, watch: Watch) -> None:
    desk = user.window.desk
    desk.child.launch, desk._fresh = Launch(("inflight", "demo"), run.path), True
    user.window.load_views()
    user.window.show_view("run")
    kernels(run, 0, 3)
    user.session.follow(run.path)
    watch(lambda: user.session.live.state == "live" and user.session.trace is not None)
    assert user.window.views["run"].isVisible()
    user.press("Space")
    assert user.session.live.state == "held"
    user.press("Space")
    assert user.session.live.state == "live"


def test_what_will_not_come_is_not_waited_for(user: User, run: Folder, watch: Watch) -> None:
    why = "a server does not tell over HTTP what its GPUs ran"
    head = header.read(run.path)
    header.write(run.path, msgspec.structs.replace(head, info=Info(missing={"kernels": why})))
    user.session.follow(run.path)
    watch(lambda: user.session.trace is not None)
    said = "No work on a device was recorded in this trace.\nA server does not tell over HTTP what its GPUs ran"
    assert user.headline.message.text == said


def test_a_note_that_speaks_of_a_place_in_time_leads_there(user: User, run: Folder, watch: Watch) -> None:
    folder = run
    kernels(folder, 0, 90)
    folder.end()
    user.drop(folder.path)
    watch(lambda: user.session.trace is not None)
    user.window.show_notes()
    watch(lambda: user.sees("Show it at"))
    user.session.look(Window(0, MS))
    facts = user.window.views["facts"]
    (link,) = (button for button in facts.findChildren(QPushButton) if button.text().startswith("Show it at"))
    link.click()
    # The recording broke off there.
    assert user.session.window.end == user.session.whole.end
    assert user.session.window.length < 2 * MS
    end = user.session.whole.end
    assert [(mark.start, mark.end, mark.kept) for mark in user.session.marks] == [(end - 1, end, False)]
