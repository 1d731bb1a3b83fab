"""Columns out of Arrow IPC files and streams, mapped and not copied, by a reader that no file can lead astray.

Arrow's own reader trusts the flatbuffers in a file, and some that are spoilt end the process. A recording needs little
of the format: plain numbers and texts, uncompressed, in batches. Every read here is held to the bounds of the file.
After its eight bytes of magic an Arrow file is a stream, so compacted tables, streams that still grow and streams that
broke off take one way.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from inspector.errors import Unreadable
from inspector.trace.flatbuffer import FlatTable
from inspector.trace.table import Array

_MAGIC = b"ARROW1\x00\x00"
_CONTINUATION = 0xFFFFFFFF
# The schema of a table takes a few kB and has a dozen columns.
_MOST_METADATA, _MOST_FIELDS = 1 << 16, 256
_MOST_DIGITS = 19
_CHUNK = 4 << 20
T = TypeVar("T")
# Numbers of Arrow's flatbuffers schema: kinds of messages, kinds of types, and slots of tables.
_SCHEMA, _RECORD_BATCH = 1, 3
_INT, _FLOAT, _UTF8, _LARGE_BINARY, _LARGE_UTF8 = 2, 3, 5, 19, 20
_OFFSETS = {_UTF8: "int32", _LARGE_UTF8: "int64", _LARGE_BINARY: "int64"}


class _Field(NamedTuple):
    """A column: its name, and the numpy dtype of its numbers, or of the offsets of its texts; '' for neither."""

    name: str
    dtype: str
    is_text: bool


class _Buffer(NamedTuple):
    start: int
    size: int


class _Batch(NamedTuple):
    rows: int
    fields: list[_Field]
    nulls: list[int]
    buffers: list[_Buffer]
    body: memoryview
    to: int


class _Message(NamedTuple):
    """`end` is where the next one begins; `to` what its metadata say under that name, -1 for nothing."""

    kind: int
    header: FlatTable
    body: memoryview
    end: int
    to: int


class _BrokenOffError(Exception):
    """The data stop making sense, or end."""


class _UnfinishedError(_BrokenOffError):
    """The data end where they make sense so far."""


def read_columns(path: Path) -> tuple[list[dict[str, Array]], bool]:
    """The batches of a file or stream as arrays that lie in the file, and whether it ends as it should.

    What follows the first batch that is not whole is not read. Raises Unreadable for what is compressed or holds
    anything but plain numbers.
    """
    batches: list[dict[str, Array]] = []
    for batch in _batches(path):
        if batch is None:
            return batches, False
        try:
            batches.append(_columns(path, batch))
        except _BrokenOffError:
            return batches, False
    return batches, True


def read_texts(path: Path) -> tuple[list[str], bool]:
    """The texts of a file or stream with one column, and whether it ends as it should; raises Unreadable."""
    texts: list[str] = []
    for batch in _batches(path):
        if batch is None:
            return texts, False
        try:
            texts += _texts(path, batch)
        except _BrokenOffError:
            return texts, False
    return texts, True


class StreamTail:
    """A stream that grows: each call gives what has come since the one before, whole batches only.

    The file is read, never mapped: who cuts it short cannot end this process. `to` is what the last batch says of how
    far its source had been read, -1 for nothing. `state` is "open", "ended" after the end mark, or "damaged" after what
    makes no sense, which is not read. A file that is not there yet is an empty one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.to = -1
        self.state: Literal["open", "ended", "damaged"] = "open"
        self.is_cut = False
        """Whether there was more to read the last time."""
        self._offset = 0
        self._fields: list[_Field] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing behind the last whole batch. Raises Unreadable."""
        return self.state == "ended" or (self.state == "open" and not self._read(1))

    def columns(self, most_bytes: int = 1 << 62) -> list[dict[str, Array]]:
        """New batches, about so many bytes of them; raises Unreadable as `read_columns` does."""
        return self._taken(most_bytes, _columns)

    def texts(self) -> list[str]:
        """New texts; raises Unreadable as `read_texts` does."""
        return [text for texts in self._taken(1 << 62, _texts) for text in texts]

    def _taken(self, most_bytes: int, decode: Callable[[Path, _Batch], T]) -> list[T]:
        found: list[T] = []
        done, size = 0, _CHUNK
        self.is_cut = False
        while self.state == "open" and done < most_bytes:
            data = memoryview(self._read(size))
            more, at = self._decoded(data, decode)
            found += more
            self._offset += at
            done += at
            if len(data) < size:
                return found
            if not at:
                size *= 4
        self.is_cut = self.state == "open"
        return found

    def _decoded(self, data: memoryview, decode: Callable[[Path, _Batch], T]) -> tuple[list[T], int]:
        """What the whole batches at the start of `data` hold, and how many bytes they take."""
        found: list[T] = []
        at = 0
        try:
            for message in _messages(data):
                if self._fields is None:
                    if message.kind != _SCHEMA:
                        raise _BrokenOffError
                    self._fields = _fields(message.header)
                else:
                    batch = _checked(self.path, message, self._fields)
                    found.append(decode(self.path, batch))
                    self.to = max(self.to, batch.to)
                at = message.end
            if len(data) - at >= 8:
                self.state = "ended"
        except _UnfinishedError:
            pass
        except (_BrokenOffError, struct.error, UnicodeDecodeError):
            self.state = "damaged"
        return found, at

    def _read(self, size: int) -> bytes:
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise _unreadable(self.path, error.strerror or str(error)) from error
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise _unreadable(self.path, "it is not a plain file")
            return os.pread(file, size, self._offset)
        except OSError as error:
            raise _unreadable(self.path, error.strerror or str(error)) from error
        finally:
            os.close(file)


def map_file(path: Path) -> memoryview:
    """The bytes of a regular file, mapped read-only. Links are not followed; raises Unreadable."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise _unreadable(path, "it is not a plain file")
            return memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_READ) if status.st_size else b"")
        finally:
            os.close(file)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


