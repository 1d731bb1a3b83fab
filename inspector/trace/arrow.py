"""Columns to and from Arrow IPC files and streams, mapped and not copied; a file is never trusted.

A file is read as the stream that it holds (after its eight bytes of magic, an Arrow file is one), so that compacted
tables and streams that still grow, or broke off, take one way.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from inspector.errors import Unreadable
from inspector.trace.table import Array

_MAGIC = b"ARROW1\x00\x00"
_TYPES: dict[pa.DataType, str] = {
    pa.int8(): "int8",
    pa.int32(): "int32",
    pa.int64(): "int64",
    pa.uint64(): "uint64",
    pa.float64(): "float64",
}
_TEXTS = (pa.string(), pa.large_string(), pa.large_binary())
# Slot of RecordBatch.compression in Arrow's flatbuffers schema, and of Message.header.
_COMPRESSION, _HEADER = 3, 2


def write_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """One Arrow IPC file of one batch, readable by its owner only; OSError as the system gives it."""
    arrays = [pa.array(np.ascontiguousarray(values)) for values in columns.values()]
    _write(path, pa.RecordBatch.from_arrays(arrays, names=list(columns)))


def write_texts(path: Path, texts: Sequence[str]) -> None:
    """One Arrow IPC file with one column `text`; as bytes where a text has half a surrogate pair, which UTF-8 lacks."""
    try:
        array = pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        array = pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.large_binary())
    _write(path, pa.RecordBatch.from_arrays([array], names=["text"]))


def _write(path: Path, batch: pa.RecordBatch) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    options = ipc.IpcWriteOptions(allow_64bit=True)
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)


def read_columns(path: Path) -> tuple[list[dict[str, Array]], bool]:
    """The batches of a file or stream as arrays that lie in the file, and whether it ends as it should.

    What follows the first batch that is not whole is not read. Raises Unreadable for what is no Arrow data, is
    compressed, or holds anything but plain numbers.
    """
    batches: list[dict[str, Array]] = []
    reading = _batches(path)
    for batch in reading:
        if batch is None:
            return batches, False
        columns = {}
        for field, array in zip(batch.schema, batch.columns, strict=True):
            dtype = _TYPES.get(field.type)
            if dtype is None or array.null_count:
                raise _unreadable(path, f"column {field.name!r} holds {field.type}, or nothing in places")
            if field.name in columns:
                raise _unreadable(path, f"column {field.name!r} comes twice")
            columns[field.name] = _values(path, array, dtype)
        batches.append(columns)
    return batches, True


def read_texts(path: Path) -> tuple[list[str], bool]:
    """The texts of a file or stream with one column, and whether it ends as it should; raises Unreadable."""
    texts: list[str] = []
    for batch in _batches(path):
        if batch is None:
            return texts, False
        if len(batch.columns) != 1 or batch.schema.field(0).type not in _TEXTS or batch.column(0).null_count:
            raise _unreadable(path, "it does not hold one column of texts")
        try:
            batch.validate(full=True)
            values = batch.column(0).to_pylist()
            texts += [value if isinstance(value, str) else value.decode("utf-8", "surrogatepass") for value in values]
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _unreadable(path, str(error)) from error
    return texts, True


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


def _batches(path: Path) -> Iterator[pa.RecordBatch | None]:
    """The whole batches; a last None where the data break off."""
    mapped = map_file(path)
    data = pa.py_buffer(mapped)
    if mapped[: len(_MAGIC)] == _MAGIC:
        data = data.slice(len(_MAGIC))
    try:
        reader = ipc.MessageReader.open_stream(pa.BufferReader(data))
        schema = ipc.read_schema(reader.read_next_message())
    except (StopIteration, pa.ArrowException, OSError):
        yield None
        return
    while True:
        try:
            message = reader.read_next_message()
            if message.type != "record batch":
                raise _unreadable(path, f"it holds a {message.type}")
            # A few packed bytes may claim to be terabytes, and Arrow has no limit to set.
            if _is_compressed(message.metadata.to_pybytes()):
                raise _unreadable(path, "it is compressed, which a recording never is")
            batch = ipc.read_record_batch(message, schema)
            batch.validate()
        except StopIteration:
            return
        except (pa.ArrowException, OSError, struct.error):
            yield None
            return
        yield batch


def _is_compressed(metadata: bytes) -> bool:
    """Whether a RecordBatch message (a flatbuffer) names a compression. Raises struct.error when it is malformed."""

    def slot(table: int, number: int) -> int:
        """Where the field of that number stands, 0 when it is not there."""
        fields = table - struct.unpack_from("<i", metadata, table)[0]
        if 4 + 2 * number >= struct.unpack_from("<H", metadata, fields)[0]:
            return 0
        offset: int = struct.unpack_from("<H", metadata, fields + 4 + 2 * number)[0]
        return table + offset if offset else 0

    header = slot(struct.unpack_from("<I", metadata, 0)[0], _HEADER)
    return not header or slot(header + struct.unpack_from("<I", metadata, header)[0], _COMPRESSION) != 0


def _values(path: Path, array: pa.Array, dtype: str) -> Array:
    buffer = array.buffers()[1]
    if not len(array):
        return np.empty(0, dtype)
    if buffer is None:
        raise _unreadable(path, "a column without values")
    try:
        return np.frombuffer(buffer, dtype, len(array), array.offset * np.dtype(dtype).itemsize)
    except ValueError as error:
        raise _unreadable(path, str(error)) from error


def _unreadable(path: Path, why: str) -> Unreadable:
    return Unreadable(f"cannot read {path.name} of {path.parent}", why, "record or convert the trace again")
