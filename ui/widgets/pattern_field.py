"""A field for a regular expression, which says what is wrong with one that is none."""

from __future__ import annotations

import re

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit


class PatternField(QLineEdit):
    """`wanted(text)` whenever a regular expression, or nothing, is typed; else it is marked, and its tip says why."""

    wanted = Signal(str)

    def __init__(self, placeholder: str, name: str) -> None:
        super().__init__()
        self.setPlaceholderText(placeholder)
        self.setAccessibleName(name)
        self.setClearButtonEnabled(True)
        self.textChanged.connect(self._changed)

    def _changed(self, text: str) -> None:
        wrong = ""
        try:
            re.compile(text)
        except re.error as error:
            wrong = str(error)
        else:
            self.wanted.emit(text)
        self.setProperty("wrong", bool(wrong))
        self.setToolTip(wrong)
        self.style().unpolish(self)
        self.style().polish(self)
