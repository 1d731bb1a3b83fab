"""Columns into Arrow IPC files; `inspector.trace.arrow_reader` reads them, and trusts nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from inspector.trace.table import Array


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
