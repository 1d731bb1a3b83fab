"""Bytes that are no UTF-8, in words and in paths: on Linux both may hold any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import inspector
from tests.waiting import PATIENCE_S, ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
ODD = os.fsdecode(b"\xff")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "inspector", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_recording_of_such_words_in_such_a_folder_is_whole_and_opens(tmp_path: Path) -> None:
    folder = tmp_path / f"d{ODD}"
    folder.mkdir()
    done = run(folder, "record", "--headless", "--out", f"b{ODD}.inflight", "--", "true", f"word{ODD}")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "Traceback" not in done.stderr
    recording = folder / f"b{ODD}.inflight"
    assert (recording / "probes.arrow").is_file()
    assert r"word\\xff" in (recording / "recording.json").read_text()
    assert len(inspector.open(recording)["probes"]) > 0
    done = run(folder, "convert", f"b{ODD}.inflight", f"c{ODD}.inflight")
    assert done.returncode == 0, done.stderr
    assert len(inspector.open(folder / f"c{ODD}.inflight")["probes"]) > 0
