"""A process that is prepared and records nothing: it tells of itself in a folder, and begins when it is asked to.

    <pid>.ready    {"pid": …, "started": …}: it can be attached to; `started` is when, as the system counts it
    <pid>.attach   {"run": FOLDER, "recorder": PID, "graphs": "graph"}: record into FOLDER, for as long as this stands
                   here and that process lives

Until then a thread looks for that file twice a second. Everything in the folder is this user's alone.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import logging
import os
import stat
import threading
from types import ModuleType
from typing import Any

from .producer import ENVIRONMENT

STANDBY = "TLLM_INSPECTOR_STANDBY"
"""Names the folder in the environment of a prepared workload."""
READY, ATTACH = ".ready", ".attach"
GRAPHS = "TLLM_INSPECTOR_GRAPHS"
_EVERY_S = 0.5
_MOST_BYTES = 1 << 14
logger = logging.getLogger(__name__)


class Standby:
    """This process, waiting in `folder`. Raises OSError where the folder is not this user's alone."""

    def __init__(self, folder: str) -> None:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise OSError(f"{folder} is no folder of this user alone")
        self._folder = folder
        self._modules: dict[str, ModuleType] = {}
        self._on: list[Any] = []
        self._lock = threading.Lock()
        self._begin()
        os.register_at_fork(after_in_child=self._begin)
        atexit.register(self._end)

    def keep(self, probe: str, module: ModuleType) -> None:
        """The module that `probe` is for has come."""
        with self._lock:
            self._modules[probe] = module
            if self._on:
                self._let_in(probe)

    def look(self) -> None:
        """Begin or end, as the folder says."""
        wanted = self._wanted()
        with self._lock:
            if wanted and not self._on:
                os.environ[ENVIRONMENT], os.environ[GRAPHS] = wanted["run"], wanted["graphs"]
                self._on = [wanted]
                for probe in self._modules:
                    self._let_in(probe)
            elif self._on and (not wanted or wanted["run"] != self._on[0]["run"]):
                for probe in self._on[1:]:
                    with contextlib.suppress(Exception):
                        probe.detach()
                self._on = []
                os.environ.pop(ENVIRONMENT, None)

    def _let_in(self, name: str) -> None:
        from .watch import tell

        try:
            probe: Any = importlib.import_module(f"{__package__}.{name}")
            self._on.append(probe)
            probe.attach(self._modules[name], late=True)
        except Exception as error:
            logger.debug("probe %s stays off", name, exc_info=True)
            tell(name, error)

    def _begin(self) -> None:
        """Tell of this process, and wait; in the child of a fork again, which has neither file nor thread."""
        self._lock = threading.Lock()
        self._on = []
        # RuntimeError: no more threads, or a fork while Python ends.
        with contextlib.suppress(OSError, RuntimeError):
            self._write(READY, {"pid": os.getpid(), "started": started(os.getpid())})
            threading.Thread(target=self._wait, name="inflight standby", daemon=True).start()

    def _end(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path(READY))

    def _wait(self) -> None:
        never = threading.Event()
        while True:
            try:
                self.look()
            except Exception:
                logger.debug("standby", exc_info=True)
            never.wait(_EVERY_S)

    def _wanted(self) -> dict[str, str]:
        """What the attach file asks for; {} without one, or when who wrote it is gone."""
        try:
            file = os.open(self._path(ATTACH), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return {}
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
                return {}
            said = json.loads(os.read(file, _MOST_BYTES))
            run, recorder, graphs = said["run"], said["recorder"], said["graphs"]
            if not isinstance(run, str) or graphs not in ("graph", "node") or not is_alive(int(recorder)):
                return {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return {}
        finally:
            os.close(file)
        return {"run": run, "graphs": graphs}

    def _write(self, suffix: str, said: dict[str, object]) -> None:
        path = self._path(suffix)
        unfinished = f"{path}.{os.getpid()}"
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, json.dumps(said).encode())
        finally:
            os.close(file)
        os.replace(unfinished, path)

    def _path(self, suffix: str) -> str:
        return os.path.join(self._folder, f"{os.getpid()}{suffix}")


def started(pid: int) -> int:
    """When a process was started, in ticks since the system was; two processes of one number differ. Raises OSError."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The name in parentheses may hold anything.
        return int(file.read(4096).rpartition(b")")[2].split()[19])


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_standby: list[Standby] = []


def keep(probe: str, module: ModuleType) -> None:
    """Wait with that probe, where the environment says so. Raises OSError."""
    folder = os.environ.get(STANDBY)
    if folder:
        if not _standby:
            _standby.append(Standby(folder))
        _standby[0].keep(probe, module)
