"""What a reader is, and how it says how far it has got.

A reader is a module with `NAME`, `SUFFIXES`, `sniff` and `read`, and one line in `inspector.readers.READERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from inspector.trace.trace import Trace

HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Progress:
    """How far the reading of one file has got: `done` of `total` bytes (0 unknown), `rows` read so far."""

    stage: str
    done: int = 0
    total: int = 0
    rows: int = 0


Report = Callable[[Progress], None]
"""Called now and then from the reading thread; raises `inspector.errors.Cancelled` to stop it."""


def silent(progress: Progress) -> None:
    """A Report that goes nowhere."""


class Reader(Protocol):
    """The functions of a reader module."""

    NAME: str
    """The trace kind of the contract, e.g. 'nsys-sqlite'."""
    SUFFIXES: tuple[str, ...]
    """For the open dialog only, e.g. ('.sqlite',)."""

    def sniff(self, head: bytes, path: Path) -> float:
        """Certainty 0..1 that this reader can read `path`, whose first HEAD_BYTES are `head` (empty for a folder)."""
        ...

    def read(self, path: Path, report: Report) -> Trace:
        """The whole file; raises Unreadable, Missing or Cancelled."""
        ...
