"""A table of any length: cells are made when they come into view, and copied exactly."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QStyledItemDelegate, QStyleOptionViewItem, QTableView

from inspector.picture.labels import forms
from ui.export import Cell, Rows
from ui.theme import Theme
from ui.widgets.graphics import Graphic

Index = QModelIndex | QPersistentModelIndex
GRAPHIC = int(Qt.ItemDataRole.UserRole)
IS_NAME = int(Qt.ItemDataRole.UserRole) + 1
_ROOT = QModelIndex()


@dataclass(frozen=True)
class Column:
    """One column: `key` names it where it is sorted by ('' cannot be), `title` heads it, `unit` heads its exact values.

    `width` in average characters; `is_number` aligns it right and sorts it downwards first; `is_drawing`
    has no value to copy; `tip` explains it. `is_name` takes the room that is left, and shortens what does not fit.
    """

    key: str
    title: str
    width: int
    tip: str = ""
    unit: str = ""
    is_number: bool = False
    is_drawing: bool = False
    is_name: bool = False


class Content(Protocol):
    """What a table shows. Rows and columns by number; everything is asked for only when needed."""

    @property
    def columns(self) -> Sequence[Column]:
        """From left to right."""
        ...

    def __len__(self) -> int:
        """Rows."""
        ...

    def text(self, row: int, column: int) -> str:
        """What stands in the cell."""
        ...

    def exact(self, row: int, column: int) -> Cell:
        """The value to copy and to show when one points at it; None where the cell is only a drawing."""
        ...

    def graphic(self, row: int, column: int) -> Graphic | None:
        """What is drawn in the cell instead of its text."""
        ...


class TableModel(QAbstractTableModel):
    """A Content for Qt."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.content: Content | None = None
        self.sorted_by, self.descending = "", False

    def set_content(self, content: Content | None, sorted_by: str = "", descending: bool = False) -> None:
        """Show that from now on; `sorted_by` is the key of the column that carries the sign of the order."""
        self.beginResetModel()
        self.content, self.sorted_by, self.descending = content, sorted_by, descending
        self.endResetModel()

    def rowCount(self, parent: Index = _ROOT) -> int:
        """Rows; none below a cell."""
        return 0 if self.content is None or parent.isValid() else len(self.content)

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Columns; none below a cell."""
        return 0 if self.content is None or parent.isValid() else len(self.content.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Text, alignment, tool tip, what a screen reader says, and the drawing."""
        if self.content is None or not index.isValid():
            return None
        row, column = index.row(), index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return self.content.text(row, column)
        if role == IS_NAME:
            return self.content.columns[column].is_name
        if role == GRAPHIC:
            return self.content.graphic(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(self.content.columns[column])
        if role == Qt.ItemDataRole.ToolTipRole:
            return _tip(self.content.columns[column], self.content.exact(row, column))
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Titles and what they mean."""
        if self.content is None or orientation != Qt.Orientation.Horizontal:
            return None
        if not 0 <= section < len(self.content.columns):
            return None
        column = self.content.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            # In the text, since Qt's own arrow lies over titles that are aligned right.
            sign = "↓" if self.descending else "↑"
            return f"{column.title} {sign}" if column.key and column.key == self.sorted_by else column.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tip or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        return None


class _Cell(QStyledItemDelegate):
    """Draws what has a drawing, and pads every cell by the grid."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        """The ground as usual, then the drawing."""
        graphic = index.data(GRAPHIC)
        if graphic is None:
            super().paint(painter, option, index)
            return
        self.initStyleOption(option, index)
        option.text = ""
        style = option.widget.style()
        style.drawControl(style.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        painter.save()
        painter.setFont(option.font)
        margin = self._theme.px(8)
        graphic.paint(painter, QRectF(option.rect).adjusted(margin, 0, -margin, 0), self._theme)
        painter.restore()

    def initStyleOption(self, option: QStyleOptionViewItem, index: Index) -> None:
        """Names without what says least, step by step; what is still too long is cut in the middle."""
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideMiddle
        room, metrics = option.rect.width() - 2 * self._theme.px(8), option.fontMetrics
        if index.data(IS_NAME) and metrics.horizontalAdvance(option.text) > room:
            shorter = forms(option.text)
            option.text = next((form for form in shorter if metrics.horizontalAdvance(form) <= room), shorter[-1])


class TableView(QTableView):
    """The widget. `sort_asked(key, descending)` when a heading is chosen; `chosen(row)` on double click or Return."""

    sort_asked = Signal(str, bool)
    chosen = Signal(int)
    current_changed = Signal(int)

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self._theme = theme
        self._columns: tuple[Column, ...] = ()
        self._subject: Hashable = None
        self._setting = self._own_widths = False
        self.setAccessibleName(name)
        self._model = TableModel(self)
        self.setModel(self._model)
        self.setItemDelegate(_Cell(theme, self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setAccessibleName(f"{name}: columns")
        header.setHighlightSections(False)
        header.setSectionsClickable(True)
        header.setStretchLastSection(True)
        header.setMinimumSectionSize(theme.px(32))
        header.sectionClicked.connect(self._heading)
        header.sectionResized.connect(self._section_resized)
        self.selectionModel().currentRowChanged.connect(self._current_row)
        self.activated.connect(lambda index: self.chosen.emit(index.row()))
        self.retheme()

    @property
    def content(self) -> Content | None:
        """What is shown."""
        return self._model.content

    def set_content(self, content: Content, sorted_by: str, descending: bool, subject: Hashable = None) -> None:
        """Show that, with the sign of its order in the heading. Column widths stay while the columns do.

        Another `subject` (device, range, order) begins at its first row.
        """
        self._model.set_content(content, sorted_by, descending)
        if subject != self._subject:
            self._subject = subject
            self.scrollToTop()
        columns = tuple(content.columns)
        if columns != self._columns:
            self._columns, self._own_widths = columns, False
            self._set_widths()

    def show_row(self, row: int) -> None:
        """Select that row alone and bring it into view, without announcing it."""
        index = self._model.index(row, 0)
        blocked = self.blockSignals(True)
        # selectRow would take a held Shift, as in Shift+G, for "everything up to here".
        flag = QItemSelectionModel.SelectionFlag
        self.selectionModel().setCurrentIndex(index, flag.ClearAndSelect | flag.Rows)
        self.blockSignals(blocked)
        self.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)

    def selected_rows(self) -> list[int]:
        """Numbers of the selected rows, ascending."""
        return sorted(index.row() for index in self.selectionModel().selectedRows())

    def rows(self, only_selected: bool = False) -> Rows:
        """Exact values of all rows, or of those selected."""
        content = self._model.content
        if content is None:
            return Rows((), ())
        kept = [at for at, column in enumerate(content.columns) if not column.is_drawing]
        heads = [_head(content.columns[at]) for at in kept]
        chosen: Sequence[int] = self.selected_rows() if only_selected else range(len(content))
        return Rows(heads, _exact(content, chosen, kept))

    def retheme(self) -> None:
        """Rows and columns in the size of the type."""
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + self._theme.px(7))
        self._set_widths()

    def sizeHint(self) -> QSize:
        """Small: the place that there is decides."""
        return QSize(self._theme.px(320), self._theme.px(120))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Names take the room that there is, until the user sets a width."""
        super().resizeEvent(event)
        if not self._own_widths:
            self._set_widths()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Coming here selects nothing: Qt would take the first row, and what it stands for."""
        nothing = not self.currentIndex().isValid()
        blocked = self.blockSignals(True)
        super().focusInEvent(event)
        if nothing:
            self.selectionModel().clear()
        self.blockSignals(blocked)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Home and End go to the first and last row: every cell of a row is selected with it."""
        ends = {Qt.Key.Key_Home: 0, Qt.Key.Key_End: self._model.rowCount() - 1}
        row = ends.get(Qt.Key(event.key()), -1)
        if row >= 0 and event.modifiers() in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.KeypadModifier):
            self.selectRow(row)
        else:
            super().keyPressEvent(event)

    def _set_widths(self) -> None:
        unit = self.fontMetrics().averageCharWidth()
        least = self.horizontalHeader().minimumSectionSize()
        widths = [max(column.width * unit + self._theme.px(16), least) for column in self._columns]
        spare = max(self.viewport().width() - sum(widths), 0)
        names = sum(column.width for column in self._columns if column.is_name)
        self._setting = True
        for at, column in enumerate(self._columns):
            self.setColumnWidth(at, widths[at] + (spare * column.width // names if column.is_name else 0))
        self._setting = False

    def _section_resized(self, section: int, before: int, now: int) -> None:
        # The last one follows the others by itself.
        if not self._setting and section < len(self._columns) - 1:
            self._own_widths = True

    def _heading(self, section: int) -> None:
        content = self._model.content
        if content is None or not content.columns[section].key:
            return
        column = content.columns[section]
        again = column.key == self._model.sorted_by
        self.sort_asked.emit(column.key, not self._model.descending if again else column.is_number)

    def _current_row(self, now: QModelIndex, before: QModelIndex) -> None:
        if now.isValid():
            self.current_changed.emit(now.row())


def _alignment(column: Column) -> int:
    side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
    return int(side | Qt.AlignmentFlag.AlignVCenter)


def _tip(column: Column, value: Cell) -> str | None:
    if value is None:
        return None
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return f"{text} {column.unit}".rstrip()


def _head(column: Column) -> str:
    return f"{column.key or column.title}_{column.unit}" if column.unit else column.key or column.title


def _exact(content: Content, rows: Sequence[int], columns: Sequence[int]) -> Iterator[list[Cell]]:
    for row in rows:
        yield [content.exact(row, column) for column in columns]
