"""Columns into Arrow IPC files and streams; `inspector.trace.arrow_reader` reads them, and trusts nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from inspector.trace.table import Array


def write_columns(path: Path, columns: Mapping[str, Array]) -> None:
    """One Arrow IPC file of one batch, readable by its owner only; OSError as the system gives it."""
    _write(path, pa.RecordBatch.from_arrays([_numbers(values) for values in columns.values()], names=list(columns)))


def write_texts(path: Path, texts: Sequence[str]) -> None:
    """One Arrow IPC file with one column `text`; as bytes where a text has half a surrogate pair, which UTF-8 lacks."""
    try:
        array = _texts([text.encode() for text in texts], pa.large_string())
    except UnicodeEncodeError:
        array = _texts([text.encode("utf-8", "surrogatepass") for text in texts], pa.large_binary())
    _write(path, pa.RecordBatch.from_arrays([array], names=["text"]))


def _numbers(values: Array) -> pa.Array:
    # Not by pa.array, which imports pandas where there is one: half a second, and memory for as long as we record.
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(np.ascontiguousarray(values))]
    )


def _texts(data: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    ends = np.cumsum([0, *map(len, data)], dtype=np.int64)
    return pa.Array.from_buffers(kind, len(data), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(data))])


class StreamWriter:
    """An Arrow IPC stream that grows by whole batches, each of them in the file when the call returns.

    Each batch carries in its metadata how far its source had been read: `to`, in decimal digits. A batch that the disk
    does not take is cut off again. Raises OSError, FileExistsError among them.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        self._size = 0
        # Arrow writes a batch in many small pieces; ours go to the file in one.
        self._piece = io.BytesIO()
        self._writer: ipc.RecordBatchStreamWriter | None = None

    def append(self, columns: Mapping[str, Array], to: int) -> None:
        """Append rows: the same columns with the same dtypes each time."""
        self._append([_numbers(values) for values in columns.values()], list(columns), to)

    def append_texts(self, texts: Sequence[str], to: int) -> None:
        """Append texts, in a column `text`, as bytes: which of them UTF-8 cannot hold is not known beforehand."""
        data = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._append([_texts(data, pa.large_binary())], ["text"], to)

    def close(self) -> None:
        """End the stream. One that was not closed is read as well."""
        try:
            if self._writer is not None:
                self._writer.close()
                self._flush()
        finally:
            os.close(self._file)

    def _append(self, arrays: list[pa.Array], names: list[str], to: int) -> None:
        batch = pa.RecordBatch.from_arrays(arrays, names=names)
        if self._writer is None:
            self._writer = ipc.new_stream(pa.PythonFile(self._piece, "w"), batch.schema)
        self._writer.write_batch(batch, custom_metadata={"to": str(to)})
        self._flush()

    def _flush(self) -> None:
        piece = self._piece.getvalue()
        self._piece.seek(0)
        self._piece.truncate()
        try:
            written = 0
            while written < len(piece):
                written += os.write(self._file, memoryview(piece)[written:])
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(piece)


def _write(path: Path, batch: pa.RecordBatch) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    options = ipc.IpcWriteOptions(allow_64bit=True)
    with pa.OSFile(os.fsencode(path), "wb") as sink, ipc.new_file(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
