"""From the command line to a window on the screen: the window first, what is slow to load after it."""

from __future__ import annotations

import importlib
import linecache
import os
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QSocketNotifier
from PySide6.QtWidgets import QApplication

from inspector.errors import Missing
from ui.collector import Collector
from ui.questions import Asker, Question
from ui.session import Session
from ui.settings import SettingsFile
from ui.theme import Theme
from ui.views import FACTS, HEADLINE, VIEWS, view_class
from ui.views.view import Host
from ui.window import MainWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTERRUPTED = 130
_X11_SOCKETS = Path("/tmp/.X11-unix")


def main(paths: Sequence[str] = (), run: Sequence[str] = ()) -> int:
    """Show the window, on `paths` where some are given; the exit code. Raises Missing without a display.

    `run` is the command line of a recorder, started as a child and followed; without --out in it the recording goes to
    the user's data folder.
    """
    require_display("add --headless" if run else "use inflight summary TRACE, which needs none")
    app = QApplication.instance() or QApplication(["inflight"])
    assert isinstance(app, QApplication)
    app.setApplicationName("Inflight Inspector")
    app.setDesktopFileName("inflight-inspector")
    window = build(app)
    collector = Collector(window)
    window.first_painted.connect(lambda: _after_first_paint(window, list(paths), list(run)))
    interrupted = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        # Nobody is to be asked: what runs ends as the window does.
        window.desk.stop()
        window.desk.leave()
        window.close()
        app.quit()

    window.show()
    with _python_signals(interrupt), _faults_told(window):
        code = app.exec()
    collector.stop()
    if not window.host.asker.close():
        # A reader that does not listen would keep the process alive for as long as it takes.
        sys.stdout.flush()
        os._exit(_INTERRUPTED if interrupted else code)
    return _INTERRUPTED if interrupted else code


def build(app: QApplication, asker: Asker | None = None) -> MainWindow:
    """The window with everything it leans on; not shown yet."""
    settings = SettingsFile()
    asker = asker or Asker()
    theme = Theme(app, settings)
    session = Session(asker, settings)
    window = MainWindow(Host(session, asker, theme, settings))
    for each in (asker, theme, session, window.host.child):
        each.setParent(window)
    return window


def require_display(instead: str) -> None:
    """Raises Missing where Qt would abort the process for want of a screen; it says what to do `instead`."""
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM") or os.environ.get("WAYLAND_DISPLAY"):
        return
    display = os.environ.get("DISPLAY", "")
    if not display or not _answers(display):
        why = f"nothing answers at DISPLAY={display}" if display else ""
        raise Missing("no display", why, f"run under a desktop, or {instead}")


def _answers(display: str) -> bool:
    """Whether an X server listens; displays of other hosts are left to Qt."""
    host, _, number = display.rpartition(":")
    if host not in ("", "unix") or not number:
        return True
    path = str(_X11_SOCKETS / f"X{number.split('.')[0]}")
    for address in (path, "\0" + path):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(2)
            if probe.connect_ex(address) == 0:
                return True
    return False


def _after_first_paint(window: MainWindow, paths: list[str], run: list[str]) -> None:
    if paths:
        window.session.open(paths)

    def build(_: object) -> None:
        window.load_in_turns(lambda: window.desk.run(run) if run else None)

    # The views and what reads and reckons: imported by a worker, so that the window stays alive meanwhile.
    question = Question(_import_ahead, (), "import")
    window.host.asker.ask("import", question, build, build)


def _import_ahead() -> None:
    for name in ("inspector.readers", "inspector.analysis.rollup"):
        importlib.import_module(name)
    for name in (HEADLINE, *VIEWS, FACTS):
        view_class(name)
    # Qt's bindings read the source of every module that is imported; nobody needs the megabytes of it any more.
    linecache.clearcache()


@contextmanager
def _python_signals(interrupt: object) -> Iterator[None]:
    """Let Python's signal handlers run while Qt waits: a byte on a socket wakes the loop."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    notifier = QSocketNotifier(reading.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(lambda: reading.recv(64))
    wakeup = signal.set_wakeup_fd(writing.fileno())
    before = signal.signal(signal.SIGINT, interrupt)  # type: ignore[arg-type]
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        signal.set_wakeup_fd(wakeup)
        notifier.setEnabled(False)
        reading.close()
        writing.close()


@contextmanager
def _faults_told(window: MainWindow) -> Iterator[None]:
    """An exception in a slot goes to stderr, as ever, and is told in the window."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if issubclass(kind, Exception):
            window.exporting.note_fault("".join(traceback.format_exception(kind, error, trace)))

    sys.excepthook = hook
    try:
        yield
    finally:
        sys.excepthook = before
