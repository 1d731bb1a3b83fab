"""Rows of results that are times on a GPU, as rows of the timeline: ranges of a thread of their own, never work.

Results are not the records that they were made from: nothing here makes a GPU busy or idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inspector.readers.nsys_recipe.meaning import RECIPES, plain_name
from inspector.trace.builder import FAR_NS, Builder
from inspector.trace.results import ResultColumn, Results, ResultTable, Spans
from inspector.trace.schema import RANGE_KINDS
from inspector.trace.table import Array

_STARTS = ("projected start", "start")
_LENGTHS = ("projected duration", "duration")
_NAMES = ("name", "text", "type", "kind", "cause", "kernel")
_DEVICES = ("device id", "deviceid", "device", "gpu")
_METRICS = "gpu_metric_util_map"
# Ranges that were projected may overlap without lying in each other.
_KIND = RANGE_KINDS.index("nvtx start/end")
# Numbers below 0 are not shown.
_NO_PID = -1
_FAR = 1 << 61


def add_intervals(builder: Builder, results: Results, numbers: dict[tuple[int, int], int]) -> Results:
    """Add what of `results` lies in time to `builder`; the results with where that is, on the file's own clock.

    `numbers` gives (report, GPU) a device number, and grows.
    """
    known = RECIPES.get(results.recipe)
    if known is None:
        return results
    shift = _shifts(results)
    tables = []
    for table in results.tables:
        columns = {plain_name(column.name): column for column in reversed(table.columns)}
        spans = None
        if results.recipe == _METRICS:
            spans = _add_metrics(builder, results, columns, numbers)
        elif known.draws:
            spans = _add_ranges(builder, results, table, columns, known.draws, shift)
        tables.append(replace(table, spans=spans))
    return replace(results, tables=tuple(tables))


def _add_ranges(
    builder: Builder,
    results: Results,
    table: ResultTable,
    columns: dict[str, ResultColumn],
    draws: str,
    shift: Sequence[int],
) -> Spans | None:
    start, length = _first(columns, _STARTS), _first(columns, _LENGTHS)
    end = columns.get("end") if length is None else None
    if start is None or (length is None and end is None):
        return None
    begun, ended = _whole(start), _whole(length or end or start)
    usable = ~(_missing(start) | _missing(length or end or start))
    if length is not None:
        usable &= np.abs(ended) <= FAR_NS
        ended = begun + np.where(usable, ended, 0)
    reports = _report_of(table, columns)
    usable &= (np.abs(begun) < _FAR) & (np.abs(ended) < _FAR)
    if not usable.all():
        builder.quality.add(
            "invalid",
            f"rows of {results.recipe} {table.name} without a time: in the table only",
            int(np.count_nonzero(~usable)),
        )
    gpu, pid, tid = _first(columns, _DEVICES), columns.get("pid"), columns.get("tid")
    owners = [_whole(each) if each is not None else np.full(len(table), -1, np.int64) for each in (gpu, pid, tid)]
    keys = np.stack([reports, *owners])
    names = _names(builder, _first(columns, _NAMES), len(table), draws)
    found, owner = np.unique(keys[:, usable], axis=1, return_inverse=True)
    threads = np.array(
        [_thread(builder, results, draws, key) for key in found.T.tolist()] or [-1],
        np.int32,
    )
    late = np.array([shift[report] if 0 <= report < len(shift) else 0 for report in reports.tolist()], np.int64)
    rows = {"start": begun + late, "end": ended + late, "name": names, "thread": np.full(len(table), -1, np.int32)}
    rows["thread"][usable] = threads[owner.reshape(-1)]
    wrong = usable & (rows["end"] < rows["start"])
    builder.reject("ranges", "ends before it starts", rows, wrong)
    keep = usable & ~wrong
    builder.add("ranges", **{key: values[keep] for key, values in rows.items()}, kind=_KIND, domain=-1)
    return Spans(rows["start"], rows["end"], keep, rows["thread"], np.full(len(table), -1, np.int32))


def _thread(builder: Builder, results: Results, draws: str, key: Sequence[int]) -> int:
    report, gpu, pid, tid = key
    name = results.reports[report] if 0 <= report < len(results.reports) else results.title
    # A report that names no process still is one: to nsys it is what a rank is.
    process = builder.process(max(pid, _NO_PID), name, report, max(report, 0))
    where = f"GPU {gpu}: " if gpu >= 0 else ""
    whose = ", thread" if tid >= 0 else ""
    return builder.thread(process, tid if tid >= 0 else _NO_PID - max(gpu, 0), f"{where}{draws}{whose}")


def _add_metrics(
    builder: Builder, results: Results, columns: dict[str, ResultColumn], numbers: dict[tuple[int, int], int]
) -> Spans | None:
    time, gpu = columns.get("duration"), _first(columns, _DEVICES)
    if time is None or gpu is None or time.texts is not None or gpu.texts is not None:
        return None
    report = columns.get("rank")
    reports = _whole(report) if report is not None else np.zeros(len(gpu), np.int64)
    owners, owner = np.unique(np.stack([reports, _whole(gpu)]), axis=1, return_inverse=True)
    devices = np.full(len(gpu), -1, np.int32)
    for at, (rank, number) in enumerate(owners.T.tolist()):
        if not 0 <= number < 1 << 16:
            continue
        device = builder.device(numbers.setdefault((rank, number), _free(numbers, number)))
        devices[owner.reshape(-1) == at] = device
        for plain, column in columns.items():
            if column.unit != "%" or column.texts is not None:
                continue
            rows = (owner.reshape(-1) == at) & ~_missing(column) & ~_missing(time)
            series = builder.series(column.name, "%", device)
            moments, values = _whole(time)[rows], column.values[rows].astype(np.float64)
            order = np.argsort(moments, kind="stable")
            builder.add("counters", time=moments[order], series=series, value=values[order])
            del plain
    if owners.size:
        builder.quality.add("assumed", "utilisation is the mean over pieces of time, drawn where each begins")
    moments = _whole(time)
    known = ~_missing(time) & (np.abs(moments) < _FAR) & (devices >= 0)
    return Spans(moments, moments, known, np.full(len(gpu), -1, np.int32), devices)


def _free(numbers: dict[tuple[int, int], int], number: int) -> int:
    used = set(numbers.values())
    while number in used:
        number += 1
    return number


def _shifts(results: Results) -> list[int]:
    """How much later, ns, time 0 of each report is than that of the first: where the results say when each began."""
    files = next((table for table in results.tables if table.name == "files"), None)
    epoch = next((c for c in files.columns if plain_name(c.name) == "epoch"), None) if files is not None else None
    if epoch is None or epoch.texts is not None or not len(epoch) or _missing(epoch).any():
        return []
    begun = _whole(epoch)
    if (begun <= 0).any() or int(begun.max()) - int(begun.min()) > FAR_NS:
        return []
    return [int(value) for value in begun - begun.min()]


def _report_of(table: ResultTable, columns: dict[str, ResultColumn]) -> Array:
    report = columns.get("rank")
    return _whole(report) if report is not None else np.zeros(len(table), np.int64)


def _names(builder: Builder, column: ResultColumn | None, rows: int, draws: str) -> Array:
    if column is None or column.texts is None:
        return np.full(rows, builder.names.add(draws), np.int32)
    of_text = np.array([builder.names.add(text) for text in column.texts] + [builder.names.add(draws)], np.int32)
    return of_text[column.values]


def _whole(column: ResultColumn) -> Array:
    """As int64, -1 for what is no number."""
    if column.texts is not None:
        return np.full(len(column), -1, np.int64)
    if column.values.dtype.kind == "i":
        return np.where(_missing(column), -1, column.values).astype(np.int64)
    fits = np.isfinite(column.values) & (np.abs(column.values) < 2**62)
    return np.where(fits, np.where(fits, column.values, 0), -1).astype(np.int64)


def _missing(column: ResultColumn) -> Array:
    if column.texts is not None:
        return np.ones(len(column), bool)
    absent = column.absent if column.absent is not None else np.zeros(len(column), bool)
    if column.values.dtype.kind == "i":
        return absent
    beyond: Array = absent | ~np.isfinite(column.values) | (np.abs(column.values) >= 2**62)
    return beyond


def _first(columns: dict[str, ResultColumn], names: Sequence[str]) -> ResultColumn | None:
    return next((columns[name] for name in names if name in columns), None)
