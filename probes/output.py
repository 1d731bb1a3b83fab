"""The output of a workload whose recorder has a window behind it.

It goes to a file, and from there to the recorder's own output. So neither a window that closes nor a recorder that is
killed takes away what the workload writes to.
"""

from __future__ import annotations

import os
from pathlib import Path

from probes.compaction import OUTPUT

_PIECE = 1 << 16


class Output:
    """What a workload has written into the folder of its recording, copied to the file descriptor `to`."""

    def __init__(self, folder: Path, to: int) -> None:
        self._file = os.open(folder / OUTPUT, os.O_RDONLY | os.O_CLOEXEC)
        self._to = to
        self._open = True
        os.set_blocking(to, False)

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

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)
