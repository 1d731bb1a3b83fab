"""The table of actions, and what a key does."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

from tests.ui.user import User
from ui.actions import ACTIONS, MENUS, PRESETS, keys_of
from ui.keys import spelled


def test_ids_are_unique_and_menus_known() -> None:
    assert [name for name, count in Counter(action.id for action in ACTIONS).items() if count > 1] == []
    assert {action.menu for action in ACTIONS} - {""} == set(MENUS)


@pytest.mark.parametrize("preset", PRESETS)
def test_no_key_means_two_things_in_one_place(preset: str) -> None:
    bound = Counter((action.where, key) for action in ACTIONS for key in keys_of(action, preset, {}))
    assert [each for each, count in bound.items() if count > 1] == []
    # A letter of a view reaches it from anywhere, so it must be free everywhere.
    letters = Counter(
        key for action in ACTIONS for key in keys_of(action, preset, {}) if len(key.removeprefix("Shift+")) == 1
    )
    assert [key for key, count in letters.items() if count > 1] == []
    assert set(PRESETS[preset]) <= {action.id for action in ACTIONS}


def test_keys_are_ones_that_qt_knows() -> None:
    for preset in PRESETS:
        for action in ACTIONS:
            for key in keys_of(action, preset, {}):
                assert QKeySequence(key).toString(QKeySequence.SequenceFormat.PortableText) == key, action.id


def test_every_action_has_something_that_does_it(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "decode_server.sqlite")
    assert [action.id for action in ACTIONS if user.window.commands.does(action) is None] == []


@pytest.mark.parametrize(
    ("key", "modifiers", "code", "platform", "meaning"),
    [
        (Qt.Key.Key_Z, 0, 25, "xcb", "W"),  # the place of W on a French keyboard
        (Qt.Key.Key_Z, Qt.KeyboardModifier.ShiftModifier, 25, "wayland", "Shift+W"),
        (Qt.Key.Key_Z, 0, 17, "windows", "W"),
        (0x426, 0, 25, "xcb", "W"),  # a Cyrillic letter
        (Qt.Key.Key_Z, 0, 25, "cocoa", "Z"),
        (Qt.Key.Key_Z, 0, 0, "xcb", "Z"),
        (Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier, 25, "xcb", "Ctrl+Z"),
        (Qt.Key.Key_Question, Qt.KeyboardModifier.ShiftModifier, 20, "xcb", "?"),
        (Qt.Key.Key_Slash, Qt.KeyboardModifier.ShiftModifier, 16, "xcb", "/"),
        (Qt.Key.Key_BracketLeft, 0, 34, "xcb", "["),
        (Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier, 23, "xcb", "Shift+Tab"),
        (Qt.Key.Key_0, Qt.KeyboardModifier.KeypadModifier, 90, "xcb", "0"),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier, 113, "xcb", "Shift+Left"),
        (Qt.Key.Key_Shift, Qt.KeyboardModifier.ShiftModifier, 50, "xcb", ""),
    ],
)
def test_how_a_key_press_is_spelled(key: int, modifiers: int, code: int, platform: str, meaning: str) -> None:
    event = QKeyEvent(QEvent.Type.KeyPress, key, Qt.KeyboardModifier(modifiers), code, 0, 0, "")
    assert spelled(event, platform) == meaning


def test_a_users_own_keys_replace_those_of_the_table(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "decode_server.sqlite")
    user.window.host.settings.values.keys = {"costliest_gap": ["Ctrl+J"], "next_gap": []}
    user.window.keyboard.rebind()
    user.press("G")
    assert user.session.selection.gap is None
    user.press("Alt+G")
    assert user.session.selection.gap is None
    user.press("Ctrl+J")
    assert user.session.selection.gap is not None


def test_the_keys_of_another_tool_can_be_taken(user: User, sample_traces: Path) -> None:
    user.open(sample_traces / "decode_server.sqlite")
    user.press("Ctrl+K")
    user.type("nsight")
    user.press("Return")
    assert user.window.host.settings.values.preset == "Nsight"
    before = user.session.window.length
    user.window.show_view("timeline")
    user.press("Ctrl++")
    assert user.session.window.length < before


def test_menus_offer_what_can_be_done_now(user: User, sample_traces: Path) -> None:
    def enabled(menu: str) -> dict[str, bool]:
        user.window.menus.refresh()
        return {item.text().split("\t")[0]: item.isEnabled() for item in user.window.menus.menus[menu].actions()}

    assert enabled("File")["Open trace…"]
    assert not enabled("File")["Close trace"]
    user.open(sample_traces / "decode_server.sqlite")
    assert enabled("File")["Close trace"]
    assert "Next idle gap\tG" in [item.text() for item in user.window.menus.menus["Select"].actions()]
