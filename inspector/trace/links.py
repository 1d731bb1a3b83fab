"""Which launch call started which work: by (process, correlation id), never by the id alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import WORK_TABLES

if TYPE_CHECKING:
    from inspector.trace.table import Array
    from inspector.trace.trace import Trace

Rows = npt.NDArray[np.int32]


def process_of(trace: Trace, table: str) -> Array:
    """Rows of processes for every row of a work table or of host_calls, int32; -1 unknown."""
    if table in WORK_TABLES:
        owners, rows = trace["streams"]["process"], trace[table]["stream"]
    else:
        owners, rows = trace["threads"]["process"], trace[table]["thread"]
    if not len(owners):
        return np.full(len(rows), -1, np.int32)
    return np.where(rows >= 0, owners[rows], -1).astype(np.int32)


@dataclass(frozen=True)
class Links:
    """For each work table, row of host_calls that launched each row, int32; -1 no launch call in the trace."""

    launch: dict[str, Rows]

    @classmethod
    def build(cls, trace: Trace) -> Links:
        """Join on (process, correlation). Of several calls with one id (a runtime call and the driver call inside it)
        the outermost is the launch, since it is what the thread was doing.
        """
        calls = trace["host_calls"]
        keys, rows = _keys(process_of(trace, "host_calls"), calls["correlation"])
        # Calls are sorted by start, so the first of equal keys is the outermost; equal starts: the longer one.
        if len(keys):
            order = np.argsort(keys, kind="stable")
            keys, rows = keys[order], rows[order]
            first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
            for at in np.flatnonzero(np.diff(np.r_[first, len(keys)]) > 1).tolist():
                same = rows[first[at] : first[at + 1] if at + 1 < len(first) else len(keys)]
                start, end = calls["start"][same], calls["end"][same]
                best = same[np.lexsort((-end, start))[0]]
                rows[first[at]] = best
            keys, rows = keys[first], rows[first]
        launch = {}
        for table in WORK_TABLES:
            wanted, _ = _keys(process_of(trace, table), trace[table]["correlation"], keep_all=True)
            at = np.searchsorted(keys, wanted)
            at[at == len(keys)] = 0
            hit = (keys[at] == wanted) & (wanted >= 0) if len(keys) else np.zeros(len(wanted), bool)
            launch[table] = np.where(hit, rows[at] if len(rows) else -1, -1).astype(np.int32)
        return cls(launch)

    def started_by(self, trace: Trace, call: int) -> list[tuple[str, Rows]]:
        """The work that a row of host_calls launched: (table, rows) for each table that has some."""
        found = [(table, np.flatnonzero(rows == call).astype(np.int32)) for table, rows in self.launch.items()]
        return [(table, rows) for table, rows in found if len(rows)]


def _keys(processes: Array, correlations: Array, keep_all: bool = False) -> tuple[Array, Array]:
    """One int64 per row that is equal where (process, correlation) are; -1 where there is no link."""
    linked = (correlations > 0) & (processes >= 0)
    if len(correlations) and int(correlations.max(initial=0)) >= 1 << 40:
        # Correlation ids are 32-bit in CUPTI; where a format has wider ones, number the pairs instead.
        raise OverflowError("correlation id")
    keys = np.where(linked, processes.astype(np.int64) << 40 | correlations, -1)
    rows = np.arange(len(keys))
    return (keys, rows) if keep_all else (keys[linked], rows[linked])
