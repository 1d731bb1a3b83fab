"""The JSON file that describes a run of a recipe. Its keys differ between releases; all are optional."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from inspector.readers.nsys_recipe.texts import clean

_MOST_BYTES = 4 << 20
_SHOWN = {
    "StartTime": "recipe started",
    "EndTime": "recipe ended",
    "Mode": "recipe mode",
    "RecipeVersion": "recipe version",
    "RecipeJsonVersion": "recipe file version",
    "RecipeRuntimeVersion": "recipe runtime",
}
_MOST_OPTIONS = 40


@dataclass(frozen=True)
class Head:
    """What it says: `recipe` as nsys calls it, `title` as it shows it, and what people may want to know."""

    recipe: str = ""
    title: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""


def read_head(file: BinaryIO) -> Head:
    """The header in `file`; where it is no such JSON, `trouble` says so and the rest is empty."""
    data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        return Head(trouble=f"it is larger than {_MOST_BYTES:,} bytes")
    try:
        found = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        return Head(trouble=f"it is no JSON ({type(error).__name__})")
    if not isinstance(found, dict):
        return Head(trouble="it holds no object")
    details = {word: clean(str(found[key])) for key, word in _SHOWN.items() if _is_plain(found.get(key))}
    options = found.get("Options")
    if isinstance(options, dict):
        said = [f"{key}={value}" for key, value in list(options.items())[:_MOST_OPTIONS] if _is_plain(value)]
        details["recipe options"] = clean(", ".join(said))
    inputs = found.get("InputFiles")
    if isinstance(inputs, list):
        details["recipe inputs"] = f"{len(inputs):,}"
    return Head(_text(found, "RecipeName"), _text(found, "DisplayName"), details)


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    return clean(value) if isinstance(value, str) else ""


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
