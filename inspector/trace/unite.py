"""What a recording and a profile of the same run both know: one process, one thread, one GPU, not two of each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from inspector.trace.names import Names
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Array
from inspector.trace.trace import Trace

_RECORDING = "recording"
Tables = dict[str, dict[str, Array]]


def runs(traces: Sequence[Trace]) -> list[int]:
    """For each trace the first one that is of the same run, itself mostly.

    A profile is of the run of a recording when both have a process of one number and their times on the wall clock
    overlap. Two recordings, or two profiles, are never taken for one run: ranks on several hosts share such numbers.
    """
    found = list(range(len(traces)))
    for at, recording in enumerate(traces):
        if recording.info.kind != _RECORDING:
            continue
        for other, profile in enumerate(traces):
            if profile.info.kind != _RECORDING and found[other] == other and _is_same(recording, profile):
                found[other] = at
    return found


def unite(tables: Tables, run_of: Sequence[int], names: Names) -> None:
    """Make one row of the rows of `tables` that are the same device, process or thread of one run, and let what refers
    to them follow. Devices of one run that are the same have one number already. Of what both know the first is kept.
    """
    by_source = np.array(run_of, np.int64)
    if "devices" in tables:
        numbers = tables["devices"]["number"].tolist()
        _one_row_each("devices", tables, names, lambda row: numbers[row])
    if "processes" in tables:
        group = by_source[tables["processes"]["source"]].tolist()
        pids = tables["processes"]["pid"].tolist()
        _one_row_each("processes", tables, names, lambda row: (group[row], pids[row]))
    if "threads" in tables:
        processes, tids = tables["threads"]["process"].tolist(), tables["threads"]["tid"].tolist()
        _one_row_each("threads", tables, names, lambda row: (processes[row], tids[row]))


def _is_same(recording: Trace, profile: Trace) -> bool:
    begins = [trace.info.start_epoch_ns for trace in (recording, profile)]
    if begins[0] is None or begins[1] is None:
        return False
    ends = begins[0] + recording.info.duration_ns, begins[1] + profile.info.duration_ns
    if max(begins[0], begins[1]) > min(ends):
        return False
    pids = [trace["processes"]["pid"] for trace in (recording, profile)]
    return bool(np.isin(pids[0][pids[0] > 0], pids[1]).any())


def _one_row_each(name: str, tables: Tables, names: Names, key: Callable[[int], Hashable]) -> None:
    columns = tables[name]
    length = len(next(iter(columns.values())))
    place: dict[Hashable, int] = {}
    # One more entry at the end answers for -1.
    now = np.full(length + 1, -1, np.int32)
    for row in range(length):
        now[row] = place.setdefault(key(row), len(place))
    if len(place) == length:
        return
    schema = SCHEMAS[name]
    for column in schema.columns:
        if column.name not in columns:
            continue
        values = columns[column.name]
        kept = np.zeros(len(place), values.dtype)
        is_known = np.ones(length, bool)
        if column.refers == "names":
            is_known = np.array([bool(names[value]) for value in values.tolist()])
        elif column.name != "source":
            is_known = values != -1
        # Backwards, so that the first row that knows it writes last; before that, those that do not.
        for rows in (np.flatnonzero(~is_known), np.flatnonzero(is_known)):
            kept[now[rows[::-1]]] = values[rows[::-1]]
        columns[column.name] = kept
    for other, parts in tables.items():
        for referring in SCHEMAS[other].columns:
            if referring.refers == name and referring.name in parts:
                parts[referring.name] = now[parts[referring.name]]
