"""The recorder as a child of the window: started, told things, listened to, stopped, or left alone.

Its output goes to a file without a name, so that it never waits for the window and outlives it where that is wanted.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from ui.run.launch import Launch
from ui.run.lines import Lines

NICE = 2
"""Lower priority than the window; what it runs is lower still."""
_TICK_MS = 100
_MOST_BYTES = 1 << 18
_MOST_WAITING = 1 << 16


class State(Enum):
    """Where a run stands."""

    NONE = "nothing runs"
    STARTING = "starting"
    RUNNING = "recording"
    PAUSED = "workload paused"
    STOPPING = "stopping"
    ENDED = "ended"
    FAILED = "ended with an error"


ALIVE = frozenset((State.STARTING, State.RUNNING, State.PAUSED, State.STOPPING))


class Child(QObject):
    """One run at a time. `changed` when its state does, `ticked` about ten times a second while it lives, `written`
    with new lines of output, `recording` once when there is a folder that can be followed, `told` with what was
    passed on.

    `code` is its exit code, negative for a signal; `trouble` says in one line why it could not be started.
    """

    changed = Signal()
    ticked = Signal()
    written = Signal(list)
    recording = Signal(str)
    told = Signal(dict)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.launch: Launch | None = None
        self.state = State.NONE
        self.code: int | None = None
        self.trouble = ""
        self.lines = Lines()
        self._process: subprocess.Popen[bytes] | None = None
        self._output = -1
        self._read = 0
        self._waiting = b""
        self._began = self._ended = 0.0
        self._followed = False
        self._timer = QTimer(self)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self._tick)

    @property
    def is_alive(self) -> bool:
        """Whether there is a process."""
        return self.state in ALIVE

    @property
    def elapsed_ns(self) -> int:
        """How long it has run, or ran."""
        if not self._began:
            return 0
        return round(((time.monotonic() if self.is_alive else self._ended) - self._began) * 1e9)

    def start(self, launch: Launch) -> None:
        """Start it; what is still running from before is left alone."""
        self.leave()
        self.launch, self.code, self.trouble = launch, None, ""
        self.lines = Lines()
        self._read, self._waiting, self._followed = 0, b"", False
        self._began = self._ended = time.monotonic()
        self._output, path = tempfile.mkstemp(prefix="inflight-")
        os.unlink(path)
        try:
            self._process = subprocess.Popen(
                launch.argv,
                cwd=launch.directory,
                env={**os.environ, **dict(launch.environment)},
                stdin=subprocess.PIPE if launch.takes_lines else subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                # A Ctrl+C in the terminal is the window's to answer.
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self.trouble = f"{launch.argv[0]} cannot be started: {getattr(error, 'strerror', None) or error}"
            self._set(State.FAILED)
            return
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)
        if self._process.stdin is not None:
            os.set_blocking(self._process.stdin.fileno(), False)
        self._timer.start()
        self._set(State.STARTING)

    def tell(self, message: Mapping[str, Any]) -> bool:
        """Send one line of control; False when nobody listens or too much is waiting."""
        stdin = self._process.stdin if self._process is not None else None
        if stdin is None or stdin.closed or not self.is_alive:
            return False
        line = json.dumps(message).encode() + b"\n"
        if len(self._waiting) + len(line) > _MOST_WAITING:
            return False
        self._waiting += line
        passed = self._pass_on()
        if passed:
            self.told.emit(dict(message))
        return passed

    def pause(self, on: bool) -> None:
        """Let the workload stand still, or go on. The recording goes on."""
        if self.state in (State.RUNNING, State.PAUSED) and self.tell({"pause": on}):
            self._set(State.PAUSED if on else State.RUNNING)

    def stop(self) -> None:
        """End the workload and the recording politely; once more, firmly."""
        if not self.is_alive or self._process is None:
            return
        if self.state is State.STOPPING:
            self._process.send_signal(signal.SIGTERM)
            return
        # The engine understands a word; a command that is told nothing would only be waited for.
        if not (self.launch is not None and self.launch.kind == "demo" and self.tell({"stop": True})):
            self._process.send_signal(signal.SIGINT)
        self._set(State.STOPPING)

    def leave(self) -> None:
        """Have nothing more to do with it; one that runs goes on without the window."""
        self._timer.stop()
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                with suppress(OSError):
                    process.stdin.close()
            # It is no child to wait for any more: the system takes care of it when the window has gone.
            process.returncode = process.returncode if process.returncode is not None else 0
        if self._output >= 0:
            os.close(self._output)
            self._output = -1
        if self.is_alive:
            self.state = State.NONE

    def _set(self, state: State) -> None:
        if state is not self.state:
            self.state = state
            self.changed.emit()

    def _tick(self) -> None:
        process, launch = self._process, self.launch
        if process is None or launch is None:
            return
        code = process.poll()
        whole = self._listen()
        if not self._followed and (launch.folder / "recording.json").is_file():
            self._followed = True
            self.recording.emit(str(launch.folder))
            if self.state is State.STARTING:
                self._set(State.RUNNING)
        if self._waiting:
            self._pass_on()
        if code is not None and whole:
            self._end(code)
        else:
            self.ticked.emit()

    def _end(self, code: int) -> None:
        self.code, self._ended = code, time.monotonic()
        if rest := self.lines.finish():
            self.written.emit(rest)
        was_stopping = self.state is State.STOPPING
        fine = code == 0 or (was_stopping and code in (130, -signal.SIGINT, -signal.SIGTERM))
        self._timer.stop()
        self._set(State.ENDED if fine else State.FAILED)
        self.leave()

    def _listen(self) -> bool:
        """Take new output; whether that was all of it."""
        if self._output < 0:
            return True
        # Its place in the file is the child's to move.
        data = os.pread(self._output, _MOST_BYTES, self._read)
        self._read += len(data)
        if data and (lines := self.lines.feed(data)):
            self.written.emit(lines)
        return len(data) < _MOST_BYTES

    def _pass_on(self) -> bool:
        stdin = self._process.stdin if self._process is not None else None
        if stdin is None:
            self._waiting = b""
            return False
        try:
            self._waiting = self._waiting[os.write(stdin.fileno(), self._waiting) :]
        except BlockingIOError:
            return True
        except OSError:  # it has closed its input
            self._waiting = b""
            return False
        return True
