"""Columns that grow at their end, and snapshots of them that share memory and never change.

A buffer doubles when it is full. A large one lies in a file without a name, so that the system can take its pages back
when nobody looks at them: a window that watches for an hour must not fill the memory.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import platformdirs

from inspector.trace.table import Array

_FIRST_ROWS = 1024
# From this size on a buffer lies in a file.
_IN_MEMORY_BYTES = 256 << 10
# Pages are given back in steps of this size.
_GIVEN_BACK_BYTES = 1 << 20


class GrowingArray:
    """One column. `extended(length, values)` is a snapshot of the first `length` values with `values` behind them.

    Snapshots stay what they were: where another one has put other values at that place already, the column is copied.
    """

    def __init__(self, dtype: str | np.dtype[np.generic], width: int = 0) -> None:
        self._dtype = np.dtype(dtype)
        self._width = width
        self._filled = 0
        self._room: Array = self._shaped(np.empty(_FIRST_ROWS * max(width, 1), self._dtype))
        self._file = -1
        self._map: mmap.mmap | None = None
        self._given_back = 0
        self._lock = threading.Lock()

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def extended(self, length: int, values: Array) -> tuple[GrowingArray, Array]:
        """The snapshot, and the column that holds it: this one or a copy. `length` is at most that of some snapshot."""
        upto = length + len(values)
        with self._lock:
            held = min(self._filled, upto)
            if held > length and not _same(self._room[length:held], values[: held - length]):
                other = GrowingArray(self._dtype, self._width)
                return other.extended(0, np.concatenate((self._room[:length], values)))
            if upto > len(self._room):
                self._grow(upto)
            if upto > self._filled:
                self._room[self._filled : upto] = values[self._filled - length :]
                self._filled = upto
                self._give_back()
            snapshot = self._room[:upto]
        snapshot.flags.writeable = False
        return self, snapshot

    def _shaped(self, flat: Array) -> Array:
        return flat.reshape(-1, self._width) if self._width else flat

    def _grow(self, rows: int) -> None:
        row_bytes = self._dtype.itemsize * max(self._width, 1)
        rows = max(rows, 2 * len(self._room))
        room = self._on_disk(-(-rows * row_bytes // mmap.PAGESIZE) * mmap.PAGESIZE)
        if room is None:
            room = self._shaped(np.empty(rows * max(self._width, 1), self._dtype))
            room[: self._filled] = self._room[: self._filled]
        self._room = room

    def _on_disk(self, size: int) -> Array | None:
        """Room of that many bytes in the file, the values in it; None where it is too small or there is no disk."""
        if size < _IN_MEMORY_BYTES or not hasattr(os, "posix_fallocate"):
            return None
        first = self._file < 0
        try:
            if first:
                self._file = _nameless()
            # Taken now: a page that the disk does not take when it is written ends the process.
            os.posix_fallocate(self._file, 0, size)
            self._map = mmap.mmap(self._file, size)
        except OSError:
            return None
        per_row = self._dtype.itemsize * max(self._width, 1)
        room = self._shaped(np.frombuffer(self._map, self._dtype, size // per_row * max(self._width, 1)))
        if first:
            room[: self._filled] = self._room[: self._filled]
        return room

    def _give_back(self) -> None:
        upto = self._filled * self._dtype.itemsize * max(self._width, 1) // _GIVEN_BACK_BYTES * _GIVEN_BACK_BYTES
        if self._map is not None and upto > self._given_back and hasattr(mmap, "MADV_DONTNEED"):
            # Of a shared mapping of a file: what is in the pages stays in the file.
            self._map.madvise(mmap.MADV_DONTNEED, 0, upto)
            self._given_back = upto


class GrowingColumns:
    """Columns of equal length that grow together."""

    def __init__(self, dtypes: Mapping[str, str | np.dtype[np.generic]]) -> None:
        self._columns = {name: GrowingArray(dtype) for name, dtype in dtypes.items()}

    def extended(self, length: int, columns: Mapping[str, Array]) -> tuple[GrowingColumns, dict[str, Array]]:
        """See GrowingArray.extended."""
        held = GrowingColumns({})
        found: dict[str, Array] = {}
        for name, column in self._columns.items():
            held._columns[name], found[name] = column.extended(length, columns[name])
        return held, found


def _same(held: Array, values: Array) -> bool:
    return held.tobytes() == np.ascontiguousarray(values, held.dtype).tobytes()


def _nameless() -> int:
    """A file without a name, in the cache, else where temporary files go. Raises OSError."""
    file, path = tempfile.mkstemp(prefix="column.", dir=_folder())
    os.unlink(path)
    return file


def _folder() -> Path:
    cache = Path(platformdirs.user_cache_dir("inflight-inspector")) / "live"
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.gettempdir())
    return cache


def bytes_on_disk() -> int:
    """How much room there is for large columns outside of the memory; 0 where there is none."""
    if not hasattr(os, "posix_fallocate"):
        return 0
    try:
        return shutil.disk_usage(_folder()).free
    except OSError:
        return 0
