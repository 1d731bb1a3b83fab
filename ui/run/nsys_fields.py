"""What of a run Nsight Systems is to collect: nothing, all, a range of time or of iterations, or what is asked for."""

from __future__ import annotations

import re

from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QWidget

from inspector.errors import Usage
from ui.theme import GRID, Theme

_SPANS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*s?\s*(?:[-–]|to)\s*(\d+(?:\.\d+)?)\s*s?\s*")
_NUMBERS = re.compile(r"\s*(\d+)\s*(?:[-–]|to)\s*(\d+)\s*")
_CHOICES = (
    ("Off: kernels by the kernel tap", ""),
    ("All of the run", "all"),
    ("When I press the button", "hand"),
    ("A range of time", "time"),
    ("A range of iterations", "iterations"),
)
_EXAMPLES = {"time": "10–15 s after the start", "iterations": "100–150"}


class NsysFields(QWidget):
    """A choice, and a range where it needs one."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.choice, self.range = QComboBox(), QLineEdit()
        self.choice.setAccessibleName("Nsight Systems")
        self.choice.setToolTip("Instead of the kernel tap: one profiler at a time gets the records of a GPU")
        self.range.setAccessibleName("Range for Nsight Systems")
        for text, key in _CHOICES:
            self.choice.addItem(text, key)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(GRID))
        layout.addWidget(self.choice)
        layout.addWidget(self.range, 1)
        layout.addStretch(0)
        self.choice.currentIndexChanged.connect(lambda at: self._show_range())
        self._show_range()

    def argv(self) -> tuple[str, ...]:
        """Options of `inflight record`. Raises Usage for a range that is none."""
        key, text = self.choice.currentData(), self.range.text()
        if key == "time":
            found = _SPANS.fullmatch(text)
            if found is None or float(found[2]) <= float(found[1]):
                raise Usage(f"{text!r} is no range of time", "", "type two moments in seconds, as in 10-15")
            return ("--nsys-from", found[1], "--nsys-seconds", f"{float(found[2]) - float(found[1]):.9g}")
        if key == "iterations":
            found = _NUMBERS.fullmatch(text)
            if found is None or int(found[2]) < int(found[1]):
                raise Usage(f"{text!r} is no range of iterations", "", "type two numbers, as in 100-150")
            return ("--nsys-iterations", f"{found[1]}-{found[2]}")
        return {"all": ("--nsys",), "hand": ("--nsys-by-hand",)}.get(key, ())

    def _show_range(self) -> None:
        key = self.choice.currentData()
        self.range.setVisible(key in _EXAMPLES)
        self.range.setPlaceholderText(_EXAMPLES.get(key, ""))
