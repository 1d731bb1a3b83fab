"""DCGM's figures, out of a stand-in for dcgmi that prints as dcgmi does: tables, heads again and again, N/A, errors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import inspector
from inspector.analysis.bandwidth import Bandwidths
from probes.dcgm.printed import FEWER, FIELDS, Gpu, listed, numbers, parse
from probes.dcgm.watch import Dcgm
from probes.doctor.check import Machine
from probes.doctor.dcgm import dcgm as doctor_of
from probes.samples import Samples
from tests.waiting import is_alive, until

DISCOVERED = """2 GPUs found.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA A100-SXM4-40GB                                          |
|        | PCI Bus ID: 00000000:07:00.0                                         |
|        | Device UUID: GPU-aaaa1111-0000-0000-0000-000000000000                |
+--------+----------------------------------------------------------------------+
| 1      | Name: NVIDIA A100-SXM4-40GB                                          |
|        | PCI Bus ID: 00000000:0f:00.0                                         |
|        | Device UUID: GPU-bbbb2222-0000-0000-0000-000000000000                |
+--------+----------------------------------------------------------------------+
0 NvSwitches found.
"""
LEFT, RIGHT = "GPU-aaaa1111-0000-0000-0000-000000000000", "GPU-bbbb2222-0000-0000-0000-000000000000"
GPUS = [Gpu(0, "NVIDIA A100-SXM4-40GB", LEFT), Gpu(1, "NVIDIA A100-SXM4-40GB", RIGHT)]
_STAND_IN = """#!{python} -IS
import os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
words = sys.argv[1:]
open(os.path.join(here, "asked"), "a").write(" ".join(words) + "\\n")
if {engine!r} == "none":
    print("Error: unable to establish a connection to the specified host: localhost")
    sys.exit(255)
if words[0] == "discovery":
    print({discovered!r})
    sys.exit(0)
if words[0] == "profile":
    print("| A.1            | 1005     | dram_active                                  |")
    sys.exit(0)
fields = words[words.index("-e") + 1].split(",")
most = int(words[words.index("-c") + 1]) if "-c" in words else 10**9
if {engine!r} == "old" and len(fields) > 4:
    print("Error setting watches. Result: Profiling is not supported for these fields together")
    sys.exit(1)
open(os.path.join(here, "pid"), "w").write(str(os.getpid()))
for sample in range(most):
    if sample % 5 == 0:
        print("#Entity   " + "  ".join("F" + field for field in fields) + "\\nID")
    for gpu in words[words.index("-i") + 1].split(","):
        values = [field if int(field) >= 1009 else "0." + gpu + field[-1] if sample else "N/A" for field in fields]
        if {engine!r} == "empty":
            values = ["N/A"] * len(fields)
        print("GPU " + gpu + "     " + "        ".join(values))
    if {engine!r} == "dies" and sample == 3:
        print("Error: lost connection to the host engine")
        sys.exit(1)
    if "-c" not in words:
        sys.stdout.flush()
        time.sleep(0.01)
"""
Make = Callable[[str], dict[str, str]]


@pytest.fixture
def stand_in(tmp_path: Path) -> Make:
    """The environment in which dcgmi is a stand-in with a host engine that is fine, old, none, or dies."""

    def make(engine: str) -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "dcgmi"
        program.write_text(_STAND_IN.format(python=sys.executable, engine=engine, discovered=DISCOVERED))
        program.chmod(0o755)
        return {"PATH": str(folder)}

    return make


class Kept(Samples):
    """What is handed over."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str, int], list[float]] = {}

    def counter(self, time_ns: int, name: str, unit: str, value: float, *, pid: int = -1, device: int = -1) -> None:
        assert 0 < time_ns <= time.monotonic_ns()
        self.values.setdefault((name, unit, device), []).append(value)


def is_gone(folder: str) -> bool:
    return not is_alive(int((Path(folder) / "pid").read_text()))


def test_figures_of_each_gpu_that_the_workload_sees_arrive(stand_in: Make) -> None:
    environment = stand_in("fine")
    dcgm = Dcgm({**environment, "CUDA_VISIBLE_DEVICES": "1"}, lambda: (LEFT, RIGHT))
    until(lambda: dcgm.samples >= 4, "sampled")
    kept = Kept()
    dcgm.give(kept)
    dcgm.close()
    assert is_gone(environment["PATH"])
    # GPU 1 is the workload's number 0. What was N/A at first, of all but PCIe, is no figure.
    assert {device for *_, device in kept.values} == {0}
    assert set(kept.values["DRAM active (DCGM)", "%", 0]) == {15.0}
    assert set(kept.values["PCIe sent (DCGM)", "bytes/s", 0]) == {1009.0}
    assert len(kept.values["PCIe sent (DCGM)", "bytes/s", 0]) == len(kept.values["DRAM active (DCGM)", "%", 0]) + 1
    assert dcgm.state["sampled every"] == "100 ms"
    assert "Hopper" in dcgm.state["note"]
    assert len(kept.values) == len(FIELDS)


