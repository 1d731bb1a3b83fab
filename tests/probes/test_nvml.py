"""NVML through a stand-in library that the test builds; each case in a process of its own, since it is loaded once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).with_name("nvml_stand_in.c")
SCRIPT = """
import json
from probes.nvml import Absent, connect
nvml = connect()
if isinstance(nvml, Absent):
    print(json.dumps({"absent": nvml.why, "fix": nvml.fix}))
else:
    samples = [[list(reading) for reading in nvml.sample(at * 100_000_000)] for at in range(4)]
    samples.append([list(reading) for reading in nvml.sample(300_000_001)])
    nvml.close()
    absent = {f"{number} {quantity}": why for (number, quantity), why in nvml.absent.items()}
    print(json.dumps({"gpus": [vars(gpu) for gpu in nvml.gpus], "samples": samples, "absent": absent}))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the stand-in."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the stand-in for NVML cannot be built")
    folder = tmp_path_factory.mktemp("nvml")
    out = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", out, SOURCE], check=True)
    return folder


def asked(folder: Path, **environment: str) -> dict[str, Any]:
    """What a process that samples four times, and once more at once, says."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(folder), **environment}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def values(sample: list[list[Any]], device: int) -> dict[str, float]:
    """Series to value of one device."""
    return {series: value for series, _, number, value in sample if number == device}


def test_two_gpus(library: Path) -> None:
    told = asked(library)
    assert told["gpus"][0] == {
        "number": 0,
        "name": "Stand-in A",
        "memory": 150 << 30,
        "bandwidth": 2 * 3201 * 10**6 * 6144 // 8,
    }
    first, second = values(told["samples"][0], 0), values(told["samples"][1], 0)
    assert first["power"] == 512.5
    assert first["device memory in use"] == 100 << 30
    assert first["time with memory being accessed"] == 55
    assert first["clock limited by power cap"] == 1
    assert first["clock limited by hardware slowdown"] == 0
    # A rate needs two samples; and what the device does not count is not there.
    assert "HBM read and write" not in first
    assert second["HBM read and write"] == 63.5
    assert second["PCIe sent"] == 2 << 20
    assert "NVLink sent" not in second
    # Two samples within 100 ms give no valid rate.
    assert "HBM read and write" not in values(told["samples"][4], 0)
    assert values(told["samples"][1], 1)["HBM read and write"] == 63.5


def test_what_one_device_does_not_answer_is_said_once(library: Path) -> None:
    told = asked(library)
    assert list(told["absent"]) == ["1 temperature"]
    assert "temperature" in values(told["samples"][3], 0)
    assert "temperature" not in values(told["samples"][3], 1)


@pytest.mark.parametrize(("gpm", "why"), [("no", "Hopper"), ("refused", "Insufficient Permissions")])
def test_no_gpm(library: Path, gpm: str, why: str) -> None:
    told = asked(library, STAND_IN_GPM=gpm)
    assert why in told["absent"]["0 GPM"]
    assert "power" in values(told["samples"][3], 0)
    assert not any("HBM" in series for sample in told["samples"] for series, *_ in sample)


def test_a_gpu_that_disappears(library: Path) -> None:
    told = asked(library, STAND_IN_LOST="2")
    assert values(told["samples"][1], 1)["power"] == 512.5
    assert not values(told["samples"][2], 1)
    assert not values(told["samples"][3], 1)
    assert values(told["samples"][3], 0)["power"] == 512.5
    assert "1 the device" in told["absent"]


def test_no_driver(tmp_path: Path) -> None:
    if any(Path(folder, "libnvidia-ml.so.1").exists() for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")):
        pytest.skip("this machine has a driver")
    told = asked(tmp_path)
    assert "no NVIDIA driver" in told["absent"]
    assert told["fix"]


def test_a_driver_that_does_not_start(library: Path) -> None:
    assert "NVML does not start" in asked(library, STAND_IN_INIT="refused")["absent"]
