"""A window of one's own for each test, and a look afterwards at what it left behind."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from tests.ui.user import User
from ui.app import build
from ui.questions import Asker

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            # What the offscreen platform says of itself, whatever a test does.
            item.add_marker(pytest.mark.qt_log_ignore("This plugin does not support", extend=True))
            # Two windows on one screen take the keyboard from each other.
            item.add_marker(pytest.mark.xdist_group("screen"))


def windows() -> set[QWidget]:
    return {widget for widget in QApplication.topLevelWidgets() if shiboken6.isValid(widget)}


def running_timers() -> set[int]:
    # By its type: some objects of other libraries answer with a warning when they are asked for their class.
    timers = (each for each in gc.get_objects() if issubclass(type(each), QTimer))
    return {id(timer) for timer in timers if shiboken6.isValid(timer) and timer.isActive()}


@pytest.fixture(autouse=True)
def nothing_left_behind(qapp: QApplication) -> Iterator[None]:
    """A test that leaves a window, a running timer or a thread fails, and is told which."""
    before, timers, threads = windows(), running_timers(), set(threading.enumerate())
    yield
    for _ in range(2):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        qapp.processEvents()
        gc.collect()
    left = [f"{type(each).__name__} {each.objectName()!r} {each.accessibleName()!r}" for each in windows() - before]
    assert not left, f"windows left behind: {left}"
    assert not running_timers() - timers, "a timer is still running"
    late = [thread for thread in set(threading.enumerate()) - threads if not thread.name.startswith("Dummy")]
    assert not late, f"threads left behind: {late}"


@pytest.fixture
def start_window(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., User]]:
    """Starts the program; a second call finds the settings that the first one left."""
    monkeypatch.setenv("INFLIGHT_CONFIG_DIR", str(tmp_path / "config"))
    users: list[User] = []

    def start(synchronous: bool = True) -> User:
        window = build(qapp, Asker(synchronous=synchronous))
        window.resize(1366, 768)
        users.append(User(window, qtbot, monkeypatch))
        window.show()
        qtbot.waitExposed(window)
        return users[-1]

    yield start
    for user in users:
        user.leave()
    qapp.setStyleSheet("")


@pytest.fixture
def user(start_window: Callable[..., User]) -> User:
    return start_window()