def _batches(path: Path) -> Iterator[_Batch | None]:
    """The whole batches; a last None where the data break off or are no Arrow data."""
    data = map_file(path)
    fields: list[_Field] | None = None
    try:
        for message in _messages(data[len(_MAGIC) :] if data[: len(_MAGIC)] == _MAGIC else data):
            if fields is None:
                if message.kind != _SCHEMA:
                    raise _BrokenOffError
                fields = _fields(message.header)
            else:
                yield _checked(path, message, fields)
        if fields is None:
            raise _BrokenOffError
    except (_BrokenOffError, struct.error, UnicodeDecodeError):
        yield None


def _messages(data: memoryview) -> Iterator[_Message]:
    """Each message up to the end mark or the end of the data."""
    at = 0
    while at < len(data):
        if len(data) - at < 8:
            raise _UnfinishedError
        mark, size = struct.unpack_from("<Ii", data, at)
        if mark != _CONTINUATION or not 0 <= size <= _MOST_METADATA:
            raise _BrokenOffError
        if size == 0:
            return
        at += 8 + size
        if at > len(data):
            raise _UnfinishedError
        message = FlatTable.root(bytes(data[at - size : at]))
        header, length = message.table(2), message.number(3, "<q")
        if header is None or length < 0:
            raise _BrokenOffError
        if length > len(data) - at:
            raise _UnfinishedError
        to = next((pair.text(1) for pair in message.tables(4) if pair.text(0) == "to"), "")
        number = int(to) if to.isascii() and to.isdigit() and len(to) < _MOST_DIGITS else -1
        yield _Message(message.number(1, "<B"), header, data[at : at + length], at + length, number)
        at += length


def _checked(path: Path, message: _Message, fields: list[_Field]) -> _Batch:
    if message.kind != _RECORD_BATCH:
        raise _unreadable(path, "it holds something else than rows")
    # A few packed bytes may claim to be terabytes.
    if message.header.table(3) is not None:
        raise _unreadable(path, "it is compressed, which a recording never is")
    return _batch(message, fields)


def _fields(schema: FlatTable) -> list[_Field]:
    found = schema.tables(1)
    if schema.number(0, "<h") or len(found) > _MOST_FIELDS:  # big-endian, or hostile
        raise _BrokenOffError
    fields = []
    for field in found:
        kind, detail = field.number(2, "<B"), field.table(3)
        dtype = _OFFSETS.get(kind, "")
        if detail is not None and field.table(4) is None:
            if kind == _INT and (bits := detail.number(0, "<i")) in (8, 16, 32, 64):
                dtype = f"{'' if detail.number(1, '<B') else 'u'}int{bits}"
            elif kind == _FLOAT and detail.number(0, "<h") == 2:
                dtype = "float64"
        fields.append(_Field(field.text(0), dtype, kind in _OFFSETS))
    return fields


def _batch(message: _Message, fields: list[_Field]) -> _Batch:
    header = message.header
    rows = header.number(0, "<q")
    nodes = header.structs(1, "<qq")
    buffers = [_Buffer(*pair) for pair in header.structs(2, "<qq")]
    plain = all(field.dtype for field in fields)
    if rows < 0 or len(nodes) < len(fields) or any(length != rows for length, _ in nodes[: len(fields)] if plain):
        raise _BrokenOffError
    return _Batch(rows, fields, [nulls for _, nulls in nodes], buffers, message.body, message.to)


def _values(batch: _Batch, number: int, dtype: str, count: int) -> Array:
    """`count` values out of a buffer."""
    if not count:
        return np.empty(0, dtype)
    if number >= len(batch.buffers):
        raise _BrokenOffError
    start, size = batch.buffers[number]
    if min(start, size) < 0 or start + size > len(batch.body) or count * np.dtype(dtype).itemsize > size:
        raise _BrokenOffError
    return np.frombuffer(batch.body, dtype, count, start)


def _columns(path: Path, batch: _Batch) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    for number, field in enumerate(batch.fields):
        if field.is_text or not field.dtype or batch.nulls[number]:
            raise _unreadable(path, f"column {field.name!r} does not hold a plain number in every row")
        if field.name in columns:
            raise _unreadable(path, f"column {field.name!r} comes twice")
        columns[field.name] = _values(batch, 2 * number + 1, field.dtype, batch.rows)
    return columns


def _texts(path: Path, batch: _Batch) -> list[str]:
    if len(batch.fields) != 1 or not batch.fields[0].is_text or batch.nulls[0]:
        raise _unreadable(path, "it does not hold one column of texts")
    if not batch.rows:
        return []
    offsets = _values(batch, 1, batch.fields[0].dtype, batch.rows + 1)
    if offsets[0] < 0 or (offsets[1:] < offsets[:-1]).any():
        raise _BrokenOffError
    data = _values(batch, 2, "uint8", int(offsets[-1])).tobytes()
    ends = offsets.tolist()
    # The writer stores half a surrogate pair as it is, since names may hold one.
    try:
        return [data[low:high].decode("utf-8", "surrogatepass") for low, high in pairwise(ends)]
    except UnicodeDecodeError as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, why: str) -> Unreadable:
    return Unreadable(f"cannot read {path.name} of {path.parent}", why, "record or convert the trace again")
