"""Recordings: folders NAME.inflight as CONTRACT.md describes them, finished or broken off, and zips of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from inspector.errors import Unreadable
from inspector.readers.reader import Progress, Report
from inspector.readers.recording import archive
from inspector.readers.recording.fitting import fitting, unreadable
from inspector.readers.recording.streams import read_streams
from inspector.trace import header
from inspector.trace.arrow_reader import read_columns, read_texts
from inspector.trace.guarded import GuardedTable
from inspector.trace.header import Header
from inspector.trace.names import Names
from inspector.trace.quality import CODES, Note, Quality
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Array
from inspector.trace.trace import Trace, TraceInfo

NAME = "recording"
SUFFIXES = (".inflight", ".inflight.zip")


def sniff(head: bytes, path: Path) -> float:
    """Sure of a folder that holds recording.json, and of a zip of one."""
    if head.startswith(archive.MAGIC):
        return 0.9 if archive.holds_recording(path) else 0.0
    return 1.0 if not head and (path / header.NAME).is_file() else 0.0


def read(path: Path, report: Report) -> Trace:
    """Open the recording: nothing is read but the header and the names, the rest is mapped. Raises Unreadable."""
    folder = path
    if not path.is_dir():
        folder = archive.extract(path, report)
    head = header.read(folder)
    quality = Quality()
    for said in head.quality:
        if said.code not in CODES:
            raise Unreadable(f"cannot read {path}", f"its note {said.code!r} is not known", "update the program")
        quality.notes.append(Note(said.code, said.count, said.text, said.first))
    info = TraceInfo(
        paths=(str(path),),
        kind=NAME,
        producer=head.info.producer,
        schema_version=head.info.schema_version,
        origin_ns=head.info.origin_ns,
        duration_ns=head.info.duration_ns,
        start_epoch_ns=head.info.start_epoch_ns,
        basis=head.info.basis,
        details=head.info.details,
        missing=head.info.missing,
    )
    report(Progress("opening", 0, 0, sum(head.rows.values())))
    if head.state == "complete":
        return _compacted(folder, head, info, quality)
    return read_streams(folder, head, info, quality, report)


def _compacted(folder: Path, head: Header, info: TraceInfo, quality: Quality) -> Trace:
    texts, whole = read_texts(folder / "names.arrow")
    names = Names(texts)
    if not whole or len(texts) != head.names or len(names) != len(texts):
        raise unreadable(folder / "names.arrow", "it does not hold the names that it should, each once")
    if unknown := sorted(set(head.rows) - set(SCHEMAS)):
        quality.add("ignored", f"tables that this program does not know: {', '.join(unknown)}", len(unknown))
    rows = {name: head.rows.get(name, 0) for name in SCHEMAS}
    lengths = {**rows, "names": len(names)}
    tables = {
        name: GuardedTable(name, _columns(folder, name, count, quality), lengths, str(folder))
        for name, count in rows.items()
        if count
    }
    return Trace(info, tables, names, quality)


def _columns(folder: Path, name: str, rows: int, quality: Quality) -> Mapping[str, Array]:
    path = folder / f"{name}.arrow"
    batches, whole = read_columns(path)
    if not whole or len(batches) != 1:
        raise unreadable(path, "it breaks off")
    found = fitting(path, name, batches[0], quality)
    if len(next(iter(found.values()))) != rows:
        raise unreadable(path, f"it does not have the {rows} rows that it should")
    return found
