"""The status line: what is open, how much it holds, how good it is, and whether it was measured."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QStatusBar, QToolButton

from inspector import units
from ui.session import Session
from ui.theme import Theme


class Status(QStatusBar):
    """`asked` when the quality notes are clicked."""

    asked = Signal()

    def __init__(self, theme: Theme, session: Session) -> None:
        super().__init__()
        self._theme, self._session = theme, session
        self.setSizeGripEnabled(False)
        self.setAccessibleName("Status")
        self._name, self._records, self._basis = QLabel(), QLabel(), QLabel()
        self._quality = QToolButton()
        self._quality.clicked.connect(self.asked)
        self.addWidget(self._name)
        self.addWidget(self._records)
        for widget in (self._quality, self._basis):
            self.addPermanentWidget(widget)
        session.trace_changed.connect(self.refresh)
        theme.changed.connect(self.retheme)
        self.retheme()
        self.refresh()

    @property
    def text(self) -> str:
        """All that it says."""
        return " ".join(
            part for part in (self._name.text(), self._records.text(), self._quality.text(), self._basis.text()) if part
        )

    def refresh(self) -> None:
        """Say what is open."""
        trace = self._session.trace
        trouble = self._session.settings.trouble
        for widget in (self._records, self._quality, self._basis):
            widget.setVisible(trace is not None)
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

    def retheme(self) -> None:
        """Small type."""
        for widget in (self._name, self._records, self._quality, self._basis):
            widget.setFont(self._theme.font("small"))