def test_where_not_all_fields_go_together_the_ones_that_matter_are_asked(stand_in: Make) -> None:
    environment = stand_in("old")
    dcgm = Dcgm(environment, lambda: ())
    until(lambda: dcgm.samples >= 3, "sampled")
    kept = Kept()
    dcgm.give(kept)
    dcgm.close()
    assert {name for name, *_ in kept.values} == {field.series for field in FEWER}
    assert {device for *_, device in kept.values} == {0, 1}
    asked = (Path(environment["PATH"]) / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["discovery", "dmon", "dmon"]
    assert all("-d 100" in line for line in asked[1:])


@pytest.mark.parametrize(
    ("engine", "why"),
    [
        ("none", "no DCGM host engine runs"),
        ("dies", "lost connection"),
        ("empty", "no figures of these GPUs"),
        ("", "not on the PATH"),
    ],
)
def test_why_there_is_nothing_is_said(stand_in: Make, tmp_path: Path, engine: str, why: str) -> None:
    dcgm = Dcgm(stand_in(engine) if engine else {"PATH": str(tmp_path)}, lambda: ())
    until(lambda: why in dcgm.state.get("absent", ""), why)
    assert dcgm.state["fix"]
    dcgm.close()


def test_the_doctor_tells_whether_it_works_without_sampling(stand_in: Make, tmp_path: Path) -> None:
    environment = stand_in("fine")
    said = doctor_of(Machine(tmp_path, environment))
    assert (said.state, "A100" in said.why) == ("yes", True)
    assert "dmon" not in (Path(environment["PATH"]) / "asked").read_text()
    said = doctor_of(Machine(tmp_path, {"PATH": str(tmp_path)}))
    assert (said.state, said.fix != "") == ("no", True)


def test_a_recording_shows_it_as_memory_bandwidth(stand_in: Make, tmp_path: Path) -> None:
    environment = {**os.environ, **stand_in("fine")}
    environment["PATH"] += os.pathsep + os.environ.get("PATH", "")
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    out = tmp_path / "a.inflight"
    words = ["record", "--headless", "--seconds", "2", "--probe", "dcgm", "--out", str(out), "--", "sleep", "60"]
    done = subprocess.run(
        [sys.executable, "-I", "-m", "inspector", *words], env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"no other profiler of counters" in done.stderr
    trace = inspector.open(out)
    found = trace.index(Bandwidths)
    assert [each.device for each in found.devices] == [0, 1]
    assert found.devices[1].both.share[1:] == pytest.approx(0.15)
    assert is_gone(environment["PATH"].split(os.pathsep)[0])


def test_gpus_are_listed() -> None:
    assert listed(DISCOVERED) == GPUS
    assert listed("0 GPUs found.\n") == []


@pytest.mark.parametrize(
    ("setting", "order", "found"),
    [
        (None, (), {0: 0, 1: 1}),
        (None, (RIGHT,), {1: 0}),
        ("1,0", (), {1: 0, 0: 1}),
        ("0", (RIGHT, LEFT), {1: 0}),
        (f"{RIGHT[:12]}", (), {1: 0}),
        ("0,7,1", (), {0: 0}),
        ("MIG-1", (), None),
        ("\u00b2", (), None),
        ("GPU-", (), None),
        ("", (), {}),
    ],
)
def test_gpus_are_numbered_as_the_workload_numbers_them(
    setting: str | None, order: tuple[str, ...], found: dict[int, int] | None
) -> None:
    assert numbers(GPUS, setting, order) == found


@pytest.mark.parametrize(
    "line", ["#Entity  DRAMA", "ID", "GPU", "GPU x 0.1", "GPU-I 0 0.1", "Error: GPU 0 0.1", "", "GPU \u0663 0.5"]
)
def test_lines_that_are_no_figures(line: str) -> None:
    assert parse(line, FIELDS) is None


@given(st.integers(0, 9999), st.lists(st.floats(0, 1) | st.sampled_from(["N/A", "nan", "inf", "-1", "1e300", "x"])))
def test_a_line_gives_what_can_be(number: int, values: list[float | str]) -> None:
    found = parse(f"  GPU {number}   " + "   ".join(map(str, values)) + "  ", FIELDS)
    if not values:
        assert found is None
        return
    expected = [
        (field.series, field.unit, value * field.scale)
        for field, value in zip(FIELDS, values, strict=False)
        if isinstance(value, float)
    ]
    assert found is not None
    assert found[0] == number
    assert [figure for figure in found[1] if figure[2] <= 110] == expected
