"""Menus, palette entries and the list of keys: three views of the actions table."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QMenuBar

from ui.actions import ACTIONS, MENUS, OTHER_WORDS, Action
from ui.commands import Commands
from ui.widgets.palette_box import Entry
from ui.widgets.sheet import Line

# Alt with these letters opens the menus; G stays free for gaps.
_MNEMONICS = {"File": "&File", "View": "&View", "Select": "&Select", "Timeline": "&Timeline", "Help": "&Help"}
_WHERE = {"window": "Everywhere", "timeline": "In the timeline"}


class Menus(QObject):
    """The menu bar. What cannot be done now is grey, what is not in this window is not listed."""

    def __init__(self, bar: QMenuBar, commands: Commands) -> None:
        super().__init__(bar)
        self._commands = commands
        self._items: list[tuple[Action, QAction]] = []
        self.menus: dict[str, QMenu] = {}
        for name in MENUS:
            menu = self.menus[name] = bar.addMenu(_MNEMONICS[name])
            for action in ACTIONS:
                if action.menu == name:
                    item = menu.addAction("")
                    item.triggered.connect(lambda _=False, action=action: commands.run(action))
                    self._items.append((action, item))
            menu.aboutToShow.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Texts with their keys, and what can be done now."""
        for action, item in self._items:
            keys = self._commands.shown_keys(action)
            # A tab puts the key where a shortcut would stand; a real one would bypass the table.
            item.setText(f"{action.title.replace('&', '&&')}\t{keys}" if keys else action.title)
            item.setVisible(self._commands.does(action) is not None)
            item.setEnabled(self._commands.is_available(action))


def entries(commands: Commands) -> list[Entry]:
    """All that can be done now, for the command palette."""

    def entry(action: Action) -> Entry:
        return Entry(
            action.title, commands.shown_keys(action), lambda: commands.run(action), OTHER_WORDS.get(action.id, "")
        )

    return [entry(action) for action in commands.available()]


def key_lines(commands: Commands, extra: Iterable[tuple[str, str]] = ()) -> list[Line]:
    """All actions of this window with their keys, by where they work; `extra` are gestures and the like."""
    lines: list[Line] = []
    for where, heading in _WHERE.items():
        mine = [a for a in ACTIONS if a.where == where and commands.does(a) is not None and commands.keys(a)]
        if mine:
            lines.append(Line(heading))
            lines += [Line(a.title.rstrip("…"), "  or  ".join(commands.all_shown_keys(a))) for a in mine]
    gestures = [Line(name, text) for name, text in extra]
    return [*lines, *([Line("With the mouse"), *gestures] if gestures else [])]
