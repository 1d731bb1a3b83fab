"""Tables of recipe results as files of a recording: numbers and texts in Arrow files, all else in the header."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inspector.trace.arrow import write_columns, write_texts
from inspector.trace.header import SavedColumn, SavedResults, SavedTable
from inspector.trace.results import ResultColumn, Results, ResultTable
from inspector.trace.table import Array


def files_of(run: int, table: int) -> tuple[str, str]:
    """What the files of a table are called: numbers, texts. Nothing in them comes from its own name."""
    return f"result-{run}-{table}.arrow", f"result-{run}-{table}-texts.arrow"


def write_results(found: Sequence[Results], folder: Path) -> list[SavedResults]:
    """Write the tables into `folder`; what the header says of them. Raises OSError."""
    saved = []
    for run, results in enumerate(found):
        tables = [_write(table, folder, files_of(run, at)) for at, table in enumerate(results.tables)]
        saved.append(
            SavedResults(
                results.recipe, results.title, tables, list(results.reports), dict(results.details), results.description
            )
        )
    return saved


def _write(table: ResultTable, folder: Path, files: tuple[str, str]) -> SavedTable:
    columns: dict[str, Array] = {}
    texts: list[str] = []
    for at, column in enumerate(table.columns):
        columns[f"values {at}"] = column.values
        if column.absent is not None:
            columns[f"absent {at}"] = column.absent.astype(np.int8)
        texts += column.texts or ()
    if table.spans is not None:
        spans = table.spans
        columns |= {"start": spans.start, "end": spans.end, "known": spans.known.astype(np.int8)}
        columns |= {"thread": spans.thread, "device": spans.device}
    if columns:
        write_columns(folder / files[0], columns)
        write_texts(folder / files[1], texts)
    heads = [_head(column) for column in table.columns]
    return SavedTable(
        table.name, heads, len(table), table.rows_in_file, table.note, table.report, table.spans is not None
    )


def _head(column: ResultColumn) -> SavedColumn:
    texts = -1 if column.texts is None else len(column.texts)
    return SavedColumn(column.name, texts, column.absent is not None, column.unit, column.meaning, column.is_moment)
