"""Signals as things that come in, one after the other, to a loop that waits for them and for files."""

from __future__ import annotations

import os
import select
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
PASSED_ON = (
    *(signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGALRM, signal.SIGVTALRM),
    *(signal.SIGPROF, signal.SIGIO, signal.SIGPWR, *range(signal.SIGRTMIN, signal.SIGRTMAX + 1)),
)
"""Those that are the workload's business alone."""
_ALWAYS = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)
_ALL = (*_ALWAYS, signal.SIGHUP, signal.SIGXCPU, *PASSED_ON, signal.SIGTSTP)


class Signals:
    """What has come in and was not taken yet."""

    def __init__(self, wake: int) -> None:
        self._wake = wake
        self._come: deque[int] = deque()

    def take(self) -> list[int]:
        """Numbers of the signals that have come since the last call, in order."""
        come: list[int] = []
        while self._come:
            come.append(self._come.popleft())
        return come

    def wait(self, seconds: float, files: Sequence[int] = ()) -> list[int]:
        """Wait for a signal, for `files` to be readable, or for the time to pass; the readable files."""
        # Not select(), which knows the first 1,024 files of a process only.
        poll = select.poll()
        for file in (self._wake, *files):
            poll.register(file, select.POLLIN)
        ready = [file for file, _ in poll.poll(max(0.0, seconds) * 1000)]
        if self._wake in ready:
            ready.remove(self._wake)
            os.read(self._wake, 4096)
        return ready

    def _put(self, number: int, frame: object) -> None:
        self._come.append(number)


@contextmanager
def caught() -> Iterator[Signals]:
    """Catch the signals of a recorder until the block ends. Of the main thread only."""
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signals = Signals(wake)
    waker_before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    # Who started us with nohup means it, and what is ignored here is so in the workload as well. A shell that starts us
    # in the background has SIGINT ignored too, but who sends us one all the same means us to end.
    kept = [number for number in _ALL if number not in _ALWAYS and signal.getsignal(number) is signal.SIG_IGN]
    before = {number: signal.signal(number, signals._put) for number in _ALL if number not in kept}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(waker_before)
        os.close(wake)
        os.close(waker)
