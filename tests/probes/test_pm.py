"""PM sampling against a stand-in for CUPTI's, in the process that the recorder starts for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inspector
from inspector.analysis.bandwidth import Bandwidths
from inspector.errors import Unreadable
from inspector.trace.ring import Ring
from inspector.trace.ring_rows import RingRows
from probes.inprocess import pm
from tests.waiting import PATIENCE_S, ROOT, until

SOURCE = Path(__file__).with_name("pm_stand_in.c")
MS = 1_000_000
READ, WRITE = "DRAM read throughput (PM sampling)", "DRAM write throughput (PM sampling)"
SM, TENSOR = "SM active (PM sampling)", "tensor cores active (PM sampling)"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Ours, and the folder of the stand-in, which is CUPTI and the driver."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: PM sampling cannot be built")
    folder = tmp_path_factory.mktemp("pm")
    built = pm.build(pm.SOURCES, folder / "cache")
    assert isinstance(built, Path), built
    for name in ("libcuda.so.1", "libstandin.so"):
        command = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", folder / name, SOURCE, "-ldl", "-lm"]
        subprocess.run(command, check=True)
    return built, folder


class Ran:
    """What stands in the rings after the process has ended."""

    def __init__(self, folder: Path) -> None:
        self.series: dict[tuple[int, str, str], tuple[Any, Any]] = {}
        self.states: list[int] = []
        self.says = ""
        self.lost = 0
        for path in sorted(folder.glob("*.ring")):
            ring = Ring(path)
            rows = RingRows(ring.pid)
            texts, tables = rows.resolve(ring.take())
            assert ring.counts().closed
            self.lost += ring.counts().lost
            ring.close()
            assert rows.quality.notes == []
            self.says += "; ".join(texts)
            self.states += tables["probes"]["state"].tolist()
            if "counters" in tables:
                series, counters = tables["series"], tables["counters"]
                numbers = tables["devices"]["number"]
                for row in range(len(series["name"])):
                    mine = counters["series"] == row
                    key = int(numbers[series["device"][row]]), texts[series["name"][row]], texts[series["unit"][row]]
                    self.series[key] = counters["time"][mine], counters["value"][mine]


def sampled(
    libraries: tuple[Path, Path], folder: Path, wanted: int = 200, expects_samples: bool = True, **environment: object
) -> Ran:
    """Sample at 1 kHz until there are so many rows in the ring of each GPU, or a word of failure."""
    env = {**os.environ, "TLLM_INSPECTOR_RUN": str(folder), "LD_LIBRARY_PATH": str(libraries[1])}
    env |= {pm.CUPTI: str(libraries[1] / "libstandin.so"), **{name: str(value) for name, value in environment.items()}}
    command = [sys.executable, "-m", "probes.inprocess.pm", str(libraries[0]), str(MS)]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:

        def has_enough(path: Path) -> bool:
            try:
                ring = Ring(path)
            except Unreadable:  # it is being made
                return False
            tables = ring.take().tables
            ring.close()
            return ("probes" in tables and 4 in tables["probes"]["state"]) or len(tables.get("counters", ())) >= wanted

        def enough() -> bool:
            return sum(map(has_enough, folder.glob("*.ring"))) == (2 if expects_samples else 1)

        until(enough)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, errors) == (0, "")
    return Ran(folder)


@pytest.mark.parametrize("version", [24, 28, 130000])
def test_both_gpus_are_sampled_each_into_its_ring(libraries: tuple[Path, Path], tmp_path: Path, version: int) -> None:
    begun = time.monotonic_ns()
    ran = sampled(libraries, tmp_path, 1000, PM_VERSION=version)
    ended = time.monotonic_ns()
    units = {READ: "% of peak", WRITE: "% of peak", SM: "%", TENSOR: "%"}
    assert set(ran.series) == {(device, name, unit) for device in (0, 1) for name, unit in units.items()}
    for at, name in enumerate(units):
        for device in (0, 1):
            times, values = ran.series[device, name, units[name]]
            assert np.array_equal(values, 10.0 * at + np.arange(len(values)) % 7)
            assert np.array_equal(np.diff(times), np.full(len(times) - 1, MS))
            # Its clock is 77 s ahead; the first sample ends an interval after the start.
            assert begun < times[0] - MS < times[-1] <= ended
    assert ran.lost == 0
    assert (ran.states[-1], 4 in ran.states) == (0, False)
    assert "clocks are locked" in ran.says


def test_samples_that_are_missing_are_counted(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    ran = sampled(libraries, tmp_path, PM_GAP=30)
    assert ran.lost == 2 * 4 * 30
    times, _ = ran.series[0, READ, "% of peak"]
    assert np.diff(times).max() == 31 * MS


def test_a_sample_without_a_value_is_left_out_and_counted(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    ran = sampled(libraries, tmp_path, PM_NAN=10)
    times, values = ran.series[0, READ, "% of peak"]
    assert np.isfinite(values).all()
    assert set(np.diff(times).tolist()) == {MS, 2 * MS}
    assert ran.lost > 0


@pytest.mark.parametrize(
    ("metrics", "one_pass", "expected"),
    [
        ("dram__bytes_read,dram__bytes_write", 9, {READ, WRITE}),
        ("dram__throughput,sm__cycles_active", 9, {"DRAM bandwidth (PM sampling)", SM}),
        ("dramc__read_throughput,dramc__write_throughput,sm__cycles_active", 2, {READ, WRITE}),
        ("", 3, None),
        ("dram__read_throughput,dram__write_throughput,sm__cycles_active,sm__inst_executed_pipe_tensor", 1, {READ}),
    ],
)
def test_what_the_chip_has_in_one_pass(
    libraries: tuple[Path, Path], tmp_path: Path, metrics: str, one_pass: int, expected: set[str] | None
) -> None:
    ran = sampled(libraries, tmp_path, 50, expected is not None, PM_METRICS=metrics, PM_ONE_PASS=one_pass)
    if expected is None:
        assert "none of the counters" in ran.says
        return
    assert {name for _, name, _ in ran.series} == expected


def test_on_ga100_the_system_clock_triggers(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    assert sampled(libraries, tmp_path, PM_CHIP="GA100").series


@pytest.mark.parametrize(
    ("refuses", "why"),
    [
        ("enable=35", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("enable=26", "another tool uses the GPU's counters"),
        ("enable=7", "it is being sampled already"),
        ("available=27", "does not support it"),
        ("initialize=15", "libnvperf_host"),
        ("set=43", "MIG"),
        ("start=99", "error 99"),
        ("driver=100", "the CUDA driver does not start (error 100)"),
    ],
)
def test_each_refusal_is_a_sentence(libraries: tuple[Path, Path], tmp_path: Path, refuses: str, why: str) -> None:
    ran = sampled(libraries, tmp_path, PM_REFUSES=refuses, expects_samples=False)
    assert why in ran.says
    assert 4 in ran.states
    assert ran.series == {}
    assert not list(tmp_path.glob("pm-*.ring"))


def test_an_old_cupti(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    assert "older than 12.6" in sampled(libraries, tmp_path, PM_VERSION=23, expects_samples=False).says


def test_an_overflow_ends_it_with_a_word(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    ran = sampled(libraries, tmp_path, 10_000_000, PM_OVERFLOW=3)
    assert "the hardware's buffer overflowed" in ran.says
    assert 4 in ran.states
    assert len(ran.series[0, READ, "% of peak"][0]) > 50


def test_no_driver(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    if any(Path(folder, "libcuda.so.1").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
        pytest.skip("this machine has a driver")
    assert "there is no CUDA driver" in sampled(libraries, tmp_path, LD_LIBRARY_PATH="", expects_samples=False).says


def test_a_recording_has_the_counters_and_the_bandwidth_is_theirs(
    libraries: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries[1]))
    monkeypatch.setenv(pm.CUPTI, str(libraries[1] / "libstandin.so"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "x.inflight"
    command = [sys.executable, "-m", "inspector", "record", "--headless", "--probe", "pm", "--out", str(out), "--"]
    waits = "import glob, os, sys, time\nend = time.monotonic() + 20\n"
    waits += (
        f"while not glob.glob({str(out / 'pm-*.counters.arrows')!r}) and time.monotonic() < end: time.sleep(0.01)\n"
    )
    waits += "time.sleep(0.2)"
    done = subprocess.run(
        [*command, sys.executable, "-c", waits], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    trace = inspector.open(out)
    numbers = trace["devices"]["number"].tolist()
    bandwidths = trace.index(Bandwidths)
    for number in (0, 1):
        found = bandwidths.of(numbers.index(number))
        assert found is not None
        assert found.read is not None
        assert found.write is not None
        assert found.both.spacing_ns == MS
        start, end = int(found.both.time[0]), int(found.both.time[-1])
        # Reads are 0 to 6 % and writes 10 % more.
        assert found.read.mean(start, end) == pytest.approx(0.03, abs=0.005)
        assert found.both.mean(start, end) == pytest.approx(0.16, abs=0.01)
    assert trace.quality.find("probe") == []
