"""The status line: what is open, how much it holds, how good it is, and whether it was measured."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QLabel, QStatusBar, QToolButton

from inspector import units
from ui.session import Session
from ui.theme import Theme
from ui.widgets.elided import Elided

_NAMES = {"held": "picture held"}
_EXPLAINED = {
    "live": "The run goes on, and its records are shown as they come",
    "held": "The picture is held; the run goes on and is recorded",
    "complete": "The run has ended and its recording is closed",
    "recovered": "The recorder has gone without closing the recording: all that it had written is here",
}


class Status(QStatusBar):
    """`asked` when the quality notes are clicked."""

    asked = Signal()

    def __init__(self, theme: Theme, session: Session) -> None:
        super().__init__()
        self._theme, self._session = theme, session
        self.setSizeGripEnabled(False)
        self.setAccessibleName("Status")
        self._name, self._live, self._records, self._basis = QLabel(), QLabel(), QLabel(), QLabel()
        self._said = Elided(theme, "small")
        self._said.setObjectName("said")
        self._until = QTimer(self)
        self._until.setSingleShot(True)
        self._until.timeout.connect(self.clearMessage)
        self._quality = QToolButton()
        self._quality.clicked.connect(self.asked)
        self._hold, self._newest = QToolButton(), QToolButton()
        self._hold.clicked.connect(session.hold)
        self._newest.clicked.connect(session.follow_end)
        self._newest.setText("Newest")
        for button in (self._hold, self._newest):
            button.setObjectName("act")
        self._newest.setToolTip("Go to the newest time and stay there (End)")
        for widget in (self._live, self._hold, self._newest):
            self.addWidget(widget)
        self.addWidget(self._name)
        self.addWidget(self._records)
        self.addWidget(self._said, 1)
        for widget in (self._quality, self._basis):
            self.addPermanentWidget(widget)
        for signal in (session.trace_changed, session.grown, session.live.changed):
            signal.connect(self.refresh)
        theme.changed.connect(self.retheme)
        self.retheme()
        self.refresh()

    def showMessage(self, text: str, timeout: int | None = None) -> None:
        """Say something for so many ms, else until something else is said. The rest of the line stays beside it."""
        self._said.set_text(text)
        self._said.setToolTip(text)
        self._until.stop()
        if timeout:
            self._until.start(timeout)

    def currentMessage(self) -> str:
        """What is said now."""
        return self._said.full

    def clearMessage(self) -> None:
        """Say it no more."""
        self.showMessage("")

    @property
    def text(self) -> str:
        """All that it says."""
        return " ".join(part.text() for part in self._parts if part.text() and not part.isHidden())

    @property
    def _parts(self) -> tuple[QLabel | QToolButton, ...]:
        return self._live, self._hold, self._newest, self._name, self._records, self._quality, self._basis

    def refresh(self) -> None:
        """Say what is open."""
        trace = self._session.trace
        trouble = self._session.settings.trouble
        for widget in (self._records, self._quality, self._basis):
            widget.setVisible(trace is not None)
        self._say_live()
        if trace is None:
            self._name.setText(trouble)
            return
        paths = trace.info.paths
        self._name.setText(Path(paths[0]).name + (f" + {len(paths) - 1}" if len(paths) > 1 else "") if paths else "")
        self._name.setToolTip("\n".join(paths))
        rows = sum(len(table) for table in trace.tables.values() if table.schema.sorted_by)
        text = f"{units.count(rows)} records, {units.time(trace.end_ns)}"
        if trace.kept.from_ns:
            # Of a long run what is older is in its file alone.
            text = f"{units.count(rows)} records of the last {units.time(trace.whole.length)} at hand"
        self._records.setText(f"{text} · {trouble}" if trouble else text)
        self._records.setToolTip(f"{rows:,} records, {trace.end_ns:,} ns")
        notes = trace.quality.notes
        losses = sum(note.severity == "loss" for note in notes)
        said = f"{len(notes)} quality notes" if len(notes) != 1 else "1 quality note"
        # Whether they matter: a loss makes figures wrong, the other notes are good to know.
        self._quality.setText(f"{said}, {losses or 'none'} of loss" if notes else "no quality notes")
        self._quality.setAccessibleName(f"{self._quality.text()}: show them")
        self._quality.setToolTip("What is wrong with, missing from or lost in this trace (Ctrl+B)")
        self._basis.setText(trace.info.basis)

    def _say_live(self) -> None:
        """How the run that is followed goes on, what was lost of it, and how to get to its end."""
        live, trace = self._session.live, self._session.trace
        held = live.state == "held"
        self._live.setVisible(bool(live.state))
        self._hold.setVisible(live.is_on)
        self._newest.setVisible(live.is_on and (held or not live.follows_end))
        self._hold.setText("Resume picture" if held else "Hold picture")
        self._hold.setToolTip(
            "Show what comes again (Space in a picture)"
            if held
            else "Keep what is shown as it is; the workload runs on and is recorded (Space in a picture)"
        )
        if not live.state:
            self._live.clear()
            return
        lost = 0 if trace is None else trace.quality.count("profiler-loss")
        said = f"{lost:,} records lost" if lost else "nothing lost"
        self._live.setText(f"{_NAMES.get(live.state, live.state)} · {said}")
        self._live.setToolTip(_EXPLAINED[live.state])

    def retheme(self) -> None:
        """Small type."""
        for widget in (*self._parts, self._said):
            widget.setFont(self._theme.font("small"))
