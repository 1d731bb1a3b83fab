"""The status line: what is open, how much it holds, how good it is, and whether it was measured."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QStatusBar, QToolButton

from inspector import units
from ui.session import Session
from ui.theme import Theme

_EXPLAINED = {
    "live": "The run goes on and its newest records are shown (Space holds the picture)",
    "paused": "The picture is held; the run goes on and is recorded (Space shows it again)",
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
        self._quality = QToolButton()
        self._quality.clicked.connect(self.asked)
        self.addWidget(self._live)
        self.addWidget(self._name)
        self.addWidget(self._records)
        for widget in (self._quality, self._basis):
            self.addPermanentWidget(widget)
        for signal in (session.trace_changed, session.grown, session.live.changed):
            signal.connect(self.refresh)
        theme.changed.connect(self.retheme)
        self.retheme()
        self.refresh()

    @property
    def text(self) -> str:
        """All that it says."""
        labels = (self._live, self._name, self._records, self._quality, self._basis)
        return " ".join(label.text() for label in labels if label.text())

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
        self._live.setVisible(bool(live.state))
        if not live.state:
            self._live.clear()
            return
        lost = 0 if trace is None else trace.quality.count("profiler-loss")
        parts = [live.state, f"{lost:,} records lost" if lost else "nothing lost"]
        if live.is_on and not live.follows_end:
            parts.append("End: newest")
        self._live.setText(" · ".join(parts))
        self._live.setToolTip(_EXPLAINED[live.state])

    def retheme(self) -> None:
        """Small type."""
        for widget in (self._live, self._name, self._records, self._quality, self._basis):
            widget.setFont(self._theme.font("small"))
