"""Launch a workload under the probes and record what it does."""

from __future__ import annotations

import argparse
import math
import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from inspector.errors import Usage

NAME = "record"
HELP = "launch a workload under the probes, record it and watch it live"
_LONGEST_S = 1e9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording(parser)
    parser.usage = "inflight record [--out DIR] [--seconds N] [--headless] [--control] -- COMMAND..."
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="the workload and its arguments, after --")


def add_recording(parser: argparse.ArgumentParser) -> None:
    """How to record: the same for `record` and `demo`."""
    parser.add_argument(
        "--out", metavar="DIR", help="the recording to write, NAME.inflight (default: by name and time)"
    )
    parser.add_argument("--seconds", type=_seconds, metavar="N", help="end the workload after so many seconds")
    parser.add_argument("--headless", action="store_true", help="without a window")
    parser.add_argument(
        "--control",
        action="store_true",
        help='pass JSON lines from standard input on to the workload; {"stop": true} ends the recording',
    )


def run(args: argparse.Namespace) -> int:
    """Record, with a window or without one."""
    command: list[str] = args.words
    if not command:
        raise Usage("no command to record", "", "name it after --, as in: inflight record -- python serve.py")
    out = args.out or default_out(Path(command[0]).stem)
    if not args.headless:
        return open_window(["record", *recording_argv(args, out), "--", *command])
    from probes.recorder import Plan, record

    outcome = record(Plan(command, Path(out), args.seconds, args.control))
    if outcome.failure is not None:
        raise outcome.failure
    lost = f", {outcome.lost:,} lost" if outcome.lost else ""
    shown = shlex.quote(out)
    sys.stderr.write(f"inflight: {out}: {outcome.seconds:.1f} s, {outcome.records:,} records{lost}. ")
    sys.stderr.write(f"Next: inflight summary {shown}, or inflight {shown} for the window\n")
    return outcome.exit_code


def default_out(name: str) -> str:
    """A recording in the current folder, by what is recorded and the time."""
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "recording"
    return f"{word}-{time.strftime('%Y%m%d-%H%M%S')}.inflight"


def recording_argv(args: argparse.Namespace, out: str) -> list[str]:
    """The words of a command line that records without a window what `args` ask for into `out`, under control."""
    seconds = [] if args.seconds is None else ["--seconds", f"{args.seconds:g}"]
    return ["--headless", "--control", "--out", os.path.abspath(out), *seconds]


def open_window(words: Sequence[str]) -> int:
    """The window on the run of the command line `inflight WORDS`, which it starts as a process of its own."""
    from inspector.commands.window import show

    return show([], run=[sys.executable, "-I", "-m", "inspector", *words])


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
