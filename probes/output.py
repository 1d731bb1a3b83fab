"""The output of a workload whose recorder has a window behind it.

It goes to a file, and from there to the recorder's own output. So neither a window that closes nor a recorder that is
killed takes away what the workload writes to. The file keeps its beginning and its end, for as long as we live.
"""

from __future__ import annotations

import os
import select
import stat
from contextlib import suppress
from pathlib import Path

from inspector.trace.holes import punch

HEAD = 1 << 20
TAIL = 8 << 20
"""Bytes that stay at both ends; between them room is given back once there is as much again as the tail."""
_PIECE = 1 << 16
# At a time, so that a chatty workload does not keep us from everything else.
_MOST_PIECES = 64
_PAGE = 4096
_PATIENCE_S = 5.0


def can_break(to: int) -> bool:
    """Whether somebody has to be at the other end of a file descriptor for it to be written to."""
    try:
        mode = os.fstat(to).st_mode
    except OSError:
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class Output:
    """What a workload appends to the file `path`, copied to the file descriptor `to`."""

    def __init__(self, path: Path, to: int) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._to = to
        self._open = True
        self._at = 0
        self._kept_from = 0
        # Bytes that were given back before they were copied, and our words about such on their way.
        self._skipped = 0
        self._said = b""
        try:
            os.set_blocking(to, False)
        except OSError:
            self._open = False

    def forward(self) -> bool:
        """Copy what is new, as far as the other side takes it now; whether there may be more to copy at once.

        Raises nothing: who is gone need not hear it.
        """
        more = self._forward()
        with suppress(OSError):
            self._bound()
        return more

    def finish(self) -> None:
        """Copy what was written by now, as long as the other side goes on taking it."""
        end = os.fstat(self._file).st_size
        while self._open and (self._at < end or self._said):
            if not self._forward() and self._open and not _wait_writable(self._to, _PATIENCE_S):
                return

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _forward(self) -> bool:
        for _ in range(_MOST_PIECES):
            if self._skipped and not self._said:
                self._said = f"\n[{self._skipped:,} bytes of output were not read in time]\n".encode()
                self._skipped = 0
            piece = self._said or os.pread(self._file, _PIECE, self._at)
            if not self._open or not piece:
                return False
            try:
                written = os.write(self._to, piece)
            except BlockingIOError:
                written = 0
            except OSError:
                self._open = False
                return False
            if self._said:
                self._said = self._said[written:]
            else:
                self._at += written
            if written < len(piece):
                return False
        return True

    def _bound(self) -> None:
        """Give back the room between head and tail when that is much."""
        size = os.fstat(self._file).st_size
        begin, end = max(HEAD, self._kept_from), (size - TAIL) // _PAGE * _PAGE
        if end - begin < TAIL:
            return
        if punch(self._file, begin, end - begin):
            words = f"\n[{end - HEAD:,} bytes of output are not kept]\n".encode()
            os.pwrite(self._file, words, HEAD)
            self._kept_from = end
            self._skip(end)
        else:
            # What is written between these two is lost as well; where it matters, file systems can punch holes.
            self._skip(size)
            os.ftruncate(self._file, 0)
            self._kept_from = self._at = 0

    def _skip(self, end: int) -> None:
        self._skipped += max(0, end - self._at)
        self._at = max(end, self._at)


def _wait_writable(file: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLOUT)
    return bool(poll.poll(seconds * 1000))
