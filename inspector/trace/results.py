"""Tables that another program worked out and that this one shows as they are: results, not records.

They stand beside the tables of a trace and enter none of its sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from inspector.trace.table import Array


@dataclass(frozen=True)
class ResultColumn:
    """One column: `values` are int64 or float64, or int32 rows of `texts` where that is given (-1 none).

    `name` is as the file has it, `unit` 'ns', 'bytes', '%' or '' (a number of its own, or not known), `meaning` our
    reading of it, '' where we have none. `is_moment`: a time of a clock, not a length. `absent` is true for rows where
    the file has no value; None when it has all.
    """

    name: str
    values: Array
    texts: Sequence[str] | None = None
    absent: Array | None = None
    unit: str = ""
    meaning: str = ""
    is_moment: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def at(self, row: int) -> int | float | str | None:
        """The value of a row; None where there is none."""
        if self.absent is not None and self.absent[row]:
            return None
        if self.texts is not None:
            code = int(self.values[row])
            return self.texts[code] if code >= 0 else None
        value = self.values[row]
        return int(value) if self.values.dtype.kind == "i" else float(value)


@dataclass(frozen=True)
class Spans:
    """Where the rows of a table lie in the trace: `start` and `end` (trace time, ns, int64) where `known`; rows of
    `threads` that their ranges are drawn on and of `devices` that they tell of, -1 none (int32).
    """

    start: Array
    end: Array
    known: Array
    thread: Array
    device: Array

    def moved(self, ns: int, threads: int = 0, devices: int = 0) -> Spans:
        """So much later, and so many rows further down."""
        thread = np.where(self.thread >= 0, self.thread + np.int32(threads), self.thread)
        device = np.where(self.device >= 0, self.device + np.int32(devices), self.device)
        return replace(self, start=self.start + ns, end=self.end + ns, thread=thread, device=device)


@dataclass(frozen=True)
class ResultTable:
    """One output, `name` as its file is called; its columns are of one length. `note` says what about it is not usual.

    `report` is the place of the column that tells which report a row is of; -1 none. `rows_in_file` is above the number
    of rows where not all were read. `spans` where its rows lie in time; None where they do not.
    """

    name: str
    columns: tuple[ResultColumn, ...]
    rows_in_file: int
    note: str = ""
    report: int = -1
    spans: Spans | None = None

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0


@dataclass(frozen=True)
class Results:
    """What one run of `recipe` left. `reports` are the names of the reports that it was run over, by their number.

    `details` holds what it says of its run, for people.
    """

    recipe: str
    title: str
    tables: tuple[ResultTable, ...]
    reports: tuple[str, ...] = ()
    details: dict[str, str] = field(default_factory=dict)
    description: str = ""

    def moved(self, ns: int, threads: int = 0, devices: int = 0) -> Results:
        """With what lies in time so much later, and so many rows further down."""
        tables = [
            table if table.spans is None else replace(table, spans=table.spans.moved(ns, threads, devices))
            for table in self.tables
        ]
        return replace(self, tables=tuple(tables))
