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
    samples = [[list(reading) for reading in nvml.sample(10**10 + at * 100_000_000)] for at in range(1, 5)]
    samples.append([list(reading) for reading in nvml.sample(10**10 + 400_000_001)])
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


# Each function, what is missing on the device that refuses it, and whether the device itself is.
EVERY = {
    "nvmlDeviceGetUtilizationRates": {"time with a kernel running", "time with memory being accessed"},
    "nvmlDeviceGetMemoryInfo": {"device memory in use"},
    "nvmlDeviceGetPowerUsage": {"power"},
    "nvmlDeviceGetClockInfo": {"SM clock", "memory clock"},
    "nvmlDeviceGetCurrentClocksEventReasons": {"clock limited by power cap"},
    "nvmlGpmQueryDeviceSupport": {"HBM read and write"},
    "nvmlGpmSampleGet": {"HBM read and write"},
    "nvmlGpmMetricsGet": {"HBM read and write"},
    "nvmlDeviceGetName": set(),
    "nvmlDeviceGetMaxClockInfo": set(),
    "nvmlDeviceGetMemoryBusWidth": set(),
}


@pytest.mark.parametrize("code", [1, 3, 4, 10, 999])
@pytest.mark.parametrize("function", EVERY)
def test_what_one_gpu_refuses_is_missing_there_and_nowhere_else(library: Path, function: str, code: int) -> None:
    told = asked(library, STAND_IN_REFUSES=f"{function}={code}")
    whole, rest = values(told["samples"][3], 0), values(told["samples"][3], 1)
    assert set(whole) - set(rest) - {"temperature"} >= EVERY[function]
    kept = set(whole) - EVERY[function] - {"temperature"}
    if "Gpm" in function:
        kept = {series for series in kept if series in set(values(told["samples"][0], 0))}
    if function == "nvmlDeviceGetCurrentClocksEventReasons":
        kept = {series for series in kept if not series.startswith("clock limited")}
    assert kept <= set(rest)
    assert any(name.startswith("1 ") for name in told["absent"])
    assert not any(name.startswith("0 ") for name in told["absent"])
    first, second = told["gpus"]
    assert first["name"] == "Stand-in A"
    assert second["name"] == ("GPU 1" if function == "nvmlDeviceGetName" else "Stand-in B")
    assert second["memory"] == (-1 if function == "nvmlDeviceGetMemoryInfo" else 150 << 30)
    unknown = function in ("nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetMemoryBusWidth")
    assert (second["bandwidth"] == -1) == unknown


def test_a_gpu_that_cannot_be_had_is_left_out(library: Path) -> None:
    told = asked(library, STAND_IN_REFUSES="nvmlDeviceGetHandleByIndex_v2=999")
    assert [gpu["number"] for gpu in told["gpus"]] == [0]
    assert "1 the device" in told["absent"]
    assert values(told["samples"][3], 0)["power"] == 512.5


@pytest.mark.parametrize("code", [15, 16])
@pytest.mark.parametrize("function", ["nvmlDeviceGetPowerUsage", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"])
def test_a_gpu_that_goes_in_the_middle_of_a_sample(library: Path, function: str, code: int) -> None:
    told = asked(library, STAND_IN_REFUSES=f"{function}={code}:2")
    assert values(told["samples"][1], 1)["power"] == 512.5
    assert not values(told["samples"][4], 1)
    assert values(told["samples"][4], 0)["power"] == 512.5
    assert "1 the device" in told["absent"]


def test_an_older_gpu_tells_of_pcie_once_a_second(library: Path) -> None:
    told = asked(library, STAND_IN_GPM="no")
    seen = [values(sample, 1) for sample in told["samples"]]
    assert [seen[0][f"PCIe {way} (20 ms in each second)"] for way in ("sent", "received")] == [2_000_000, 3_000_000]
    assert all("PCIe sent (20 ms in each second)" not in sample for sample in seen[1:])
    assert not any("(20 ms" in series for series in values(asked(library)["samples"][0], 0))
