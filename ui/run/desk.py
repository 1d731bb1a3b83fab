"""What the window does about runs: asks, starts, follows, saves, and asks again before it goes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QMessageBox

from inspector.errors import InspectorError, Unreadable
from ui.questions import Failure, Question
from ui.run import launch
from ui.run.child import Child
from ui.run.dialogs import AttachDialog, LaunchDialog
from ui.run.launch import SUFFIX, Launch

if TYPE_CHECKING:
    from inspector.configuration.settings import Configuration
    from inspector.trace.trace import Trace
    from ui.window import MainWindow

_MOST_REMEMBERED = 12
_SHARE = 0.42


class Desk(QObject):
    """Runs of one window."""

    def __init__(self, window: MainWindow, child: Child) -> None:
        super().__init__(window)
        self._window, self._session, self.child = window, window.session, child
        self._next: Launch | None = None
        self._save_to: Path | None = None
        self._fresh = False
        child.recording.connect(self._follow)
        child.changed.connect(self._changed)
        child.told.connect(self._told)

    # Actions.

    def launch(self) -> None:
        """Ask for a command line and record it."""
        history = [(line, folder) for kind, line, folder in self._remembered() if kind == "command"]
        self._ask(LaunchDialog(self._window.theme, history, self._window), "command")

    def attach(self) -> None:
        """Ask for a server or a process and record what it tells."""
        history = [(target, authority) for kind, target, authority in self._remembered() if kind == "attach"]
        self._ask(AttachDialog(self._window.theme, history, self._window), "attach")

    def demo(self) -> None:
        """Record the built-in engine as it comes."""
        self._start(partial(launch.demo, ()))

    def demo_with(self, options: Sequence[str]) -> None:
        """Record the built-in engine with those options."""
        self._start(partial(launch.demo, options))

    def again(self) -> None:
        """What ran last, once more."""
        if self.child.launch is not None:
            self._start(partial(launch.again, self.child.launch))

    def run(self, argv: Sequence[str]) -> None:
        """A recorder's command line as it was given."""
        self._start(partial(launch.from_argv, argv))

    def stop(self) -> None:
        """End what runs."""
        self.child.stop()

    def save(self) -> None:
        """Ask where to, and copy the recording there, once it is whole; save another trace as a recording."""
        trace = self._session.trace
        source = self._source(trace)
        if source is None and trace is None:
            self._say("There is nothing to save yet")
            return
        name = source.name if source is not None else f"{Path(trace.info.paths[0]).stem if trace else 'trace'}{SUFFIX}"
        settings = self._window.host.settings
        chosen, _ = QFileDialog.getSaveFileName(
            self._window, "Save recording", settings.place_for(name), f"Recordings (*{SUFFIX})"
        )
        if not chosen:
            return
        path = Path(chosen if chosen.endswith(SUFFIX) else chosen + SUFFIX)
        settings.remember_place(path)
        if self.child.is_alive and self.child.launch is not None and source == self.child.launch.folder:
            self._save_to = path
            self._say(f"{path.name} will be saved when the run has ended")
        elif source is not None:
            self._copy(source, path)
        elif trace is not None:
            self._ask_question(Question(_save_trace, (trace, path), ("save", path)), path)

    def trace_came(self) -> None:
        """The views stand: the first trace of a run brings the run to the front, where it was started; keys go to the
        timeline, so that Space holds the picture.
        """
        trace, run = self._session.trace, self.child.launch
        if self._fresh and trace is not None and run is not None and trace.info.paths == (str(run.folder),):
            self._fresh = False
            self._window.show_view("run", focus=False)

    def may_leave(self) -> bool:
        """Whether the window may close: asks what is to become of a run."""
        if not self.child.is_alive:
            return True
        return self._settled("Close the window")

    def leave(self) -> None:
        """The window is closing for good."""
        self.child.leave()

    def listen_to(self, view: QObject) -> None:
        """Do what the buttons of the Run view ask for."""
        does: dict[str, Callable[[], None]] = {
            "again": self.again,
            "launch": self.launch,
            "attach": self.attach,
            "stop": self.stop,
            "save": self.save,
        }
        wanted: Any = view.wanted  # type: ignore[attr-defined]
        wanted.connect(lambda what, options: self.demo_with(options) if what == "demo" else does[what]())

    # Within.

    def _ask(self, dialog: LaunchDialog | AttachDialog, kind: str) -> None:
        try:
            if dialog.exec() == QDialog.DialogCode.Accepted and dialog.launch is not None:
                self._remember(kind, *dialog.entry)
                wanted = dialog.launch
                self._start(lambda: wanted)
        finally:
            dialog.deleteLater()

    def _start(self, make: Callable[[], Launch]) -> None:
        try:
            wanted = make()
        except InspectorError as error:
            self._fail(Failure(str(error)))
            return
        if self.child.is_alive and not self._settled("Start another run"):
            return
        if self.child.is_alive:
            self._next = wanted
            return
        self._begin(wanted)

    def _begin(self, wanted: Launch) -> None:
        self._next, self._save_to, self._fresh = None, None, True
        self._window.load_views()
        self.child.start(wanted)
        self._show()

    def _show(self) -> None:
        window, dock = self._window, self._window.docks.find("run")
        window.show_view("run")
        if dock is not None and self._session.trace is None:
            # Below the start page nobody has given it a height yet.
            window.resizeDocks([dock], [round(window.height() * _SHARE)], Qt.Orientation.Vertical)

    def _settled(self, what: str) -> bool:
        """Ask what is to become of the run that goes on; False when nothing is to change."""
        box = QMessageBox(self._window)
        box.setWindowTitle(what)
        box.setText("A recording is going on.")
        box.setInformativeText(f"{self.child.launch.title if self.child.launch else ''}")
        stop = box.addButton("Stop it", QMessageBox.ButtonRole.DestructiveRole)
        keep = box.addButton("Keep recording", QMessageBox.ButtonRole.AcceptRole)
        box.addButton(QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(keep)
        box.exec()
        chosen = box.clickedButton()
        box.deleteLater()
        if chosen is stop:
            self.child.stop()
            return True
        if chosen is keep:
            self.child.leave()
            return True
        return False

    def _follow(self, folder: str) -> None:
        self._show()
        self._session.follow(folder)

    def _changed(self) -> None:
        if self.child.is_alive:
            return
        done = self.child.launch
        if self._save_to is not None and done is not None and done.folder.is_dir():
            path, self._save_to = self._save_to, None
            self._copy(done.folder, path)
        if self._next is not None:
            self._begin(self._next)
        elif done is not None and done.uses_nsys:
            self._open_reports(done)

    def _open_reports(self, done: Launch) -> None:
        """Read what Nsight Systems has collected into the recording that is shown, on its clock."""
        trace, reports = self._session.trace, done.reports()
        if reports and trace is not None and trace.info.paths == (str(done.folder),):
            self._say(f"Reading {', '.join(report.name for report in reports)} into the recording…")
            self._session.open([done.folder, *reports])

    def _told(self, message: dict[str, Any]) -> None:
        wanted = ", ".join(f"{name} = {value}" for name, value in message.get("set", {}).items())
        if wanted:
            self._say(f"{wanted} from the next iteration on; marked in the pictures when it is so")

    def _source(self, trace: Trace | None) -> Path | None:
        """The recording folder that is shown; of the run where no trace is."""
        if trace is not None:
            paths = [Path(path) for path in trace.info.paths]
            return paths[0] if len(paths) == 1 and paths[0].is_dir() and paths[0].suffix == SUFFIX else None
        run = self.child.launch
        return run.folder if run is not None and run.folder.is_dir() else None

    def _copy(self, source: Path, path: Path) -> None:
        trace = self._session.trace
        is_it = trace is not None and trace.info.paths == (str(source),)
        config = trace.info.configuration if trace is not None and is_it else None
        self._ask_question(Question(_copy, (source, path, config), ("save", path)), path)

    def _ask_question(self, question: Question, path: Path) -> None:
        self._say(f"Saving {path.name}…")
        self._window.host.asker.ask(
            ("save", path), question, lambda _: self._say(f"Saved {path}"), lambda failure: self._fail(failure)
        )

    def _remembered(self) -> list[tuple[str, str, str]]:
        return [(each[0], each[1], each[2]) for each in self._window.host.settings.values.launched if len(each) == 3]

    def _remember(self, kind: str, text: str, path: str) -> None:
        settings = self._window.host.settings
        entry = [kind, text, path]
        others = [each for each in settings.values.launched if each[:2] != entry[:2]]
        settings.values.launched = [entry, *others][:_MOST_REMEMBERED]
        settings.save()

    def _say(self, text: str) -> None:
        self._window.status.showMessage(text, 10_000)

    def _fail(self, failure: Failure) -> None:
        self._session.failure = failure
        self._session.opening_changed.emit()


def _copy(source: Path, path: Path, config: Configuration | None) -> None:
    """The folder as it is, with what was put beside it (`config`) in its header."""
    from inspector.trace import header

    try:
        shutil.copytree(source, path)
        if config is not None:
            header.configure(path, list(config))
    except FileExistsError:
        raise Unreadable(f"{path} is there already", "", "choose another name") from None
    except (OSError, shutil.Error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Unreadable(f"cannot save {path}", why, "save it where there is room") from error


def _save_trace(trace: Trace, path: Path) -> None:
    from inspector.trace.save import save

    save(trace, path)
