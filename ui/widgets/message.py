"""What stands where content would: what is missing, what went wrong, or that work is going on."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.theme import GRID, Theme


class Message(QWidget):
    """A headline, a sentence, and for errors a report to copy; centred."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._report = ""
        self.setObjectName("panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._headline, self._sentence = QLabel(self), QLabel(self)
        for label in (self._headline, self._sentence):
            label.setWordWrap(True)
            label.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._sentence.setObjectName("muted")
        self._copy = QPushButton("Copy report", self)
        self._copy.setAccessibleName("Copy error report")
        self._copy.clicked.connect(self.copy_report)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self._copy)
        buttons.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(GRID * 4, GRID * 2, GRID * 4, GRID * 2)
        layout.setSpacing(GRID)
        layout.addStretch(1)
        layout.addWidget(self._headline)
        layout.addWidget(self._sentence)
        layout.addLayout(buttons)
        layout.addStretch(2)
        theme.changed.connect(self._retheme)
        self._retheme()
        self.say("")

    def say(self, headline: str, sentence: str = "", report: str = "") -> None:
        """Show these; a `report` brings the button that copies it."""
        self._report = report
        self._headline.setText(headline)
        self._headline.setVisible(bool(headline))
        self._sentence.setText(sentence)
        self._sentence.setVisible(bool(sentence))
        self._copy.setVisible(bool(report))

    @property
    def text(self) -> str:
        """All that it says."""
        return "\n".join(part for part in (self._headline.text(), self._sentence.text()) if part)

    def copy_report(self) -> None:
        """Put the report on the clipboard."""
        QGuiApplication.clipboard().setText(self._report)

    def _retheme(self) -> None:
        self._headline.setFont(self._theme.font("strong"))
