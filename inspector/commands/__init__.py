"""The commands of `inflight`: one module each with NAME, HELP, add_arguments(parser) and run(args) -> exit code."""

from __future__ import annotations

import argparse
import importlib
from typing import Protocol, cast

COMMANDS: tuple[str, ...] = (
    "window",
    "demo",
    "record",
    "attach",
    "summary",
    "gaps",
    "kernels",
    "iterations",
    "convert",
    "doctor",
)


class Command(Protocol):
    """What a command module offers."""

    NAME: str
    HELP: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code. Raises InspectorError for what the user can act on."""
        ...


def command(name: str) -> Command:
    """The module of that command."""
    return cast(Command, importlib.import_module(f"inspector.commands.{name}"))
