"""What is kept of how a trace was looked at, as JSON values: under which name, and what can be read of it again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inspector.trace.selection import Window


@dataclass(frozen=True)
class Mark:
    """A marked instant (`start` == `end`) or span, ns. Only `kept` ones come back with the trace."""

    start: int
    end: int
    label: str = ""
    kept: bool = True


def fingerprint(paths: Sequence[str]) -> str:
    """Names a trace by its files, so that its arrangement is found again; 16 hexadecimal digits."""
    resolved = "\0".join(str(Path(path).resolve()) for path in paths)
    return hashlib.blake2b(resolved.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def kept_window(kept: object) -> Window | None:
    """A span of time; None for what is none."""
    if isinstance(kept, list) and len(kept) == 2 and all(type(time) is int for time in kept):
        return Window(*kept)
    return None


def kept_marks(kept: object) -> list[Mark]:
    """Those that can be read."""
    if not isinstance(kept, list):
        return []
    return [
        Mark(*each)
        for each in kept
        if isinstance(each, list) and len(each) == 3 and type(each[0]) is type(each[1]) is int and type(each[2]) is str
    ]
