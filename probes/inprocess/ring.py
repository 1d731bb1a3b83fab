"""The producer's end of a ring: a file in the recording's folder that a workload writes and nobody needs to read.

    bytes 0     magic, u32 size of the head, u32 size of the JSON
          64    u64 head: bytes ever written        written here
          128   u64 tail: bytes ever taken          written by the recorder
          192   u64 records, lost, cost ns, closed
          224   u64 single kernels of graphs until (CLOCK_MONOTONIC ns), off, iterations that ended, readings of a busy
                GPU                                 written by the recorder, for the kernel tap
          256   u64 records lost by table
          1024  JSON: format, pid, rank, role, clock, layouts of the tables in the order of their numbers
    then the frames, round and round: position % capacity is where a frame begins
          u32 size with head and padding, a multiple of 8; u16 table, u16 0; u32 rows; u32 bytes of payload;
          u64 position; payload; padding

A frame of table NAMES is one text: its `rows` are the id. The head moves when a frame is whole, so who reads never sees
half of one. What finds no room is dropped and counted; the caller never waits. The file has its space before anything
is written to it: a full disk cannot kill the workload.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import platform
import struct
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence

from .columns import Layout

MAGIC = b"INFLRING"
FORMAT = 1
NAMES = 0xFFFF
CAPACITY = 16 << 20
SMALL_CAPACITY = 8 << 20
"""Where the disk has no room for more."""
_HEAD, _TAIL, _COUNTERS, _LOST = 8, 16, 24, 32  # as numbers of u64
_JSON_AT = 1024
_PAGE = 4096
_FRAME = struct.Struct("<IHHIIQ")
_PADDING = [bytes(size) for size in range(8)]
MOST_PAYLOAD = 1 << 19
_AHEAD = 1 << 16
"""Bytes made ready for writing at a time."""
_POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE of Linux 5.14, for which the mmap module has no name."""
RANKS = (("OMPI_COMM_WORLD_RANK", ""), ("PMIX_RANK", ""), ("PMI_RANK", ""), ("RANK", "WORLD_SIZE"))
"""Variables that hold the rank, and the one that must be there beside it: torchrun's has a name that anyone may use."""


Frame = tuple[int, int, bytes]
"""Number of the table, rows, payload."""


class Ring:
    """One ring file, made by this process and written by it alone, by one thread at a time.

    Raises OSError when the file cannot be made; FileExistsError when there is one.
    """

    def __init__(self, path: str, role: str, layouts: Mapping[str, Layout], capacity: int = CAPACITY) -> None:
        about = {"format": FORMAT, "pid": os.getpid(), "rank": rank(), "role": role, "clock": "monotonic"}
        text = json.dumps({**about, "layouts": layouts}).encode()
        start = -(-(_JSON_AT + len(text)) // _PAGE) * _PAGE
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            self.capacity = _reserve(file, start, capacity)
            self._map = mmap.mmap(file, start + self.capacity)
        except (OSError, ValueError):
            os.unlink(path)
            raise
        finally:
            os.close(file)
        self.path = path
        self._start = start
        self._position = self._ready = 0
        self._map[_JSON_AT : _JSON_AT + len(text)] = text
        self._words = memoryview(self._map)[:_JSON_AT].cast("Q")
        self._map[8:16] = struct.pack("<II", start, len(text))
        # Last, so that who finds the magic finds a whole head.
        _fence()
        self._map[:8] = MAGIC

    def put(self, table: int, rows: int, payload: bytes) -> bool:
        """Append a frame of at most MOST_PAYLOAD bytes of payload; False when there is no room."""
        return self.put_all(((table, rows, payload),))

    def put_all(self, frames: Sequence[Frame]) -> bool:
        """Append frames as `put` does one, at once: who reads sees all or none. False when there is no room for all."""
        position = end = self._position
        parts: list[bytes] = []
        for table, rows, payload in frames:
            used = len(payload)
            size = (_FRAME.size + used + 7) & ~7
            parts += _FRAME.pack(size, table, 0, rows, used, end), payload, _PADDING[-used & 7]
            end += size
        free = self.capacity - (position - self._tail())
        # A tail ahead of the head, or too far behind, is nothing to trust: as good as full.
        if not end - position <= free <= self.capacity:
            return False
        if end > self._ready:
            self._make_ready(end)
        self._write(position, b"".join(parts))
        self._position = end
        _fence()
        self._words[_HEAD] = end
        return True

    def count(self, records: int, lost: int, cost_ns: int) -> None:
        """Publish how many rows were given and lost, and the time that it took."""
        self._words[_COUNTERS] = records
        self._words[_COUNTERS + 1] = lost
        self._words[_COUNTERS + 2] = cost_ns

    def count_lost(self, table: int, rows: int) -> None:
        """Publish that rows of a table were lost."""
        self._words[_LOST + table] += rows

    def close(self) -> None:
        """Say that nothing more comes, and let go of the file, which stays."""
        self._words[_COUNTERS + 3] = 1
        self.abandon()

    def abandon(self) -> None:
        """Let go of the file without a word: after a fork it is the parent's."""
        self._words.release()
        self._map.close()

    def _tail(self) -> int:
        # Twice the same: the other side does not promise to write all eight bytes at once.
        for _ in range(8):
            tail = self._words[_TAIL]
            if self._words[_TAIL] == tail:
                return tail
        return -1

    def _write(self, position: int, data: bytes) -> None:
        done = 0
        for at, size in self._places(position, len(data)):
            self._map[at : at + size] = data[done : done + size] if done or size < len(data) else data
            done += size

    def _places(self, position: int, size: int) -> Iterable[tuple[int, int]]:
        """Where `size` bytes from `position` on stand in the file: (place, size), two where the end is between."""
        at = position % self.capacity
        until_end = self.capacity - at
        if size <= until_end:
            return ((self._start + at, size),)
        return (self._start + at, until_end), (self._start, size - until_end)

    def _make_ready(self, end: int) -> None:
        """Have the pages up to `end`, and some beyond, in memory and writable.

        A first write to each is a fault that costs the workload tens of microseconds; many at a time cost one each.
        """
        begin, self._ready = self._ready, end + _AHEAD
        for at, size in self._places(begin, min(self._ready - begin, self.capacity)):
            try:
                self._map.madvise(_POPULATE_WRITE, at & -_PAGE, size + at % _PAGE)
            except (OSError, ValueError):  # an older kernel, or a file system that cannot
                self._ready = sys.maxsize
                return


def rank() -> int:
    """The number of this process among those that mpirun or torchrun started; -1 where neither did."""
    for name, other in RANKS:
        text = os.environ.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 7 and (not other or other in os.environ):
            return int(text)
    return -1


def _reserve(file: int, start: int, capacity: int) -> int:
    """Take the space on the disk now; the capacity that there is room for."""
    try:
        os.posix_fallocate(file, 0, start + capacity)
    except OSError as error:
        if error.errno != errno.ENOSPC or capacity <= SMALL_CAPACITY:
            raise
        os.posix_fallocate(file, 0, start + SMALL_CAPACITY)
        return SMALL_CAPACITY
    return capacity


_barrier = threading.Lock()
_IS_ORDERED = platform.machine() in ("x86_64", "AMD64", "i686")


def _fence() -> None:
    """What was written before is visible to other processors before what is written after."""
    if _IS_ORDERED:
        return
    # Giving a lock back and taking it again is a full barrier; Python has no other.
    with _barrier:
        pass
    with _barrier:
        pass
