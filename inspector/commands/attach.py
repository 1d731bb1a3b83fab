"""Attach to a server that is running, and record what it tells over HTTP."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.commands import common, record
from inspector.errors import Missing, Unreadable, Usage

if TYPE_CHECKING:
    from probes.server_http.client import Address

NAME = "attach"
HELP = "attach to a running server over HTTP, record what it tells and watch it live"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("target", metavar="URL|PID", help="address of the server, or the number of its process")
    record.add_recording(parser)


def run(args: argparse.Namespace) -> int:
    """Record, with a window or without one; without one, until Ctrl+C where no --seconds is given."""
    from probes.server_http import attach as attaching

    address, pid = _find(args.target)
    out = args.out or record.default_out(f"attach-{address.host}-{address.port}")
    sys.stderr.write(f"inflight: attaching to {address}: {attaching.TAKES}\n")
    if not args.headless:
        return record.open_window([NAME, str(address), *record.recording_argv(args, out)])
    outcome = attaching.attach(address, Path(out), args.seconds, pid)
    if outcome.failure is not None:
        raise outcome.failure
    lost = f", {outcome.lost:,} lost" if outcome.lost else ""
    shown = shlex.quote(os.fspath(out))
    common.print_text(
        f"{out}: {outcome.seconds:.1f} s, {outcome.records:,} records{lost}\n"
        f"Next: inflight {shown} (window), inflight summary {shown}, inflight iterations {shown}"
    )
    return 0


def _find(target: str) -> tuple[Address, int]:
    """The server at an address or of a process, and its process where that can be seen. Raises InspectorError."""
    from probes.server_http import processes
    from probes.server_http.client import address

    if not (target.isascii() and target.isdigit()):
        found = address(target)
        return found, processes.pid_at(found.port) if found.is_here and sys.platform == "linux" else -1
    pid = int(target)
    do = "name its address instead (http://HOST:PORT), or start it with inflight record -- COMMAND"
    if sys.platform != "linux":
        raise Missing(f"process {pid} cannot be looked into", "that needs Linux", do)
    try:
        ports = processes.ports_of(pid)
    except FileNotFoundError:
        raise Usage(f"there is no process {pid}", "", "name another one, or the address of its server") from None
    except PermissionError:
        raise Missing(f"process {pid} cannot be looked into", "it is another user's", do) from None
    if not ports:
        why = "it listens at no port, and this program puts nothing into a process that is running"
        raise Unreadable(f"cannot attach to process {pid}", why, do)
    return _answering(ports, pid), pid


def _answering(ports: list[int], pid: int) -> Address:
    from probes.server_http.client import Address, Client, NoAnswerError

    for port in ports:
        found = Address("http", "127.0.0.1", port, "")
        client = Client(found)
        try:
            client.ask("GET", "/version")
        except NoAnswerError:
            continue
        finally:
            client.close()
        return found
    listed = ", ".join(map(str, ports))
    raise Unreadable(f"cannot attach to process {pid}", f"no HTTP at its port {listed}", "name the server's address")
