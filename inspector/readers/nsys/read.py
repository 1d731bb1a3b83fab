"""Reads all tables of an export, several parts at a time, and hands them to the builder in their order."""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from collections.abc import Collection, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from inspector.readers.nsys import device, host, metrics, nvtx
from inspector.readers.nsys.absence import missing
from inspector.readers.nsys.chunk import Chunk, Mapping
from inspector.readers.nsys.context import Context
from inspector.readers.nsys.metadata import read_metadata
from inspector.readers.nsys.notes import add_notes, details, messages
from inspector.readers.nsys.source import Batch, Part, Source, records
from inspector.readers.reader import Progress, Report
from inspector.trace.builder import Builder
from inspector.trace.schema import SCHEMAS
from inspector.trace.trace import Trace, TraceInfo

_PREFIXES = ("CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "OSRT_API", "META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_")
_GRAPHS = "CUDA graphs recorded as a whole: record with --cuda-graph-trace=node to see the kernels inside"
_REPORT_EVERY_S = 0.1
_MAX_THREADS = 4


def is_export(tables: Collection[str]) -> bool:
    """Whether a file with these tables is an Nsight Systems export."""
    return any(table.startswith(_PREFIXES) for table in tables)


def read_tables(source: Source, path: Path, kind: str, size: int, report: Report) -> Trace:
    """The trace of an export of `size` bytes. Raises Unreadable when it is damaged, Cancelled."""
    report(Progress("reading names", 0, size))
    builder = Builder()
    strings = {id_: text or "" for id_, text in records(source, "StringIds", "id", "value") if id_ is not None}
    metadata = read_metadata(source, strings)
    said = messages(source)
    add_notes(said, metadata, builder.quality)
    context = Context(source, builder, strings, metadata.ranks)
    mappings = [
        mapping
        for mapping in (*device.MAPPINGS, *host.MAPPINGS, nvtx.mapping(source, context), *metrics.mappings(source))
        if source.columns(mapping.table)
    ]
    unclosed: list[Chunk] = []
    last = 0
    rows: Counter[str] = Counter()
    with closing(_batches(source, mappings, size, report)) as batches:
        for mapping, batch in batches:
            for chunk in mapping.chunks(batch, context):
                rows[chunk.table] += len(chunk)
                rows["nodes"] += "graph_node" in chunk.columns
                closed = _add(chunk, builder, unclosed)
                if "end" in closed.columns:
                    last = int(closed.columns["end"].max(initial=last))
    if rows["graphs"] and not rows["nodes"]:
        builder.quality.add("graph-level", _GRAPHS, rows["graphs"])
    report(Progress("sorting", size, size))
    _close(unclosed, last if metadata.session_end is None else metadata.session_end, builder)
    context.finish(metadata)
    _ignored(source, {mapping.table for mapping in mappings}, builder)
    info = TraceInfo(
        paths=(os.fspath(path),),
        kind=kind,
        producer=metadata.product,
        schema_version=metadata.schema,
        start_epoch_ns=metadata.epoch_ns,
        basis="simulated" if metadata.simulated else "measured",
        details=details(source, metadata),
        missing=missing(source, metadata, said, [name for name in SCHEMAS if not rows[name]]),
    )
    for (code, text), count in source.faults.counts.items():
        builder.quality.add(code, text, count)
    return builder.build(info, metadata.session_start)


def _add(chunk: Chunk, builder: Builder, unclosed: list[Chunk]) -> Chunk:
    """Add and return the rows that have their times; set aside those that have none and, in `unclosed`, no end."""
    if chunk.unstamped is not None and chunk.unstamped.any():
        builder.reject(chunk.table, "no time stamp", chunk.columns, chunk.unstamped)
        chunk = chunk.without(chunk.unstamped)
    if chunk.unclosed is not None and chunk.unclosed.any():
        unclosed.append(chunk.take(chunk.unclosed))
        chunk = chunk.without(chunk.unclosed)
    builder.add(chunk.table, **chunk.columns)
    return chunk


def _close(unclosed: Sequence[Chunk], end: int, builder: Builder) -> None:
    for chunk in unclosed:
        columns = {**chunk.columns, "end": np.maximum(chunk.columns["start"], end)}
        builder.quality.add("unclosed", f"{chunk.table}: taken as open to the end of the session", len(columns["end"]))
        builder.add(chunk.table, **columns)


def _ignored(source: Source, known: Collection[str], builder: Builder) -> None:
    """Note the tables of events that have rows and no place in a trace."""
    for table in sorted(source.tables()):
        if table in known or table.startswith("ENUM_") or "start" not in source.columns(table):
            continue
        if count := source.count(table):
            builder.quality.add("ignored", f"{table}: not read", count)


def _batches(
    source: Source, mappings: Sequence[Mapping], size: int, report: Report
) -> Generator[tuple[Mapping, Batch], None, None]:
    """All rows of all tables in order. Threads fetch; who asks for the next batch maps it, so that rows of ours are
    numbered the same way every time.
    """
    jobs = deque((mapping, part) for mapping in mappings for part in source.parts(mapping.table))
    total = len(jobs)
    threads = min(_MAX_THREADS, os.cpu_count() or 1)
    rows = done = 0
    stop = threading.Event()

    def fetch(mapping: Mapping, part: Part | None) -> deque[Batch]:
        found: deque[Batch] = deque()
        for batch in source.batches(mapping.table, _existing(source, mapping), part):
            if stop.is_set():
                break
            found.append(batch)
        return found

    pending: deque[tuple[Mapping, Future[deque[Batch]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            while jobs or pending:
                while jobs and len(pending) <= threads:
                    mapping, part = jobs.popleft()
                    pending.append((mapping, pool.submit(fetch, mapping, part)))
                mapping, future = pending.popleft()
                progress = Progress(f"reading {mapping.table}", size * done // total, size, rows)
                while not wait([future], _REPORT_EVERY_S).done:
                    report(progress)
                batches = future.result()
                done += 1
                while batches:
                    batch = batches.popleft()
                    rows += len(batch)
                    report(replace(progress, rows=rows))
                    yield mapping, batch
        finally:
            stop.set()
            for _, future in pending:
                future.cancel()


def _existing(source: Source, mapping: Mapping) -> list[str]:
    there = source.columns(mapping.table)
    return [
        next((name for name in alternatives.split("|") if name in there), alternatives)
        for alternatives in mapping.columns
    ]
