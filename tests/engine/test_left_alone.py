"""The engine of a demo does not outlive the recorder that started it."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.trace import header
from tests.waiting import PATIENCE_S, ROOT, is_alive, processes, until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("torch") is None, reason="Linux and torch are needed"
)


def test_a_demo_whose_recorder_is_killed_leaves_no_engine(tmp_path: Path) -> None:
    out = tmp_path / "x.inflight"
    with processes() as begin:
        process = begin(
            [sys.executable, "-m", "inspector", "demo", "--headless", "--seconds", "600", "--out", str(out)]
        )
        assert process.stdout is not None
        assert process.stdout.readline()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        (engine,) = map(int, children.read_text().split())
        assert header.read(out).state == "recording"
        process.send_signal(signal.SIGKILL)
        until(lambda: not is_alive(engine))


def test_an_engine_whose_starter_is_gone_already_does_not_begin() -> None:
    words = [sys.executable, "-m", "probes.workloads.engine", "--end-with", "1"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "who started the engine is gone\n")
