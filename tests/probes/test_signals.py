"""Signals that a recorder gets, in the workload."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from inspector.trace import header
from tests.waiting import PATIENCE_S, processes


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGUSR1, signal.SIGPROF, signal.SIGRTMIN])
def test_other_signals_are_for_the_workload_to_decide_on(tmp_path: Path, number: int) -> None:
    code = f"""
import os, signal, sys
signal.signal({int(number)}, lambda *_: sys.exit(14))
os.write(1, b"ready\\n")
while True: signal.pause()
"""
    command = [sys.executable, "-m", "inspector", "record", "--headless", "--out", str(tmp_path / "x.inflight")]
    with processes() as begin:
        process = begin([*command, "--", sys.executable, "-c", code])
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 14
    assert header.read(tmp_path / "x.inflight").state == "complete"
