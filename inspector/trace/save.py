"""A trace written as a recording: all of it or nothing, and never over something else."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePath

from inspector.errors import InspectorError, Unreadable, Usage
from inspector.trace import header
from inspector.trace.arrow import write_columns, write_texts
from inspector.trace.header import Anchor, Header, Info, Said, SavedResults
from inspector.trace.save_results import write_results
from inspector.trace.trace import Trace

SUFFIX = ".inflight"
_NO_LAYERS = "layers of engines: they are in the files of trtexec, not in this recording"
Report = Callable[[int, int], None]
"""Called with (bytes written, bytes in all) between tables; what it raises ends the writing."""


def _silent(done: int, total: int) -> None:
    """A Report that goes nowhere."""


def save(trace: Trace, path: Path, report: Report = _silent) -> None:
    """Write `trace` as the recording `path`, a folder NAME.inflight; one that is there already is replaced.

    The folder is made beside `path` under another name and renamed when it is whole. Raises Usage when something else
    than a finished recording stands at `path`, InspectorError when the disk does not take it; then nothing is left.
    """
    path = Path(os.path.abspath(path))
    has_records = any(len(table) for table in trace.tables.values())
    if trace.layers and not trace.results and not has_records:
        raise Usage("layers of an engine are no records", "a recording holds records", "keep the files as they are")
    _refuse_other(path)
    part: Path | None = None
    try:
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        _write(trace, part, report)
        _replace(path, part)
    except OSError as error:
        raise InspectorError(
            f"cannot save {path}", error.strerror or str(error), "choose a place with room that may be written"
        ) from error
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


def _refuse_other(path: Path) -> None:
    if not os.path.lexists(path):
        return
    try:
        if not path.is_symlink() and path.is_dir() and not any(path.iterdir()):
            return
        state = header.read(path).state
    except (OSError, Unreadable) as error:
        raise Usage(f"{path} is there and is no recording", "", "choose another name") from error
    if path.is_symlink():
        raise Usage(f"{path} is a link", "", "name the folder itself")
    if state == "recording":
        raise Usage(f"{path} is still being recorded", "", "choose another name")


def write_tables(trace: Trace, folder: Path, report: Report = _silent) -> None:
    """Write `<table>.arrow` for every table that has rows, and names.arrow, into `folder`. Raises OSError."""
    done, total = 0, trace.nbytes()
    for name, table in trace.tables.items():
        if len(table):
            write_columns(folder / f"{name}.arrow", table.columns)
            done += table.nbytes()
            report(done, total)
    write_texts(folder / "names.arrow", trace.names.texts)


def _write(trace: Trace, folder: Path, report: Report) -> None:
    write_tables(trace, folder, report)
    encoded = header.encode(_header(trace, write_results(trace.results, folder)))
    if len(encoded) > header.MOST_BYTES:
        why = f"its tables have so many columns and reports that their names take {len(encoded):,} bytes"
        raise Usage("these results cannot be saved", why, "keep the folder as it is")
    # Last, so that a folder with a header is a whole one.
    file = os.open(folder / header.NAME, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(file, "wb") as out:
        out.write(encoded)


def _header(trace: Trace, results: list[SavedResults]) -> Header:
    info = trace.info
    details = dict(info.details)
    if info.kind != "recording":
        files = ", ".join(PurePath(path).name for path in info.paths)
        details["converted from"] = f"{info.kind} {files}"
    clock = []
    if info.start_epoch_ns is not None:
        clock = [
            Anchor(info.origin_ns, info.start_epoch_ns),
            Anchor(info.origin_ns + info.duration_ns, info.start_epoch_ns + info.duration_ns),
        ]
    return Header(
        format=header.FORMAT,
        state="complete",
        producers=["convert"],
        clock=clock,
        info=Info(
            producer=info.producer,
            schema_version=info.schema_version,
            origin_ns=info.origin_ns,
            duration_ns=info.duration_ns,
            start_epoch_ns=info.start_epoch_ns,
            basis=info.basis,
            details=details,
            missing=dict(info.missing),
        ),
        rows={name: len(table) for name, table in trace.tables.items() if len(table)},
        names=len(trace.names),
        quality=[
            *(Said(note.code, note.count, note.text, note.first) for note in trace.quality.notes),
            *([Said("ignored", len(trace.layers), _NO_LAYERS, "")] if trace.layers else []),
        ],
        configuration=list(info.configuration),
        results=results,
    )


def _replace(path: Path, part: Path) -> None:
    """Put the folder `part` at `path`. A recording there makes room first, and comes back should that fail."""
    if not path.exists() or not any(path.iterdir()):
        part.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".old", dir=path.parent))
    path.rename(old)
    try:
        part.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
