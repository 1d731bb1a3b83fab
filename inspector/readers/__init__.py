"""All readers, and the choice between them by content."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from inspector.errors import Unreadable, Usage
from inspector.readers.reader import HEAD_BYTES, Reader, Report, silent
from inspector.trace.merge import merge
from inspector.trace.trace import Trace

READERS: tuple[str, ...] = (
    "inspector.readers.recording",
    "inspector.readers.nsys_sqlite",
    "inspector.readers.nsys_arrow",
    "inspector.readers.nsys_rep",
    "inspector.readers.nsys_recipe",
    "inspector.readers.tensorrt",
    "inspector.readers.kineto",
)


def readers() -> list[Reader]:
    """The reader modules, imported."""
    return [cast(Reader, importlib.import_module(name)) for name in READERS]


def reader_of(path: Path) -> Reader:
    """The reader that is surest of `path`; raises Unreadable when none is."""
    if path.exists() and not path.is_dir() and not path.is_file():
        raise Unreadable(f"{path} is not a file", "a trace is read at several places at once", "save it to a file")
    try:
        if path.is_dir():
            head = b""
        else:
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
    except OSError as error:
        raise Unreadable(f"cannot read {path}", error.strerror or str(error), "check the path") from error
    if not head and not path.is_dir():
        raise Unreadable(f"{path} is empty", "", "record or export the trace again")
    found = [(reader.sniff(head, path), reader) for reader in readers()]
    certainty, best = max(found, key=lambda pair: pair[0])
    if certainty <= 0:
        raise Unreadable(
            f"{path} is no trace that this program knows",
            "no Nsight Systems export or report, PyTorch or Chrome JSON trace, layers of TensorRT, or recording",
            "open the exported .sqlite, the .json(.gz) or the .inflight folder",
        )
    return best


def open_trace(*paths: str | os.PathLike[str], report: Report = silent) -> Trace:
    """Read `paths` as one trace: several files are the ranks of one job.

    Raises Unreadable, Missing, Cancelled, Usage.
    """
    if not paths:
        raise Usage("no trace given", "", "name at least one file")
    return merge([_open_one(Path(path), report) for path in paths])


def _open_one(path: Path, report: Report) -> Trace:
    try:
        return reader_of(path).read(path, report)
    except OverflowError as error:
        raise Unreadable(
            f"cannot read {path}", f"a number in it is out of range ({error})", "export it again"
        ) from error
    except MemoryError as error:
        raise Unreadable(f"cannot read {path}", "not enough memory", "export a shorter range") from error


def suffixes() -> Sequence[str]:
    """File name endings of all formats, for the open dialog."""
    return [suffix for reader in readers() for suffix in reader.SUFFIXES]
