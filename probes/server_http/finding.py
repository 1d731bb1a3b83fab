"""Which server is meant: that of an address, or that of a process, whose listening port is found."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from inspector.errors import InspectorError, Missing, Unreadable, Usage
from probes.server_http import processes
from probes.server_http.access import Access
from probes.server_http.address import Address, address, process_number
from probes.server_http.client import Client, NoAnswerError
from probes.workloads import command_lines, extra_options

_BY_ADDRESS = "name its address instead (http://HOST:PORT), or start it with inflight record -- COMMAND"
_PATIENCE_S = 2.0
_AT_ONCE = 32
_IS_SERVER, _HAS_METRICS, _SPEAKS = 3, 2, 1
_FILES = ("--extra_llm_api_options", "--config")
_STAGES = ("--pp_size", "--pp")
_BACKENDS = ("--backend",)
_DEFAULTS = {"disable_overlap_scheduler": False, "pp_size": 1}


@dataclass(frozen=True)
class Found:
    """A server, its process (-1 not known), who else is connected to it, and its settings as far as its command line
    and files tell them, the strongest first.
    """

    address: Address
    pid: int = -1
    others: Sequence[str] = ()
    settings: Sequence[object] = ()


def find(target: str, access: Access) -> Found:
    """The server at an address or of a process. Raises Usage, Missing, Unreadable."""
    pid = process_number(target)
    if pid is not None:
        return _with_process(_address_of(pid, access), pid)
    found = address(target)
    if not found.is_here or sys.platform != "linux":
        return Found(found)
    return _with_process(found, processes.pid_at(found.port) if found.port else -1)


def _with_process(where: Address, pid: int) -> Found:
    others = processes.clients_at(where.port) if where.port and (pid < 0 or processes.shares_network(pid)) else []
    return Found(where, pid, others, settings_of(pid) if pid > 0 else ())


def settings_of(pid: int) -> list[object]:
    """What a process of trtllm-serve was told, by its options and the file that they name."""
    words = processes.command(pid)
    program = command_lines.program(words)
    if program is None or program.name != "serve":
        return []
    words = words[program.at : program.end]
    file, stages, backend = (command_lines.option(words, names) for names in (_FILES, _STAGES, _BACKENDS))
    found: list[object] = []
    if file is not None:
        try:
            found.append(extra_options.read((processes.folder(pid) or Path()) / file[1]))
        except InspectorError:
            return []  # What the options say may be overruled there.
    if stages is not None:
        found.append({"pp_size": stages[1]})
    if backend is None or backend[1] == "pytorch":
        found.append(_DEFAULTS)
    return found


def _address_of(pid: int, access: Access) -> Address:
    what = f"cannot attach to process {pid}"
    if sys.platform != "linux":
        raise Missing(f"process {pid} cannot be looked into", "that needs Linux", _BY_ADDRESS)
    try:
        listeners = processes.listeners_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        raise Usage(f"there is no process {pid}", "", "name another one, or the address of its server") from None
    except PermissionError:
        raise Missing(f"process {pid} cannot be looked into", "it is another user's", _BY_ADDRESS) from None
    if not listeners:
        why = "it listens at no port, and nothing can be put into a process that runs and was not prepared for it"
        do = "start it with inflight record -- COMMAND (or record --standby, to attach later), or name an address"
        raise Unreadable(what, why, do)
    ports = ", ".join(str(listener.port) for listener in listeners)
    if not processes.shares_network(pid):
        why = f"it listens at port {ports} of a network of its own, as in a container"
        raise Unreadable(what, why, "name the address by which it is reached from here, http://HOST:PORT")
    # To its other ports the token is not told. All at once: of ports for other things many say nothing at all.
    asking = replace(access, token="")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        kinds = list(pool.map(lambda listener: _kind(listener, asking), listeners))
    answering = [(kind.rank, kind.address) for kind in kinds if kind.rank]
    whys = dict.fromkeys(kind.why for kind in kinds if kind.why)
    best = max(answering, key=lambda each: each[0], default=None)
    # One that only speaks HTTP is taken when it is the only one: asked for more, it will say what it has.
    if best is None or (best[0] == _SPEAKS and len(answering) > 1):
        why = f"it listens at port {ports}, and none of them answers as a server that can be asked"
        why = f"{why} ({'; '.join(whys)})" if whys else why
        raise Unreadable(what, why, _BY_ADDRESS)
    return best[1]


class _Kind(NamedTuple):
    """How much of a server answers at a port, 0 for none that speaks HTTP, and why not where that can be mended."""

    rank: int
    address: Address
    why: str = ""


def _kind(listener: processes.Listener, access: Access) -> _Kind:
    """Ask, without taking any of its records."""
    until = time.monotonic() + _PATIENCE_S
    plain = _asked(Address("http", listener.host, listener.port, ""), access, until)
    # Who waits for a secure connection says at once that this is none.
    if plain.rank or time.monotonic() >= until - _PATIENCE_S / 2:
        return plain
    return _asked(replace(plain.address, scheme="https"), access, until)


def _asked(where: Address, access: Access, until: float) -> _Kind:
    client = Client(where, access)
    try:
        if client.ask("GET", "/version", until - time.monotonic()).status in (200, 401, 403):
            return _Kind(_IS_SERVER, where)
        # Asked for its head only: to read it may take records away.
        status = client.ask("HEAD", "/metrics", until - time.monotonic()).status
    except NoAnswerError as error:
        return _Kind(0, where, f"port {where.port}: {error}" if "certificate" in str(error) else "")
    finally:
        client.close()
    return _Kind(_HAS_METRICS if status in (200, 401, 403, 405) else _SPEAKS, where)
