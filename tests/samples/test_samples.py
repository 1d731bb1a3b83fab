"""The sample traces are what they claim to be, and the program tells the planted truth about them."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from inspector.analysis.busy import busy
from inspector.analysis.causes import CAUSES, Causes
from inspector.readers import open_trace
from inspector.trace.trace import Trace
from sample_traces.make_samples import GROUPS, big, truth_path, write_sample
from sample_traces.nsys_schema import FAMILIES

# Causes whose host is what the late thread was in: those of the host's part of a gap.
HOST_CAUSES = ("no requests", "sync", "allocation", "module load", "launching", "os blocked", "gc", "host code")
NAMES = [
    "decode_server",
    "decode_graph_level",
    "planted_causes",
    "two_processes",
    "two_ranks/rank0",
    "two_ranks/rank1",
    "decode_kineto",
    *(f"schemas/{family}" for family in FAMILIES),
]


@dataclass(frozen=True)
class Piece:
    """A slice of idle time in the file's own clock."""

    start: int
    end: int
    cause: str
    host: str | None
    returning: bool


def path_of(folder: Path, name: str) -> Path:
    return folder / (f"{name}.json.gz" if "kineto" in name else f"{name}.sqlite")


def truth_of(folder: Path, name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(truth_path(path_of(folder, name)).read_text(encoding="utf-8"))
    return document


def planted(document: dict[str, Any], device: dict[str, Any]) -> list[Piece]:
    hosts = [*document["hosts"], None]
    return [
        Piece(start, end, document["causes"][cause], hosts[host], bool(returning))
        for start, end, cause, host, returning in device["slices"]
    ]


def told(trace: Trace, row: int) -> list[Piece]:
    """What the program says of a device, in time order. Names of calls lose the suffix that only exports have."""
    slices = trace.index(Causes).devices[row]
    hosts = [None if host < 0 else re.sub(r"_v\d+$", "", trace.names[host]) for host in slices.host.tolist()]
    columns = (slices.start.tolist(), slices.end.tolist(), slices.cause.tolist(), slices.return_latency.tolist())
    pieces = [
        Piece(start + trace.info.origin_ns, end + trace.info.origin_ns, CAUSES[cause], host, returning)
        for start, end, cause, returning, host in zip(*columns, hosts, strict=True)
    ]
    return sorted(pieces, key=lambda piece: piece.start)


def disagreements(truth: list[Piece], answer: list[Piece]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Ns by what differs: the cause, the host under the same cause of the host's, the flag under the same host."""
    causes: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    flags: Counter[str] = Counter()
    mine = theirs = 0
    while mine < len(truth) and theirs < len(answer):
        a, b = truth[mine], answer[theirs]
        ns = min(a.end, b.end) - max(a.start, b.start)
        if ns > 0 and a.cause != b.cause:
            causes[f"{a.cause} told as {b.cause}"] += ns
        elif ns > 0 and a.cause in HOST_CAUSES and a.host != b.host:
            hosts[f"{a.host} told as {b.host}"] += ns
        elif ns > 0 and a.returning != b.returning:
            flags[f"{a.cause} in {a.host}: {a.returning}"] += ns
        mine, theirs = (mine + 1, theirs) if a.end < b.end else (mine, theirs + 1)
    return causes, hosts, flags


def rows_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables of an SQLite file."""
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names}
    database.close()
    return found


def records_of(path: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    there = database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    rows = database.execute(f"SELECT {columns} FROM {table}").fetchall() if there else []
    database.close()
    return rows


def work_of(path: Path) -> dict[int, list[tuple[int, int]]]:
    """Start and end of device work by GPU, read by hand: the number in the rows, unless it means two GPUs."""
    gpus = {(pid, cuda): gpu for gpu, cuda, pid in records_of(path, "TARGET_INFO_CUDA_DEVICE", "gpuId, cudaId, pid")}
    if len({cuda for _, cuda in gpus}) == len({(cuda, gpu) for (_, cuda), gpu in gpus.items()}):
        gpus = {}
    work: dict[int, list[tuple[int, int]]] = {}
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
        for start, end, device, process in records_of(
            path, f"CUPTI_ACTIVITY_KIND_{kind}", "start, end, deviceId, globalPid"
        ):
            gpu = gpus.get((process >> 24 & 0xFFFFFF, device), device)
            work.setdefault(gpu, []).append((start, end))
    return work


class Opened(dict[str, Trace]):
    """The samples by name, each opened when first asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> Trace:
        self[name] = open_trace(path_of(self.folder, name))
        return self[name]


@pytest.fixture(scope="module")
def traces(sample_traces: Path) -> Opened:
    return Opened(sample_traces)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All samples, made anew."""
    folder = tmp_path_factory.mktemp("samples")
    for group in GROUPS.values():
        for sample in group():
            write_sample(sample, folder)
    return folder


def device_row(trace: Trace, number: int) -> int:
    numbers: list[int] = trace["devices"]["number"].tolist()
    return numbers.index(number)


def test_the_script_gives_the_committed_files(made: Path, sample_traces: Path) -> None:
    fresh = sorted(path.relative_to(made) for path in made.rglob("*") if path.is_file())
    kept = sorted(
        path.relative_to(sample_traces)
        for path in sample_traces.rglob("*")
        if path.suffix in (".sqlite", ".json", ".md", ".gz") and path.name != "README.md"
    )
    assert fresh == kept
    for path in fresh:
        if path.suffix == ".sqlite":
            assert rows_of(made / path) == rows_of(sample_traces / path), path
        elif path.suffix == ".gz":
            assert gzip.decompress((made / path).read_bytes()) == gzip.decompress((sample_traces / path).read_bytes())
        else:
            assert (made / path).read_text(encoding="utf-8") == (sample_traces / path).read_text(encoding="utf-8"), path


def test_the_files_stay_small(sample_traces: Path) -> None:
    sizes = [path.stat().st_size for path in sample_traces.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(sizes) < 6_000_000
    assert max(sizes) < 1_000_000


@pytest.mark.parametrize("name", [name for name in NAMES if "kineto" not in name])
def test_truth_tiles_the_gaps_of_the_file(name: str, sample_traces: Path) -> None:
    document = truth_of(sample_traces, name)
    work = work_of(sample_traces / f"{name}.sqlite")
    for device in document["devices"]:
        intervals = sorted(work[device["device"]])
        gaps, reach = [], intervals[0][1]
        for start, end in intervals:
            if start > reach:
                gaps.append((reach, start))
            reach = max(reach, end)
        joined: list[tuple[int, int]] = []
        for piece in planted(document, device):
            assert piece.end > piece.start
            if joined and joined[-1][1] == piece.start:
                joined[-1] = (joined[-1][0], piece.end)
            else:
                joined.append((piece.start, piece.end))
        assert joined == gaps
        assert device["idle_ns"] == sum(end - start for start, end in gaps) == sum(device["idle_by_cause_ns"].values())
        assert device["span_ns"] == reach - intervals[0][0]


def test_every_cause_is_planted(sample_traces: Path) -> None:
    for name in ("planted_causes", "schemas/3.24.14"):
        document = truth_of(sample_traces, name)
        assert set(document["causes"]) == set(CAUSES), name


def test_the_server_has_one_clear_answer(sample_traces: Path) -> None:
    """Host code holds more than twice as much of the idle time as any other cause."""
    (device,) = truth_of(sample_traces, "decode_server")["devices"]
    first, second, *_ = sorted(device["idle_by_cause_ns"].items(), key=lambda item: -item[1])
    assert first[0] == "host code"
    assert first[1] > 2 * second[1]


def test_correlation_ids_collide(sample_traces: Path) -> None:
    path = sample_traces / "two_processes.sqlite"
    kernels = records_of(path, "CUPTI_ACTIVITY_KIND_KERNEL", "globalPid, correlationId, deviceId")
    ids: dict[int, set[int]] = {}
    for process, correlation, device in kernels:
        assert device == 0
        ids.setdefault(process, set()).add(correlation)
    one, other = ids.values()
    assert len(one & other) > 100


def test_graph_level_hides_the_nodes(sample_traces: Path) -> None:
    path = sample_traces / "decode_graph_level.sqlite"
    nodes = records_of(path, "CUPTI_ACTIVITY_KIND_KERNEL", "graphNodeId")
    assert not any(node for (node,) in nodes)
    assert len(records_of(path, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start")) > 50


def test_metrics_agree_with_the_work(sample_traces: Path) -> None:
    """'GR Active' of each sample is the busy share of its 100 us; an idle GPU shows no SM and no DRAM activity."""
    path = sample_traces / "decode_server.sqlite"
    names = dict(records_of(path, "TARGET_INFO_GPU_METRICS", "metricId, metricName"))
    work = sorted(work_of(path)[0])
    samples: dict[int, dict[str, int]] = {}
    for time, metric, value in records_of(path, "GPU_METRICS", "timestamp, metricId, value"):
        samples.setdefault(time, {})[names[metric].split(" [")[0]] = value
    assert len(samples) > 500
    first = 0
    for time, values in sorted(samples.items()):
        covered, reach = 0, time - 100_000
        while work[first][1] <= reach - 1_000_000 and first < len(work) - 1:
            first += 1
        for start, end in work[first:]:
            if start >= time:
                break
            covered += max(min(end, time) - max(start, reach), 0)
            reach = max(reach, min(end, time))
        assert values["GR Active"] == covered // 1_000
        assert values["SMs Active"] <= values["GR Active"]
        if not covered:
            assert values["SMs Active"] == values["DRAM Read Bandwidth"] == values["Tensor Active"] == 0
    assert any(values["DRAM Read Bandwidth"] > 50 for values in samples.values())


def test_a_big_one_has_the_size_asked_for(tmp_path: Path) -> None:
    path = write_sample(big(6_000), tmp_path)
    assert len(records_of(path, "CUPTI_ACTIVITY_KIND_KERNEL", "start")) == pytest.approx(6_000, rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_they_open_and_say_that_they_are_simulated(name: str, traces: Opened) -> None:
    trace = traces[name]
    assert trace.info.kind == ("kineto" if "kineto" in name else "nsys-sqlite")
    assert "simulated" in trace.device_name(0)
    # Exports of 2020 have no metadata to say it in: there only the name of the GPU does.
    if "2020" not in name:
        assert trace.info.basis == "simulated"
        assert trace.quality.count("simulated")


@pytest.mark.parametrize("name", NAMES)
def test_counts(name: str, traces: Opened, sample_traces: Path) -> None:
    expected = truth_of(sample_traces, name)["records"]
    assert {table: traces[name].records(table) for table in expected} == expected
    assert not len(traces[name]["rejected"])


@pytest.mark.parametrize("name", NAMES)
def test_idle_equals_the_truth(name: str, traces: Opened, sample_traces: Path) -> None:
    trace = traces[name]
    document = truth_of(sample_traces, name)
    for device in document["devices"]:
        figures = busy(trace, device_row(trace, device["device"]))
        assert (figures.span_ns, figures.busy_ns, figures.idle_ns) == (
            device["span_ns"],
            device["busy_ns"],
            device["idle_ns"],
        )


@pytest.mark.parametrize("name", NAMES)
def test_causes_are_the_planted_ones(name: str, traces: Opened, sample_traces: Path) -> None:
    """At least 99 % of the idle time of each device gets the planted cause, and none of it a wrong host range."""
    trace = traces[name]
    document = truth_of(sample_traces, name)
    for device in document["devices"]:
        causes, hosts, _ = disagreements(planted(document, device), told(trace, device_row(trace, device["device"])))
        assert sum(causes.values()) <= device["idle_ns"] // 100, (device["device"], causes.most_common(4))
        assert not hosts, (device["device"], hosts.most_common(4))


@pytest.mark.parametrize("name", NAMES)
def test_return_latency_is_told(name: str, traces: Opened, sample_traces: Path) -> None:
    """The flag that a wait was already over stands where the simulation knows that it was, in 99 % of the waiting."""
    trace = traces[name]
    document = truth_of(sample_traces, name)
    for device in document["devices"]:
        truth = planted(document, device)
        _, _, flags = disagreements(truth, told(trace, device_row(trace, device["device"])))
        waits = sum(piece.end - piece.start for piece in truth if piece.cause == "sync")
        assert sum(flags.values()) <= waits // 100, (device["device"], flags)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_schema_family_gives_the_same_figures(family: str, traces: Opened) -> None:
    trace, latest = traces[f"schemas/{family}"], traces["schemas/3.24.14"]
    assert trace.info.duration_ns == latest.info.duration_ns
    assert trace["devices"]["number"].tolist() == latest["devices"]["number"].tolist()
    for row in range(len(latest["devices"])):
        assert busy(trace, row) == busy(latest, row)
        assert told(trace, row) == told(latest, row)


def test_two_ranks_open_as_one_job(sample_traces: Path) -> None:
    """Their sessions began 137 ms apart; on the wall clock both ranks leave every collective at the same moment."""
    paths = [sample_traces / "two_ranks" / f"rank{rank}.sqlite" for rank in (0, 1)]
    trace = open_trace(*paths)
    assert len(trace["devices"]) == 2
    kernels = trace["kernels"]
    reduces = [row for row, name in enumerate(kernels["name"].tolist()) if "AllReduce" in trace.names[name]]
    ends: dict[int, list[int]] = {0: [], 1: []}
    for row in reduces:
        ends[int(trace.device_of(kernels["stream"])[row])].append(int(kernels["end"][row]))
    assert len(ends[0]) > 100
    assert sorted(ends[0]) == sorted(ends[1])


def test_two_ranks_are_told_the_same_together(sample_traces: Path) -> None:
    """Opened as one job, each rank's idle time has the causes that it has alone."""
    paths = [sample_traces / "two_ranks" / f"rank{rank}.sqlite" for rank in (0, 1)]
    together = open_trace(*paths)
    for rank, path in enumerate(paths):
        (device,) = truth_of(sample_traces, f"two_ranks/rank{rank}")["devices"]
        assert busy(together, rank).idle_ns == device["idle_ns"]
        shift = told(open_trace(path), 0)[0].start - told(together, rank)[0].start
        moved = [replace(piece, start=piece.start + shift, end=piece.end + shift) for piece in told(together, rank)]
        causes, hosts, _ = disagreements(planted(truth_of(sample_traces, f"two_ranks/rank{rank}"), device), moved)
        assert sum(causes.values()) <= device["idle_ns"] // 100, causes
        assert not hosts
