"""The kernel tap while it records: bursts of single kernels, stopped and started, and its watchdog."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import inspector
from inspector.trace.ring import Ring
from inspector.trace.ring_rows import RingRows
from tests.probes.tapped import build_libraries, run, states
from tests.waiting import ROOT


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Built once."""
    return build_libraries(tmp_path_factory.mktemp("tap"))


def test_a_burst_shows_the_kernels_of_graphs_and_ends_by_itself(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    steps = [["start", {}], ["records", 100], ["ask", 0.3, False, 0, 0], ["hear", "every kernel"], ["spin"], ["stop"]]
    _, ring = run(libraries, tmp_path, steps, STAND_IN_GRAPHS=100)
    burst = (1, "every kernel of CUDA graphs, for a while")
    assert states(ring) == [(1, ""), burst, (1, ""), (0, "")]
    kernels, graphs = ring["kernels"]["start"], ring["graphs"]["start"]
    assert graphs.min() < kernels.min() < kernels.max() < graphs.max()
    assert ring["kernels"]["graph_node"].max() == 99


def test_a_burst_without_end_is_nonsense(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    steps = [["start", {}], ["ask", 3600, False, 0, 0], ["spin"], ["stop"]]
    _, ring = run(libraries, tmp_path, steps, STAND_IN_GRAPHS=100)
    assert states(ring) == [(1, ""), (0, "")]
    assert len(ring["graphs"]["start"]) > 100


def test_it_stops_and_starts_on_demand(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    steps = [["start", {}], ["records", 1000], ["ask", 0, True, 0, 0], ["hear", "on demand"]]
    steps += [["ask", 0, False, 0, 0], ["records", 1000], ["stop"]]
    told, ring = run(libraries, tmp_path, steps)
    assert states(ring) == [(1, ""), (0, "stopped on demand"), (1, ""), (0, "")]
    assert told["counts"]["records"] == told["emitted"]


def test_it_begins_anew_in_another_recording(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    steps = [
        ["start", {}],
        ["records", 1000],
        ["stop"],
        ["go", str(second)],
        ["start", {}],
        ["records", 1000],
        ["stop"],
    ]
    told, ring = run(libraries, tmp_path, steps)
    assert told["said"] == ["", None, "", None]
    again = Ring(next(second.glob("kernels-*.ring")))
    rows = RingRows(again.pid)
    texts, tables = rows.resolve(again.take())
    assert again.counts().closed
    assert again.counts().records == told["counts"]["records"]
    again.close()
    assert rows.quality.notes == []
    assert len(tables["kernels"]["start"]) + len(ring["kernels"]["start"]) < told["emitted"] < 10_000_000
    assert {texts[name] for name in tables["kernels"]["name"].tolist()} >= {"kernel 1", "kernel 2"}


WATCH = {"TLLM_INSPECTOR_WATCH_MS": 300}


@pytest.mark.parametrize(
    ("steps", "environment", "evidence", "why"),
    [
        ([["steal"]], {}, (1, 0), "another client of CUPTI"),
        ([["steal"]], {}, (0, 1), "the GPU is busy but no kernel of this process is recorded"),
        ([], {"STAND_IN_ZERO": 1}, (1, 0), "gives them without a time"),
        (
            [],
            {"STAND_IN_HOLD_MS": 60_000, "STAND_IN_RATE": 2_000_000},
            (1, 0),
            "all buffers are with CUPTI",
        ),
        ([], {"STAND_IN_HOLD_MS": 60_000}, (1, 0), "holds its buffers back"),
    ],
)
def test_the_watchdog_says_why_no_records_come(
    libraries: tuple[Path, Path],
    tmp_path: Path,
    steps: list[list[Any]],
    environment: dict[str, Any],
    evidence: tuple[int, int],
    why: str,
) -> None:
    begun: list[list[Any]] = [["start", {}]] if environment else [["start", {}], ["records", 100]]
    _, ring = run(libraries, tmp_path, [*begun, *steps, ["hear", why, *evidence], ["stop"]], **environment, **WATCH)
    assert why in next(text for state, text in states(ring) if state == 4)


SILENT = """
import ctypes, os, sys, time
from pathlib import Path
from probes.inprocess.columns import LAYOUTS
from probes.inprocess.producer import from_environment
from probes.inprocess.tap import Tap
cupti = os.environ["TLLM_INSPECTOR_CUPTI"]
tap, engine = Tap(Path(sys.argv[1])), from_environment("trtllm")
assert tap.start(cupti=cupti) == ""
ring = Path(os.environ["TLLM_INSPECTOR_RUN"], f"kernels-{os.getpid()}.ring")
end, number = time.monotonic() + 20, 0
ctypes.CDLL(cupti).stand_in_steal()
while b"another client of CUPTI" not in ring.read_bytes() and time.monotonic() < end:
    now = time.monotonic_ns()
    engine.add("iterations", [(now - 9, now, number, *[0] * (len(LAYOUTS["iterations"]) - 3))])
    number += 1
    time.sleep(0.02)
engine.close()
tap.stop()
"""


def test_a_recording_has_a_note_when_iterations_end_and_no_kernels_come(
    libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "x.inflight"
    command = [sys.executable, "-m", "inspector", "record", "--headless", "--probe", "host", "--out", str(out), "--"]
    env = {**os.environ, "TLLM_INSPECTOR_CUPTI": str(libraries[1]), "TLLM_INSPECTOR_WATCH_MS": "300"}
    done = subprocess.run(
        [*command, sys.executable, "-c", SILENT, str(libraries[0])],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    trace = inspector.open(out)
    (note,) = trace.quality.find("probe")
    assert "kernel tap of process" in note.text
    assert "no kernel records come although iterations end: another client of CUPTI" in note.text
    assert note.severity == "loss"


def test_the_watchdog_is_quiet_when_nothing_is_launched_or_records_come(
    libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    _, ring = run(libraries, tmp_path, [["start", {}], ["steal"], ["spin"], ["stop"]], **WATCH)
    assert 4 not in ring["probes"]["state"].tolist()
    (tmp_path / "b").mkdir()
    steps = [["start", {}], ["work", "", 1, 1], ["stop"]]
    _, ring = run(libraries, tmp_path / "b", steps, **WATCH)
    assert 4 not in ring["probes"]["state"].tolist()


def test_after_the_watchdog_spoke_it_can_be_mended(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    steps = [["start", {}], ["records", 100], ["steal"], ["hear", "another client", 1, 0]]
    steps += [["ask", 0, True, 50, 0], ["hear", "on demand"], ["ask", 0, False, 50, 0], ["records", 1000], ["stop"]]
    _, ring = run(libraries, tmp_path, steps, **WATCH)
    assert [state for state, _ in states(ring)] == [1, 4, 0, 1, 0]
    assert (0, "stopped on demand") in states(ring)
