"""What the recorder says for itself, beside the output of the workload."""

from __future__ import annotations

import sys

from inspector.report.text import plain
from inspector.streams import put


def say(text: str) -> None:
    """One line on standard error, if anyone still reads it. What it quotes from elsewhere neither steers a terminal nor
    looks like a line of its own.
    """
    put(sys.stderr, f"inflight: {plain(' '.join(text.splitlines()))}")


def report(text: str) -> None:
    """The same on standard output, where the figures of a run go while it lasts."""
    put(sys.stdout, plain(" ".join(text.splitlines())))
