"""Settings taken out of plain values, by the names that a kind of file has for them; what does not fit is noted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inspector.configuration.settings import BY_NAME, Configuration, Setting, Value, fitting, printable

Tree = Mapping[str, Any]
_WHOLE, _NUMBER = re.compile(r"[0-9]{1,15}"), re.compile(r"[0-9]{0,15}\.?[0-9]{1,15}")
_FLAGS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
# Words for "whatever fits": nothing is known by them.
_OPEN = ("auto", "none", "null", "")
_MOST_BITS = 200


def at(tree: object, path: str) -> object:
    """The value at a path like 'a.b'; None where there is none."""
    for key in path.split("."):
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(key)
    return tree


def group(tree: object, path: str) -> Tree:
    """The mapping at a path; {} where there is none."""
    found = at(tree, path)
    return found if isinstance(found, Mapping) else {}


def parsed(name: str, text: str) -> Value | str:
    """A word of a command line as the kind that the setting wants; as it is where it is none."""
    kind = BY_NAME[name].kind
    if kind is int and _WHOLE.fullmatch(text):
        return int(text)
    if kind is float and _NUMBER.fullmatch(text):
        return float(text)
    if kind is bool:
        return _FLAGS.get(text.lower(), text)
    return text


def _said(value: object) -> str:
    """A value that cannot be, short. A number in YAML may be longer than Python writes, and a list there endless."""
    if isinstance(value, str):
        return printable(repr(value[:60]))
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _MOST_BITS:
        return "a number of very many digits"
    return repr(value) if isinstance(value, bool | int | float) else f"a {type(value).__name__}"


class Taking:
    """Takes settings out of one file. `prefix` stands before the paths, where the tree is a part of the file."""

    def __init__(self, file: str, prefix: str = "") -> None:
        self.file = file
        self.prefix = prefix
        self._found: dict[str, Setting] = {}
        self._notes: list[str] = []

    def take(self, name: str, tree: object, *paths: str) -> None:
        """The first of `paths` that has a value, for a setting that is not known yet."""
        for path in paths:
            value = at(tree, path)
            if value is not None:
                self.put(name, value, path)
                return

    def put(self, name: str, value: object, key: str) -> None:
        """A value that `key` has; not where the setting is known, nor where the value leaves it open."""
        if name in self._found or (isinstance(value, str) and value.strip().lower() in _OPEN):
            return
        fits = fitting(BY_NAME[name], parsed(name, value) if isinstance(value, str) else value)
        key = printable(f"{self.prefix}{key}")
        if fits is None:
            self._notes.append(f"{key} in {self.file} is {_said(value)}, which cannot be: it stays unknown")
            return
        self._found[name] = Setting(name, fits, self.file, key)

    def value(self, name: str) -> Value | None:
        """What was taken."""
        found = self._found.get(name)
        return None if found is None else found.value

    def number(self, name: str) -> int | None:
        """What was taken, where it is a whole number."""
        value = self.value(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def note(self, text: str) -> None:
        """Say what could not be read."""
        self._notes.append(text)

    def done(self) -> Configuration:
        """All that was taken."""
        return Configuration(dict(self._found), tuple(dict.fromkeys(self._notes)))
