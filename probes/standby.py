"""Workloads that were started prepared: how they are started, found, and made to record and to stop again.

`inflight record --standby -- COMMAND` becomes the command, with the hook in its environment and nothing recorded. Then
`inflight attach PID` has it, and what it has started, record until it is stopped, as often as wanted.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir
from typing import NoReturn

from inspector.errors import Missing, Unreadable
from inspector.trace.ring import SUFFIX, Ring
from probes.arming import armed
from probes.inprocess import tap
from probes.inprocess.producer import ENVIRONMENT
from probes.inprocess.standby import ATTACH, READY, STANDBY, is_alive, started
from probes.saying import say

_MOST_BYTES = 1 << 14
_PATIENCE_S = 3.0
"""For prepared processes to close their rings once they were told to; they look twice a second."""
LATE = "attached while it ran: requests that were there already count as come when they were first seen"
UNPREPARED = (
    "nothing can be put into a process that runs already without stopping it under a debugger, which this program does "
    "not do: attach to its HTTP port, or start it with inflight record (or inflight record --standby to attach later)"
)
"""What cannot be done, and the next best."""


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where prepared processes of this user tell of themselves. Raises Missing when there can be no such folder."""
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    path = Path(runtime, "inflight-inspector") if runtime else Path(gettempdir(), f"inflight-inspector-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise Missing(f"cannot make {path}", error.strerror or str(error), "set XDG_RUNTIME_DIR") from error
    if path.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Missing(f"{path} is not this user's alone", "", f"remove it, or chmod 700 {path}")
    return path


def environment(before: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """`before` with what a prepared workload needs, and why it will have no kernel records, or ''. Raises Missing."""
    found, why = armed(Path(), before)
    # The tap comes by Python, when it is wanted: the driver would look for a recording at once.
    if found.get(tap.INJECTION) != before.get(tap.INJECTION):
        del found[tap.INJECTION]
    del found[ENVIRONMENT]
    found[STANDBY] = str(folder(before))
    return found, why


def become(command: Sequence[str]) -> NoReturn:
    """Be that command from here on, prepared. Raises Missing when it cannot be run."""
    found, why = environment(os.environ)
    said = f"prepared; to record it while it runs: inflight attach {os.getpid()}"
    say(f"{said} (without kernels: {why})" if why else said)
    try:
        os.execvpe(command[0], list(command), found)
    except OSError as error:
        why = error.strerror or str(error)
        raise Missing(f"cannot run {command[0]}", why, "check the command after --") from error


def prepared(pid: int, environment: Mapping[str, str] = os.environ) -> list[int]:
    """The prepared processes among `pid` and what it has started, in the order of their numbers. Raises Missing."""
    found = []
    for path in folder(environment).glob(f"*{READY}"):
        said = _said(path)
        each = said.get("pid")
        if not isinstance(each, int) or path.name != f"{each}{READY}":
            continue
        with suppress(OSError, ValueError, IndexError):
            if started(each) != said.get("started"):
                path.unlink()  # of a process that is gone
            elif pid in _line(each):
                found.append(each)
            continue
        with suppress(OSError):
            path.unlink()
    return sorted(found)


class Attached:
    """Prepared processes while they record into `run`: for the recorder what a workload of its own is.

    Nothing is ever sent to them, and they go on when it ends. Raises Missing.
    """

    is_stopping = False
    """Whether they were told to record no more."""

    def __init__(self, pid: int, run: Path, node_level: bool = False) -> None:
        self.pid = pid
        self.code: int | None = None
        self.pids: set[int] = set()
        self._run, self._graphs = run, "node" if node_level else "graph"
        self._folder = folder()
        self._until = 0.0
        found = prepared(pid)
        if not found:
            raise Missing(f"process {pid} is not prepared, nor is any that it has started", UNPREPARED, "")
        self._tell(found)

    def has_ended(self) -> bool:
        """Whether they are gone, or have had the time to close their rings."""
        if self.is_stopping:
            return time.monotonic() >= self._until or not any(map(self._writes, self.pids))
        return not is_alive(self.pid) and not any(map(is_alive, self.pids))

    def tick(self, now: float) -> None:
        """Have processes record that were started since."""
        if not self.is_stopping:
            self._tell([each for each in prepared(self.pid) if each not in self.pids])

    def tell(self, line: bytes, now: float) -> None:
        """A line of control: {"stop": true} ends it; others are not for such a workload."""
        with suppress(ValueError, RecursionError):
            said = json.loads(line)
            if isinstance(said, dict) and said.get("stop") is True:
                self.stop(now)

    def stop(self, now: float, first: signal.Signals = signal.SIGINT) -> None:
        """Have them record no more; asked again, wait no longer."""
        self._until = now + _PATIENCE_S if not self.is_stopping else now
        self.is_stopping = True
        self.close()

    def send(self, number: int) -> bool:
        """False: they are not ours to send signals to."""
        return False

    def close(self) -> None:
        """Take back what they were asked."""
        for pid in self.pids:
            with suppress(OSError):
                (self._folder / f"{pid}{ATTACH}").unlink()

    def _writes(self, pid: int) -> bool:
        """Whether a process may still write into one of its rings."""
        if not is_alive(pid):
            return False
        for path in self._run.glob(f"*-{pid}*{SUFFIX}"):
            try:
                ring = Ring(path)
            except Unreadable:
                return True  # It is being made.
            try:
                if ring.pid == pid and not ring.counts().closed:
                    return True
            except Unreadable:
                continue
            finally:
                ring.close()
        return False

    def _tell(self, pids: Sequence[int]) -> None:
        said = {"run": str(self._run), "recorder": os.getpid(), "graphs": self._graphs}
        for pid in pids:
            path = self._folder / f"{pid}{ATTACH}"
            other = _said(path).get("recorder")
            if isinstance(other, int) and other != os.getpid() and is_alive(other):
                self.close()
                raise Missing(f"process {pid} is being recorded already", f"by process {other}", "end that one first")
            unfinished = path.with_suffix(f".{os.getpid()}")
            try:
                unfinished.write_text(json.dumps(said), encoding="utf-8")
                unfinished.chmod(0o600)
                unfinished.replace(path)
            except OSError as error:
                raise Missing(f"cannot write {path}", error.strerror or str(error), "make room there") from error
            self.pids.add(pid)


def _said(path: Path) -> dict[str, object]:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        said = json.loads(os.read(file, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(file)
    return said if isinstance(said, dict) else {}


def _line(pid: int) -> set[int]:
    """A process, who started it, who started that, and so on."""
    found = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read(4096).rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            break
    return found
