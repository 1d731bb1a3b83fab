"""The strip that shows a file being read, with a way to stop it, and why one could not be read."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QVBoxLayout

from inspector import units
from ui.session import Session
from ui.theme import GRID, Theme


class Opening(QFrame):
    """Hidden while nothing is read and nothing went wrong."""

    def __init__(self, theme: Theme, session: Session) -> None:
        super().__init__()
        self._session = session
        self.setObjectName("strip")
        self.setAccessibleName("Opening")
        self._text = QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._cancel, self._report, self._dismiss = (QPushButton(text) for text in ("Cancel", "Copy report", "Dismiss"))
        self._cancel.clicked.connect(session.cancel_opening)
        self._report.clicked.connect(self._copy)
        self._dismiss.clicked.connect(session.dismiss_failure)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(theme.px(4))
        self._bar.setAccessibleName("Share of the file that is read")
        line = QHBoxLayout()
        line.setSpacing(theme.px(GRID))
        line.addWidget(self._text, 1)
        for button in (self._cancel, self._report, self._dismiss):
            button.setAccessibleName(f"{button.text()}: opening")
            line.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(2 * GRID, GRID, 2 * GRID, GRID)
        layout.addLayout(line)
        layout.addWidget(self._bar)
        session.opening_changed.connect(self.refresh)
        self.refresh()

    @property
    def text(self) -> str:
        """What it says; '' while it is hidden."""
        return "" if self.isHidden() else self._text.text()

    def refresh(self) -> None:
        """Say how things stand."""
        session = self._session
        reading, failure = bool(session.opening), session.failure
        self.setVisible(reading or failure is not None)
        self._cancel.setVisible(reading)
        self._bar.setVisible(reading)
        self._dismiss.setVisible(failure is not None)
        self._report.setVisible(failure is not None and bool(failure.report))
        if reading:
            self._text.setObjectName("")
            self._text.setText(self._progress())
        elif failure is not None:
            self._text.setObjectName("wrong")
            self._text.setText(failure.line)
        self._text.style().unpolish(self._text)
        self._text.style().polish(self._text)

    def _progress(self) -> str:
        paths, progress = self._session.opening, self._session.progress
        names = ", ".join(Path(path).name for path in paths[:3]) + (f" and {len(paths) - 3} more" if paths[3:] else "")
        if progress is None:
            self._bar.setRange(0, 0)
            return f"Opening {names}"
        parts = [f"Opening {names}", progress.stage]
        if progress.rows:
            parts.append(f"{progress.rows:,} rows")
        if progress.total:
            self._bar.setRange(0, 1000)
            self._bar.setValue(min(1000 * progress.done // progress.total, 1000))
            parts.append(f"{units.size(progress.done)} of {units.size(progress.total)}")
        else:
            self._bar.setRange(0, 0)
            if progress.done:
                parts.append(units.size(progress.done))
        return " · ".join(part for part in parts if part)

    def _copy(self) -> None:
        failure = self._session.failure
        if failure is not None:
            QGuiApplication.clipboard().setText(f"{failure.line}\n{failure.report}")
