"""What is remembered between runs: one small JSON file, read with suspicion and replaced whole."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import platformdirs

VERSION = 1
MAX_RECENT = 12
MAX_ARRANGEMENTS = 200

Json = dict[str, Any]


@dataclass
class Settings:
    """Everything that is kept.

    `theme` is "system", "light" or "dark"; `keys` holds the bindings that differ from the preset, by action id;
    `recent` the traces opened last, newest first, each a list of paths; `launched` what was launched or attached
    to last, each as kind, command line or address, and working folder; `saved_in` the folder saved into last;
    `geometry` and `layout` are Qt's own bytes in base64; `arrangements` what a trace looked like, by the fingerprint
    of its paths, last used last.
    """

    theme: str = "system"
    presenter: bool = False
    preset: str = "Perfetto"
    keys: dict[str, list[str]] = field(default_factory=dict)
    recent: list[list[str]] = field(default_factory=list)
    launched: list[list[str]] = field(default_factory=list)
    saved_in: str = ""
    geometry: str = ""
    layout: str = ""
    arrangements: dict[str, Json] = field(default_factory=dict)


class SettingsFile:
    """Settings with their place on disk. `values` is what everybody reads and changes; `save` writes it.

    A file that cannot be understood is set aside under another name and `trouble` says so, in one sentence.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or folder() / "settings.json"
        self.trouble = ""
        self.values = self._load()

    def save(self) -> None:
        """Replace the file; what stops it (a full disk, a folder that is read-only) is said in `trouble`."""
        values = self.values
        del values.recent[MAX_RECENT:]
        for fingerprint in list(values.arrangements)[:-MAX_ARRANGEMENTS]:
            del values.arrangements[fingerprint]
        text = json.dumps({"version": VERSION, **asdict(values)}, indent=1)
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(text, encoding="utf-8")
            draft.replace(self.path)
        except OSError as error:
            self.trouble = f"settings are not kept: {error.strerror or error} ({self.path})"

    def remember(self, paths: tuple[str, ...]) -> None:
        """Put a trace at the head of the recent ones, and save."""
        entry = list(paths)
        self.values.recent = [entry, *(other for other in self.values.recent if other != entry)]
        self.save()

    def place_for(self, name: str) -> str:
        """The path to propose for a new file: in the folder saved into last, else at home."""
        last = Path(self.values.saved_in)
        return str((last if self.values.saved_in and last.is_dir() else Path.home()) / name)

    def remember_place(self, path: Path) -> None:
        """`path` was chosen to save to."""
        self.values.saved_in = str(path.absolute().parent)
        self.save()

    def _load(self) -> Settings:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return Settings()
        except (OSError, UnicodeDecodeError) as error:
            return self._set_aside(str(error))
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:
            return self._set_aside(str(error))
        wrong = _wrong(raw)
        if wrong:
            return self._set_aside(wrong)
        known = {each.name for each in fields(Settings)}
        return Settings(**{name: value for name, value in raw.items() if name in known})

    def _set_aside(self, why: str) -> Settings:
        aside = self.path.with_name("settings.damaged.json")
        try:
            self.path.replace(aside)
            self.trouble = f"the settings file could not be read ({why}); it is kept as {aside.name}"
        except OSError as error:
            self.trouble = f"the settings file could not be read ({why}) nor set aside ({error.strerror or error})"
        return Settings()


def folder() -> Path:
    """Where settings live: INFLIGHT_CONFIG_DIR, else the user's configuration folder."""
    chosen = os.environ.get("INFLIGHT_CONFIG_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_config_dir("inflight-inspector", appauthor=False))


def _wrong(raw: object) -> str:
    """What is wrong with the content of a settings file; '' when nothing is."""
    if not isinstance(raw, dict):
        return "not an object"
    if raw.get("version") != VERSION:
        return f"version {raw.get('version')!r}, this program writes {VERSION}"
    checks: dict[str, Callable[[Any], bool]] = {
        "theme": lambda value: value in ("system", "light", "dark"),
        "presenter": lambda value: isinstance(value, bool),
        "preset": lambda value: isinstance(value, str),
        "keys": lambda value: isinstance(value, dict) and all(_texts(keys) for keys in value.values()),
        "recent": lambda value: isinstance(value, list) and all(_texts(paths) and paths for paths in value),
        "launched": lambda value: isinstance(value, list) and all(_texts(words) for words in value),
        "saved_in": lambda value: isinstance(value, str),
        "geometry": lambda value: isinstance(value, str),
        "layout": lambda value: isinstance(value, str),
        "arrangements": lambda value: isinstance(value, dict) and all(isinstance(x, Mapping) for x in value.values()),
    }
    for name, is_right in checks.items():
        if name in raw and not is_right(raw[name]):
            return f"{name} is not what it should be"
    return ""


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
