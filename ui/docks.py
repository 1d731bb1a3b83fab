"""Where the views stand: one in the middle, the others in docks around it, as the user left them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from PySide6.QtCore import QByteArray, QObject, Qt
from PySide6.QtWidgets import QDockWidget, QMainWindow, QWidget
from shiboken6 import isValid

from ui.settings import SettingsFile
from ui.theme import Theme
from ui.views.view import View

_VERSION = 1
_AREAS = {"facts": Qt.DockWidgetArea.LeftDockWidgetArea}
_HIDDEN = ("facts", "results", "layers")
_SHARE = 0.40


class Docks(QObject):
    """The docks of a window. Hidden as long as no trace is open, then as they were the last time."""

    def __init__(
        self, window: QMainWindow, theme: Theme, settings: SettingsFile, on_float: Callable[[QWidget], None]
    ) -> None:
        super().__init__(window)
        self._window, self._theme, self._settings, self._on_float = window, theme, settings, on_float
        self._docks: dict[str, QDockWidget] = {}
        self._shown = False

    def __iter__(self) -> Iterator[QDockWidget]:
        return iter(self._docks.values())

    def add(self, view: View) -> QDockWidget:
        """A dock for a view, hidden for now."""
        dock = QDockWidget(view.TITLE, self._window)
        dock.setObjectName(f"dock-{view.ID}")
        dock.setWidget(view)
        dock.setAccessibleName(view.TITLE)
        dock.topLevelChanged.connect(lambda floats: self._on_float(dock) if floats else None)
        for moved in (dock.topLevelChanged, dock.dockLocationChanged, dock.visibilityChanged):
            moved.connect(self._title_bars)
        self._docks[view.ID] = dock
        self._window.addDockWidget(_AREAS.get(view.ID, Qt.DockWidgetArea.BottomDockWidgetArea), dock)
        dock.hide()
        return dock

    def find(self, view_id: str) -> QDockWidget | None:
        """The dock of a view."""
        return self._docks.get(view_id)

    def show(self) -> None:
        """Bring them up as they were left, or as they come."""
        if self._shown:
            return
        self._shown = True
        kept = QByteArray.fromBase64(self._settings.values.layout.encode("ascii", "replace"))
        if kept.isEmpty() or not self._window.restoreState(kept, _VERSION):
            self.reset()

    def show_for(self, view_id: str, on: bool, share: float) -> None:
        """Bring the dock of a view up for a trace that is for it, with that share of the height; else out of sight."""
        dock = self._docks.get(view_id)
        if dock is None or (not on and dock.isHidden()):
            return
        dock.setVisible(on)
        if on:
            dock.raise_()
            height = round(self._window.height() * share)
            self._window.resizeDocks([dock], [height], Qt.Orientation.Vertical)

    def hide(self) -> None:
        """Out of the way, remembering how they stood."""
        self.keep()
        self._shown = False
        for dock in self:
            dock.hide()

    def reset(self) -> None:
        """As they come: a row of tabs below the middle, the side bar at the left, hidden."""
        below: list[QDockWidget] = []
        for view_id, dock in self._docks.items():
            dock.setFloating(False)
            area = _AREAS.get(view_id, Qt.DockWidgetArea.BottomDockWidgetArea)
            self._window.addDockWidget(area, dock)
            if area == Qt.DockWidgetArea.BottomDockWidgetArea:
                below.append(dock)
        # Before they are shown: side by side they would need more room than there is, and the window would grow.
        for before, after in pairwise(below):
            self._window.tabifyDockWidget(before, after)
        for view_id, dock in self._docks.items():
            dock.setVisible(view_id not in _HIDDEN)
        if below:
            below[0].raise_()
            height = round(self._window.height() * _SHARE)
            self._window.resizeDocks(below[:1], [height], Qt.Orientation.Vertical)
        left = [self._docks[view_id] for view_id in _AREAS if view_id in self._docks]
        if left:
            self._window.resizeDocks(left, [self._theme.px(320)] * len(left), Qt.Orientation.Horizontal)

    def _title_bars(self) -> None:
        """A tab says what a title bar would say again: a dock among tabs has none."""
        # Docks are hidden one by one, and say so, while the window that holds them is being destroyed.
        if not isValid(self._window):
            return
        for dock in self:
            bare = bool(self._window.tabifiedDockWidgets(dock)) and not dock.isFloating()
            if bare == (dock.titleBarWidget() is None):
                dock.setTitleBarWidget(QWidget() if bare else None)  # type: ignore[arg-type]

    def keep(self) -> None:
        """Remember how they stand; saved with the settings."""
        if self._shown:
            state = self._window.saveState(_VERSION).toBase64().data()
            self._settings.values.layout = bytes(state).decode("ascii")
