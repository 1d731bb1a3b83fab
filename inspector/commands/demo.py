"""Launch the built-in engine under the probes: the quickest way to see the whole program at work."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import signal
import socket
import sys
from pathlib import Path

from inspector.commands import common, record
from inspector.errors import InspectorError, Missing, Usage
from probes.workloads.engine import options

NAME = "demo"
HELP = "launch the built-in inference engine, record it and watch it live"
# Codes with which the engine ends after a line of its own.
_SAID_WHY = (2, 3)
_STOPPED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
# The engine computes on all that is left over.
_NICE = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: how to record, then the engine's own."""
    record.add_recording(parser)
    parser.add_argument("--list-options", action="store_true", help="print the engine's options as JSON, and end")
    options.add_arguments(parser, leave_out=("seconds",))


def run(args: argparse.Namespace) -> int:
    """Record the engine, with a window or without one; without one, until Ctrl+C where no --seconds is given."""
    if args.list_options:
        common.print_text(json.dumps(options.describe()))
        return 0
    # How long is the recorder's to say, for every workload alike.
    wanted = argparse.Namespace(**{name: value for name, value in vars(args).items() if name != "seconds"})
    given = options.to_argv(options.from_args(wanted))
    missing = [name for name in ("torch", "safetensors") if importlib.util.find_spec(name) is None]
    if missing:
        raise Missing(
            "the built-in engine cannot start",
            f"{' and '.join(missing)} not installed",
            "run ./packaging/run demo, or pip install 'inflight-inspector[demo]'",
        )
    if args.port:
        _refuse_taken(args.port)
    out = args.out or record.default_out(NAME)
    if not args.headless:
        return record.open_window([NAME, *record.recording_argv(args, out), *given])
    from probes.recorder import Plan
    from probes.recorder import record as run_recorded

    command = [sys.executable, "-I", "-m", "probes.workloads.engine", *given]
    command += ["--control"] if args.control else []
    # A workload of the user outlives its recorder; this one is of no use to anybody then.
    command += ["--end-with", str(os.getpid())]
    # On a processor its devices are stages, with numbers that GPUs of this machine have as well.
    outcome = run_recorded(Plan(command, Path(out), args.seconds, args.control, _NICE, args.device == "cuda"))
    if outcome.failure is not None:
        raise outcome.failure
    if outcome.exit_code in _SAID_WHY and outcome.last_iteration < 0:
        # It has said so itself, and there is nothing to look at.
        shutil.rmtree(outcome.path, ignore_errors=True)
        return outcome.exit_code
    if outcome.exit_code and not (outcome.was_stopped and outcome.exit_code in _STOPPED):
        why = f"it ended with code {outcome.exit_code}"
        raise InspectorError(
            "the built-in engine failed", why, f"see its messages above; what was recorded opens: {out}"
        )
    common.print_text(_summary(out, outcome.lost))
    return 0


def _refuse_taken(port: int) -> None:
    """Raise Usage when the engine could not listen there, before anything is started or made."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError as error:
            why = error.strerror or str(error)
            raise Usage(f"cannot listen at --port {port}", why, "choose another one, or 0 for any") from None


def _summary(out: str, lost: int) -> str:
    import inspector

    trace = inspector.open(out)
    iterations, requests = trace["iterations"], trace["requests"]
    tokens = int(iterations.get("emitted").clip(0).sum())
    shown = shlex.quote(out)
    if not len(iterations):
        return f"{out}: the engine was ended before its first iteration; it loads for some seconds: raise --seconds"
    return (
        f"{out}: {len(iterations):,} iterations, {len(requests):,} requests, {tokens:,} tokens given out, "
        f"{lost:,} records lost\n"
        f"Next: inflight {shown} (window), inflight summary {shown}, inflight gaps {shown}"
    )
