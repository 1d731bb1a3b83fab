"""The file of extra options of a TensorRT-LLM program: what statistics need, laid under what the user has set.

Only what the user's file leaves open is added. The user's file is read, never written.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inspector.errors import Missing, Unreadable

Options = dict[str, Any]
_MOST_BYTES = 4 << 20


@dataclass(frozen=True)
class Wanted:
    """An option that statistics need, by its path in the file, and what it brings."""

    path: tuple[str, ...]
    value: bool | int | float
    brings: str

    @property
    def name(self) -> str:
        """As one word."""
        return ".".join(self.path)


def read(path: Path) -> Options:
    """The options in the user's file. Raises Unreadable, and Missing when there is no YAML reader here."""
    try:
        # It ships no types, and only this file of ours needs it.
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        raise Missing(
            f"cannot add options to {path}",
            "the Python package PyYAML is not installed",
            "run pip install PyYAML, or leave the command as it is with --keep-options",
        ) from None
    do = "correct the file, or leave the command as it is with --keep-options"
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise Unreadable(f"cannot read the options in {path}", "it is larger than 4 MB", do)
        found = yaml.safe_load(text)
    except OSError as error:
        raise Unreadable(f"cannot read the options in {path}", error.strerror or str(error), do) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Unreadable(f"cannot read the options in {path}", str(error), do) from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Unreadable(f"cannot read the options in {path}", "it holds no names with values", do)
    return found


def lay_under(user: Options, wanted: Sequence[Wanted]) -> tuple[Options, list[Wanted], list[tuple[Wanted, object]]]:
    """`user` with what is wanted and left open there; what was added; and what the user set otherwise, with its value.

    `user` stays as it is.
    """
    merged: Options = dict(user)
    added: list[Wanted] = []
    otherwise: list[tuple[Wanted, object]] = []
    for each in wanted:
        *groups, key = each.path
        within: Options | object = merged
        for group in groups:
            if not isinstance(within, dict):
                break
            # None is a group without anything in it.
            inner = within.get(group)
            within[group] = dict(inner) if isinstance(inner, Mapping) else {} if inner is None else inner
            within = within[group]
        if not isinstance(within, dict):
            otherwise.append((each, within))
        elif key not in within:
            within[key] = each.value
            added.append(each)
        elif within[key] != each.value:
            otherwise.append((each, within[key]))
    return merged, added, otherwise


def write(path: Path, options: Options, told: Sequence[str]) -> None:
    """Write a new file of options, `told` as comments above. Raises OSError."""
    comments = "".join(f"# {line}\n" for line in told)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(comments + text_of(options), encoding="utf-8")


def text_of(options: Options) -> str:
    """As YAML that reads as the same again."""
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        # Nothing was read then: there are only our own plain values, and of those JSON is YAML.
        return json.dumps(options, indent=2) + "\n"
    # In ASCII: a text of nothing but a NEL (U+0085) would be written as it is, and read as a space.
    text: str = yaml.safe_dump(options, sort_keys=False, allow_unicode=False)
    return text
