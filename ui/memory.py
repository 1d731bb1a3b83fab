"""Memory that is let go goes back to the system at once, not into a reserve of the C library."""

from __future__ import annotations

import ctypes
import sys

# Numbers of glibc's malloc.h.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_LARGE_BYTES = 128 << 10
_ARENAS = 2


def give_back_early() -> None:
    """From now on. A run is worked out again and again in growing arrays, which would leave ever larger holes.

    Large pieces are then mapped each on its own, whatever was freed before, which costs page faults. Without glibc
    nothing is done.
    """
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS)
