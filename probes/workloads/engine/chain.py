"""Processes in a row: messages go in at the first, each hands on to the next, replies come out of the last.

```
 Chain.send ->|pipe|-> link 0 ->|pipe|-> link 1 -> ... ->|pipe|-> Chain.receive
```
A link ends when the pipe before it does, so that the end of any process, this one's too, runs through the whole row.
"""

from __future__ import annotations

import fcntl
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from inspector.errors import InspectorError

_PATIENCE = 5.0
"""Seconds in which links end by themselves before they are killed."""
_PIPE_BYTES = 1 << 20
_END = object()


class LinkEnded(InspectorError):
    """A process of the row is gone."""

    exit_code = 1


class Chain:
    """`count` processes, called `what` in messages, that run `command` NUMBER INLET OUTLET, which calls `serve`.

    Raises OSError when one does not start. Ctrl+C reaches this process only, whose end ends the row.
    `send` and `receive` may be called by different threads, each by one at a time.
    """

    def __init__(self, command: Sequence[str], count: int, what: str) -> None:
        self._what = what
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        inlet, first = _pipe()
        self._out = Connection(first, readable=False)
        with ExitStack() as undo:
            undo.callback(self.close, 0.0)
            # A new process inherits the mask; this one gets the signals when all are there and known.
            with _without_signals():
                for number in range(count):
                    following, outlet = _pipe()
                    argv = [*command, str(number), str(inlet), str(outlet)]
                    try:
                        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=(inlet, outlet))
                    except OSError:
                        os.close(following)
                        raise
                    finally:
                        os.close(inlet)
                        os.close(outlet)
                    self._processes.append(process)
                    inlet = following
                self._in = Connection(inlet, writable=False)
                # Replies are taken at once: links that all wait to write would wait for ever.
                self._reader = threading.Thread(target=self._read, name="replies", daemon=True)
                self._reader.start()
            undo.pop_all()

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the links, first to last."""
        return tuple(process.pid for process in self._processes)

    def send(self, message: object) -> None:
        """Hand `message` to the first link. Raises LinkEnded when a link is gone."""
        try:
            self._out.send(message)
        except OSError:
            raise self._ended() from None

    def receive(self) -> Any:
        """Wait for the next reply of the last link. Raises LinkEnded when a link is gone."""
        reply = self._replies.get()
        if reply is _END:
            self._replies.put(_END)
            raise self._ended()
        return reply

    def close(self, patience: float | None = None) -> None:
        """End all links: what was sent is still worked off within `patience` seconds. May be called again."""
        self._out.close()
        patience = _PATIENCE if patience is None else patience
        patient_until = time.monotonic() + patience
        if not patience:
            for process in self._processes:
                process.kill()
        for process in self._processes:
            try:
                process.wait(max(0.0, patient_until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        # It ends when the last of them has. One that still ran at Python's end would abort the process.
        if self._reader is not None:
            self._reader.join(_PATIENCE)

    def _read(self) -> None:
        try:
            while True:
                self._replies.put(self._in.recv())
        except (EOFError, OSError):
            self._replies.put(_END)
            self._in.close()

    def _ended(self) -> LinkEnded:
        self.close()
        for number, process in enumerate(self._processes):
            code = process.returncode
            if code:
                why = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
                return LinkEnded(f"{self._what} {number} ended", why)
        return LinkEnded(f"the {self._what}s were closed")


def _pipe() -> tuple[int, int]:
    """A pipe that a message goes into whole, as far as the system lets it: else its sender waits for the receiver."""
    ends = os.pipe()
    with suppress(OSError):
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return ends


@contextmanager
def _without_signals() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve(handle: Callable[[Any], Any], inlet: int, outlet: int, sent: Callable[[], object] = lambda: None) -> None:
    """Be a link: `handle` each message that comes, hand on what it returns, until the row ends on either side.

    `sent` is called each time that it has been handed on. `inlet` and `outlet` are file descriptors.
    """
    with Connection(inlet, writable=False) as before, Connection(outlet, readable=False) as after:
        while True:
            try:
                message = before.recv()
            except (EOFError, OSError):
                return
            passed_on = handle(message)
            try:
                after.send(passed_on)
            except OSError:
                return
            sent()
