"""From a key press to an action.

Letters are bound by their place on the keyboard, as on a US one, so that W A S D lie together on every layout; where
the platform gives no scan code, and for everything else, what is printed on the key counts.
"""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractButton, QAbstractItemView, QApplication, QComboBox, QWidget

from ui.actions import Action
from ui.commands import Commands
from ui.views.view import View
from ui.widgets.overlay import Overlay

_ROWS = ((16, "QWERTYUIOP"), (30, "ASDFGHJKL"), (44, "ZXCVBNM"))
_BY_CODE = {first + at: letter for first, row in _ROWS for at, letter in enumerate(row)}
# X11 and Wayland count from 8 where the kernel and Windows count from 0.
_OFFSETS = {"xcb": 8, "wayland": 8, "windows": 0}
_MODIFIERS = (
    Qt.KeyboardModifier.ControlModifier
    | Qt.KeyboardModifier.AltModifier
    | Qt.KeyboardModifier.ShiftModifier
    | Qt.KeyboardModifier.MetaModifier
)


def spelled(event: QKeyEvent, platform: str) -> str:
    """A key press in Qt's portable spelling, e.g. 'Shift+G', '?', 'Ctrl+K'; '' for a modifier alone.

    Shift is part of the spelling for letters and named keys; for other signs it only helps to reach them.
    """
    modifiers = event.modifiers() & _MODIFIERS
    key = event.key()
    if key == Qt.Key.Key_Backtab:
        key = Qt.Key.Key_Tab
    if key in (0, Qt.Key.Key_unknown, Qt.Key.Key_Shift, Qt.Key.Key_Control, Qt.Key.Key_Alt, Qt.Key.Key_Meta):
        key = 0
    plain = not modifiers & ~Qt.KeyboardModifier.ShiftModifier
    if plain and platform in _OFFSETS and event.nativeScanCode():
        letter = _BY_CODE.get(event.nativeScanCode() - _OFFSETS[platform])
        if letter is not None:
            key = ord(letter)
    if key == 0:
        return ""
    if 0x20 < key < 0x1000000 and not chr(key).isalnum():
        modifiers &= ~Qt.KeyboardModifier.ShiftModifier
    combined = QKeySequence(key | modifiers.value)
    return combined.toString(QKeySequence.SequenceFormat.PortableText)


class Keyboard(QObject):
    """An event filter for the windows that listens to keys before any widget does."""

    def __init__(self, commands: Commands, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._commands = commands
        self._bindings = commands.bindings()

    def rebind(self) -> None:
        """The keys have changed."""
        self._bindings = self._commands.bindings()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Run the action of a key press and keep the key from the widgets."""
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.KeyPress:
            return False
        if QApplication.activeModalWidget() is not None or QApplication.activePopupWidget() is not None:
            return False
        key = spelled(event, QGuiApplication.platformName())
        focus = QApplication.focusWidget()
        action = self._choose(key, focus)
        if action is None or _in_overlay(focus) or _is_own(key, focus) or _is_text(event, focus):
            return False
        if not event.isAutoRepeat() or action.repeats:
            self._commands.run(action)
        return True

    def _choose(self, key: str, focus: QWidget | None) -> Action | None:
        """Of the actions with that key the one of the view with the focus, else one that is reached from anywhere."""
        found = [action for action in self._bindings.get(key, []) if self._commands.is_available(action)]
        for action in found:
            own = self._commands.moved_to(action, _view_of(focus))
            if own is not None:
                return own
        for action in found:
            if action.where != "window" and _is_inside(focus, action.where):
                return action
        far = len(key.removeprefix("Shift+")) == 1
        return next((action for action in found if action.where == "window" or far), None)


def _view_of(widget: QWidget | None) -> str:
    """ID of the view that holds a widget; '' where none does."""
    while widget is not None:
        if isinstance(widget, View):
            return widget.ID
        widget = widget.parentWidget()
    return ""


def _is_inside(widget: QWidget | None, name: str) -> bool:
    while widget is not None:
        if widget.objectName() == name:
            return True
        widget = widget.parentWidget()
    return False


def _in_overlay(widget: QWidget | None) -> bool:
    while widget is not None:
        if isinstance(widget, Overlay):
            return True
        widget = widget.parentWidget()
    return False


def _is_own(key: str, focus: QWidget | None) -> bool:
    """Whether every widget of that kind uses this key: a table to go to its ends, a button to be pressed, a choice to
    be opened and moved in."""
    if isinstance(focus, QAbstractItemView):
        return key in ("Home", "End")
    if isinstance(focus, QComboBox):
        return key in ("Space", "Up", "Down", "Home", "End")
    return isinstance(focus, QAbstractButton) and key == "Space"


def _is_text(event: QKeyEvent, focus: QWidget | None) -> bool:
    """Whether the widget with the focus edits text and takes this key for it."""
    if focus is None:
        return False
    override = QKeyEvent(QEvent.Type.ShortcutOverride, event.key(), event.modifiers(), event.text())
    override.ignore()
    QCoreApplication.sendEvent(focus, override)
    return override.isAccepted()
