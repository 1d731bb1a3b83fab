"""Inflight Inspector: what an LLM inference workload does on its GPUs, and why a GPU is idle.

`open` reads any trace that the program knows. Importing this package is cheap: nothing heavy is loaded
before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    from inspector.trace.trace import Trace

__all__ = ["__version__", "open"]
__version__ = "0.1.0"


def open(*paths: str | os.PathLike[str]) -> Trace:
    """Read one trace, or several files of one job (ranks) as one trace.

    Raises `inspector.errors.Unreadable` when a file is no trace, `inspector.errors.Missing` when a program is needed
    that is not on this machine.
    """
    from inspector.readers import open_trace

    return open_trace(*paths)
