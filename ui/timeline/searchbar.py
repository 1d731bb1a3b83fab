"""Search and filter in one bar: a regular expression over names, a least duration, and the way through the hits."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from inspector import units
from inspector.errors import Usage
from inspector.picture.search import Filter, compiled
from ui.theme import GRID, Theme


class SearchBar(QWidget):
    """`changed(filter)` with every valid entry, `stepped(1 or -1)` for the next and previous hit, `closed()`."""

    changed = Signal(object)
    stepped = Signal(int)
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._filter = Filter()
        self.setObjectName("bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.names = QLineEdit(self)
        self.names.setPlaceholderText("Names: regular expression, e.g. gemm|nvjet")
        self.names.setAccessibleName("Search names")
        self.names.setClearButtonEnabled(True)
        self.least = QLineEdit(self)
        self.least.setPlaceholderText("at least, e.g. 20 µs")
        self.least.setAccessibleName("Shortest duration")
        self.least.setToolTip("Records shorter than this are greyed. Plain numbers are µs.")
        self._count = QLabel(self)
        self._count.setObjectName("muted")
        self._before, self._after, self._close = (QToolButton(self) for _ in range(3))
        for button, text, tip in (
            (self._before, "↑", "Previous hit (Shift+N)"),
            (self._after, "↓", "Next hit (N)"),
            (self._close, "×", "End the search (Esc)"),
        ):
            button.setText(text)
            button.setToolTip(tip)
            button.setAccessibleName(tip.split(" (")[0])
        self._before.clicked.connect(lambda: self.stepped.emit(-1))
        self._after.clicked.connect(lambda: self.stepped.emit(1))
        self._close.clicked.connect(self.end)
        self.names.textChanged.connect(self._entered)
        self.least.textChanged.connect(self._entered)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(GRID, GRID // 2, GRID, GRID // 2)
        layout.setSpacing(GRID)
        layout.addWidget(self.names, 3)
        layout.addWidget(self.least, 1)
        layout.addWidget(self._count, 2)
        for button in (self._before, self._after, self._close):
            layout.addWidget(button)
        self.hide()

    @property
    def filter(self) -> Filter:
        """What is asked for; empty while the bar is closed."""
        return self._filter

    def begin(self) -> None:
        """Open, ready for typing."""
        self.show()
        self.names.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.names.selectAll()
        self._entered()

    def end(self) -> None:
        """Close; nothing is greyed any more."""
        if self.isHidden():
            return
        self.hide()
        self._filter = Filter()
        self.changed.emit(self._filter)
        self.closed.emit()

    def say(self, text: str) -> None:
        """How many hits, or what is wrong."""
        self._count.setText(text)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter goes through the hits, Escape ends the search."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.stepped.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        elif event.key() == Qt.Key.Key_Escape:
            self.end()
        else:
            super().keyPressEvent(event)

    def _entered(self) -> None:
        pattern, least = self.names.text(), 0
        wrong = ""
        try:
            if pattern:
                compiled(pattern)
        except Usage as error:
            wrong = error.why
        _mark(self.names, bool(wrong))
        try:
            text = self.least.text().strip()
            least = int(units.parse_time(text, "us")) if text else 0
            _mark(self.least, False)
        except ValueError:
            wrong = wrong or "not a duration"
            _mark(self.least, True)
        if wrong:
            self.say(wrong)
            return
        wanted = Filter(pattern, max(least, 0))
        if wanted != self._filter:
            self._filter = wanted
            self.say("searching…" if wanted else "")
            self.changed.emit(wanted)


def _mark(entry: QLineEdit, wrong: bool) -> None:
    if bool(entry.property("wrong")) != wrong:
        entry.setProperty("wrong", wrong)
        entry.style().unpolish(entry)
        entry.style().polish(entry)
