"""`inflight attach`, as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import inspector
from inspector.cli import main
from probes.server_http import processes
from tests.probes.stand_in_server import pytorch, stand_in
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "inspector", "attach", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_warns_records_until_interrupted_and_says_what_it_has(tmp_path: Path) -> None:
    out = tmp_path / "server.inflight"
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1), pytorch(2)], [pytorch(3)])
        run = start(server.url, "--headless", "--out", str(out))
        until(lambda: server.count("GET /metrics") >= 4, "asked four times")
        assert (out / "recording.json").is_file()
        run.send_signal(signal.SIGINT)
        printed, warned = run.communicate(timeout=30)
    assert run.returncode == 0, warned
    assert "takes their records away from other readers" in warned
    assert printed.splitlines()[-1].startswith("Next: inflight ")
    assert (out.stat().st_mode & 0o777) == 0o700
    trace = inspector.open(out)
    assert trace["iterations"]["iteration"].tolist() == [1, 2, 3]
    assert trace["processes"]["pid"].tolist()[0] == os.getpid()


def test_it_ends_by_itself_after_seconds(tmp_path: Path) -> None:
    out = tmp_path / "server.inflight"
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(n) for n in range(5)])
        run = start(server.url.removeprefix("http://"), "--headless", "--seconds", "1", "--out", str(out))
        _, warned = run.communicate(timeout=60)
    assert run.returncode == 0, warned
    assert len(inspector.open(out)["iterations"]) == 5


def test_a_process_is_found_by_the_port_that_it_listens_at(tmp_path: Path) -> None:
    out = tmp_path / "server.inflight"
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(n) for n in range(5)])
        assert ("127.0.0.1", server.port) in processes.listeners_of(os.getpid())
        assert processes.pid_at(server.port) == os.getpid()
        run = start(str(os.getpid()), "--headless", "--seconds", "1", "--out", str(out))
        _, warned = run.communicate(timeout=60)
    assert run.returncode == 0, warned
    assert f":{server.port}" in warned
    assert len(inspector.open(out)["iterations"]) == 5


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("ftp://localhost", 2, "no address of a server"),
        ("http://me:secret@localhost:1", 2, "password"),
        ("http://localhost:notaport", 2, "no address of a server"),
        ("4194303", 2, "there is no process 4194303"),
    ],
)
def test_what_cannot_be_attached_to(
    target: str, code: int, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["attach", target, "--headless", "--out", str(tmp_path / "a.inflight")]) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert "secret" not in said
    assert not (tmp_path / "a.inflight").exists()


def test_a_process_that_listens_nowhere_is_told_of_the_next_best_thing(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert main(["attach", str(other.pid), "--headless"]) == 3
        other.communicate(b"\n", timeout=30)
    said = capsys.readouterr().err
    assert "listens at no port" in said
    assert "inflight record -- COMMAND" in said


def test_a_recording_is_never_written_over(tmp_path: Path) -> None:
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        (tmp_path / "a.inflight").mkdir()
        assert main(["attach", server.url, "--headless", "--out", str(tmp_path / "a.inflight")]) == 2
        assert server.count("GET /metrics") == 0
