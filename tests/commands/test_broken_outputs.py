"""What becomes of a run when nobody takes what it says any more: its exit code and its recording stay as they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import inspector
from inspector.cli import main
from inspector.streams import put
from tests.probes.stand_in_server import pytorch, stand_in
from tests.waiting import PATIENCE_S, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full, /proc")
PROGRAM = [sys.executable, "-I", "-m", "inspector"]


def broken() -> int:
    """The writing end of a pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("kind", ["gone", "full"])
def test_the_exit_code_is_the_workloads_though_nobody_hears_of_it(kind: str, tmp_path: Path) -> None:
    errors = broken() if kind == "gone" else os.open("/dev/full", os.O_WRONLY)
    out = tmp_path / "x.inflight"
    words = ["record", "--headless", "--out", str(out), "--", "sh", "-c", "exit 4"]
    done = subprocess.run([*PROGRAM, *words], stderr=errors, timeout=PATIENCE_S, check=False)
    assert done.returncode == 4
    assert (out / "probes.arrow").is_file()
    # Neither do our own errors depend on it.
    refused = subprocess.run([*PROGRAM, "attach", "localhost:1", "--headless"], stderr=errors, check=False)
    os.close(errors)
    assert refused.returncode == 3


@pytest.mark.parametrize("kind", ["gone", "full", "unread"])
def test_a_server_is_recorded_though_nobody_hears_of_it(kind: str, tmp_path: Path) -> None:
    reading, out = os.pipe()
    if kind != "unread":
        os.close(out)
        out = broken() if kind == "gone" else os.open("/dev/full", os.O_WRONLY)
    os.set_blocking(out, False)
    while kind == "unread":
        try:
            os.write(out, bytes(4096))
        except BlockingIOError:
            os.set_blocking(out, True)
            break
    into = tmp_path / "server.inflight"
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        words = ["attach", server.url, "--headless", "--out", str(into)]
        run = subprocess.Popen([*PROGRAM, *words], stdout=out, stderr=subprocess.PIPE, text=True)
        # It says how it is going every two seconds.
        began = server.count("GET /metrics")
        until(lambda: server.count("GET /metrics") >= began + 6 or run.poll() is not None, "went on")
        server.say("GET /metrics", [pytorch(2)])
        seen = server.count("GET /metrics")
        until(lambda: server.count("GET /metrics") >= seen + 4 or run.poll() is not None, "asked again")
        assert run.poll() is None
        run.send_signal(signal.SIGINT)
        if kind == "unread":
            os.set_blocking(reading, False)
            until(lambda: (into / "iterations.arrow").is_file(), "closed")
            os.read(reading, 1 << 20)
        _, errors = run.communicate(timeout=PATIENCE_S)
    os.close(out)
    os.close(reading)
    assert "Traceback" not in errors
    assert run.returncode == (3 if kind == "full" else 0)
    assert inspector.open(into)["iterations"]["iteration"].tolist() == [1, 2]
    assert (into / "iterations.arrow").is_file()


def test_a_line_that_would_have_to_wait_is_dropped() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "w") as stream:
        for _ in range(100):
            put(stream, "é" * 5000)
        assert os.read(reading, 10).decode() == "é" * 5


def test_what_was_typed_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["record", "--probe", "\x1b[31mx\nhost"], ["gaps", "x", "--\x1b[2J"]):
        with pytest.raises(SystemExit):
            main(words)
    assert "\x1b" not in capsys.readouterr().err
