"""The recipe, run by a stand-in for `nsys recipe`, against the analysis of the same traces by themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import inspector
from inspector.analysis.busy import busy
from inspector.analysis.gaps import Gaps
from inspector.analysis.rollup import rollup
from inspector.cli import main
from inspector.trace.results import ResultTable
from inspector.trace.trace import Trace
from tests.readers.nsys_export import to_folder

pytest.importorskip("pandas")
STAND_IN = Path(__file__).parent / "stand_in" / "nsys_recipe"
MAGIC = b"NVIDIA Tegra Profiler Report 2025@6@1@190-256136895201v0."
NAMES = ("two_processes", "planted_causes")
PROGRAM = """
import pathlib, shutil, sys
report, out = sys.argv[-1], sys.argv[sys.argv.index("-o") + 1]
export = pathlib.Path(__file__).parent / "exports" / pathlib.Path(report).stem
if not export.is_dir():
    sys.exit("The report was made by a newer version")
shutil.copytree(export, out)
"""


class Install:
    """An installation of Nsight Systems, reports, and a way to run recipes over them."""

    def __init__(self, folder: Path, sources: dict[str, Path]) -> None:
        self.folder, self.target = folder, folder / "target-linux-x64"
        shutil.copytree(STAND_IN, self.target / "python" / "packages" / "nsys_recipe")
        program = self.target / "nsys"
        program.write_text(f"#!{sys.executable}\n{PROGRAM}")
        program.chmod(0o755)
        self.reports = folder / "reports"
        self.reports.mkdir()
        (self.target / "exports").mkdir()
        for name, source in sources.items():
            to_folder(source, self.target / "exports" / name, "parquet")
            (self.reports / f"{name}.nsys-rep").write_bytes(MAGIC + bytes(100))

    def run(self, out: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        packages = self.target / "python" / "packages"
        given = {
            **os.environ,
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": os.pathsep.join([str(packages), str(Path(inspector.__file__).parent.parent)]),
            "NSYS_RECIPE_PATH": str(Path(inspector.__file__).parent / "recipes"),
            "TMPDIR": str(self.folder),
            **environment,
        }
        command = [sys.executable, "-m", "nsys_recipe", "inflight_gaps", "--input", str(self.reports)]
        return subprocess.run(
            [*command, "--output", str(out), *words],
            env=given,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.fixture(scope="module")
def install(tmp_path_factory: pytest.TempPathFactory, sample_traces: Path) -> Install:
    sources = {name: sample_traces / f"{name}.sqlite" for name in NAMES}
    return Install(tmp_path_factory.mktemp("nsys"), sources)


@pytest.fixture(scope="module")
def result(install: Install) -> Path:
    out = install.folder / "inflight_gaps-1"
    done = install.run(out, "--mode", "none", "--csv", "--largest", "40")
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def traces(sample_traces: Path) -> list[Trace]:
    return [inspector.open(sample_traces / f"{name}.sqlite") for name in sorted(NAMES)]


def table(trace: Trace, name: str) -> ResultTable:
    (results,) = trace.results
    return next(each for each in results.tables if each.name == name)


def rows(found: ResultTable, *names: str) -> list[tuple[object, ...]]:
    columns = [next(column for column in found.columns if column.name == name) for name in names]
    return [tuple(column.at(row) for column in columns) for row in range(len(found))]


def test_causes_are_those_of_each_trace_by_itself(result: Path, traces: list[Trace]) -> None:
    found = inspector.open(result)
    wanted = [
        (rank, int(trace["devices"]["number"][device]), row.label, row.total_ns, row.gaps, row.longest_ns)
        for rank, trace in enumerate(traces)
        for device in range(len(trace["devices"]))
        for row in rollup(trace, device)[0]
    ]
    assert wanted
    assert rows(table(found, "causes"), "Rank", "GPU", "Cause", "Idle", "Gaps", "Longest") == wanted
    idle = [busy(trace, device).idle_ns for trace in traces for device in range(len(trace["devices"]))]
    assert [ns for (ns,) in rows(table(found, "devices"), "Idle")] == idle
    assert sum(ns for *_, ns, _, _ in wanted) == sum(idle)
    together: Counter[str] = Counter()
    for *_, label, ns, _, _ in wanted:
        together[label] += ns
    assert dict(rows(table(found, "all_causes"), "Cause", "Idle")) == together
    assert found.results[0].reports == tuple(sorted(NAMES))
    assert found.info.basis == traces[0].info.basis == "simulated"


def test_the_longest_gaps_are_those_and_lie_on_the_timeline(result: Path, traces: list[Trace]) -> None:
    found = inspector.open(result)
    listed = rows(table(found, "largest"), "Rank", "GPU", "Start", "Duration")
    for rank, trace in enumerate(traces):
        every = sorted(
            (int(end - start), int(start) + trace.info.origin_ns)
            for gaps in trace.index(Gaps).devices
            for start, end in zip(gaps.start, gaps.end, strict=True)
        )
        mine = sorted((length, start) for report, _, start, length in listed if report == rank)
        assert [length for length, _ in mine] == [length for length, _ in every][-40:]
        assert set(mine) <= set(every)
    assert len(found["ranges"]) == len(listed)
    assert not found.num_work()
    # On one clock, since both reports tell when they began.
    epochs = [trace.info.start_epoch_ns for trace in traces]
    if None not in epochs:
        begun = {
            rank: min(start for report, _, start, _ in listed if report == rank) - traces[rank].info.origin_ns
            for rank in range(len(traces))
        }
        apart = (epochs[1] + begun[1]) - (epochs[0] + begun[0])
        owner = found["threads"]["process"][found["ranges"]["thread"]]
        ranks = found["processes"]["rank"][owner]
        firsts = [int(found["ranges"]["start"][ranks == rank].min()) for rank in range(2)]
        assert firsts[1] - firsts[0] == apart


@pytest.mark.parametrize("mode", ["concurrent", "dask-futures"])
def test_other_processes_find_the_same(mode: str, install: Install, result: Path, tmp_path: Path) -> None:
    if mode == "dask-futures":
        pytest.importorskip("distributed")
    done = install.run(tmp_path / "out", "--mode", mode, "--csv", "--largest", "40")
    assert done.returncode == 0, done.stderr
    for file in sorted(result.glob("*.csv")):
        assert (tmp_path / "out" / file.name).read_text() == file.read_text()
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"gaps.ipynb", "out.nsys-analysis"}


def test_part_of_the_time_and_short_gaps_as_one_sum(install: Install, traces: list[Trace], tmp_path: Path) -> None:
    origin = traces[1].info.origin_ns
    words = ("--from-ns", str(origin), "--to-ns", str(origin + 2_000_000), "--min-us", "3")
    done = install.run(tmp_path / "out", "--mode", "none", *words)
    assert done.returncode == 0, done.stderr
    found = inspector.open(tmp_path / "out")
    for _, idle, span in rows(table(found, "devices"), "Rank", "Idle", "Span"):
        assert isinstance(span, int)
        assert isinstance(idle, int)
        assert 0 <= idle <= span <= 2_000_000
    causes = rows(table(found, "causes"), "Cause", "Idle")
    assert "shorter than 3000 ns" in {cause for cause, _ in causes}
    idle_ns = [ns for (ns,) in rows(table(found, "devices"), "Idle")]
    assert sum(ns for _, ns in causes) == sum(idle_ns)  # type: ignore[misc]


def test_a_report_that_cannot_be_read_is_named_and_the_others_are_there(install: Install, tmp_path: Path) -> None:
    broken = install.reports / "broken.nsys-rep"
    broken.write_bytes(MAGIC)
    try:
        done = install.run(tmp_path / "out", "--mode", "none")
    finally:
        broken.unlink()
    assert done.returncode == 0, done.stderr
    assert "newer version" in done.stderr
    assert "Traceback" not in done.stderr
    found = inspector.open(tmp_path / "out")
    notes = dict(rows(table(found, "files"), "File", "Note"))
    assert "newer version" in str(notes["broken"])
    assert len(table(found, "causes"))
    # The export of a report is gone when its tables are made.
    assert not list(install.folder.glob("inflight_gaps-*/export"))


def test_reports_without_work_leave_empty_tables(install: Install, tmp_path: Path) -> None:
    for export in (install.target / "exports").iterdir():
        export.rename(export.with_name(f"{export.name}.away"))
    try:
        done = install.run(tmp_path / "out", "--mode", "none")
    finally:
        for export in (install.target / "exports").iterdir():
            export.rename(export.with_name(export.name.removesuffix(".away")))
    assert done.returncode == 0, done.stderr
    found = inspector.open(tmp_path / "out")
    assert len(table(found, "files")) == 2
    assert not len(table(found, "all_causes"))


def test_a_python_without_the_program_says_how_to_get_it(install: Install, tmp_path: Path) -> None:
    packages = install.target / "python" / "packages"
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "inspector.py").write_text("raise ImportError(\"No module named 'inspector'\")\n")
    done = install.run(tmp_path / "out", "--mode", "none", PYTHONPATH=os.pathsep.join([str(hidden), str(packages)]))
    assert done.returncode == 0, done.stderr
    assert "-m pip install inflight-inspector" in done.stderr


def test_the_doctor_tells_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--recipes"]) == 0
    folder = Path(capsys.readouterr().out.strip())
    assert (folder / "inflight_gaps" / "metadata.json").is_file()
    assert (folder / "inflight_gaps" / "inflight_gaps.py").is_file()
