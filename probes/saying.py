"""What the recorder says for itself, beside the output of the workload."""

from __future__ import annotations

import sys
from contextlib import suppress

from inspector.report.text import plain


def say(text: str) -> None:
    """One line on standard error, if anyone still reads it. What it quotes from elsewhere neither steers a terminal nor
    looks like a line of its own.
    """
    with suppress(OSError):
        sys.stderr.write(f"inflight: {plain(' '.join(text.splitlines()))}\n")
        sys.stderr.flush()
