"""What is done as soon as a workload has torch: the kernel tap, and its way around torch.profiler.

The tap and torch.profiler are both clients of CUPTI, of which the last one to register gets all records: ours stands
aside while torch's runs, and the hole is told. Nothing here imports torch; it is handed over when it is there. Tried
with a CPU build of torch and a stand-in for CUPTI; not on a GPU.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from .tap import INJECTION, Tap

TAP = "TLLM_INSPECTOR_TAP"
"""Names the library of the tap in the environment of a workload, where it could be built."""
GRAPHS = "TLLM_INSPECTOR_GRAPHS"
"""'node' for each kernel of CUDA graphs; else a graph is one record."""
CUPTI = "TLLM_INSPECTOR_CUPTI"
logger = logging.getLogger(__name__)
_taps: list[Tap] = []
_undo: list[tuple[Any, str, Any, Any]] = []
"""What was wrapped: its owner, its name, what was there, and what is there now."""


def attach(torch: ModuleType, late: bool = False) -> None:
    """Start the tap where the CUDA driver has not been told to, and stand aside for torch.profiler.

    `late`: what torch has launched so far was not recorded.
    """
    library = os.environ.get(TAP)
    if not library:
        return
    tap = Tap(Path(library))
    if os.environ.get(INJECTION) != library:
        why = tap.start(os.environ.get(GRAPHS) == "node", os.environ.get(CUPTI, ""), late=late)
        if why:
            raise RuntimeError(why)
    _taps.append(tap)
    _stand_aside(tap)


def _stand_aside(tap: Tap) -> None:
    """Pause the tap while a torch profiler is on. Its methods of old and of now are wrapped where they are there."""
    profile = getattr(sys.modules.get("torch.autograd.profiler"), "profile", None)
    for name, before, after in (
        ("_prepare_trace", tap.pause, None),
        ("__enter__", tap.pause, None),
        ("__exit__", None, tap.resume),
    ):
        method = getattr(profile, name, None)
        if method is not None:
            wrapped = _wrapped(method, before, after)
            setattr(profile, name, wrapped)
            _undo.append((profile, name, method, wrapped))


def detach() -> None:
    """End the tap, and leave torch as it was found."""
    while _undo:
        owner, name, before, now = _undo.pop()
        # Whatever somebody else has put around ours keeps it.
        if getattr(owner, name, None) is now:
            setattr(owner, name, before)
    while _taps:
        _taps.pop().stop()


def _wrapped(
    method: Callable[..., Any], before: Callable[[], object] | None, after: Callable[[], object] | None
) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            before()
        try:
            return method(*args, **kwargs)
        finally:
            if after is not None:
                after()

    call.__name__ = getattr(method, "__name__", "call")
    call.__doc__ = method.__doc__
    return call
