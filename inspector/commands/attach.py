"""Attach to a server that is running, and record what it tells over HTTP; or to a process that was prepared for it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.commands import common, record
from inspector.errors import Missing, Usage

if TYPE_CHECKING:
    from probes.recorder import Outcome as Recorded
    from probes.server_http.attach import Outcome
    from probes.server_http.finding import Found

NAME = "attach"
HELP = "attach to a running server over HTTP, record what it tells and watch it live"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "target",
        metavar="URL|PID",
        help="address of the server (http://HOST:PORT, unix:FILE), or number of its process",
    )
    record.add_recording(parser)
    trust = parser.add_argument_group(
        "to be let in", "a token for the server is taken from the environment, as INFLIGHT_TOKEN, or out of a file"
    )
    trust.add_argument("--token-file", metavar="FILE", help="a file that holds the token and nothing else")
    trust.add_argument("--ca", metavar="FILE", help="certificates in PEM format that are trusted, besides the system's")
    trust.add_argument("--insecure", action="store_true", help="trust any certificate, and so anybody in between")


def run(args: argparse.Namespace) -> int:
    """Record, with a window or without one; without one, until Ctrl+C where no --seconds is given."""
    from probes.server_http.access import access
    from probes.server_http.finding import find

    prepared = _prepared(args.target)
    if prepared is not None:
        return _record_prepared(prepared, args)
    trust = access(os.environ, args.token_file, args.ca, args.insecure)
    found = find(args.target, trust)
    address = found.address
    out = args.out or record.default_out(f"attach-{address.host}-{address.port}")
    _warn(found, bool(trust.token))
    if not args.headless:
        return record.open_window([NAME, str(address), *record.recording_argv(args, out), *_own_argv(args)])
    from probes.server_http.attach import Plan, attach

    plan = Plan(address, Path(out), trust, args.seconds, found.pid, found.settings, args.control)
    return _ended(out, attach(plan))


def _prepared(target: str) -> int | None:
    """The process that `target` names, where it was started prepared. Raises Usage when it is recorded already."""
    from inspector.trace import lock
    from probes.inprocess.producer import ENVIRONMENT
    from probes.server_http import processes
    from probes.server_http.address import process_number
    from probes.standby import prepared

    pid = process_number(target)
    if pid is None or sys.platform != "linux":
        return None
    folder = processes.environment(pid).get(ENVIRONMENT, "")
    if folder and lock.is_held(Path(folder)):
        raise Usage(f"process {pid} is being recorded already", f"into {folder}", f"inflight {folder} shows it live")
    with suppress(Missing):
        return pid if prepared(pid) else None
    return None  # There is no place where it could tell so; its HTTP port is as good as ever.


def _record_prepared(pid: int, args: argparse.Namespace) -> int:
    from probes.recorder import Plan, record_prepared

    out = args.out or record.default_out(f"attach-{pid}")
    if not args.headless:
        return record.open_window([NAME, str(pid), *record.recording_argv(args, out)])
    sys.stderr.write(f"inflight: process {pid} is prepared: it is recorded from within, its HTTP paths are not read\n")
    plan = Plan([NAME, str(pid)], Path(out), args.seconds, args.control)
    outcome = record_prepared(plan, pid)
    return _ended(out, outcome)


def _ended(out: str, outcome: Outcome | Recorded) -> int:
    if outcome.failure is not None:
        raise outcome.failure
    lost = f", {outcome.lost:,} lost" if outcome.lost else ""
    broken = getattr(outcome, "broken", 0)
    lost += f", answers that broke off: {broken:,}, and what else stood in them is lost" if broken else ""
    shown = shlex.quote(os.fspath(out))
    common.print_text(
        f"{out}: {outcome.seconds:.1f} s, {outcome.records:,} records{lost}\n"
        f"Next: inflight {shown} (window), inflight summary {shown}, inflight iterations {shown}"
    )
    return 0


def _warn(found: Found, with_token: bool) -> None:
    """Say what reading takes away, and from whom, before it does."""
    from inspector.report.text import plain
    from probes.server_http.attach import TAKES

    lines = [f"attaching to {found.address}: {TAKES}"]
    if found.others:
        lines.append(f"connected to it now: {', '.join(found.others)}; one that reads the same will miss records")
    if with_token and found.address.scheme == "http" and not found.address.is_here:
        lines.append("the token goes over the network as it is, for anybody to read: https would hide it")
    sys.stderr.write(plain("".join(f"inflight: {line}\n" for line in lines)))


def _own_argv(args: argparse.Namespace) -> list[str]:
    # The token itself stays in the environment, or in its file.
    words = [] if args.token_file is None else ["--token-file", os.path.abspath(args.token_file)]
    words += [] if args.ca is None else ["--ca", os.path.abspath(args.ca)]
    return [*words, "--insecure"] if args.insecure else words
