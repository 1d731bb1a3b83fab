"""A figure that matters: what it is, how much, on what it rests, and where it leads."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.theme import Theme
from ui.widgets.elided import Elided


class Figure(QWidget):
    """A small label, a large value, a line below, and a link where there is a place to go to."""

    followed = Signal()

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName(name)
        self._label, self._basis = _line("small"), _line("small")
        self._label.setText(name)
        self._rule = Elided(theme)
        self._rule.setObjectName("small")
        self._value, self._note = Elided(theme, "figure", "strong"), Elided(theme)
        self._note.setObjectName("muted")
        self._link = QPushButton()
        self._link.setObjectName("link")
        self._link.clicked.connect(self.followed)
        self._link.setCursor(Qt.CursorShape.PointingHandCursor)
        head, foot = QHBoxLayout(), QHBoxLayout()
        for row in (head, foot):
            row.setContentsMargins(0, 0, 0, 0)
            row.setSpacing(theme.px(8))
        head.addWidget(self._label)
        head.addWidget(self._basis)
        head.addWidget(self._rule, 1)
        foot.addWidget(self._link)
        foot.addWidget(self._note, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(1))
        layout.addLayout(head)
        layout.addWidget(self._value)
        layout.addLayout(foot)
        self.retheme()

    def rename(self, name: str) -> None:
        """Call it otherwise."""
        self.setAccessibleName(name)
        self._label.setText(name)

    def say(
        self,
        value: str,
        note: str | Sequence[str],
        basis: str,
        link: str = "",
        tip: str = "",
        rule: Sequence[str] = ("",),
    ) -> None:
        """`basis` is measured, modelled or simulated; `tip` has the exact figures; `rule` is of what, or chosen how.

        Of several notes or rules, the first that there is room for.
        """
        notes = (note,) if isinstance(note, str) else tuple(note)
        self._rule.set_text(*rule)
        self._value.set_text(value)
        self._note.set_text(*notes)
        self._basis.setText(basis)
        self._link.setText(link)
        self._link.setAccessibleName(f"{self.accessibleName()}: {link}")
        self._link.setVisible(bool(link))
        for widget in (self, self._value, self._note, self._rule):
            widget.setToolTip(tip)
        self.setAccessibleDescription(f"{value}, {notes[0]} ({', '.join([basis, *filter(None, rule[:1])])})")

    @property
    def text(self) -> str:
        """All that it says."""
        head = (self._label.text(), self._basis.text(), self._rule.full)
        parts = (*head, self._value.full, self._note.full, self._link.text())
        return " ".join(part for part in parts if part)

    def retheme(self) -> None:
        """Type sizes anew."""
        self._value.retheme()
        self._note.setFont(self._theme.font())


def _line(name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    return label
