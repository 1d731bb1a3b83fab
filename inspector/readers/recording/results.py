"""Tables of recipe results out of a recording. All of it is hostile: a table that does not fit its head is left out.

They are copied, so that nothing of what was checked changes afterwards, within a bound of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from inspector.errors import Unreadable
from inspector.readers.recording.fitting import unreadable
from inspector.trace.arrow_reader import read_columns, read_texts
from inspector.trace.header import TIME_LIMIT_NS, Header, SavedColumn, SavedTable
from inspector.trace.quality import Quality
from inspector.trace.results import ResultColumn, Results, ResultTable, Spans
from inspector.trace.save_results import files_of
from inspector.trace.table import Array

MOST_BYTES = 1 << 30
"""Of all the tables of a recording."""
_UNITS = ("ns", "bytes", "%", "Hz", "")


def read_results(folder: Path, head: Header, quality: Quality) -> tuple[Results, ...]:
    """What the header names. What cannot be read, or is beyond the bound, is noted and left out."""
    found = []
    left = MOST_BYTES
    for run, saved in enumerate(head.results):
        tables = []
        for at, table in enumerate(saved.tables):
            numbers, texts = (folder / name for name in files_of(run, at))
            try:
                size = sum(path.stat().st_size for path in (numbers, texts)) if table.columns else 0
                if size > left:
                    quality.add("ignored", "tables of results beyond 1 GiB are not shown", first=table.name)
                    continue
                left -= size
                tables.append(_table(table, numbers, texts, head))
            except (Unreadable, OSError) as error:
                quality.add("invalid", f"a table of results is not shown: {error}", first=table.name)
        found.append(
            Results(
                saved.recipe, saved.title, tuple(tables), tuple(saved.reports), dict(saved.details), saved.description
            )
        )
    return tuple(found)


def _table(saved: SavedTable, numbers: Path, texts: Path, head: Header) -> ResultTable:
    if not saved.columns:
        return ResultTable(saved.name, (), saved.rows_in_file, saved.note)
    batches, whole = read_columns(numbers)
    if not whole or len(batches) != 1:
        raise unreadable(numbers, "it breaks off")
    words, whole = read_texts(texts)
    if not whole or len(words) != sum(max(column.texts, 0) for column in saved.columns):
        raise unreadable(texts, "it does not hold the texts that it should")
    found = batches[0]
    if any(len(values) != saved.rows for values in found.values()):
        raise unreadable(numbers, f"it does not have the {saved.rows} rows that it should")
    columns = []
    for at, column in enumerate(saved.columns):
        count = max(column.texts, 0)
        columns.append(_column(numbers, found, at, column, words[:count]))
        words = words[count:]
    report = saved.report if -1 <= saved.report < len(columns) else -1
    report = report if report < 0 or columns[report].texts is None else -1
    spans = _spans(numbers, found, head) if saved.has_spans else None
    return ResultTable(saved.name, tuple(columns), saved.rows_in_file, saved.note, report, spans)


def _column(path: Path, found: Mapping[str, Array], at: int, saved: SavedColumn, words: list[str]) -> ResultColumn:
    is_text = saved.texts >= 0
    values = _own(path, found, f"values {at}", ("int32",) if is_text else ("int64", "float64"))
    absent = _own(path, found, f"absent {at}", ("int8",)) != 0 if saved.has_absent else None
    if is_text and len(values) and not (int(values.min()) >= -1 and int(values.max()) < len(words)):
        raise unreadable(path, f"column {at} names texts that are not there")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        # Formats for people know numbers only.
        absent = ~np.isfinite(values) if absent is None else absent | ~np.isfinite(values)
    unit = saved.unit if saved.unit in _UNITS else ""
    return ResultColumn(
        saved.name, values, words if is_text else None, absent, unit, saved.meaning, saved.is_moment and not is_text
    )


def _spans(path: Path, found: Mapping[str, Array], head: Header) -> Spans:
    start, end = (_own(path, found, name, ("int64",)) for name in ("start", "end"))
    thread, device = (_own(path, found, name, ("int32",)) for name in ("thread", "device"))
    known = _own(path, found, "known", ("int8",)) != 0
    fits = (start <= end) & (start >= -TIME_LIMIT_NS) & (end <= TIME_LIMIT_NS)
    for rows, table in ((thread, "threads"), (device, "devices")):
        fits &= (rows >= -1) & (rows < head.rows.get(table, 0))
    if (known & ~fits).any():
        raise unreadable(path, "its rows lie where the trace has no place")
    return Spans(start, end, known, np.where(known, thread, np.int32(-1)), np.where(known, device, np.int32(-1)))


def _own(path: Path, found: Mapping[str, Array], name: str, kinds: tuple[str, ...]) -> Array:
    values = found.get(name)
    if values is None or values.dtype.name not in kinds:
        raise unreadable(path, f"it has no column {name!r} of {' or '.join(kinds)}")
    return np.array(values)
