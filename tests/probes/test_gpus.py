from __future__ import annotations

import threading
from pathlib import Path

import pytest

from probes.gpus import Gpus, visible
from probes.nvml import Absent, Gpu, Nvml, Reading
from probes.samples import Samples
from probes.streams import Streams
from tests.probes.recorded import contents
from tests.waiting import PATIENCE_S, until


class Two(Nvml):
    """Two GPUs; the second refuses its power."""

    def __init__(self) -> None:
        self.gpus = [Gpu(0, "Left", 10, 20), Gpu(1, "Right", 30, 40)]
        self.absent = {(1, "power"): "not supported"}
        self.asked = 0
        self.closed = False

    def sample(self, now_ns: int) -> list[Reading]:
        self.asked += 1
        return [Reading("power", "W", 0, 100.0), *(Reading("SM clock", "MHz", number, 5.0) for number in (0, 1))]

    def close(self) -> None:
        self.closed = True


def recorded(gpus: Gpus, folder: Path) -> dict[str, list[tuple[object, ...]]]:
    streams = Streams(folder, "host")
    samples = Samples(streams)
    gpus.give(samples)
    samples.flush()
    streams.close()
    return contents(folder, "host")


@pytest.mark.parametrize(
    ("setting", "names"), [(None, ["Left", "Right"]), ("1", ["Right"]), ("1,0", ["Right", "Left"])]
)
def test_gpus_are_numbered_as_the_workload_numbers_them(tmp_path: Path, setting: str | None, names: list[str]) -> None:
    nvml = Two()
    gpus = Gpus({} if setting is None else {"CUDA_VISIBLE_DEVICES": setting}, lambda: nvml)
    until(lambda: nvml.asked >= 2)
    gpus.close()
    assert nvml.closed
    rows = recorded(gpus, tmp_path)
    assert [dict(about[1:])[1] for about in rows["devices"]] == names
    series = {key for key, *_ in rows["series"]}
    assert {("SM clock", "MHz", f"('{number}',)") for number in range(len(names))} <= series
    left = f"('{names.index('Left')}',)" if "Left" in names else None
    assert {key[2] for key in series if key[0] == "power"} == ({left} if left else set())
    assert "not supported" in gpus.state.get("refused", "") or "Right" not in names


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("2,0", [2, 0]),
        (" 1 , 2", [1, 2]),
        ("0,7,1", [0]),
        ("-1", []),
        ("1,1", [1]),
        ("GPU-8932f937", None),
    ],
)
def test_what_cuda_shows(setting: str | None, seen: list[int] | None) -> None:
    assert visible(setting, [0, 1, 2]) == seen


def test_without_a_driver_it_says_why(tmp_path: Path) -> None:
    gpus = Gpus({}, lambda: Absent("there is no driver", "get one"))
    gpus.close()
    assert gpus.state == {"absent": "there is no driver", "fix": "get one"}
    assert recorded(gpus, tmp_path) == {}


def test_a_call_that_never_returns_holds_nobody_up(tmp_path: Path) -> None:
    never = threading.Event()

    def hang() -> Absent:
        never.wait()
        return Absent("late", "")

    gpus = Gpus({}, hang)
    gpus.close(0.01)
    assert gpus.state == {"absent": "NVML has not answered yet"}
    assert recorded(gpus, tmp_path) == {}
    never.set()


def test_names_that_tell_no_numbers_are_not_guessed_at() -> None:
    nvml = Two()
    gpus = Gpus({"CUDA_VISIBLE_DEVICES": "GPU-8932f937"}, lambda: nvml)
    gpus.close(PATIENCE_S)
    assert "CUDA_VISIBLE_DEVICES" in gpus.state["absent"]
    assert (nvml.asked, nvml.closed) == (0, True)
