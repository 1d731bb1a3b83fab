"""Real exports: every count, span and busy time equals what plain SQL and a plain loop find."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.errors import Unreadable
from inspector.readers import open_trace, reader_of
from inspector.readers.nsys_sqlite import read
from inspector.readers.reader import silent
from inspector.trace.links import Links
from inspector.trace.schema import RANGE_KINDS
from inspector.trace.table import Table
from inspector.trace.trace import Trace
from inspector.trace.work import Work
from tests.readers.nsys_export import to_folder

EXPORTS = (
    "a100_saxpy_mpi_2.9",
    "aws_report2",
    "centerformer_baseline",
    "graphs_2025.5.2",
    "h100x2_fsdp_1s",
    "h100x2_fsdp_mfu_before",
    "mordred_2021",
    "poolformer_3.0",
)
SOURCES = {
    "kernels": "CUPTI_ACTIVITY_KIND_KERNEL",
    "memcpys": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memsets": "CUPTI_ACTIVITY_KIND_MEMSET",
    "graphs": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "syncs": "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "event_records": "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "host_calls": "CUPTI_ACTIVITY_KIND_RUNTIME",
    "os_calls": "OSRT_API",
    "schedulings": "SCHED_EVENTS",
    "ranges": "NVTX_EVENTS WHERE eventType IN (59, 60)",
    "marks": "NVTX_EVENTS WHERE eventType = 34",
}
WORK = ("kernels", "memcpys", "memsets", "graphs")
Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module", params=EXPORTS)
def export(request: pytest.FixtureRequest, corpus: Path) -> Path:
    return corpus / "nsys" / f"{request.param}.sqlite"


@pytest.fixture(scope="module")
def trace(export: Path) -> Trace:
    return read(export, silent)


def ask(path: Path, query: str) -> Rows:
    """Rows of a query; [] when there is no such table."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as file:
        file.text_factory = lambda data: data.decode(errors="replace")
        table = query.partition(" FROM ")[2].split()[0]
        if not file.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone():
            return []
        return file.execute(query).fetchall()


def count(path: Path, source: str) -> int:
    return sum(n for (n,) in ask(path, f"SELECT count(*) FROM {source}"))


def test_every_record_of_the_file_is_in_the_trace_or_among_the_rejected(export: Path, trace: Trace) -> None:
    for table, source in SOURCES.items():
        assert trace.records(table) == count(export, source), table
    overheads = count(export, "PROFILER_OVERHEAD") + count(export, "CUPTI_ACTIVITY_KIND_OVERHEAD")
    assert trace.records("overheads") == overheads


def test_work_span_and_busy_time_of_every_device_are_those_of_the_file(export: Path, trace: Trace) -> None:
    rows = [row for name in WORK for row in ask(export, f"SELECT deviceId, start, end FROM {SOURCES[name]}")]
    work = trace.index(Work)
    assert {int(n) for n in trace["devices"]["number"]} == {device for device, _, _ in rows}
    for row, number in enumerate(trace["devices"]["number"].tolist()):
        wanted = sorted((start, end) for device, start, end in rows if device == number)
        busy, reach = 0, wanted[0][0]
        for start, end in wanted:
            busy += max(0, end - max(start, reach))
            reach = max(reach, end)
        mine = work.devices[row]
        got, reach = 0, int(mine.start[0])
        for start, end in zip(mine.start.tolist(), mine.end.tolist(), strict=True):
            got += max(0, end - max(start, reach))
            reach = max(reach, end)
        assert (len(mine), got, reach + trace.info.origin_ns) == (len(wanted), busy, max(end for _, end in wanted))
        assert int(mine.start[0]) + trace.info.origin_ns == wanted[0][0]


def strings(path: Path) -> dict[int, str]:
    return dict(ask(path, "SELECT id, value FROM StringIds"))


