"""Standard output and error of a program that goes on when nobody takes what it says any more."""

from __future__ import annotations

import io
import os
import select
import sys
from contextlib import suppress
from typing import TextIO

_PIPE_BYTES = 4096
"""A pipe that can be written to takes as many at once."""


class Unraising(io.TextIOBase):
    """Text to the file descriptor `file`, at once; what it does not take is dropped.

    What `encoding` lacks is written as an escape.
    """

    def __init__(self, file: int, encoding: str) -> None:
        self._file, self._encoding = file, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Of the bytes."""
        return self._encoding

    def fileno(self) -> int:
        """The file descriptor."""
        return self._file

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return os.isatty(self._file)

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Write; the number of characters, taken or not."""
        data = text.encode(self._encoding, "backslashreplace")
        with suppress(OSError):
            while data:
                data = data[os.write(self._file, data) :]
        return len(text)


def prepare() -> None:
    """Where an output is closed, write to nowhere; what a terminal's character set lacks is written as an escape.

    What is said on standard error never changes how a command ends: a full disk behind it, a reader that is gone.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            if stream is sys.__stderr__:
                sys.stderr = Unraising(stream.fileno(), stream.encoding)


def takes(stream: TextIO) -> bool:
    """Whether a short line can be written to it without waiting for who reads it."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        return bool(poll.poll(0))
    except (OSError, ValueError):
        return True


def put(stream: TextIO, line: str) -> None:
    """Write a line and have it out, or drop it where it would have to wait, or cannot be written. Raises nothing."""
    kept = line.encode("utf-8", "backslashreplace")[: _PIPE_BYTES - 1].decode("utf-8", "ignore")
    with suppress(OSError):
        if takes(stream):
            stream.write(kept + "\n")
            stream.flush()
