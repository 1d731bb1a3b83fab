"""The output of a workload whose recorder has a window behind it.

It goes to a file, and from there to the recorder's own output. So neither a window that closes nor a recorder that is
killed takes away what the workload writes to.
"""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path

_PIECE = 1 << 16
_PATIENCE_S = 5.0


def can_break(to: int) -> bool:
    """Whether somebody has to be at the other end of a file descriptor for it to be written to."""
    try:
        mode = os.fstat(to).st_mode
    except OSError:
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class Output:
    """What a workload has written into the file `path`, copied to the file descriptor `to`."""

    def __init__(self, path: Path, to: int) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._to = to
        self._open = True
        try:
            os.set_blocking(to, False)
        except OSError:
            self._open = False

    def forward(self) -> None:
        """Copy what is new, as far as the other side takes it now. Raises nothing: who is gone need not hear it."""
        while self._open:
            at = os.lseek(self._file, 0, os.SEEK_CUR)
            piece = os.read(self._file, _PIECE)
            if not piece:
                return
            try:
                written = os.write(self._to, piece)
            except BlockingIOError:
                written = 0
            except OSError:
                self._open = False
                return
            if written < len(piece):
                os.lseek(self._file, at + written, os.SEEK_SET)
                return

    def finish(self) -> None:
        """Nothing more is written: copy the rest, as long as the other side goes on taking it."""
        while self._open:
            before = os.lseek(self._file, 0, os.SEEK_CUR)
            self.forward()
            if not self._open or os.lseek(self._file, 0, os.SEEK_CUR) == os.fstat(self._file).st_size:
                return
            _, ready, _ = select.select([], [self._to], [], _PATIENCE_S)
            if not ready and os.lseek(self._file, 0, os.SEEK_CUR) == before:
                return

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
