"""Room in the middle of a file, given back to the disk."""

from __future__ import annotations

import ctypes

_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of fallocate(2)


def punch(file: int, at: int, size: int) -> bool:
    """Give back `size` bytes from `at` on, which read as zeros then; False where the file system cannot.

    The file keeps its length: to cut it would end a process that still has it in its memory and writes.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if call is None:
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return bool(call(file, _PUNCH_HOLE | _KEEP_SIZE, at, size) == 0)
