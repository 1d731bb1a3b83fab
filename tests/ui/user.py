"""What a user does and sees, in a user's words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence, QWindow
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDockWidget,
    QFileDialog,
    QLabel,
    QLineEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from ui.views.gaps import Gaps
from ui.views.headline import Headline
from ui.views.kernels import Kernels
from ui.views.view import View
from ui.widgets.cause_bar import CauseBar
from ui.widgets.elided import Elided
from ui.widgets.palette_box import PaletteBox
from ui.widgets.sheet import Sheet
from ui.widgets.table import TableView
from ui.window import MainWindow

_ROWS_READ = 40
V = TypeVar("V", bound=View)


class User:
    """Sits before one window."""

    def __init__(self, window: MainWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
        self.window = window
        self.session = window.session
        self._qtbot, self._monkeypatch = qtbot, monkeypatch

    def open(self, *paths: Path) -> None:
        """Ctrl+O, and choose these files."""
        self._monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: ([str(path) for path in paths], ""))
        self.press("Ctrl+O")

    def drop(self, *paths: Path) -> None:
        """Drag files over the middle of the window and let go."""
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
        place = QPointF(self.window.rect().center())
        action, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
        none = Qt.KeyboardModifier.NoModifier
        entering = QDragEnterEvent(place.toPoint(), action, data, left, none)
        QApplication.sendEvent(self.window, entering)
        assert entering.isAccepted()
        QApplication.sendEvent(self.window, QDropEvent(place, action, data, left, none))

    def press(self, keys: str) -> None:
        """Press keys as they are spelled, e.g. 'Ctrl+K'."""
        combination = QKeySequence(keys)[0]
        handle = self.window.windowHandle()
        assert isinstance(handle, QWindow)
        QTest.keyClick(handle, combination.key(), combination.keyboardModifiers())
        QApplication.processEvents()

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        handle = self.window.windowHandle()
        assert isinstance(handle, QWindow)
        for letter in text:
            QTest.keyClick(handle, letter)
        QApplication.processEvents()

    def click(self, name: str) -> None:
        """Click the button with that text or name."""
        for button in self.window.findChildren(QAbstractButton):
            if button.isVisible() and name in (button.text(), button.accessibleName()):
                QTest.mouseClick(button, Qt.MouseButton.LeftButton)
                QApplication.processEvents()
                return
        raise AssertionError(f"no button {name!r} in sight")

    def click_cell(self, table: TableView, row: int, column: int = 0, twice: bool = False) -> None:
        """Click into a table, once or twice."""
        place = table.visualRect(table.model().index(row, column)).center()
        QTest.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        if twice:
            QTest.mouseDClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        QApplication.processEvents()

    def click_heading(self, table: TableView, title: str) -> None:
        """Click the heading that begins with `title`."""
        header = table.horizontalHeader()
        for section in range(header.count()):
            if str(table.model().headerData(section, Qt.Orientation.Horizontal)).startswith(title):
                table.scrollTo(table.model().index(0, section))
                place = header.viewport().rect().center()
                place.setX(header.sectionViewportPosition(section) + header.sectionSize(section) // 2)
                QTest.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
                QApplication.processEvents()
                return
        raise AssertionError(f"no heading {title!r}")

    def fill(self, name: str, text: str) -> None:
        """Go to a field, replace what it holds, Return."""
        for line in self.window.findChildren(QLineEdit):
            if line.isVisible() and line.accessibleName() == name:
                line.setFocus()
                line.selectAll()
                self.press("Del")
                self.type(text)
                self.press("Return")
                return
        raise AssertionError(f"no field {name!r} in sight")

    def sees(self, text: str) -> bool:
        """Whether that stands anywhere in the window."""
        return any(text in each for each in self.reads())

    def reads(self) -> Iterator[str]:
        """Every text in sight."""
        yield self.window.windowTitle()
        for widget in self.window.findChildren(QWidget):
            if not widget.isVisible():
                continue
            if isinstance(widget, Elided):
                yield widget.full
            elif isinstance(widget, QLabel | QAbstractButton | QLineEdit):
                yield widget.text()
            elif isinstance(widget, QDockWidget):
                yield widget.windowTitle()
            elif isinstance(widget, QComboBox):
                yield widget.currentText()
            elif isinstance(widget, CauseBar | Sheet):
                yield widget.text()
            elif isinstance(widget, PaletteBox):
                yield from widget.titles()
            elif isinstance(widget, TableView):
                yield from self.cells(widget)
        yield self.window.status.currentMessage()

    def cells(self, table: TableView) -> Iterator[str]:
        """The first rows of a table."""
        model = table.model()
        for row in range(min(model.rowCount(), _ROWS_READ)):
            for column in range(model.columnCount()):
                yield str(model.index(row, column).data() or "")

    @property
    def gaps(self) -> Gaps:
        """The idle gaps view, brought into sight."""
        return self.view(Gaps)

    @property
    def kernels(self) -> Kernels:
        """The kernels view, brought into sight."""
        return self.view(Kernels)

    def view(self, kind: type[V], tall: int = 0) -> V:
        """The view of that class, brought into sight, in a dock of `tall` pixels where that is given."""
        self.window.load_views()
        self.window.show_view(kind.ID)
        if tall:
            dock = self.window.docks.find(kind.ID)
            assert dock is not None
            self.window.resizeDocks([dock], [tall], Qt.Orientation.Vertical)
        QApplication.processEvents()
        found = self.window.views[kind.ID]
        assert isinstance(found, kind)
        return found

    @property
    def headline(self) -> Headline:
        """The strip with the three figures."""
        view = self.window.views["headline"]
        assert isinstance(view, Headline)
        return view

    def leave(self) -> None:
        """Close the window; what was to be kept is kept."""
        self.window.close()
        self.window.host.asker.close()
        self.window.deleteLater()
