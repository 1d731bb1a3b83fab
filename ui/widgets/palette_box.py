"""The command palette: type a few letters of what you want, and run it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QLineEdit, QListView, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ui.fuzzy import ranked
from ui.theme import GRID, Theme
from ui.widgets.overlay import Overlay

_KEYS = Qt.ItemDataRole.UserRole
_ENTRY = Qt.ItemDataRole.UserRole + 1
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
_MOST = 400


@dataclass(frozen=True)
class Entry:
    """One line: what it is called, what stands at its right (a key, a path), what it does, other words for it."""

    title: str
    note: str
    run: Callable[[], object]
    words: str = ""


class PaletteBox(Overlay):
    """A line to type in over the entries that fit."""

    def __init__(self, theme: Theme, window: QWidget) -> None:
        super().__init__(theme, window)
        self._entries: list[Entry] = []
        self.line = QLineEdit(self)
        self.line.setAccessibleName("Search commands")
        self.line.textChanged.connect(self._filter)
        self.line.installEventFilter(self)
        self.list = QListView(self)
        self.list.setAccessibleName("Commands")
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.list.setUniformItemSizes(True)
        self.list.setItemDelegate(_Line(theme, self.list))
        self.list.clicked.connect(self._run)
        self._model = QStandardItemModel(self)
        self.list.setModel(self._model)
        self.body.addWidget(self.line)
        self.body.addWidget(self.list, 1)

    def choose(self, entries: Sequence[Entry], prompt: str) -> None:
        """Open with these entries, all of them listed at first."""
        self._entries = list(entries)
        self.line.clear()
        self.line.setPlaceholderText(prompt)
        self._filter("")
        self.open(self.line)

    def titles(self) -> list[str]:
        """What is listed, in order."""
        return [self._model.item(row).text() for row in range(self._model.rowCount())]

    def wanted_height(self) -> int:
        """The line, and as many rows as there are."""
        rows = self._model.rowCount() * max(self.list.sizeHintForRow(0), 0)
        return self.line.sizeHint().height() + rows + 2 * GRID

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrows and Return typed into the line belong to the list."""
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in _MOVES:
                self.list.event(event)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._run(self.list.currentIndex())
                return True
        return super().eventFilter(watched, event)

    def _filter(self, text: str) -> None:
        self._model.clear()
        titles = [entry.title for entry in self._entries]
        for at in ranked(text, titles, [entry.words for entry in self._entries])[:_MOST]:
            entry = self._entries[at]
            item = QStandardItem(entry.title)
            item.setData(entry.note, _KEYS)
            item.setData(at, _ENTRY)
            item.setToolTip(entry.title)
            item.setAccessibleDescription(entry.note)
            self._model.appendRow(item)
        self.list.setCurrentIndex(self._model.index(0, 0))
        self.place()

    def _run(self, index: QModelIndex | QPersistentModelIndex) -> None:
        if not index.isValid():
            return
        entry = self._entries[index.data(_ENTRY)]
        self.close_()
        entry.run()


class _Line(QStyledItemDelegate):
    """Title at the left, note at the right."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """One row of the grid."""
        return QSize(0, option.fontMetrics.height() + self._theme.px(GRID * 1.25))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        """Draw it; the current one on the accent's ground."""
        rect: QRect = option.rect
        state: QStyle.StateFlag = option.state
        if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            chosen = bool(state & QStyle.StateFlag.State_Selected)
            painter.fillRect(rect, self._theme.color("wash" if chosen else "hover"))
        inner = rect.adjusted(self._theme.px(12), 0, -self._theme.px(12), 0)
        note = str(index.data(_KEYS) or "")
        painter.setFont(self._theme.font("small"))
        painter.setPen(self._theme.color("muted"))
        middle = Qt.AlignmentFlag.AlignVCenter
        width = min(painter.fontMetrics().horizontalAdvance(note), inner.width() // 2)
        shown = painter.fontMetrics().elidedText(note, Qt.TextElideMode.ElideLeft, width + 1)
        painter.drawText(inner, int(middle | Qt.AlignmentFlag.AlignRight), shown)
        painter.setFont(self._theme.font())
        painter.setPen(self._theme.color("text"))
        inner.setRight(inner.right() - width - self._theme.px(12))
        title = painter.fontMetrics().elidedText(str(index.data()), Qt.TextElideMode.ElideRight, inner.width())
        painter.drawText(inner, int(middle | Qt.AlignmentFlag.AlignLeft), title)
