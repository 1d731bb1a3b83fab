"""The kernel tap against a stand-in for CUPTI, each case in a process of its own: the library has one state."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.trace.ring import Ring
from probes.inprocess import tap
from probes.inprocess.ring import RANKS
from probes.inprocess.ring import rank as guest_rank
from tests.probes.tapped import build_libraries, run

SKEW_NS = 5_000_000_000_000_000


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Built once."""
    return build_libraries(tmp_path_factory.mktemp("tap"))


WHOLE = [["start", {}], ["until", 60_000], ["stop"]]


@pytest.mark.parametrize("version", [19, 28, 130000, 130500])
def test_every_record_arrives_with_every_layout(libraries: tuple[Path, Path], tmp_path: Path, version: int) -> None:
    told, ring = run(libraries, tmp_path, WHOLE, STAND_IN_VERSION=version, STAND_IN_TOTAL=60_000)
    assert told["said"] == ["", None]
    kernels, copies = ring["kernels"], ring["memcpys"]
    assert len(kernels["start"]) + len(copies["start"]) == told["emitted"] == 60_000
    assert told["counts"]["lost"] == ring["counts"].lost == 0
    assert ring["counts"].closed
    together = np.concatenate([kernels["correlation"], copies["correlation"]])
    assert sorted(together.tolist()) == list(range(1, 60_001))
    assert np.array_equal(kernels["end"] - kernels["start"], np.full(len(kernels["start"]), 2000))
    names = {ring["texts"][name] for name in kernels["name"].tolist()}
    assert len(names) == 99
    # Demangled where the process has a demangler.
    assert names & {"cutlass::kernel(int)", "_ZN7cutlass6kernelEi"}
    assert {ring["texts"][name] for name in copies["name"].tolist()} == {"Memcpy HtoD"}
    assert set(copies["bytes"].tolist()) == {4096}
    assert ring["texts"][0] == "kernels"
    states = ring["probes"]["state"].tolist()
    assert states[-1] == 0
    assert set(states[:-1]) <= {1}


