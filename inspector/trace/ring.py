"""The reader's end of a ring (probes/inprocess/ring.py says what stands where), which trusts nothing that it reads.

The recorder takes from rings that workloads still write; who opens a recording that broke off takes what the recorder
did not get to. The file is read, never mapped: whoever cuts it short under our hands cannot end this process.

    ring = Ring(path)
    taken = ring.take()              # or ring.take(held), when some of it stands in streams already
    ...                              # rows = RingRows(ring.pid) of inspector.trace.ring_rows makes columns of it
    ring.release(taken.upto)         # the recorder only, when it is safe on the disk
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from inspector.errors import Unreadable
from inspector.trace.holes import punch
from inspector.trace.table import Array

SUFFIX = ".ring"
_MAGIC = b"INFLRING"
_FORMAT = 1
_NAMES = 0xFFFF
_JSON_AT = 1024
_HEAD_AT, _TAIL_AT, _COUNTERS_AT, _ASKED_AT, _LOST_AT = 64, 128, 192, 224, 256
_FRAME = struct.Struct("<IHHIIQ")
_CODES = {"b": "i1", "i": "<i4", "q": "<i8", "Q": "<u8", "d": "<f8"}
# Bounds for what a hostile head can make us do; ours has two pages and 64 MiB.
_MOST_HEAD, _MOST_TABLES, _MOST_COLUMNS, _MOST_BYTES = 1 << 16, 64, 64, 1 << 30


class _About(msgspec.Struct):
    format: int
    pid: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
    role: str
    layouts: dict[str, list[tuple[str, str]]]
    rank: Annotated[int, msgspec.Meta(ge=-1, lt=1 << 31)] = -1


class Counts(NamedTuple):
    """What the producer says of itself: rows given, rows dropped, ns that it took; `closed` when it has ended."""

    records: int
    lost: int
    cost_ns: int
    closed: bool


class Taken(NamedTuple):
    """The frames of [since, upto), in bytes ever written.

    `tables` holds for each table its rows in the order of writing, as a structured array of the ring's own columns.
    `names` are (id, text). `damage` says why it ends before what the producer had written, '' when it does not.
    """

    since: int
    upto: int
    tables: dict[str, Array]
    names: list[tuple[int, str]]
    damage: str = ""


class Ring:
    """A ring file, open for reading; `writable` also for taking out of it. Raises Unreadable for what is no ring.

    `pid`, `rank` (-1: none) and `role` are those of the process that writes it.
    """

    def __init__(self, path: Path, writable: bool = False) -> None:
        self.path = path
        try:
            flags = os.O_RDWR if writable else os.O_RDONLY
            self._file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error
        try:
            self._start, about, self.capacity = self._read_head()
        except BaseException:
            os.close(self._file)
            raise
        self.pid, self.rank, self.role = about.pid, about.rank, about.role
        self._dtypes = {table: np.dtype([(c, _CODES[code]) for c, code in cs]) for table, cs in about.layouts.items()}
        self._tables = list(self._dtypes)

    def take(self, held: Mapping[str, int] | None = None) -> Taken:
        """What was written and not yet released. Frames of a table (or "names") before the position that `held` gives
        for it are left out. Raises Unreadable when the file cannot be read any more.
        """
        head, tail = self._number(_HEAD_AT), self._number(_TAIL_AT)
        if not 0 <= head - tail <= self.capacity:
            return Taken(tail, head, {}, [], "its head and tail make no sense")
        data = memoryview(self._bytes(tail, head - tail))
        parts: dict[int, list[memoryview]] = {}
        names: list[tuple[int, str]] = []
        held_at = [(held or {}).get(name, 0) for name in self._tables]
        names_at = (held or {}).get("names", 0)
        at, end, damage = 0, len(data), ""
        while at < end:
            if end - at < _FRAME.size:
                damage = "a frame breaks off"
                break
            size, table, _, rows, used, position = _FRAME.unpack_from(data, at)
            low = at + _FRAME.size
            if position != tail + at or size & 7 or not _FRAME.size + used <= size <= end - at:
                damage = f"what stands at {tail + at} is no frame"
                break
            if table == _NAMES:
                if position >= names_at:
                    names.append((rows, _text(bytes(data[low : low + used]))))
            elif table >= len(self._tables) or used != rows * self._dtypes[self._tables[table]].itemsize:
                damage = f"the frame at {tail + at} is of no table"
                break
            elif position >= held_at[table]:
                parts.setdefault(table, []).append(data[low : low + used])
            at += size
        tables = {
            self._tables[number]: np.frombuffer(b"".join(found), self._dtypes[self._tables[number]])
            for number, found in parts.items()
        }
        return Taken(tail, tail + at, tables, names, damage)

    def release(self, upto: int) -> None:
        """Give the room before position `upto` back to the producer. Raises Unreadable."""
        try:
            os.pwrite(self._file, struct.pack("<Q", upto), _TAIL_AT)
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it may hold."""
        return tuple(self._tables)

    def ask(self, nodes_until_ns: int, off: bool, steps: int, busy: int) -> None:
        """Tell the kernel tap what is wanted: each kernel of CUDA graphs until then (CLOCK_MONOTONIC), or nothing at
        all; and what it cannot see: iterations of its process that ended, readings of a busy GPU. Raises Unreadable.
        """
        try:
            os.pwrite(self._file, struct.pack("<4Q", nodes_until_ns, off, steps, busy), _ASKED_AT)
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error

    def skip(self) -> int:
        """After damage: release all that was written; how many bytes that were. Raises Unreadable."""
        head, tail = self._number(_HEAD_AT), self._number(_TAIL_AT)
        self.release(head)
        return max(0, head - tail)

    def empty(self) -> None:
        """Give the disk the room of a closed and released ring back, where its file system can do that."""
        punch(self._file, self._start, self.capacity)

    def counts(self) -> Counts:
        """What the producer counted so far. Raises Unreadable."""
        records, lost, cost_ns, closed = struct.unpack("<4Q", self._read(_COUNTERS_AT, 32))
        most = 1 << 62
        return Counts(min(records, most), min(lost, most), min(cost_ns, most), bool(closed))

    def lost(self) -> dict[str, int]:
        """Rows that the producer dropped so far, by table; those that dropped none left out. Raises Unreadable."""
        numbers = struct.unpack(f"<{len(self._tables)}Q", self._read(_LOST_AT, 8 * len(self._tables)))
        return {table: min(lost, 1 << 62) for table, lost in zip(self._tables, numbers, strict=True) if lost}

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def _read_head(self) -> tuple[int, _About, int]:
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode):
            raise self._unreadable("it is not a plain file")
        magic = self._read(0, 16)
        if magic[:8] != _MAGIC:
            raise self._unreadable("it is no ring, or not yet one")
        start, length = struct.unpack_from("<II", magic, 8)
        capacity = status.st_size - start
        if not _JSON_AT + length <= start <= _MOST_HEAD or start % 8 or not 0 < capacity <= _MOST_BYTES:
            raise self._unreadable("its head makes no sense")
        try:
            about = msgspec.json.decode(self._read(_JSON_AT, length), type=_About)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(str(error)) from error
        if about.format != _FORMAT:
            raise self._unreadable(f"it is of format {about.format}, this program knows {_FORMAT}")
        if len(about.layouts) > _MOST_TABLES:
            raise self._unreadable("it has too many tables")
        for table, columns in about.layouts.items():
            names = [name for name, _ in columns]
            fits = 0 < len(columns) <= _MOST_COLUMNS and len(set(names)) == len(names) and all(names)
            if not fits or not all(code in _CODES for _, code in columns):
                raise self._unreadable(f"its table {table!r} makes no sense")
        return start, about, capacity

    def _bytes(self, position: int, size: int) -> bytes:
        at = position % self.capacity
        first = min(size, self.capacity - at)
        data = self._read(self._start + at, first)
        return data if first == size else data + self._read(self._start, size - first)

    def _number(self, at: int) -> int:
        """A position that the other side may be writing: what is read twice the same."""
        number = -1
        for _ in range(8):
            before, number = number, int.from_bytes(self._read(at, 8), "little")
            if number == before:
                return number
        raise self._unreadable("its positions do not hold still")

    def _read(self, at: int, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = os.pread(self._file, size - len(data), at + len(data))
            except OSError as error:
                raise self._unreadable(error.strerror or str(error)) from error
            if not more:
                raise self._unreadable("it breaks off")
            data = data + more if data else more
        return data

    def _unreadable(self, why: str) -> Unreadable:
        return Unreadable(f"cannot read {self.path.name} of {self.path.parent}", why, "record the workload again")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
