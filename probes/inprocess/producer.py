"""What a workload calls to say what it does. Never raises, never waits for a reader, counts what it drops.

    producer = from_environment("engine")      # None when nobody records
    if producer:
        producer.add("ranges", [(start, end, threading.get_native_id(), producer.name("step"), 6, -1)])

Costs about two microseconds per call and a tenth of one per row (tests/benchmarks/bench_recorder.py).
"""

from __future__ import annotations

import logging
import os
import stat
import struct
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import Any

from .columns import LAYOUTS, STATES
from .ring import CAPACITY, MOST_PAYLOAD, NAMES, Frame, Ring

ENVIRONMENT = "TLLM_INSPECTOR_RUN"
"""Names the folder of the recording in the environment of a workload."""
UNMADE = ".unmade"
"""How a file is called that stands for a ring that could not be made; it holds why, where there was room."""
KERNEL_CAPACITY = 64 << 20
"""For producers of kernel records: five seconds of 200,000 a second."""
MOST_NAMES = 1 << 18
"""Texts beyond are one and the same: a workload that names everything differently must not fill its memory."""
_LONGEST_NAME = 1 << 16
_SECOND = 1_000_000_000

logger = logging.getLogger(__name__)
Row = tuple[Any, ...]


def from_environment(role: str, capacity: int = CAPACITY) -> Producer | None:
    """The producer of this process for the recording that the environment names.

    None when it names none, or the ring cannot be made there. `role` names the ring's file and, until the recorder
    knows better, the process. `capacity` in bytes.
    """
    folder = os.environ.get(ENVIRONMENT)
    if not folder:
        return None
    try:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            logger.debug("%s is no folder of this user", folder)
            return None
        return Producer(folder, role, capacity)
    except Exception as error:
        logger.debug("nothing is recorded", exc_info=True)
        if isinstance(error, OSError):
            _tell_unmade(folder, role, error)
        return None


def _tell_unmade(folder: str, role: str, error: OSError) -> None:
    """Leave a file that says whose ring could not be made; its name is enough, where the disk takes no more."""
    path = os.path.join(folder, f"{_plain(role)}-{os.getpid()}{UNMADE}")
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(file, (error.strerror or str(error)).encode())
    except OSError:
        logger.debug("no room for the reason either")
    finally:
        os.close(file)


def _plain(role: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in role) or "producer"


