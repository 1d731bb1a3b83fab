"""Nsight Systems around a run of the window: chosen in the dialog, begun by the button, its report read in."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from inspector.errors import Usage
from inspector.trace import header
from tests.readers.nsys_export import CALL, KERNEL, STRINGS, to_folder, write
from tests.ui.user import User
from tests.waiting import ROOT
from ui.run import launch
from ui.run.desk import Desk
from ui.run.dialogs import LaunchDialog
from ui.run.launch import Launch
from ui.run.options import decode
from ui.views.run import Run

_WAIT_MS = 60_000


@pytest.fixture(autouse=True)
def own_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "recordings", lambda: tmp_path / "recordings")
    monkeypatch.setattr("ui.views.run.read_options", lambda: decode(b"[]"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "nsys"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "nsys"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {ROOT / "tests/probes/nsys_stand_in.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NSYS_STAND_IN", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    content = {
        "StringIds": STRINGS,
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": time.time_ns()}],
        "CUPTI_ACTIVITY_KIND_KERNEL": [{**KERNEL, "start": 5_000, "end": 6_000}],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [{**CALL, "start": 4_000, "end": 4_500}],
    }
    to_folder(write(tmp_path / "export.sqlite", content), folder / "export", "parquet")
    return folder


@pytest.fixture
def desk(user: User) -> Iterator[Desk]:
    """Its run ends with the test, also where that fails: the window would ask what is to become of it."""
    yield user.window.desk
    process = user.window.desk.child._process
    user.window.desk.child.leave()
    if process is not None:
        os.kill(process.pid, signal.SIGTERM)


def test_the_button_begins_and_ends_and_the_report_is_read_in(user: User, desk: Desk, qtbot: QtBot, home: Path) -> None:
    wanted = launch.command(f"{sys.executable} -m tests.probes.toy wait 5", ROOT, None, ("--nsys-by-hand",))
    desk._start(lambda: wanted)
    view = user.window.views["run"]
    assert isinstance(view, Run)
    assert not view.nsys.isVisible()
    qtbot.waitUntil(view.nsys.isVisible, timeout=_WAIT_MS)
    assert not (home / "calls").exists() or "start" not in (home / "calls").read_text()
    user.click("Collect with Nsight Systems")
    qtbot.waitUntil(lambda: view.nsys.text() == "Stop collecting", timeout=_WAIT_MS)
    assert list(home.glob("*.collecting"))
    user.click("Stop collecting")
    qtbot.waitUntil(lambda: _has_report(wanted, view), timeout=_WAIT_MS)
    user.click("Stop")
    qtbot.waitUntil(lambda: not desk.child.is_alive, timeout=_WAIT_MS)
    assert not view.nsys.isVisible()
    both = (str(wanted.folder), str(wanted.reports()[0]))
    session = user.window.session
    qtbot.waitUntil(lambda: session.trace is not None and session.trace.info.paths == both, timeout=_WAIT_MS)
    assert session.trace is not None
    # One work record of the report, beside the iterations of the recording.
    assert session.trace.num_work() > 0
    assert len(session.trace["iterations"])
    assert header.read(wanted.folder).state == "complete"


def test_a_report_that_cannot_be_read_leaves_the_recording(user: User, desk: Desk, qtbot: QtBot, home: Path) -> None:
    for file in (home / "export").iterdir():
        file.unlink()
    (home / "export").rmdir()
    wanted = launch.command(f"{sys.executable} -m tests.probes.toy wait 5", ROOT, None, ("--nsys-seconds", "0.1"))
    desk._start(lambda: wanted)
    qtbot.waitUntil(lambda: bool(wanted.reports()), timeout=_WAIT_MS)
    user.click("Stop")
    session = user.window.session
    qtbot.waitUntil(lambda: session.failure is not None, timeout=_WAIT_MS)
    assert session.failure is not None
    assert session.failure.line.startswith("nsys could not export ")
    assert not session.failure.report
    assert session.trace is not None
    assert session.trace.info.paths == (str(wanted.folder),)


@pytest.mark.parametrize(
    ("choice", "text", "words"),
    [
        ("", "", ()),
        ("all", "", ("--nsys",)),
        ("hand", "", ("--nsys-by-hand",)),
        ("time", "10 – 15.5 s", ("--nsys-from", "10", "--nsys-seconds", "5.5")),
        ("iterations", "100-150", ("--nsys-iterations", "100-150")),
    ],
)
def test_what_is_chosen_in_the_dialog_is_asked_for(
    choice: str, text: str, words: tuple[str, ...], user: User, tmp_path: Path
) -> None:
    dialog = LaunchDialog(user.window.theme, [], user.window)
    dialog.line.setEditText("serve --nsys")
    dialog.folder.setText(str(tmp_path))
    dialog.nsys.choice.setCurrentIndex(dialog.nsys.choice.findData(choice))
    assert dialog.nsys.range.isVisibleTo(dialog) == bool(text)
    dialog.nsys.range.setText(text)
    found = dialog.chosen()
    dialog.deleteLater()
    at = found.argv.index("--")
    assert found.argv[at - len(words) : at] == words
    assert found.uses_nsys == bool(choice)


@pytest.mark.parametrize(("choice", "text"), [("time", "5"), ("time", "5-5"), ("time", "x"), ("iterations", "9-3")])
def test_ranges_that_are_none_stay_in_the_dialog(choice: str, text: str, user: User) -> None:
    dialog = LaunchDialog(user.window.theme, [], user.window)
    dialog.line.setEditText("serve")
    dialog.nsys.choice.setCurrentIndex(dialog.nsys.choice.findData(choice))
    dialog.nsys.range.setText(text)
    with pytest.raises(Usage):
        dialog.chosen()
    dialog.accept()
    assert dialog.launch is None
    dialog.deleteLater()


def test_reports_are_those_of_the_recording_in_their_order(tmp_path: Path) -> None:
    for name in ("a.nsys-rep", "a-2.nsys-rep", "a-10.nsys-rep", "a-x.nsys-rep", "ab.nsys-rep", "a.sqlite"):
        (tmp_path / name).touch()
    found = Launch(("inflight", "record", "--nsys", "--", "x"), tmp_path / "a.inflight")
    assert [path.name for path in found.reports()] == ["a.nsys-rep", "a-2.nsys-rep", "a-10.nsys-rep"]
    assert Launch((), tmp_path / "none" / "a.inflight").reports() == []


def _has_report(wanted: Launch, view: Run) -> bool:
    return bool(wanted.reports()) and view.nsys.text() == "Collect with Nsight Systems"