def kept(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(zip(*(table[column].tolist() for column in columns), strict=True))


def test_kernels_have_their_times_name_stream_and_process(export: Path, trace: Trace) -> None:
    names = strings(export)
    query = "SELECT start, end, demangledName, streamId, deviceId, globalPid, correlationId, contextId"
    wanted = [
        (
            start - trace.info.origin_ns,
            end - trace.info.origin_ns,
            names[name],
            stream,
            device,
            pid >> 24 & 0xFFFFFF,
            *rest,
        )
        for start, end, name, stream, device, pid, *rest in ask(export, f"{query} FROM {SOURCES['kernels']}")
    ]
    table, streams = trace["kernels"], trace["streams"]
    rows = table["stream"]
    got = [
        (start, end, trace.names[name], number, device, pid, correlation, context)
        for start, end, name, number, device, pid, correlation, context in zip(
            table["start"].tolist(),
            table["end"].tolist(),
            table["name"].tolist(),
            streams["number"][rows].tolist() if len(rows) else [],
            trace["devices"]["number"][streams["device"][rows]].tolist() if len(rows) else [],
            trace["processes"]["pid"][streams["process"][rows]].tolist() if len(rows) else [],
            table["correlation"].tolist(),
            table["context"].tolist() if len(rows) else [],
            strict=True,
        )
    ]
    assert sorted(got) == sorted(wanted)


def test_calls_and_ranges_have_their_thread_and_name(export: Path, trace: Trace) -> None:
    names = strings(export)
    origin = trace.info.origin_ns
    tids = trace["threads"]["tid"]
    wanted = [
        (start - origin, end - origin, tid & 0xFFFFFF, re.sub(r"_v\d+$", "", names[name]), correlation, result)
        for start, end, tid, name, correlation, result in ask(
            export, f"SELECT start, end, globalTid, nameId, correlationId, returnValue FROM {SOURCES['host_calls']}"
        )
    ]
    calls = trace["host_calls"]
    columns = (
        calls["start"],
        calls["end"],
        tids[calls["thread"]],
        calls["name"],
        calls["correlation"],
        calls.get("result"),
    )
    got = [
        (start, end, tid, trace.names[name], correlation, result)
        for start, end, tid, name, correlation, result in zip(*(c.tolist() for c in columns), strict=True)
    ]
    assert sorted(got) == sorted(wanted)
    domains = {
        (tid >> 24, domain): text
        for tid, domain, text in ask(export, "SELECT globalTid, domainId, text FROM NVTX_EVENTS WHERE eventType = 75")
    }
    wanted_ranges = [
        (
            start - origin,
            end - origin,
            tid & 0xFFFFFF,
            names[text_id] if text is None else text,
            RANGE_KINDS[kind - 59],
            (domains.get((tid >> 24, domain)) or f"domain {domain}") if domain else "",
        )
        for start, end, tid, text, text_id, kind, domain in ask(
            export, f"SELECT start, end, globalTid, text, textId, eventType, domainId FROM {SOURCES['ranges']}"
        )
    ]
    ranges = trace["ranges"]
    columns = (ranges["start"], ranges["end"], tids[ranges["thread"]], ranges["name"], ranges["kind"], ranges["domain"])
    got_ranges = [
        (start, end, tid, trace.names[name], RANGE_KINDS[kind], trace.names[domain])
        for start, end, tid, name, kind, domain in zip(*(c.tolist() for c in columns), strict=True)
    ]
    assert sorted(got_ranges) == sorted(wanted_ranges)


def test_links_are_those_of_process_and_correlation_id(export: Path, trace: Trace) -> None:
    calls = ask(export, f"SELECT globalTid & -16777216, correlationId, start, end FROM {SOURCES['host_calls']}")
    outermost: dict[tuple[int, int], tuple[int, int]] = {}
    for pid, correlation, start, end in calls:
        key = (pid, correlation)
        if correlation and (key not in outermost or (start, -end) < (outermost[key][0], -outermost[key][1])):
            outermost[key] = (start, end)
    links = trace.index(Links)
    for table in WORK:
        wanted = sorted(
            (start, end, *outermost.get((pid, correlation), (-1, -1)))
            for start, end, pid, correlation in ask(
                export, f"SELECT start, end, globalPid, correlationId FROM {SOURCES[table]}"
            )
        )
        origin, host = trace.info.origin_ns, trace["host_calls"]
        got = sorted(
            (
                start + origin,
                end + origin,
                *((int(host["start"][call]) + origin, int(host["end"][call]) + origin) if call >= 0 else (-1, -1)),
            )
            for start, end, call in zip(
                trace[table]["start"].tolist(), trace[table]["end"].tolist(), links.launch[table].tolist(), strict=True
            )
        )
        assert got == wanted, table


def test_waits_are_on_the_device_of_their_context(corpus: Path) -> None:
    # This export writes device 0 into all synchronisation records, those of the second GPU's process included.
    trace = read(corpus / "nsys" / "h100x2_fsdp_1s.sqlite", silent)
    streams = trace["streams"]
    devices = dict(zip(streams["process"].tolist(), streams["device"].tolist(), strict=True))
    assert len(devices) == len(set(devices.values())) == 2
    assert kept(streams, "process", "device") == sorted((p, devices[p]) for p in streams["process"].tolist())
    working = set(trace["kernels"]["stream"].tolist())
    assert len(working & set(trace["syncs"]["stream"].tolist())) == 2


def test_what_is_not_in_the_export_says_so(export: Path, trace: Trace) -> None:
    for table in (*SOURCES, "counters", "allocations", "overheads", "iterations", "requests", "steps", "page_events"):
        assert (table in trace.info.missing) == (trace.records(table) == 0), table
    for sentence in trace.info.missing.values():
        assert "record" in sentence
        assert "\n" not in sentence


def test_known_facts_of_the_corpus(corpus: Path) -> None:
    folder = corpus / "nsys"
    graphs = read(folder / "graphs_2025.5.2.sqlite", silent)
    assert graphs.quality.count("graph-level") == 2
    assert graphs.info.producer == "Nsight Systems 2025.5.2"
    assert graphs.info.schema_version == "3.24.0"
    assert graphs.info.start_epoch_ns == 1785620044423518993 + graphs.info.origin_ns
    assert "NVTX" in graphs.info.missing["ranges"]
    mordred = read(folder / "mordred_2021.sqlite", silent)
    assert mordred.info.schema_version == "pre-2.9"
    assert mordred.info.start_epoch_ns is None
    saxpy = read(folder / "a100_saxpy_mpi_2.9.sqlite", silent)
    assert saxpy["processes"]["rank"].tolist() == [0]
    assert [note.text.split(":")[0] for note in saxpy.quality.find("encoding")] == ["TARGET_INFO_SYSTEM_ENV.value"]
    assert saxpy.quality.count("encoding") == 1
    poolformer = read(folder / "poolformer_3.0.sqlite", silent)
    assert "Cuda" not in poolformer.info.missing["kernels"]
    assert len(poolformer["devices"]) == 0


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
def test_folders_of_the_same_tables_give_the_same_trace(export: Path, trace: Trace, kind: str, tmp_path: Path) -> None:
    folder = to_folder(export, tmp_path / "export", kind)
    other = open_trace(folder)
    assert other.info.kind == ("nsys-parquet" if kind == "parquet" else "nsys-arrow")
    assert other.info.missing == trace.info.missing
    assert other.info.details == trace.info.details
    assert sorted(map(str, other.quality.notes)) == sorted(map(str, trace.quality.notes))
    for name, table in trace.tables.items():
        assert set(other[name].columns) == set(table.columns), name
        for column in table.schema.columns:
            if column.name not in table:
                continue
            mine, its = table[column.name], other[name][column.name]
            if column.refers == "names":
                assert [trace.names[n] for n in mine.tolist()] == [other.names[n] for n in its.tolist()]
            else:
                np.testing.assert_array_equal(its, mine, f"{name}.{column.name}")


def test_the_name_does_not_matter_and_the_file_is_left_alone(export: Path, trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(export.read_bytes())
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    again = open_trace(path)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert [file.name for file in tmp_path.iterdir()] == ["unknown"]
    assert again.info.kind == "nsys-sqlite"
    for name, table in trace.tables.items():
        for column, values in table.columns.items():
            np.testing.assert_array_equal(again[name][column], values)


def test_another_sqlite_file_is_no_trace(corpus: Path) -> None:
    with pytest.raises(Unreadable, match="no trace") as caught:
        reader_of(corpus / "nsys" / "not_nsys.sqlite")
    assert "\n" not in str(caught.value)
