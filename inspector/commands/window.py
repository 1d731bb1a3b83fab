"""The window: on traces, or on its start page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from inspector.commands.common import TRACE_HELP
from inspector.errors import Missing, Unreadable, Usage

NAME = "window"
HELP = "open the window, on traces or on the start page"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("trace", nargs="*", help=TRACE_HELP)


def run(args: argparse.Namespace) -> int:
    """Open it, and stay until it is closed."""
    for path in args.trace:
        if not Path(path).exists():
            if Path(path).name == path and "." not in path:
                raise Usage(f"no command and no file {path!r}", "", "see inflight --help")
            raise Unreadable(f"cannot read {path}", "no such file", "check the path")
    return show(args.trace)


def show(paths: Sequence[str], run: Sequence[str] | None = None) -> int:
    """The window on traces, or on a run: a command line of a recorder, which the window starts and follows.

    Raises Missing where no window can be shown.
    """
    try:
        from ui.app import main
    except ImportError as error:
        # PySide6 is there, or pip would have complained: what fails to load is a library of the system.
        raise Missing("the window cannot start", str(error), "run packaging/run, which says what to install") from error
    return main(paths) if run is None else main(paths, run=run)
