"""The native kernel tap (tap.c): shipped, or built once into the cache; loaded here or by the CUDA driver itself.

It needs a C compiler and no CUDA headers. Whoever launches a workload builds it beforehand and names it in
CUDA_INJECTION64_PATH, which reaches every CUDA process of the tree; a probe inside a process loads it with `start`.
It has been tried against a stand-in for CUPTI, and against a real one without a driver (which refuses); never on a GPU.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import NamedTuple

from . import building
from .producer import ENVIRONMENT, KERNEL_CAPACITY

INJECTION = "CUDA_INJECTION64_PATH"
_NAMES = ("tap.c", "ring.h", "tap_cupti.h", "tap_names.h", "tap_rows.h", "tap_watch.h")
SOURCES = tuple(Path(__file__).with_name(name) for name in _NAMES)
_ERRORS = {
    -1: "there is no CUPTI in this process",
    -2: "its CUPTI is older than 12.0",
    -3: "the ring cannot be made",
    -4: "no thread could be started",
    -5: "it runs already",
    -6: "its CUPTI is older than 12.6, which may end a process whose CUDA graphs were captured before records begin: "
    "start it with inflight record",
    2: "CUPTI says that the device is not valid",
    15: "CUPTI is not initialised: its version may be newer than the driver allows",
    33: "CUPTI is not allowed on this virtual GPU",
    35: "CUPTI lacks the permission",
    39: "another profiler has subscribed to CUPTI",
    40: "CUPTI is not allowed on this virtual GPU without its host's permission",
    41: "CUPTI is not allowed in confidential computing",
    43: "CUPTI does not support this MIG device",
    999: "CUPTI finds no CUDA driver",
    45: "CUPTI is not supported under WSL here",
}


class Counts(NamedTuple):
    """What the tap counted: rows given, rows lost, its CPU time in ns, records without a time, requests in vain."""

    records: int
    lost: int
    cost_ns: int
    without_time: int
    unserved: int


def build(folder: Path | None = None) -> Path | str:
    """The library, compiled where it is neither shipped nor in the cache yet; a sentence when there is none."""
    return building.build(SOURCES, folder)


class Tap:
    """The library in this process. Raises OSError when it cannot be loaded."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.tap_start.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64]
        self._library.tap_count.restype = ctypes.c_int64

    def start(
        self, node_level: bool = False, cupti: str = "", capacity: int = KERNEL_CAPACITY, late: bool = False
    ) -> str:
        """Record into the recording that the environment names; '' or why not.

        `node_level`: every kernel of graphs. `late`: the process may have launched work before.
        """
        folder = os.environ.get(ENVIRONMENT)
        if not folder:
            return "nobody records"
        path = os.path.join(folder, f"kernels-{os.getpid()}.ring")
        how = int(node_level) + 2 * int(late)
        code = self._library.tap_start(os.fsencode(cupti) or None, os.fsencode(path), how, capacity)
        return _ERRORS.get(code, f"CUPTI refused with error {code}") if code else ""

    def pause(self) -> None:
        """Leave CUPTI to torch.profiler."""
        self._library.tap_pause()

    def resume(self) -> str:
        """Come back after torch.profiler; '' or why not."""
        code = self._library.tap_resume()
        return _ERRORS.get(code, f"CUPTI refused with error {code}") if code else ""

    def level(self, node_level: bool) -> str:
        """Record every kernel of CUDA graphs, or graphs as a whole; '' or why not."""
        code = self._library.tap_level(int(node_level))
        return _ERRORS.get(code, f"CUPTI refused with error {code}") if code else ""

    def stop(self) -> None:
        """End; what CUPTI still holds is written."""
        self._library.tap_stop()

    def counts(self) -> Counts:
        """What it counted so far."""
        return Counts(*(int(self._library.tap_count(which)) for which in range(5)))
