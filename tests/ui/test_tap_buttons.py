"""The buttons that ask something of the kernel tap: from the window through the recorder to the tap and back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from tests.probes.tapped import build_libraries
from tests.ui.user import User
from tests.waiting import ROOT
from ui.run import launch
from ui.run.options import decode
from ui.views.run import Run

_WAIT_MS = 60_000
# A process that has the tap and, in the place of CUPTI, its stand-in with 100 kernels a graph.
_WORKLOAD = """
import os, sys, time
sys.path.insert(0, {root!r})
os.environ.update(STAND_IN_GRAPHS="100", STAND_IN_RATE="20000")
from pathlib import Path
from probes.inprocess.tap import Tap
print(Tap(Path({tap!r})).start(cupti={cupti!r}) or "at work", flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def own_recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "recordings", lambda: tmp_path / "recordings")
    monkeypatch.setattr("ui.views.run.read_options", lambda: decode(b"[]"))


def test_every_kernel_for_a_while_then_none_then_again(user: User, qtbot: QtBot, tmp_path: Path) -> None:
    tap, cupti = build_libraries(tmp_path)
    script = tmp_path / "workload.py"
    script.write_text(_WORKLOAD.format(root=str(ROOT), tap=str(tap), cupti=str(cupti)), encoding="utf-8")
    wanted = launch.command(f"{sys.executable} -u {script}")
    user.window.desk._start(lambda: wanted)
    view = user.window.views["run"]
    assert isinstance(view, Run)
    assert not view.taps.isVisible()

    def says(state: str, message: str) -> bool:
        probes = view._answer.probes if view._answer is not None else ()
        return any((each.name, each.state, each.message) == ("kernel tap", state, message) for each in probes)

    qtbot.waitUntil(lambda: says("running", ""), timeout=_WAIT_MS)
    qtbot.waitUntil(view.taps.isVisible, timeout=_WAIT_MS)
    user.click("Every kernel for 2 s")
    qtbot.waitUntil(lambda: says("running", "every kernel of CUDA graphs, for a while"), timeout=_WAIT_MS)
    qtbot.waitUntil(lambda: says("running", ""), timeout=_WAIT_MS)
    user.click("Stop kernels")
    qtbot.waitUntil(lambda: view.taps.toggle.text() == "Record kernels", timeout=_WAIT_MS)
    assert says("off", "stopped on demand")
    assert not view.taps.every.isEnabled()
    user.click("Record kernels")
    qtbot.waitUntil(lambda: says("running", ""), timeout=_WAIT_MS)
    user.click("Stop")
    qtbot.waitUntil(lambda: not user.window.desk.child.is_alive, timeout=_WAIT_MS)
    assert not view.taps.isVisible()
    trace = user.window.session.trace
    assert trace is not None
    assert trace["kernels"]["graph_node"].max() == 99
    assert len(trace["graphs"]["start"]) > 100
