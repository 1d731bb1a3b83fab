"""Arguments that recipes share."""

from __future__ import annotations

import argparse
from enum import Enum
from pathlib import Path
from typing import Any


class Option(Enum):
    INPUT = "--input"
    CSV = "--csv"
    START = "--start"
    END = "--end"


def _reports(given: list[str]) -> list[str]:
    """Files, and of folders the reports in them by name; `:n` takes the first n."""
    found: list[str] = []
    for each in given:
        path, _, most = each.partition(":")
        if Path(path).is_dir():
            inside = sorted(str(file) for file in Path(path).iterdir() if file.suffix in (".nsys-rep", ".qdrep"))
            found += inside[: int(most)] if most else inside
        else:
            found.append(path)
    return found


class _Reports(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, self.dest, _reports(values))


class ArgumentParser(argparse.ArgumentParser):
    """A parser with the group that a recipe adds to."""

    def __init__(self) -> None:
        super().__init__()
        self.recipe_group = self.add_argument_group("recipe")
        general = self.add_argument_group("general")
        general.add_argument("--output", required=True)
        general.add_argument("--mode", choices=("none", "concurrent", "dask-futures"), default="concurrent")

    def add_recipe_argument(self, option: Option, **more: Any) -> None:
        known: dict[Option, dict[str, Any]] = {
            Option.INPUT: {"nargs": "+", "action": _Reports},
            Option.CSV: {"action": "store_true"},
        }
        self.recipe_group.add_argument(option.value, **known.get(option, {"type": int}), **more)
