"""A choice of one out of a few, all of them in sight."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QPushButton, QWidget


class Segments(QWidget):
    """Buttons side by side of which one is down. `chosen(key)` when the user takes another."""

    chosen = Signal(str)

    def __init__(self, name: str, options: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self._keys = [key for key, _ in options]
        self._group = QButtonGroup(self)
        self._group.setExclusive(True)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for at, (_, title) in enumerate(options):
            button = QPushButton(title, self)
            button.setObjectName("segment")
            button.setCheckable(True)
            button.setAccessibleName(f"{name}: {title}")
            button.setProperty("first", at == 0)
            button.setProperty("last", at == len(options) - 1)
            self._group.addButton(button, at)
            layout.addWidget(button)
        self._group.button(0).setChecked(True)
        self._group.idClicked.connect(lambda at: self.chosen.emit(self._keys[at]))

    @property
    def key(self) -> str:
        """The one that is down."""
        return self._keys[self._group.checkedId()]

    def set_key(self, key: str) -> None:
        """Put one down, silently; raises ValueError for a key that is none."""
        self._group.button(self._keys.index(key)).setChecked(True)
