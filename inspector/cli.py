"""The `inflight` command: parse, run, and turn what went wrong into one line and an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from inspector import __version__, streams
from inspector.commands import COMMANDS, command
from inspector.errors import InspectorError
from inspector.report.text import plain


class _Parser(argparse.ArgumentParser):
    """Quotes harmlessly what was typed."""

    def error(self, message: str) -> NoReturn:
        super().error(plain(" ".join(message.splitlines())))


def parser() -> argparse.ArgumentParser:
    """The parser, made of the commands."""
    top = _Parser(
        prog="inflight",
        description="Shows what an LLM inference workload does on its GPUs, and why a GPU is idle.",
        epilog="`inflight TRACE...` opens traces in the window; without a command the window starts empty.",
    )
    top.add_argument("--version", action="version", version=f"inflight {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", dest="command")
    for name in COMMANDS:
        module = command(name)
        sub = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code of the contract."""
    streams.prepare()
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or (given[0] not in COMMANDS and not given[0].startswith("-")):
        given.insert(0, "window")
    try:
        args = parser().parse_args(given)
        code: int = args.run(args)
        sys.stdout.flush()
    except InspectorError as error:
        sys.stderr.write(plain(f"inflight: {error}\n"))
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output (head, a pager) has seen enough; what is buffered must not complain at exit.
        _drop_output()
        return 0
    except OSError as error:
        # Most of reading has errors of its own. Without a file name it was the output: a full disk behind it.
        why = error.strerror or str(error)
        if error.filename is not None:
            sys.stderr.write(plain(f"inflight: cannot read {error.filename}: {why}. Check the path\n"))
        else:
            sys.stderr.write(f"inflight: cannot write the output: {why}. Make room and run it again\n")
        _drop_output()
        return 3
    except KeyboardInterrupt:
        return 130
    return code


def _drop_output() -> None:
    """What is still buffered must not complain once more when the program ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
