"""Without a kernel tap: steps of the executor by torch.profiler, within the budget; the profiler is stood in for."""

from __future__ import annotations

import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest

from inspector.trace.ring import Ring
from inspector.trace.ring_rows import RingRows
from probes import arming
from probes.inprocess import operators, tap, trtllm_slices
from probes.inprocess.producer import Producer
from probes.inprocess.torch_slices import Call, Operator, Slice, Work
from probes.inprocess.trtllm import BUDGET, Probe
from probes.inprocess.trtllm_slices import SLICES
from tests.probes.trtllm_stand_in import executor_module


class Profiler:
    """`TorchSlices` with a GPU: one kernel in each slice."""

    def __init__(self) -> None:
        self.begun = 0

    def begin(self) -> None:
        self.begun = time.monotonic_ns()

    def end(self) -> Slice:
        now = time.monotonic_ns()
        work = Work("kernels", self.begun + 1, now, 0, 7, "gemm", 5, -1)
        return Slice(
            [Operator(self.begun, now, 1, "aten::mm")], [Call(self.begun, now, 1, "cudaLaunchKernel", 5)], [work], 0
        )


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = types.SimpleNamespace(
        is_available=lambda: True,
        get_device_properties=lambda number: types.SimpleNamespace(name="GPU", total_memory=1 << 30),
    )
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(operators, "TorchSlices", Profiler)


def ran(folder: Path, requests: int) -> tuple[Any, dict[str, Any], list[str]]:
    module: Any = executor_module("1.2", False, 3, requests)
    probe = Probe(Producer(str(folder), "trtllm"))
    probe.wrap(module)
    executor = module.PyExecutor()
    executor.run()
    probe.close()
    assert probe.off == {}
    (path,) = folder.glob("*.ring")
    ring = Ring(path)
    rows = RingRows(ring.pid)
    texts, tables = rows.resolve(ring.take())
    ring.close()
    return executor, tables, texts


@pytest.mark.usefixtures("with_gpu")
def test_some_whole_steps_are_captured_when_the_engine_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SLICES, "1")
    _, tables, texts = ran(tmp_path, 800)
    starts = tables["iterations"]["start"]
    kernels = tables["kernels"]
    assert 0 < len(kernels["start"]) <= (len(starts) - 200) / operators.SLICE_EVERY + 1
    assert kernels["start"].min() >= starts[198]
    assert {texts[name] for name in kernels["name"].tolist()} == {"gemm"}
    assert any(text.startswith("sampled 1/") for text in texts)
    # A slice is one step: it ends when the next one begins.
    at = starts.searchsorted(kernels["start"], "right")
    assert (kernels["end"] <= starts[(at + 1).clip(max=len(starts) - 1)] + 50_000_000).all()
    assert tables["host_calls"]["correlation"].tolist() == kernels["correlation"].tolist()


@pytest.mark.usefixtures("with_gpu")
def test_together_they_keep_to_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dear(Profiler):
        """Each slice takes 5 ms of the time that the test gives out."""

        def end(self) -> Slice:
            found = super().end()
            clock.now += 5_000_000
            return found

    class Clock:
        now = 10**15

        def monotonic_ns(self) -> int:
            return self.now

    clock = Clock()
    monkeypatch.setattr(operators, "time", clock)
    monkeypatch.setattr(operators, "TorchSlices", Dear)
    monkeypatch.setenv(SLICES, "1")
    slices = trtllm_slices.StepSlices(Producer(str(tmp_path), "trtllm"))
    begun = clock.now
    for _ in range(20_000):
        clock.now += 2_000_000
        slices.step(clock.now, BUDGET)
    slices.close()
    assert slices._operators is not None
    cost = slices._operators.status.cost_ns
    assert 3 * 5_000_000 <= cost <= BUDGET * (clock.now - begun) + 5_000_000


@pytest.mark.parametrize("wanted", [False, True])
def test_it_is_off_where_it_is_not_wanted_or_there_is_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    if wanted:
        monkeypatch.setenv(SLICES, "1")
        cuda = types.SimpleNamespace(is_available=lambda: False)
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    _, tables, _ = ran(tmp_path, 60)
    assert "kernels" not in tables


def test_it_is_wanted_only_where_the_tap_could_not_be_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arming, "has_driver", lambda: True)
    assert SLICES not in arming.armed(tmp_path, {SLICES: "1"}, without_tap="it was not asked for")[0]
    monkeypatch.setattr(tap, "build", lambda: "there is no C compiler")
    environment, why = arming.armed(tmp_path, {})
    assert (environment[SLICES], why) == ("1", "there is no C compiler")
