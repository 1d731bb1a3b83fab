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
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.errors import Usage
from probes import NAMES, OPTIONAL

if TYPE_CHECKING:
    from probes.bursts import Rule
    from probes.nsys_cli import Range

NAME = "record"
HELP = "launch a workload under the probes, record it and watch it live"
_LONGEST_S = 1e9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_recording(parser)
    parser.usage = (
        "inflight record [--out DIR] [--seconds N] [--probe NAMES] [--bursts RULE] [--standby] [--headless] "
        "[--nsys] [--keep-options] -- COMMAND..."
    )
    parser.add_argument(
        "--probe",
        type=_probes,
        metavar="NAMES",
        help=f"only these probes, between commas; with + before it, one more (default: {', '.join(NAMES)}; there is "
        f"{', '.join(OPTIONAL)} too)",
    )
    parser.add_argument(
        "--keep-options",
        action="store_true",
        help="add no options to TensorRT-LLM's; without them it keeps no statistics",
    )
    parser.add_argument(
        "--bursts",
        metavar="RULE",
        help="when every kernel of CUDA graphs is recorded, not only graphs as a whole: every=5,for=0.2 (seconds), or "
        "slow,for=0.5 (when a step takes twice as long as usual)",
    )
    parser.add_argument(
        "--standby",
        action="store_true",
        help="become the command, prepared and recording nothing; inflight attach PID records it while it runs",
    )
    nsys = parser.add_argument_group("Nsight Systems", "each of these implies --nsys; without a range, all of the run")
    nsys.add_argument("--nsys", action="store_true", help="collect with nsys, into a .nsys-rep beside the recording")
    nsys.add_argument("--nsys-from", type=_moment, metavar="SECONDS", help="begin so long after the start")
    nsys.add_argument(
        "--nsys-seconds", type=_seconds, metavar="N", help="end after so long (nsys supports up to 300 s)"
    )
    nsys.add_argument(
        "--nsys-iterations", type=_iterations, metavar="FIRST-LAST", help="as many iterations, from about the first on"
    )
    nsys.add_argument(
        "--nsys-by-hand", action="store_true", help="only when asked to, by the button in the window or by --control"
    )
    parser.add_argument("words", nargs="*", metavar="COMMAND", help="the workload and its arguments, after --")


def add_recording(parser: argparse.ArgumentParser) -> None:
    """How to record: the same for `record` and `demo`."""
    parser.add_argument(
        "--out", metavar="DIR", help="the recording to write, NAME.inflight (default: by name and time)"
    )
    parser.add_argument(
        "--seconds",
        type=_seconds,
        metavar="N",
        help="end the workload after so many seconds from the start of the command, loading included",
    )
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
    if args.standby:
        from probes.standby import become

        become(command)
    bursts = None if args.bursts is None else _bursts(args.bursts)
    out = args.out or default_out(Path(command[0]).stem)
    if not args.headless:
        return open_window(["record", *recording_argv(args, out), *_own_argv(args), "--", *command])
    from probes.recorder import Plan, record
    from probes.saying import say

    plan = Plan(command, Path(out), args.seconds, args.control, keep_options=args.keep_options, nsys=_range(args))
    plan = replace(plan, bursts=bursts)
    if args.probe is not None:
        plan = replace(plan, probes=args.probe)
    outcome = record(plan)
    if outcome.failure is not None:
        raise outcome.failure
    lost = f", {outcome.lost:,} lost" if outcome.lost else ""
    shown = shlex.join([out, *map(os.path.relpath, outcome.reports)])
    ended = f"{out}: {outcome.seconds:.1f} s, {outcome.records:,} records{lost}"
    say(f"{ended}. Next: inflight summary {shown}, or inflight {shown} for the window")
    return outcome.exit_code


def _range(args: argparse.Namespace) -> Range | None:
    """What nsys is to collect. Raises Usage."""
    from probes.nsys_cli import Range

    begin, seconds, iterations = args.nsys_from, args.nsys_seconds, args.nsys_iterations
    if args.nsys_by_hand:
        if not begin is seconds is iterations is None:
            raise Usage("--nsys-by-hand and a range", "they say two things", "name one of them")
        return Range(by_hand=True)
    if begin is None and seconds is None and iterations is None:
        return Range() if args.nsys else None
    if iterations is not None and not (begin is None and seconds is None):
        raise Usage("--nsys-iterations and a range of time", "they say two things", "name one of them")
    return Range(begin or 0.0, seconds, iterations)


def _bursts(text: str) -> Rule:
    from probes.bursts import Rule

    return Rule.parse(text)


def _own_argv(args: argparse.Namespace) -> list[str]:
    words = ["--keep-options"] if args.keep_options else []
    words += [] if args.bursts is None else ["--bursts", args.bursts]
    words += [] if args.probe is None else ["--probe", ",".join(sorted(args.probe))]
    words += ["--nsys"] if args.nsys else []
    words += ["--nsys-by-hand"] if args.nsys_by_hand else []
    words += [] if args.nsys_from is None else ["--nsys-from", f"{args.nsys_from:g}"]
    words += [] if args.nsys_seconds is None else ["--nsys-seconds", f"{args.nsys_seconds:g}"]
    words += [] if args.nsys_iterations is None else ["--nsys-iterations", "{}-{}".format(*args.nsys_iterations)]
    return words


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


def _iterations(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() or not dash)) or int(first) > int(last or first):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of iterations, as in 100-150")
    return int(first), int(last or first)


def _probes(text: str) -> frozenset[str]:
    words = [name.strip() for name in text.split(",") if name.strip()]
    names = frozenset(word.removeprefix("+") for word in words)
    known = (*NAMES, *OPTIONAL)
    unknown = sorted(names - set(known))
    if unknown or not names:
        raise argparse.ArgumentTypeError(f"no probe {', '.join(unknown) or 'named'}; there are {', '.join(known)}")
    return names | set(NAMES) if all(word.startswith("+") for word in words) else names


def _moment(text: str) -> float:
    return 0.0 if text.strip() == "0" else _seconds(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds
