"""Several files of one job as one trace: rows renumbered, clocks aligned by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inspector.configuration.settings import merged as configurations_merged
from inspector.trace.layer_join import joined
from inspector.trace.names import Names
from inspector.trace.quality import Quality
from inspector.trace.results import Results
from inspector.trace.schema import NEVER, SCHEMAS
from inspector.trace.table import Array, Table
from inspector.trace.trace import Trace
from inspector.trace.unite import runs, unite


def merge(traces: Sequence[Trace]) -> Trace:
    """One trace of `traces`, which are left as they are; a single one is returned unchanged.

    Files with an epoch are put on the wall clock. If one has none, all start at 0 and a note says so. Where two files
    use one device number (each rank sees its GPU as 0), later ones get the next free number and a note says so.
    A recording and a profile of the same run share their devices, processes and threads.
    """
    if len(traces) == 1:
        return traces[0]
    names, quality = Names(), Quality()
    epochs = [trace.info.start_epoch_ns for trace in traces]
    # Layers of an engine are at no time: what comes with them keeps its clock.
    timed = [trace for trace in traces if not trace.layers]
    known = [epoch for epoch in epochs if epoch is not None]
    aligned = len(known) == len(timed)
    base = min(known, default=0) if aligned else 0
    if not aligned:
        quality.add("unaligned", "files without a wall clock: each starts at 0")
    shifts = [epoch - base if aligned and epoch is not None else 0 for epoch in epochs]
    columns: dict[str, dict[str, list[Array]]] = {name: {} for name in SCHEMAS}
    offsets = dict.fromkeys(SCHEMAS, 0)
    given: dict[tuple[int, int, str], int] = {}
    run_of = runs(traces) if aligned else list(range(len(traces)))
    is_shared = any(run != source for source, run in enumerate(run_of))
    if is_shared:
        quality.add("assumed", "a recording and a profile of one run are laid together by the wall clock")
    results: list[Results] = []
    for source, (trace, shift) in enumerate(zip(traces, shifts, strict=True)):
        results += [each.moved(shift, offsets["threads"], offsets["devices"]) for each in trace.results]
        # One more entry at the end answers for -1.
        new_names = np.append(names.add_all(trace.names.texts), np.int32(-1))
        for note in trace.quality.notes:
            quality.add(note.code, note.text, note.count, note.first)
        for name, table in trace.tables.items():
            if not len(table):
                continue
            for column in table.schema.columns:
                if column.optional and column.name != "source" and not any(column.name in t[name] for t in traces):
                    continue
                values = table.get(column.name)
                if column.name == "source":
                    values = np.full(len(table), source, np.int32)
                elif column.refers == "names":
                    values = new_names[values]
                elif column.refers:
                    values = np.where(values >= 0, values + offsets[column.refers], -1)
                elif column.may_be_never:
                    values = np.where(values == NEVER, NEVER, values + shift)
                elif column.is_moment:
                    values = values + shift
                elif (name, column.name) == ("devices", "number"):
                    called = [trace.names[name] for name in table["name"].tolist()]
                    values = _renumbered(values, called, run_of[source], given, quality)
                columns[name].setdefault(column.name, []).append(values)
        for name, table in trace.tables.items():
            offsets[name] += len(table)
    merged = {
        name: {key: np.concatenate(values) for key, values in parts.items()} for name, parts in columns.items() if parts
    }
    if is_shared:
        unite(merged, run_of, names)
    for name in merged:
        _sort(name, merged)
    tables = {name: Table(name, found) for name, found in merged.items()}
    first = (timed or traces)[0].info
    info = replace(
        first,
        paths=tuple(path for trace in traces for path in trace.info.paths),
        origin_ns=0
        if any(t.info.origin_ns - s != first.origin_ns for t, s in zip(traces, shifts, strict=True) if not t.layers)
        else first.origin_ns,
        start_epoch_ns=base if aligned and known else None,
        duration_ns=max(trace.info.duration_ns + shift for trace, shift in zip(traces, shifts, strict=True)),
        basis="simulated" if any(trace.info.basis == "simulated" for trace in traces) else first.basis,
        missing={
            table: why
            for trace in reversed(traces)
            for table, why in trace.info.missing.items()
            if not len(tables.get(table, ()))
        },
        configuration=configurations_merged(trace.info.configuration for trace in traces),
    )
    layers = joined([engine for trace in traces for engine in trace.layers], quality)
    whole = Trace(info, tables, names, quality)
    whole.results = tuple(results)
    whole.layers = layers
    return whole


def _sort(name: str, tables: dict[str, dict[str, Array]]) -> None:
    """Sort a table, and let what refers to its rows follow."""
    key = SCHEMAS[name].sorted_by
    if key is None:
        return
    order = np.argsort(tables[name][key], kind="stable")
    for column, values in tables[name].items():
        tables[name][column] = values[order]
    # One more entry at the end answers for -1.
    now = np.full(len(order) + 1, -1, np.int32)
    now[order] = np.arange(len(order))
    for other, columns in tables.items():
        for referring in SCHEMAS[other].columns:
            if referring.refers == name and referring.name in columns:
                columns[referring.name] = now[columns[referring.name]]


def _renumbered(
    numbers: Array, called: list[str], run: int, given: dict[tuple[int, int, str], int], quality: Quality
) -> Array:
    """Numbers that are unique in the trace; what was `given` to others, by run, own number and name, grows.

    A GPU of a run that another file knows has the number that it has there.
    """
    result = []
    used, before = set(given.values()), dict(given)
    for number, name in zip(numbers.tolist(), called, strict=True):
        known = before.get((run, number, name))
        if known is not None:
            result.append(known)
            continue
        free = number
        while free in used:
            free += 1
        if free != number:
            quality.add("assumed", "device numbers that two files share: the later file's GPU got the next free number")
        used.add(free)
        given[run, number, name] = free
        result.append(free)
    return np.array(result, np.int32)
