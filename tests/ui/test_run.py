"""The Run view and what starts, tells, saves and ends a recorder from the window."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

import inspector
from inspector.errors import Usage
from tests.ui.user import User
from ui.run import launch
from ui.run.child import Child, State
from ui.run.dialogs import AttachDialog, LaunchDialog
from ui.run.launch import Launch
from ui.run.lines import Lines
from ui.run.options import decode, from_argv, read_options, to_argv
from ui.views.run import Run

_WAIT_MS = 60_000
_WORKLOAD = "import sys, time; print('at work', flush=True); time.sleep(600)"

OPTIONS = json.dumps(
    [
        {"name": "draft", "flag": "--draft", "kind": "str", "default": "none", "group": "Speculation", "text": "who",
         "choices": ["none", "model"], "live": True},
        {"name": "blocks", "flag": "--blocks", "kind": "int", "default": 192, "group": "KV cache", "text": "pages",
         "low": 2, "high": 65536, "live": True},
        {"name": "rate", "flag": "--rate", "kind": "float", "default": 8.0, "group": "Load", "text": "arrivals",
         "unit": "requests/s", "low": 0, "high": 1000, "live": True},
        {"name": "reuse", "flag": "--reuse", "kind": "bool", "default": True, "group": "KV cache", "text": "reuse"},
        {"name": "port", "flag": "--port", "kind": "int", "default": None, "group": "Run", "text": "HTTP", "low": 0,
         "high": 65535},
        {"name": "mix", "flag": "--mix", "kind": "mix", "default": {"faq": 0.5, "copy": 0.5}, "group": "Load",
         "text": "shares", "later": "a key that is not known yet"},
    ]
).encode()  # fmt: skip


@pytest.fixture(autouse=True)
def own_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "recordings"
    monkeypatch.setattr(launch, "recordings", lambda: folder)
    return folder


@pytest.fixture(autouse=True)
def known_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.views.run.read_options", lambda: decode(OPTIONS))


def view_of(user: User) -> Run:
    view = user.window.views["run"]
    assert isinstance(view, Run)
    return view


def wait_for(qtbot: QtBot, holds: Callable[[], bool]) -> None:
    qtbot.waitUntil(holds, timeout=_WAIT_MS)


def wait_for_end(user: User, qtbot: QtBot) -> None:
    wait_for(qtbot, lambda: not user.window.desk.child.is_alive)


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    """Whoever asks gets the button with that text; what was asked."""
    asked: list[str] = []

    def choose(box: QMessageBox) -> int:
        asked.append(box.windowTitle())
        box.show()
        next(button for button in box.buttons() if button.text().replace("&", "") == text).click()
        return 0

    monkeypatch.setattr(QMessageBox, "exec", choose)
    return asked


def start_command(user: User, *words: str) -> Launch:
    wanted = launch.command(" ".join(words))
    user.window.desk._start(lambda: wanted)
    return wanted


def start_workload(user: User, qtbot: QtBot) -> Launch:
    wanted = start_command(user, f'{sys.executable} -u -c "{_WORKLOAD}"')
    wait_for(qtbot, lambda: "at work" in view_of(user).output.text.toPlainText())
    return wanted


# Lines of output.


def test_lines_are_what_a_terminal_would_leave() -> None:
    lines = Lines()
    assert lines.feed(b"\x1b[1;32mgreen\x1b[0m\r\n 10 %\r 20 %\rdone\n\x1b]0;title\x07bell\x07\nhalf") == [
        "green",
        "done",
        "bell",
    ]
    assert lines.feed("ä".encode()[:1]) == []
    assert lines.feed("ä".encode()[1:] + b"\n") == ["halfä"]
    assert lines.feed(b"\xff\n") == ["\ufffd"]
    assert lines.feed(b"rest") == []
    assert lines.finish() == ["rest"]
    assert lines.finish() == []
    assert lines.count == 6


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=8))
def test_lines_do_not_depend_on_how_they_come(data: bytes, cuts: list[int]) -> None:
    whole, parts = Lines(), Lines()
    expected = whole.feed(data) + whole.finish()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = [line for start, end in pairwise(places) for line in parts.feed(data[start:end])]
    assert found + parts.finish() == expected
    assert not any(ord(letter) < 32 or letter == "\x7f" for line in expected for letter in line)


def test_endless_lines_are_bounded() -> None:
    lines = Lines()
    found = [line for _ in range(40) for line in lines.feed(b"x" * 5000)] + lines.finish()
    assert max(map(len, found)) < 4200
    assert "more characters" in found[0]


# What is started.


def test_command_lines() -> None:
    options = decode(OPTIONS)
    values = {"draft": "model", "blocks": 64, "rate": 2.5, "reuse": False, "port": 0, "mix": {"faq": 1.0}}
    argv = to_argv(options, values)
    assert argv == [
        "--draft", "model", "--blocks", "64", "--rate", "2.5", "--no-reuse", "--port", "0", "--mix", "faq=1",
    ]  # fmt: skip
    assert from_argv(options, argv) == values
    assert from_argv(options, ["--blocks=7", "--rate", "fast", "--reuse"])["blocks"] == 7
    assert from_argv(options, ["--blocks=7", "--rate", "fast"])["rate"] == 8.0
    assert to_argv(options, {option.name: option.default for option in options}) == []


def test_the_place_of_a_recording(own_recordings: Path, tmp_path: Path) -> None:
    plain = launch.from_argv([*launch.PROGRAM, "record", "--headless", "--", "serve", "--out", "x"])
    assert plain.folder.parent == own_recordings
    assert plain.folder.name.startswith("serve-")
    at = plain.argv.index("--")
    assert plain.argv[at - 2 : at] == ("--out", str(plain.folder))
    assert plain.argv[at:] == ("--", "serve", "--out", "x")
    assert own_recordings.stat().st_mode & 0o777 == 0o700
    named = launch.from_argv(["inflight", "demo", f"--out={tmp_path / 'a.inflight'}"])
    assert named.folder == tmp_path / "a.inflight"
    plain.folder.mkdir()
    assert launch.again(plain).folder != plain.folder
    assert launch.again(named).folder.parent == own_recordings
    assert launch.named_recording("mine") == own_recordings / "mine.inflight"
    with pytest.raises(Usage, match="there already"):
        launch.named_recording(str(plain.folder))


@pytest.mark.parametrize("line", ["", "   ", 'open "quote'])
def test_command_lines_that_are_none(line: str) -> None:
    with pytest.raises(Usage):
        launch.command(line)


# Runs.


def test_a_command_is_recorded_followed_and_stopped(user: User, qtbot: QtBot) -> None:
    wanted = start_workload(user, qtbot)
    child = user.window.desk.child
    assert child.state is State.RUNNING
    assert user.sees("recording ·")
    user.click("Stop")
    assert user.sees("stopping ·")
    wait_for_end(user, qtbot)
    assert child.state is State.ENDED
    trace = inspector.open(wanted.folder)
    assert len(trace["counters"]) > 0
    wait_for(qtbot, lambda: user.session.trace is not None)
    assert user.session.trace is not None
    assert user.session.trace.info.paths == (str(wanted.folder),)
    assert user.sees("Run again")


def test_what_fails_says_how_it_ended(user: User, qtbot: QtBot) -> None:
    start_command(user, f"{sys.executable} -c \"print('loading'); raise SystemExit('no model at /m')\"")
    wait_for_end(user, qtbot)
    assert user.window.desk.child.state is State.FAILED
    assert user.sees("It ended with exit code 1. Its last lines:\nloading\nno model at /m")


def test_a_command_that_is_not_there(user: User, qtbot: QtBot) -> None:
    wanted = start_command(user, "/no/such/program --port 1")
    wait_for_end(user, qtbot)
    assert user.sees("cannot run /no/such/program: No such file or directory")
    assert not wanted.folder.exists()


def test_decoys_in_the_working_folder_are_not_taken_for_this_program(user: User, qtbot: QtBot, tmp_path: Path) -> None:
    for name in ("inspector", "probes", "ui"):
        (tmp_path / "work" / name).mkdir(parents=True)
        (tmp_path / "work" / name / "__init__.py").write_text("raise SystemExit('decoy')")
    wanted = launch.command(f'{sys.executable} -c "import os; print(os.getcwd())"', tmp_path / "work")
    user.window.desk._start(lambda: wanted)
    wait_for_end(user, qtbot)
    assert user.window.desk.child.state is State.ENDED
    assert str(tmp_path / "work") in view_of(user).output.text.toPlainText()


def test_it_runs_at_lower_priority_than_the_window(qtbot: QtBot, tmp_path: Path) -> None:
    child = Child()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    child.start(Launch((sys.executable, "-c", _WORKLOAD), tmp_path / "none.inflight"))
    assert child._process is not None
    assert os.getpriority(os.PRIO_PROCESS, child._process.pid) > own
    heard: list[object] = []
    child.written.connect(heard.extend)
    # A Python that is still starting takes the interrupt for an error.
    wait_for(qtbot, lambda: bool(heard))
    child.stop()
    with qtbot.waitSignal(child.changed, timeout=_WAIT_MS):
        pass
    assert child.state is State.ENDED


def test_knobs_and_pause_reach_what_runs(user: User, qtbot: QtBot, tmp_path: Path) -> None:
    """The recorder is stood in for by a program that writes down the lines of control that come."""
    heard = tmp_path / "heard"
    code = f"import sys\nfor line in sys.stdin:\n  open({str(heard)!r}, 'a').write(line)\n  if 'stop' in line: break"
    folder = tmp_path / "fake.inflight"
    argv = (sys.executable, "-c", code, "demo", "--control", "--blocks", "64")
    user.window.load_views()
    user.window.show_view("run")
    user.window.desk._start(lambda: Launch(argv, folder))
    view = view_of(user)
    assert view.knobs.values() == {"draft": "none", "blocks": 64, "rate": 8.0}
    child = user.window.desk.child
    child._set(State.RUNNING)
    field = view.knobs._fields["rate"]
    field.widget.setValue(3.5)  # type: ignore[attr-defined]
    assert "rate = 3.5" in user.window.status.currentMessage()
    user.click("Pause workload")
    assert child.state is State.PAUSED
    assert user.sees("workload paused ·")
    user.click("Go on")
    user.click("Stop")
    wait_for_end(user, qtbot)
    lines = [json.loads(line) for line in heard.read_text().splitlines()]
    assert lines == [{"set": {"rate": 3.5}}, {"pause": True}, {"pause": False}, {"stop": True}]
    assert child.state is State.ENDED


def test_the_form_starts_the_engine_with_what_differs(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Launch] = []
    monkeypatch.setattr(Child, "start", lambda self, wanted: started.append(wanted))
    user.window.load_views()
    user.window.show_view("run")
    view = view_of(user)
    view.form._fields["blocks"].widget.setValue(99)  # type: ignore[attr-defined]
    view.form._fields["mix"].widget.setText("faq=")  # type: ignore[attr-defined]
    user.click("Start")
    assert started == []
    assert user.sees("The engine would not take: Mix")
    user.click("Defaults")
    view.form._fields["blocks"].widget.setValue(99)  # type: ignore[attr-defined]
    user.click("Start")
    assert started[0].kind == "demo"
    assert started[0].argv[-2:] == ("--blocks", "99")


def test_closing_asks_what_becomes_of_a_recording(user: User, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    start_workload(user, qtbot)
    child = user.window.desk.child
    asked = answer(monkeypatch, "Cancel")
    user.window.close()
    assert asked == ["Close the window"]
    assert user.window.isVisible()
    assert child.is_alive
    answer(monkeypatch, "Stop it")
    process = child._process
    assert process is not None
    user.window.close()
    assert not user.window.isVisible()
    # Left to itself, the recorder ends and closes its recording.
    _, status = os.waitpid(process.pid, 0)
    assert os.WIFEXITED(status)
    assert child.launch is not None
    assert inspector.open(child.launch.folder).info.details.get("state") != "recovered"


def test_a_recording_goes_on_without_the_window(user: User, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = start_workload(user, qtbot)
    process = user.window.desk.child._process
    assert process is not None
    answer(monkeypatch, "Keep recording")
    user.window.close()
    assert not user.window.isVisible()
    os.kill(process.pid, 0)
    assert json.loads((wanted.folder / "recording.json").read_text())["state"] == "recording"
    os.kill(process.pid, signal.SIGINT)
    os.waitpid(process.pid, 0)
    assert json.loads((wanted.folder / "recording.json").read_text())["state"] == "complete"


def test_saving_waits_for_the_end_and_copies(
    user: User, qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_workload(user, qtbot)
    place = tmp_path / "kept.inflight"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(place), ""))
    user.press("Ctrl+S")
    assert not place.exists()
    user.click("Stop")
    wait_for_end(user, qtbot)
    wait_for(qtbot, lambda: place.is_dir() and user.sees("Saved"))
    assert inspector.open(place).info.details.get("state") != "recovered"
    user.press("Ctrl+S")
    wait_for(qtbot, lambda: user.session.failure is not None)
    assert user.session.failure is not None
    assert "there already" in user.session.failure.line


def test_another_trace_is_saved_as_a_recording(
    user: User, sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.open(sample_traces / "decode_server.sqlite")
    place = tmp_path / "kept.inflight"
    proposed: list[str] = []
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *said: (proposed.append(said[2]), (str(place), ""))[1])
    user.press("Ctrl+S")
    assert user.session.trace is not None
    user.press("Ctrl+S")
    # Where the last one was saved.
    assert Path(proposed[1]).parent == tmp_path
    assert len(inspector.open(place)["kernels"]) == len(user.session.trace["kernels"])


# Dialogs.


def test_ctrl_l_launches_what_was_typed_and_remembers_it(
    user: User, monkeypatch: pytest.MonkeyPatch, own_recordings: Path, tmp_path: Path
) -> None:
    started: list[Launch] = []
    monkeypatch.setattr(Child, "start", lambda self, wanted: started.append(wanted))
    seen: list[str] = []

    def fill(dialog: LaunchDialog) -> int:
        seen.append(dialog.line.currentText())
        dialog.line.setEditText("serve 'my model'")
        dialog.folder.setText("/no/such/folder")
        dialog.accept()
        assert dialog.launch is None
        assert "/no/such/folder is no folder" in dialog._wrong.text()
        dialog.folder.setText(str(tmp_path))
        dialog.name.setText("first")
        dialog.accept()
        return dialog.result()

    monkeypatch.setattr(LaunchDialog, "exec", fill)
    user.press("Ctrl+L")
    assert seen == [""]
    assert started[0].argv[-2:] == ("serve", "my model")
    assert started[0].directory == tmp_path
    assert started[0].folder == own_recordings / "first.inflight"
    monkeypatch.setattr(LaunchDialog, "exec", lambda dialog: seen.append(dialog.line.currentText()) or 0)
    user.press("Ctrl+L")
    assert seen == ["", "serve 'my model'"]


def test_ctrl_t_says_what_attaching_takes_away(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Launch] = []
    monkeypatch.setattr(Child, "start", lambda self, wanted: started.append(wanted))
    said: list[str] = []

    def fill(dialog: AttachDialog) -> int:
        dialog.show()
        QApplication.processEvents()
        said.extend(label.text() for label in dialog.findChildren(type(dialog._wrong)))
        dialog.target.setEditText("http://localhost:8000")
        dialog.accept()
        return dialog.result()

    monkeypatch.setattr(AttachDialog, "exec", fill)
    user.press("Ctrl+T")
    assert any("given out once" in text for text in said)
    assert started[0].kind == "attach"
    assert started[0].title == "Attached to http://localhost:8000"


def test_the_engine_lists_its_options() -> None:
    options = {option.name: option for option in read_options()}
    live = {name for name, option in options.items() if option.live}
    assert {"max_batch_size", "max_num_tokens", "blocks", "draft_len", "rate", "policy"} <= live
    assert options["rate"].unit == "requests/s"
    assert to_argv(tuple(options.values()), from_argv(tuple(options.values()), ["--blocks", "77"])) == [
        "--blocks",
        "77",
    ]
