"""What pipeline stages tell a recording of their work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from inspector.trace.ring import Ring, Taken
from probes.workloads.engine.packing import Piece
from probes.workloads.engine.stages import StagesRunner
from tests.engine import tiny

ITERATIONS = 5
MICRO_BATCHES = 3


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Taken]:
    """Of two stages that computed ITERATIONS times MICRO_BATCHES passes: what each left in its ring."""
    folder: Path = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TLLM_INSPECTOR_RUN", str(folder))
        stages = StagesRunner(tiny.target(), 2, MICRO_BATCHES, 8, 4)
    for iteration in range(ITERATIONS):
        stages.forward([Piece([1, 2, 3], 0, [block], 1) for block in range(MICRO_BATCHES)], iteration)
    stages.close()
    rings = [Ring(path) for path in sorted(folder.glob("stage*.ring"))]
    assert [ring.role for ring in rings] == ["stage0", "stage1"]
    assert [ring.pid for ring in rings] == list(stages.pids)
    assert all(ring.counts().closed for ring in rings)
    taken = [ring.take() for ring in rings]
    for ring in rings:
        assert ring.lost() == {}
        ring.close()
    return taken


def test_every_micro_batch_is_told_by_every_stage(told: list[Taken]) -> None:
    expected = [(iteration, number) for iteration in range(ITERATIONS) for number in range(MICRO_BATCHES)]
    for stage, taken in enumerate(told):
        work = taken.tables["stage_work"]
        assert list(zip(work["iteration"].tolist(), work["micro_batch"].tolist(), strict=True)) == expected
        assert set(work["stage"].tolist()) == {stage}
        assert (work["end"] > work["start"]).all()
        assert (work["start"][1:] >= work["end"][:-1]).all()
        # Two clocks, read one after the other.
        assert (work["cpu"] <= work["end"] - work["start"] + 1_000_000).all()
        assert (work["cpu"] > 0).all()


def test_no_stage_begins_before_the_one_before_it_has_handed_on(told: list[Taken]) -> None:
    first, second = (taken.tables["stage_work"] for taken in told)
    assert (second["start"] >= first["end"]).all()


def test_waiting_computing_and_sending_fill_the_time_of_a_stage(told: list[Taken]) -> None:
    for taken in told:
        names = dict(taken.names)
        ranges = np.sort(taken.tables["ranges"], order=["start", "end"])
        assert [names[name] for name in ranges["name"].tolist()] == ["receive", "forward", "send"] * (
            ITERATIONS * MICRO_BATCHES
        )
        assert (ranges["start"][1:] == ranges["end"][:-1]).all()
        forward = ranges[1::3]
        work = taken.tables["stage_work"]
        assert (forward["start"] == work["start"]).all()
        assert (forward["end"] == work["end"]).all()


def test_a_wait_is_told_whatever_message_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLLM_INSPECTOR_RUN", str(tmp_path))
    stages = StagesRunner(tiny.target(), 2, 1, 8, 4)
    stages.forward([Piece([1, 2, 3], 0, [0], 1)], 0)
    stages.resize(6)
    stages.move([])
    stages.forward([Piece([4], 3, [0], 1)], 1)
    stages.close()
    for path in tmp_path.glob("stage*.ring"):
        ring = Ring(path)
        taken = ring.take()
        ring.close()
        names, ranges = dict(taken.names), np.sort(taken.tables["ranges"], order=["start", "end"])
        expected = [
            name for what in ("forward", "resize", "move pages", "forward") for name in ("receive", what, "send")
        ]
        assert [names[name] for name in ranges["name"].tolist()] == expected
        assert (ranges["start"][1:] == ranges["end"][:-1]).all()


def test_passes_stand_in_for_the_work_of_a_device_of_their_own(told: list[Taken]) -> None:
    for stage, taken in enumerate(told):
        names = dict(taken.names)
        kernels, calls, work = (taken.tables[name] for name in ("kernels", "host_calls", "stage_work"))
        assert set(kernels["device"].tolist()) == {stage}
        assert (kernels["start"] == work["start"]).all()
        assert (kernels["end"] == work["end"]).all()
        assert (calls["correlation"] == kernels["correlation"]).all()
        assert (calls["start"] == kernels["start"]).all()
        assert len(set(kernels["correlation"].tolist())) == len(kernels)
        assert [names[row["name"]] for row in taken.tables["devices"]] == [f"CPU stage {stage} (no GPU)"]
        assert [names[row["name"]] for row in taken.tables["threads"]] == [f"stage {stage}: layer {stage}"]
