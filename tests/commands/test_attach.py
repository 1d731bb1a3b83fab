"""`inflight attach`, as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import inspector
from inspector.cli import main
from inspector.commands import record
from probes.recording import Recording
from probes.server_http import processes
from tests.probes.stand_in_server import pytorch, stand_in
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


def start(*arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "inspector", "attach", *arguments],
        stdin=stdin,
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
        ("\u00b2", 2, "no number of a process"),
        ("1" * 5000, 2, "no number of a process"),
        ("http://localhost:\u00b2", 2, "no address of a server"),
        ("http://h/?token=secret", 2, "--token-file"),
        ("http://h\x1b[2J", 2, "no address of a server"),
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


def test_a_line_on_standard_input_ends_it(tmp_path: Path) -> None:
    out = tmp_path / "server.inflight"
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        run = start(server.url, "--headless", "--control", "--out", str(out), stdin=subprocess.PIPE)
        until(lambda: server.count("GET /metrics") >= 2, "asked twice")
        assert run.stdin is not None
        run.stdin.write('{"pause": true}\x1b\nnonsense\n\n{"stop": true}\n')
        run.stdin.flush()
        _, warned = run.communicate(timeout=30)
    assert run.returncode == 0, warned
    assert 'cannot be told {"pause": true}\\x1b' in warned
    assert "\x1b" not in warned
    assert inspector.open(out)["iterations"]["iteration"].tolist() == [1]


def test_it_goes_on_when_nobody_is_there_to_control_it(tmp_path: Path) -> None:
    out = tmp_path / "server.inflight"
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)], [], [pytorch(2)])
        run = start(server.url, "--headless", "--control", "--out", str(out), stdin=subprocess.DEVNULL)
        until(lambda: server.count("GET /metrics") >= 4, "asked four times")
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=30)
    assert run.returncode == 0
    assert inspector.open(out)["iterations"]["iteration"].tolist() == [1, 2]


@pytest.mark.parametrize("since", ["GET /version", "GET /metrics"])
def test_a_server_that_drips_does_not_outlast_the_seconds(tmp_path: Path, since: str) -> None:
    gone = threading.Event()

    def drip(handler: Any) -> None:
        try:
            while not gone.wait(0.05):
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n" if since == "GET /version" else b"H")
        except OSError:
            gone.set()

    with stand_in() as server:
        server.say(since, then=drip)
        began = time.monotonic()
        run = start(server.url, "--headless", "--seconds", "1", "--out", str(tmp_path / "a.inflight"))
        _, warned = run.communicate(timeout=60)
        gone.set()
    # Each byte comes in time, and the whole would take for ever. A machine with much to do starts Python slowly.
    assert time.monotonic() - began < 30
    assert "Traceback" not in warned
    assert run.returncode == (3 if since == "GET /version" else 0), warned


def test_what_a_server_says_does_not_steer_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\u202e"

    def elsewhere(handler: Any) -> None:
        handler.send_response(302)
        handler.send_header("Location", f"http://h/{evil.encode().decode('latin-1')}")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    out = tmp_path / "a.inflight"
    with stand_in() as server:
        server.say("GET /version", then={"version": evil})
        server.say("GET /perf_metrics", then=elsewhere)
        server.say("GET /metrics", [pytorch(1)])
        run = start(server.url, "--headless", "--seconds", "3", "--out", str(out))
        printed, warned = run.communicate(timeout=60)
    assert run.returncode == 0, warned
    assert "sends us elsewhere to http://h/\\x1b]0;owned\\x07" in printed
    shown = subprocess.run(
        [sys.executable, "-I", "-m", "inspector", "summary", str(out)], capture_output=True, text=True, check=True
    ).stdout
    for text in (printed, warned, shown, (out / "recording.json").read_text()):
        assert not [letter for letter in text if letter in "\x1b\x07\u202e"]


def test_a_token_reaches_the_server_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFLIGHT_TOKEN", "a-secret")
    came: list[str] = []

    def tell(handler: Any) -> None:
        came.append(handler.headers["Authorization"])
        body = b'{"version": "a-secret"}'
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    out = tmp_path / "a.inflight"
    with stand_in() as server:
        server.say("GET /version", then=tell)
        server.say("GET /metrics", [pytorch(1)])
        run = start(server.url, "--headless", "--seconds", "1", "--out", str(out))
        words = Path(f"/proc/{run.pid}/cmdline").read_bytes()
        printed, warned = run.communicate(timeout=60)
    assert run.returncode == 0, warned
    assert set(came) == {"Bearer a-secret"}
    assert b"a-secret" not in words
    assert "a-secret" not in printed + warned
    assert not [path for path in out.rglob("*") if path.is_file() and b"a-secret" in path.read_bytes()]


def test_the_window_is_given_all_but_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(record, "open_window", lambda words: given.append(list(words)) or 0)
    monkeypatch.setenv("INFLIGHT_TOKEN", "a-secret")
    (tmp_path / "token").write_text("another-secret")
    monkeypatch.chdir(tmp_path)
    with stand_in() as server:
        assert main(["attach", server.url, "--insecure", "--token-file", "token", "--out", "a.inflight"]) == 0
    words = given[0]
    assert words[:2] == ["attach", server.url]
    assert "--insecure" in words
    assert words[words.index("--token-file") + 1] == str(tmp_path / "token")
    assert "secret" not in " ".join(words)


def test_what_is_recorded_already_is_told_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = Recording(tmp_path / "a.inflight", [], {})
    environment = {**os.environ, "TLLM_INSPECTOR_RUN": str(recording.path)}
    with subprocess.Popen([sys.executable, "-ISc", "input()"], stdin=subprocess.PIPE, env=environment) as other:
        until(lambda: b"TLLM_INSPECTOR_RUN" in Path(f"/proc/{other.pid}/environ").read_bytes())
        assert main(["attach", str(other.pid), "--headless"]) == 2
        recording.discard()
        assert main(["attach", str(other.pid), "--headless"]) == 3
        other.communicate(b"\n", timeout=30)
    said = capsys.readouterr().err.splitlines()
    assert f"is being recorded already: into {recording.path}. Inflight" in said[0]
    assert "listens at no port" in said[1]