def test_times_are_moved_to_our_clock(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    told, ring = run(libraries, tmp_path, WHOLE, STAND_IN_SKEW_NS=SKEW_NS)
    start = ring["kernels"]["start"]
    assert told["begun"] <= start.min() < start.max() <= told["ended"]


def test_a_busy_interpreter_costs_no_record(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    told, ring = run(libraries, tmp_path, [["start", {}], ["spin"], ["stop"]])
    assert told["emitted"] > 100_000
    assert told["unserved"] == 0
    assert len(ring["kernels"]["start"]) + len(ring["memcpys"]["start"]) == told["emitted"]


def test_an_exhausted_pool_is_counted(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    steps = [["start", {}], ["until", 400_000], ["spin"], ["stop"]]
    told, ring = run(libraries, tmp_path, steps, STAND_IN_RATE=1_000_000, STAND_IN_HOLD_MS=60_000)
    assert told["unserved"] > 0
    assert told["counts"]["unserved"] > 0
    assert told["counts"]["lost"] == told["unserved"]
    assert told["counts"]["records"] == told["emitted"]
    assert "buffers ran out: records are missing" in ring["texts"]


def test_a_full_ring_drops_the_newest_and_counts(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    told, ring = run(libraries, tmp_path, [["start", {"capacity": 1 << 20}], ["until", 60_000], ["stop"]])
    arrived = len(ring["kernels"]["start"]) + len(ring["memcpys"]["start"])
    assert 0 < arrived < told["emitted"]
    assert arrived + told["counts"]["lost"] == told["emitted"] == told["counts"]["records"]
    # The oldest are there.
    assert min(ring["kernels"]["correlation"].tolist()) == 1


def test_records_without_a_time_are_counted_never_shown(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    told, ring = run(libraries, tmp_path, WHOLE, STAND_IN_ZERO=1000, STAND_IN_TOTAL=60_000)
    assert told["counts"]["without_time"] == told["counts"]["lost"] == 60
    assert len(ring["kernels"]["start"]) + len(ring["memcpys"]["start"]) == 60_000 - 60


def test_a_burst_of_invalid_times_ends_the_node_level(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    steps = [["start", {"node_level": True}], ["until", 3_000], ["spin"], ["stop"]]
    _, ring = run(libraries, tmp_path, steps, STAND_IN_ZERO=3, STAND_IN_GRAPHS=100)
    assert "time stamps became invalid: whole graphs from here on" in ring["texts"]
    assert len(ring["graphs"]["start"]) > 0


def test_graphs_as_a_whole_or_kernel_by_kernel(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    steps = [["start", {}], ["until", 300], ["level", True], ["until", 30_000], ["stop"]]
    told, ring = run(libraries, tmp_path, steps, STAND_IN_GRAPHS=100)
    assert told["said"] == ["", "", None]
    assert set(ring["graphs"]["graph"].tolist()) == {77}
    assert ring["kernels"]["graph_node"].max() == 99
    assert ring["kernels"]["start"].min() > ring["graphs"]["start"].min()


def test_another_client_takes_the_callbacks_and_a_pause_gives_them_back(
    libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    steps = [["start", {}], ["until", 20_000], ["pause"], ["steal"], ["resume"], ["until", 60_000], ["stop"]]
    told, ring = run(libraries, tmp_path, steps)
    assert told["said"] == ["", None, "", None]
    states = ring["probes"]["state"].tolist()
    assert 3 in states
    assert "paused for torch.profiler" in ring["texts"]
    assert told["counts"]["records"] == told["emitted"]


@pytest.mark.parametrize(
    ("environment", "rank"),
    [({"PMI_RANK": "3"}, 3), ({"RANK": "1"}, -1), ({"RANK": "1", "WORLD_SIZE": "2"}, 1), ({"PMIX_RANK": "1x"}, -1)],
)
def test_both_kinds_of_rings_know_their_rank(
    libraries: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    rank: int,
) -> None:
    for name in ("WORLD_SIZE", *(name for name, _ in RANKS)):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    run(libraries, tmp_path, [["start", {}], ["stop"]])
    ring = Ring(next(tmp_path.glob("kernels-*.ring")))
    assert (ring.rank, guest_rank()) == (rank, rank)
    ring.close()


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"STAND_IN_VERSION": 18}, "older than 12.0"),
        ({"STAND_IN_REFUSES": "10=35"}, "permission"),
        ({"STAND_IN_REFUSES": "10=39"}, "another profiler"),
        ({"STAND_IN_REFUSES": "10=99"}, "error 99"),
    ],
)
def test_what_cupti_refuses_is_a_sentence(
    libraries: tuple[Path, Path], tmp_path: Path, environment: dict[str, Any], why: str
) -> None:
    told, _ = run(libraries, tmp_path, [["start", {}], ["stop"]], **environment)
    assert why in told["said"][0]


def test_before_12_6_it_does_not_come_late(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    told, _ = run(libraries, tmp_path, [["start", {"late": True}]], STAND_IN_VERSION=23)
    assert "older than 12.6" in told["said"][0]
    told, _ = run(libraries, tmp_path, [["start", {"late": True}], ["stop"]], STAND_IN_VERSION=24)
    assert told["said"] == ["", None]


def test_no_cupti_or_no_driver(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from probes.inprocess.tap import Tap\n"
    script += "print(Tap(Path(sys.argv[1])).start())"
    env = {**os.environ, "TLLM_INSPECTOR_RUN": str(tmp_path)}
    command = [sys.executable, "-c", script, str(libraries[0])]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    # Where a CUDA toolkit is installed there is one, but no driver.
    assert "no CUPTI" in done.stdout or "no CUDA driver" in done.stdout or done.stdout == "\n"


def test_the_driver_loads_it_into_a_process_without_python_of_ours(
    libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    # What cuInit does with CUDA_INJECTION64_PATH; the process ends without a word to the tap.
    script = "import ctypes, sys, time; ctypes.CDLL(sys.argv[1]).InitializeInjection(); time.sleep(0.3)"
    env = {**os.environ, "TLLM_INSPECTOR_RUN": str(tmp_path), "TLLM_INSPECTOR_CUPTI": str(libraries[1])}
    subprocess.run([sys.executable, "-c", script, str(libraries[0])], env=env, check=True)
    (path,) = tmp_path.glob("kernels-*.ring")
    ring = Ring(path)
    assert len(ring.take().tables["kernels"]) > 1000
    assert ring.counts().closed
    ring.close()


def test_a_child_leaves_its_parents_ring_alone(libraries: tuple[Path, Path], tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from pathlib import Path; from probes.inprocess.tap import Tap\n"
        "tap = Tap(Path(sys.argv[1])); tap.start(cupti=os.environ['TLLM_INSPECTOR_CUPTI'])\n"
        "pid = os.fork()\n"
        "if not pid:\n    tap.stop(); print(tap.counts().records, flush=True); os._exit(0)\n"
        "os.waitpid(pid, 0); tap.stop()"
    )
    env = {**os.environ, "TLLM_INSPECTOR_RUN": str(tmp_path), "TLLM_INSPECTOR_CUPTI": str(libraries[1])}
    command = [sys.executable, "-W", "ignore", "-c", script, str(libraries[0])]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"
    (path,) = tmp_path.glob("kernels-*.ring")
    ring = Ring(path)
    assert ring.take().damage == ""
    ring.close()


def test_building_it_twice_compiles_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    first = tap.build(tmp_path)
    monkeypatch.setenv("CC", "false")
    assert tap.build(tmp_path) == first
    assert "compiler failed" in str(tap.build(tmp_path / "other"))
