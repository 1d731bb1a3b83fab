"""Between which moments the rows of a recording lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from inspector.trace.builder import FAR_NS
from inspector.trace.schema import SCHEMAS, TableSchema
from inspector.trace.table import Array, Table

Int = npt.NDArray[np.int64]
# Their times say nothing of how long the recording is.
_TIMELESS = ("rejected", "event_records", "flows")


def last_moment(table: Table, since: int = 0) -> int:
    """The last moment of a table's rows from `since` on; 0 for those that tell nothing."""
    key = _told_by(table.schema)
    if key is None or len(table) <= since:
        return 0
    return int(table["end"][since:].max() if "end" in table else table[key][-1])


def first_moment(read: Sequence[Mapping[str, Mapping[str, Array]]]) -> int | None:
    """When the first record began, of those that can be; None without any. Of rows by table, as records tell times."""
    times = []
    for tables in read:
        for name, columns in tables.items():
            key = _told_by(SCHEMAS[name])
            if key is not None:
                fits = columns[key] <= columns["end"] if "end" in columns else slice(None)
                times.append(columns[key][fits])
    every = np.concatenate(times) if times else np.empty(0, np.int64)
    if not len(every):
        return None
    middle = float(np.partition(every, len(every) // 2)[len(every) // 2])
    near: Int = every[np.abs(every.astype(np.float64) - middle) <= FAR_NS]
    return int(near.min())


def _told_by(schema: TableSchema) -> str | None:
    """The column that says when a row began; None where rows say nothing of the recording's time."""
    key = schema.sorted_by
    return key if schema.name not in _TIMELESS and key is not None and schema.column(key).unit == "ns" else None
