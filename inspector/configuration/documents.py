"""A JSON or YAML file as plain values: bounded in bytes, depth and aliases, whatever it holds."""

from __future__ import annotations

import importlib
import os
import stat
from pathlib import Path
from typing import Any

import msgspec

from inspector.errors import Missing, Unreadable

MOST_JSON = 8 << 20
# PyYAML reads some 100 kB a second.
MOST_YAML = 256 << 10
_MOST_PAIRS, _MOST_MERGED = 20_000, 16
_DO = "correct the file"


def read_bytes(path: Path, most: int) -> bytes:
    """The whole of a plain file of at most so many bytes. Raises Unreadable."""
    what = f"cannot read {path}"
    try:
        # A pipe must not make us wait.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb") as source:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise Unreadable(what, "it is no plain file", _DO)
            data = source.read(most + 1)
    except (OSError, ValueError) as error:
        raise Unreadable(what, getattr(error, "strerror", None) or str(error), "check the path") from error
    if len(data) > most:
        raise Unreadable(what, f"it is larger than {most:,} bytes", _DO)
    return data


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises Unreadable."""
    data = read_bytes(path, MOST_JSON)
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreadable(f"cannot read {path}", str(error), _DO) from error
    return _object(path, found)


def read_yaml(path: Path) -> dict[str, Any]:
    """The YAML mapping in a file, {} when it is empty. Raises Unreadable, and Missing without a YAML reader."""
    data = read_bytes(path, MOST_YAML)
    found = parse_yaml(data, str(path))
    return {} if found is None else _object(path, found)


def parse_yaml(data: bytes | str, where: str) -> object:
    """What a YAML text says, in plain values. Raises Unreadable that names `where`, and Missing."""
    what = f"cannot read {where}"
    try:
        # It ships no types, and is not needed for anything but this.
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        why, do = "the Python package PyYAML is not installed", "run pip install PyYAML"
        raise Missing(what, why, do) from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """Plain values only. Mappings that are merged by alias (<<) may not grow without bound."""

        pairs = 0

        def flatten_mapping(self, node: Any) -> None:
            for key, value in node.value:
                is_many = key.tag == "tag:yaml.org,2002:merge" and isinstance(value, yaml.SequenceNode)
                if is_many and len(value.value) > _MOST_MERGED:
                    raise yaml.constructor.ConstructorError(None, None, "it merges too many mappings", node.start_mark)
            super().flatten_mapping(node)
            self.pairs += len(node.value)
            if self.pairs > _MOST_PAIRS:
                raise yaml.constructor.ConstructorError(None, None, "its mappings are too many", node.start_mark)

    try:
        loader = Loader(data)
        try:
            found: object = loader.get_single_data()
        finally:
            loader.dispose()
    # What dates, numbers and odd keys raise is PyYAML's own affair.
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        raise Unreadable(what, str(error), _DO) from error
    return found


def _object(path: Path, found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise Unreadable(f"cannot read {path}", "it holds no names with values", _DO)
    return found
