"""What every way of opening a recording shares: what its header says, and its files once it is compacted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from inspector.configuration import settings
from inspector.errors import Unreadable
from inspector.readers.reader import Progress, Report
from inspector.readers.recording.fitting import fitting, unreadable
from inspector.readers.recording.results import read_results
from inspector.readers.recording.streams import is_closed, note_clocks, read_streams, start_epoch
from inspector.trace.arrow_reader import read_columns, read_texts
from inspector.trace.guarded import GuardedTable
from inspector.trace.header import Header
from inspector.trace.names import Names
from inspector.trace.quality import CODES, Note, Quality
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Array
from inspector.trace.trace import Trace, TraceInfo

NAME = "recording"
_SAID = {
    "recording": ("absent", "it is still being recorded: what comes from now on is not in it"),
    "recovered": ("recovered", "the recording was not closed: what had been written by then is here"),
}


def info_of(path: Path, head: Header) -> TraceInfo:
    """What the header says of the trace."""
    started = start_epoch(head) if head.state != "complete" else head.info.start_epoch_ns
    return TraceInfo(
        paths=(str(path),),
        kind=NAME,
        producer=head.info.producer,
        schema_version=head.info.schema_version,
        origin_ns=head.info.origin_ns,
        duration_ns=head.info.duration_ns,
        start_epoch_ns=started,
        basis=head.info.basis,
        details=head.info.details,
        missing=head.info.missing,
        configuration=settings.of(head.configuration),
    )


def notes_of(path: Path, head: Header) -> Quality:
    """The header's notes. Raises Unreadable for one of a kind that is not known."""
    quality = Quality()
    for said in head.quality:
        if said.code not in CODES:
            raise Unreadable(f"cannot read {path}", f"its note {said.code!r} is not known", "update the program")
        quality.notes.append(Note(said.code, said.count, said.text, said.first))
    for note in settings.of(head.configuration).notes:
        quality.add("ignored", note)
    return quality


def said_of_end(state: str, quality: Quality) -> None:
    """Note how the recording ended, where it did not end as it should."""
    if state in _SAID:
        quality.add(*_SAID[state])


def compacted(path: Path, folder: Path, head: Header, report: Report) -> Trace:
    """A complete recording: nothing is read but the names, the rest is mapped. Raises Unreadable."""
    quality = notes_of(path, head)
    report(Progress("opening", 0, 0, sum(head.rows.values())))
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
    results = read_results(folder, head, quality)
    trace = Trace(info_of(path, head), tables, names, quality)
    trace.results = results
    return trace


def uncompacted(path: Path, folder: Path, head: Header, is_live: bool, report: Report) -> Trace:
    """A recording that still goes on, broke off, or was too large to be compacted. Raises Unreadable, Cancelled."""
    state = "complete" if is_closed(head) else "recording" if is_live else "recovered"
    report(Progress("opening"))
    streams = read_streams(folder, head, is_live, report)
    notes = notes_of(path, head)
    said_of_end(state, notes)
    note_clocks(head, notes)
    info = info_of(path, head)
    return streams.growth.trace(replace(info, details={**info.details, "state": state}), None, notes)


def _columns(folder: Path, name: str, rows: int, quality: Quality) -> Mapping[str, Array]:
    path = folder / f"{name}.arrow"
    batches, whole = read_columns(path)
    if not whole or len(batches) != 1:
        raise unreadable(path, "it breaks off")
    found = fitting(path, name, batches[0], quality)
    if len(next(iter(found.values()))) != rows:
        raise unreadable(path, f"it does not have the {rows} rows that it should")
    return found
