"""The shared state: what is announced, what is kept, what one can go back to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytestqt.qtbot import QtBot

from inspector import units
from inspector.configuration.settings import Configuration
from inspector.readers import reader
from inspector.trace.selection import NOTHING, Selection, Window
from inspector.trace.table import Table
from inspector.trace.trace import Trace
from tests.drawn import draw
from tests.engine_traces import engine_trace
from ui import session as module
from ui.history import History
from ui.kept import Mark
from ui.questions import Asker
from ui.reading import Found
from ui.session import SHORTEST_NS, Session
from ui.settings import SettingsFile
from ui.views.facts import Fact, facts

PICTURE = """
    gpu 0 stream 7   ....AAAA....BB
    thread 1 calls   L.......L.....
"""


def trace() -> Trace:
    return draw(PICTURE).trace


@pytest.fixture
def session(qtbot: QtBot, tmp_path: Path) -> Iterator[Session]:
    asker = Asker()
    made = Session(asker, SettingsFile(tmp_path / "settings.json"))
    yield made
    made.close()
    assert asker.close()
    for each in (asker, made):
        each.deleteLater()


@given(start=st.integers(-(10**6), 10**6), length=st.integers(0, 10**6))
def test_what_is_in_view_lies_in_the_trace(start: int, length: int) -> None:
    asker = Asker(synchronous=True)
    session = Session(asker, SettingsFile(Path("/nowhere/settings.json")))
    session.set_trace(trace())
    session.look(Window(start, start + length))
    seen, whole = session.window, session.whole
    assert whole.start <= seen.start < seen.end <= whole.end
    assert seen.length == min(max(length, SHORTEST_NS), whole.length)
    if whole.start <= start and start + max(length, SHORTEST_NS) <= whole.end:
        assert seen.start == start
    assert asker.close()


def test_what_a_server_told_of_from_before_is_in_view(session: Session) -> None:
    # Trace time 0 is when it was attached to.
    made = engine_trace()
    iterations = dict(made["iterations"].columns)
    for key in ("start", "end"):
        iterations[key] = iterations[key] - int(iterations[key][2])
    early = Trace(made.info, {**made.tables, "iterations": Table("iterations", iterations)}, made.names, made.quality)
    before = -int(iterations["start"][0])
    assert before > 0
    session.set_trace(early)
    assert session.window == session.whole == Window(-before, made.end_ns)
    assert Fact("before", f"{units.time(before)} of which the server told when it was attached to") in facts(early)


def test_an_equal_value_is_silent(session: Session, qtbot: QtBot) -> None:
    session.set_trace(trace())
    heard: list[str] = []
    session.selection_changed.connect(lambda: heard.append("selection"))
    session.window_changed.connect(lambda: heard.append("window"))
    session.select(Selection(gap=3))
    session.select(Selection(gap=3))
    session.look(Window(1000, 2000))
    session.look(Window(1000, 2000))
    assert heard == ["selection", "window"]


def test_a_range_stays_while_records_come_and_go(session: Session) -> None:
    session.set_trace(trace())
    part = Window(1000, 5000)
    session.select(Selection(table="kernels", row=0, device=0))
    session.select(session.selection.but(window=part))
    assert session.selection == Selection(window=part, device=0)
    session.select(Selection(table="kernels", row=1, device=0))
    assert session.selection == Selection(window=part, table="kernels", row=1, device=0)
    session.select(session.selection.but(window=None))
    assert session.selection == Selection(table="kernels", row=1, device=0)
    session.undo_selection()
    assert session.selection.window == part
    session.clear_selection()
    assert session.selection == NOTHING
    session.select(Selection(window=Window(2000, 2000), device=0))
    assert session.selection.window is None


def test_steps_of_one_movement_are_one_step_back(session: Session) -> None:
    session.set_trace(trace())
    session.look(Window(0, 8000))
    session.look(Window(1000, 9000))
    for step in range(2, 5):
        session.look(Window(step * 1000, 8000 + step * 1000), remember=False)
    session.back()
    assert session.window == Window(0, 8000)
    session.forward()
    assert session.window == Window(4000, 12000)
    session.fit()
    assert session.window == session.whole


def test_selections_are_undone_and_done_again(session: Session) -> None:
    session.set_trace(trace())
    session.select(Selection(device=0, gap=1))
    session.clear_selection()
    session.undo_selection()
    assert session.selection == Selection(device=0, gap=1)
    session.undo_selection()
    session.undo_selection()
    assert session.selection == NOTHING
    session.redo_selection()
    assert session.selection.gap == 1
    session.select(NOTHING)
    session.redo_selection()
    assert session.selection == NOTHING


@given(st.lists(st.one_of(st.integers(), st.sampled_from(["back", "forward"]))))
def test_history_is_a_line_with_a_position(steps: list[int | str]) -> None:
    history, line, at = History(-1), [-1], 0
    for step in steps:
        if step == "back":
            assert history.back() == (at > 0)
            at = max(at - 1, 0)
        elif step == "forward":
            assert history.forward() == (at + 1 < len(line))
            at = min(at + 1, len(line) - 1)
        else:
            assert isinstance(step, int)
            history.go(step)
            line, at = [*line[: at + 1], step], at + 1
        assert history.present == line[at]


def test_an_arrangement_belongs_to_the_files_of_a_trace(session: Session, tmp_path: Path) -> None:
    first, second = trace(), trace()
    first.info.__dict__["paths"] = (str(tmp_path / "a"),)
    second.info.__dict__["paths"] = (str(tmp_path / "b"),)
    session.set_trace(first)
    session.set_marks([Mark(1, 2, "here"), Mark(5, 5, kept=False)])
    session.arrange("tracks", {"pinned": ["x"]})
    session.look(Window(2000, 4000))
    session.set_trace(second)
    assert session.marks == ()
    assert session.arrangement("tracks") is None
    assert session.window == session.whole
    again = Session(session.asker, SettingsFile(tmp_path / "settings.json"))
    again.set_trace(first)
    assert again.marks == (Mark(1, 2, "here"),)
    assert again.arrangement("tracks") == {"pinned": ["x"]}
    assert again.window == Window(2000, 4000)
    again.deleteLater()


def test_what_is_kept_is_read_with_suspicion(session: Session) -> None:
    session.set_trace(trace())
    session.arrange("window", ["a", 3])
    session.arrange("marks", [[1, 2, "fine"], [1, 2], "no", [1.5, 2, ""], [1, 2, 3]])
    session.trace = None
    session.set_trace(trace())
    assert session.window == session.whole
    assert session.marks == (Mark(1, 2, "fine"),)


Reading = Callable[..., Trace]


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> dict[str, threading.Event]:
    """Files whose reading ends when the test says so."""
    gates: dict[str, threading.Event] = {}

    def read(*paths: str, report: reader.Report) -> Found:
        gate = gates[Path(paths[0]).name]
        while not gate.wait(0.001):
            report(reader.Progress("rows", 1, 2, 3))
        return Found(trace(), Configuration())

    monkeypatch.setattr(module.reading, "read", read)
    return gates


def test_a_second_opening_cancels_the_first(
    session: Session, qtbot: QtBot, reading: dict[str, threading.Event]
) -> None:
    reading["a"], reading["b"] = threading.Event(), threading.Event()
    session.open(["a"])
    qtbot.waitUntil(lambda: session.progress is not None, timeout=10_000)
    assert session.progress == reader.Progress("rows", 1, 2, 3)
    session.open(["b"])
    assert [Path(path).name for path in session.opening] == ["b"]
    reading["b"].set()
    qtbot.waitUntil(lambda: session.trace is not None, timeout=10_000)
    assert session.opening == ()
    assert Path(session.settings.values.recent[0][0]).name == "b"
    assert len(session.settings.values.recent) == 1


def test_an_opening_can_be_cancelled(session: Session, qtbot: QtBot, reading: dict[str, threading.Event]) -> None:
    reading["a"] = threading.Event()
    session.open(["a"])
    session.cancel_opening()
    assert session.opening == ()
    assert session.asker.close()
    assert session.trace is None
    assert session.failure is None
