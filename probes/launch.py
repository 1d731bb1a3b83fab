"""The workload as a child of the recorder: how it starts, how it is told things, and how it is brought to an end.

It runs in a session of its own, so that a Ctrl+C in the terminal reaches the recorder alone, which passes it on; and it
holds nothing of the recorder but its input in control mode, so that it goes on when the recorder dies. A session of its
own has no terminal that it could open as /dev/tty; what it was given as input and output may be one all the same.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from inspector.errors import Missing

_STAGES: tuple[tuple[signal.Signals, float], ...] = (
    (signal.SIGINT, 10.0),
    (signal.SIGTERM, 5.0),
    (signal.SIGKILL, math.inf),
)
"""How it is asked to end, and how many seconds it is given each time."""
_PATIENCE_AFTER_WORD_S = 10.0
_MOST_WAITING = 1 << 16


class Workload:
    """A command that runs in `environment`; `nice` is added to its priority number. Raises Missing.

    With `control` its input is a pipe that `tell` writes to, with `output` what it prints goes into that new file; else
    both are those of this process.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        control: bool = False,
        output: Path | None = None,
        nice: int = 0,
    ) -> None:
        self.command = list(command)
        self.code: int | None = None
        """Its exit code once it has ended, negative for a signal."""
        self._stage = -1
        self._until = math.inf
        self._waiting = b""
        printed = -1 if output is None else os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            self._child = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE if control else None,
                stdout=None if output is None else printed,
                stderr=None if output is None else printed,
                env=environment,
                # Files that the recorder was given are the workload's (`3>log`, `<(command)`); its own are not passed.
                close_fds=False,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise Missing(f"cannot run {command[0]}", why, "check the command after --") from error
        finally:
            if printed >= 0:
                os.close(printed)
        if self._child.stdin is not None:
            os.set_blocking(self._child.stdin.fileno(), False)
        if nice:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._child.pid, nice)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._child.pid

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._until < math.inf or self._stage >= 0

    def has_ended(self) -> bool:
        """Whether it has ended; when it was asked to, whether all of its process group has."""
        if self.code is None:
            self.code = self._child.poll()
        if self.code is None:
            return False
        # Once it was killed nothing is waited for: where nobody reaps them, dead processes stay in the group.
        return self._stage in (-1, len(_STAGES) - 1) or not self.send(0)

    def send(self, number: int) -> bool:
        """Send a signal to its process group; whether there is one."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def tell(self, line: bytes, now: float) -> None:
        """Pass on a line of control: a JSON object; {"stop": true} begins the end. `now` in seconds, any clock.

        Other lines are left out. What the workload does not read is kept up to 64 kB.
        """
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(said, dict):
            return
        if len(self._waiting) + len(line) < _MOST_WAITING:
            self._waiting += line.rstrip(b"\n") + b"\n"
        self._pass_on()
        if said.get("stop") is True and not self.is_stopping:
            self._until = now + _PATIENCE_AFTER_WORD_S

    def stop(self, now: float, first: signal.Signals = signal.SIGINT) -> None:
        """Ask it to end, beginning with signal `first`; asked again, more firmly."""
        # A signal that is none of the stages stands for the mildest.
        wanted = next((stage for stage, (number, _) in enumerate(_STAGES) if number == first), 0)
        self._stage = min(max(self._stage + 1, wanted), len(_STAGES) - 1)
        number, patience = _STAGES[self._stage]
        self._until = now + patience
        number = first if self._stage == wanted else number
        self.send(number)

    def tick(self, now: float) -> None:
        """Go on with what was begun: more firmly when patience is over, and lines that were not read yet."""
        if now >= self._until:
            self.stop(now)
        if self._waiting:
            self._pass_on()

    def close(self) -> None:
        """Close its input."""
        if self._child.stdin is not None:
            with suppress(OSError):
                self._child.stdin.close()

    def _pass_on(self) -> None:
        if self._child.stdin is None:
            self._waiting = b""
            return
        try:
            self._waiting = self._waiting[os.write(self._child.stdin.fileno(), self._waiting) :]
        except BlockingIOError:
            return
        except OSError:  # it has closed its input
            self._waiting = b""
