"""From a row of the actions table to the thing that it does: what is offered now, by which key, and running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from PySide6.QtGui import QKeySequence

from ui.actions import ACTIONS, PRESETS, Action, keys_of
from ui.session import Session
from ui.settings import Settings


class Commands:
    """The table, resolved against `targets`: the window, the session, the theme and the views, by name.

    Views come and go with the first trace, so `targets` is looked up at the moment of use.
    """

    def __init__(self, targets: Mapping[str, object], session: Session, settings: Settings) -> None:
        self._targets = targets
        self._session = session
        self._settings = settings

    def does(self, action: Action) -> Callable[[], object] | None:
        """What runs; None while the target is not there."""
        target, _, method = action.runs.partition(".")
        found: Callable[[], object] | None = getattr(self._targets.get(target), method, None)
        return found

    def is_available(self, action: Action) -> bool:
        """Whether it can be run now."""
        return self.does(action) is not None and (self._session.trace is not None or not action.needs_trace)

    def available(self) -> list[Action]:
        """All that can be run now, in the table's order."""
        return [action for action in ACTIONS if self.is_available(action)]

    def moved_to(self, action: Action, view: str) -> Action | None:
        """The same movement in another view: zooming, panning and fitting of the timeline, where that view has a method
        of that name. None where it has not, or the action is no movement.
        """
        if action.menu != "Timeline" or not view or view == action.where:
            return None
        own = replace(action, where=view, runs=f"{view}.{action.runs.partition('.')[2]}")
        return own if self.does(own) is not None else None

    def run(self, action: Action) -> bool:
        """Do it; False when it cannot be done now."""
        does = self.does(action)
        if does is None or not self.is_available(action):
            return False
        does()
        return True

    def keys(self, action: Action) -> tuple[str, ...]:
        """Its keys as they are spelled in the table."""
        return keys_of(action, self._settings.preset, self._settings.keys)

    def shown_keys(self, action: Action) -> str:
        """Its first key as this platform writes it; '' when it has none."""
        return next(iter(self.all_shown_keys(action)), "")

    def all_shown_keys(self, action: Action) -> list[str]:
        """All its keys as this platform writes them."""
        form = QKeySequence.SequenceFormat.NativeText
        return [QKeySequence(keys).toString(form) for keys in self.keys(action)]

    def bindings(self) -> dict[str, list[Action]]:
        """Actions by key, in Qt's own spelling of it."""
        found: dict[str, list[Action]] = {}
        for action in ACTIONS:
            for keys in self.keys(action):
                spelled = QKeySequence(keys).toString(QKeySequence.SequenceFormat.PortableText)
                found.setdefault(spelled, []).append(action)
        return found

    def use_preset(self, preset: str) -> None:
        """Take the keys of that preset; raises KeyError for one that is not there."""
        if preset not in PRESETS:
            raise KeyError(preset)
        self._settings.preset = preset