class Producer:
    """One ring of this process; any thread may call. After a fork the child writes a ring of its own.

    Raises OSError when the ring cannot be made in `folder`.
    """

    def __init__(self, folder: str, role: str, capacity: int = CAPACITY) -> None:
        self.records = 0
        """Rows handed over so far."""
        self.lost = 0
        """Rows dropped so far: the ring was full, or they were not as their table wants them."""
        self.cost_ns = 0
        """Time spent in here so far."""
        self._folder = folder
        self._role = _plain(role)
        self._capacity = capacity
        self._names: dict[str, int] = {}
        self._devices: dict[int, Row] = {}
        # Frames that go before all else, since rows refer to what they say. They wait here while there is no room.
        self._first: list[Frame] = []
        self._lock = threading.RLock()
        self._busy = False
        self._state, self._message = 1, ""
        self._told_ns = time.monotonic_ns()
        self._why_lost = ""
        self._closed = False
        self._ring: Ring | None = self._open()
        self._id(self._role)
        self._flush()
        _producers.add(self)

    def name(self, text: str) -> int:
        """The id of a text in this ring; -1 for ''."""
        found = self._names.get(text)
        if found is not None:
            return found
        if not text:
            return -1
        with self._lock:
            try:
                return self._id(text)
            except Exception:
                logger.debug("no name", exc_info=True)
                return -1

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Hand over rows, each a tuple in the order of LAYOUTS[table]. What does not fit is dropped and counted."""
        self.add_all(((table, rows),))

    def add_all(self, parts: Iterable[tuple[str, Sequence[Row]]]) -> None:
        """Hand over rows of several tables, as `add` does those of one, for little more than a single call costs.

        Who reads sees all of it or none, as far as there is room.
        """
        self._hand_over([(table, len(rows), rows) for table, rows in parts if rows])

    def add_packed(self, table: str, rows: int, data: bytes) -> None:
        """Hand over `rows` rows that are packed already: by their codes in LAYOUTS[table], little endian, no gaps."""
        self._hand_over([(table, rows, data)])

    def thread_name(self, text: str) -> None:
        """Name the calling thread."""
        self._say("threads", (threading.get_native_id(), self.name(text)))

    def device(self, number: int, name: str, memory: int = -1) -> None:
        """Say what device `number` is; `memory` in bytes, -1 unknown."""
        row = (number, self.name(name), memory)
        self._devices[number] = row
        self._say("devices", row)

    def status(self, state: str, message: str = "") -> None:
        """Say how it is going; `state` is one of STATES. It is repeated once a second while rows come."""
        self._state, self._message = STATES.index(state) if state in STATES else 1, message
        self.add("probes", [self._status(time.monotonic_ns())])

    def close(self) -> None:
        """Nothing more comes; rows added later are lost."""
        if self._closed:
            return
        self.status("off", self._message)
        with self._lock:
            self._closed = True
            if self._ring is not None:
                self._ring.close()
                self._ring = None

    def _open(self) -> Ring:
        name = os.path.join(self._folder, f"{self._role}-{os.getpid()}")
        for number in range(1, 1000):
            try:
                return Ring(f"{name}{f'-{number}' if number > 1 else ''}.ring", self._role, LAYOUTS, self._capacity)
            except FileExistsError:  # of a second producer here, or of a process that had this number before
                continue
        raise FileExistsError(f"{name}.ring")

    def _hand_over(self, parts: list[tuple[str, int, Sequence[Row] | bytes]]) -> None:
        begun = time.monotonic_ns()
        with self._lock:
            if self._busy or self._closed:
                # A signal handler or finaliser within a call of this very thread; or too late.
                for table, rows, _ in parts:
                    self._lose(table, rows)
                return
            self._busy = True
            try:
                if begun - self._told_ns >= _SECOND:
                    parts.append(("probes", 1, [self._status(begun)]))
                frames: list[Frame] = []
                for table, rows, given in parts:
                    try:
                        frames += self._frames(table, rows, given)
                    except Exception as error:
                        logger.debug("rows are lost", exc_info=True)
                        self._lose(table, rows, f"{table}: {type(error).__name__}: {error}")
                try:
                    self._send(frames)
                except Exception as error:
                    logger.debug("rows are lost", exc_info=True)
                    for number, rows, _ in frames:
                        self._lose(_TABLES[number], rows, f"{type(error).__name__}: {error}")
            finally:
                self.cost_ns += time.monotonic_ns() - begun
                if self._ring is not None:
                    self._ring.count(self.records, self.lost, self.cost_ns)
                self._busy = False

    def _frames(self, table: str, rows: int, given: Sequence[Row] | bytes) -> list[Frame]:
        number, layout = _NUMBERS[table], _PACKERS[table]
        if isinstance(given, bytes):
            if len(given) != rows * layout.size:
                raise ValueError(f"{len(given)} bytes are not {rows} rows")
            data = given
        else:
            try:
                data = b"".join(starmap(layout.pack, given))
            except (struct.error, TypeError) as error:
                data = self._sound(table, layout, given, error)
        most = MOST_PAYLOAD // layout.size * layout.size
        if len(data) <= most:
            return [(number, len(data) // layout.size, data)] if data else []
        pieces = [data[at : at + most] for at in range(0, len(data), most)]
        return [(number, len(piece) // layout.size, piece) for piece in pieces]

    def _send(self, frames: list[Frame]) -> None:
        """Put the frames into the ring: together, or, where that finds no room, as many as do."""
        if self._ring is None:
            self._ring = self._open()
        flushed = self._flush()
        if flushed and self._ring.put_all(frames):
            self.records += sum(rows for _, rows, _ in frames)
            return
        for number, rows, data in frames:
            if flushed and self._ring.put(number, rows, data):
                self.records += rows
            else:
                self._lose(_TABLES[number], rows)

    def _sound(self, table: str, layout: struct.Struct, rows: Sequence[Row], error: Exception) -> bytes:
        """The rows that can be packed; the others are lost."""
        packed: list[bytes] = []
        for row in rows:
            try:
                packed.append(layout.pack(*row))
            except (struct.error, TypeError):
                self._lose(table, 1, f"{table}: {error}")
        return b"".join(packed)

    def _say(self, table: str, row: Row) -> None:
        """Hand over a row that others refer to: it is kept until there is room."""
        with self._lock:
            try:
                self._queue(_NUMBERS[table], 1, _PACKERS[table].pack(*row))
            except Exception as error:
                logger.debug("a row is lost", exc_info=True)
                self._lose(table, 1, f"{table}: {error}")

    def _id(self, text: str) -> int:
        if len(self._names) >= MOST_NAMES:
            text = "(more names than are kept apart)"
            if text in self._names:
                return self._names[text]
        number = self._names[text] = len(self._names)
        self._queue(NAMES, number, _encoded(text))
        return number

    def _queue(self, table: int, rows: int, data: bytes) -> None:
        if len(self._first) >= 2 * MOST_NAMES:
            raise OverflowError("nobody reads")
        self._first.append((table, rows, data))
        if not self._busy:
            self._flush()

    def _flush(self) -> bool:
        """Send what goes first; whether all of it found room."""
        if self._ring is None:
            return False
        sent = 0
        for frame in self._first:
            if not self._ring.put(*frame):
                break
            sent += 1
        if sent:
            del self._first[:sent]
        return not self._first

    def _lose(self, table: str, rows: int, why: str = "") -> None:
        self.lost += rows
        self._why_lost = self._why_lost or why
        if self._ring is not None and table in _NUMBERS:
            self._ring.count_lost(_NUMBERS[table], rows)

    def _status(self, now_ns: int) -> Row:
        message = "; ".join(part for part in (self._message, self._why_lost) if part)
        row = (now_ns, self.name(self._role), self._state, self.records, self.lost, self.cost_ns, self.name(message))
        self._told_ns = now_ns
        return row

    def _forked(self) -> None:
        """In the child of a fork: leave the parent's ring, and begin again when there is something to say."""
        self._lock = threading.RLock()
        self._busy = False
        if self._ring is not None:
            self._ring.abandon()
        self._ring = None
        self.records = self.lost = self.cost_ns = 0
        self._first = [(NAMES, number, _encoded(text)) for text, number in self._names.items()]
        number, packer = _NUMBERS["devices"], _PACKERS["devices"]
        self._first += [(number, 1, packer.pack(*row)) for row in self._devices.values()]


_PACKERS = {name: struct.Struct("<" + "".join(code for _, code in layout)) for name, layout in LAYOUTS.items()}
_TABLES = list(LAYOUTS)
_NUMBERS = {name: number for number, name in enumerate(_TABLES)}
_producers: weakref.WeakSet[Producer] = weakref.WeakSet()


def _encoded(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= _LONGEST_NAME:
        return data
    # The cut is part of the text, so that nobody takes it for the whole.
    kept = data[:_LONGEST_NAME].decode("utf-8", "ignore")
    return f"{kept}… ({len(data) - _LONGEST_NAME:,} bytes more)".encode()


def _forked() -> None:
    for producer in list(_producers):
        producer._forked()


os.register_at_fork(after_in_child=_forked)
