"""The workload process as its users see it: what it prints, serves, takes and returns."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from probes.workloads.engine.__main__ import main
from tests.waiting import is_alive, until

_TINY = ("--model", "random", "--blocks", "40", "--draft", "ngram", "--operators", "none", "--output-tokens", "24")
PATIENCE = 60.0


@contextmanager
def _engine(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    """A running engine process, which is killed if it is still there in the end."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "probes.workloads.engine", *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()
        process.wait()


def _line(process: subprocess.Popen[bytes], beginning: str, error: bool = False) -> str:
    """The next line that begins so."""
    stream = process.stderr if error else process.stdout
    assert stream is not None
    until = time.monotonic() + PATIENCE
    text = b""
    while time.monotonic() < until:
        if not select.select([stream], [], [], 0.5)[0]:
            continue
        read = stream.read(1)
        assert read, f"it ended without {beginning!r}"
        text += read
        if read == b"\n":
            line, text = text.decode().rstrip("\n"), b""
            if line.lstrip().startswith(beginning):
                return line
    raise AssertionError(f"no {beginning!r}")


def _tell(process: subprocess.Popen[bytes], *lines: object) -> None:
    assert process.stdin is not None
    for line in lines:
        process.stdin.write((line if isinstance(line, str) else json.dumps(line)).encode() + b"\n")


def _ask(url: str, method: str, path: str, body: Any = None) -> Any:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    connection.request(method, path, None if body is None else json.dumps(body))
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status == 200, data
    return json.loads(data) if data[:1] in b"[{" and data else data


def test_a_run_of_so_many_requests_says_how_it_went() -> None:
    with _engine(*_TINY, "--requests", "12", "--rate", "300") as process:
        assert _line(process, "") == "starting the engine"
        assert _line(process, "") == "ready"
        said = _line(process, "ended after")
        assert process.wait(PATIENCE) == 0
    found = re.search(r"(\d+) iterations, (\d+) tokens.*; 12 requests done, 0 cancelled$", said)
    assert found is not None
    assert int(found[1]) > 0
    assert int(found[2]) >= 12


def test_it_serves_takes_changes_and_ends_when_told() -> None:
    with _engine(*_TINY, "--rate", "0", "--port", "0", "--control") as process:
        url = _line(process, "serving at ").removeprefix("serving at ")
        asked = {"prompt": "What is a KV cache?", "max_tokens": 30, "temperature": 0, "ignore_eos": True}
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: _ask(url, "POST", "/v1/completions", asked), range(8)))
        assert len({answer["choices"][0]["text"] for answer in answers}) == 1
        assert {answer["choices"][0]["finish_reason"] for answer in answers} == {"length"}
        assert {answer["usage"]["completion_tokens"] for answer in answers} == {30}
        rows = _ask(url, "GET", "/metrics")
        assert sum(row["numCompletedRequests"] for row in rows) == 8
        assert {row["kvCacheStats"]["maxNumBlocks"] for row in rows} == {40}
        assert len(_ask(url, "GET", "/perf_metrics")) == 8
        kinds = {event["data"]["type"] for event in _ask(url, "POST", "/kv_cache_events")}
        assert {"created", "stored"} <= kinds
        assert _ask(url, "GET", "/server_info")["settings"]["draft"] == "ngram"

        _tell(process, {"set": {"policy": "\x1b[31m\ud800"}})
        assert "policy \ufffd[31m\ufffd" in _line(process, "", error=True)
        _tell(process, "nonsense", {"set": {"blocks": 60, "max_batch_size": 3}}, {"set": {"stages": 2}})
        assert "no JSON" in _line(process, "", error=True)
        assert "stages cannot change" in _line(process, "", error=True)
        asked["stream"] = True
        raw = _ask(url, "POST", "/v1/completions", asked)
        parts = [json.loads(line[6:]) for line in raw.decode().split("\n\n") if line.startswith("data: {")]
        assert "".join(part["choices"][0]["text"] for part in parts) == answers[0]["choices"][0]["text"]
        rows = _ask(url, "GET", "/metrics")
        assert {(row["kvCacheStats"]["maxNumBlocks"], row["maxBatchSizeRuntime"]) for row in rows} == {(60, 3)}

        _tell(process, {"stop": True})
        assert " 9 requests done, 0 cancelled" in _line(process, "ended after")
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_and_its_stages_in_good_order(number: signal.Signals) -> None:
    count = 2 if number == signal.SIGINT else 1
    with _engine(*_TINY, "--rate", "50", "--stages", str(count)) as process:
        _line(process, "ready")
        stages = _children(process.pid)
        assert len(stages) == (count if count > 1 else 0)
        process.send_signal(number)
        _line(process, "ended after")
        assert process.wait(PATIENCE) == 128 + number
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert not any(Path(f"/proc/{pid}").exists() for pid in stages)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_stages_start_ends_it_and_them(number: signal.Signals) -> None:
    with _engine(*_TINY, "--stages", "3") as process:
        until(lambda: len(_children(process.pid)) == 3, "the stages are there", at_most=PATIENCE)
        stages = _children(process.pid)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
        assert not any(is_alive(pid) for pid in stages)
        assert process.stderr is not None
        assert process.stderr.read() == b"interrupted\n"


def test_a_signal_while_modules_are_imported_gives_its_exit_code(tmp_path: Path) -> None:
    # An interrupt that goes through `exec` of a text, as named tuples use it, is noted by Python as not caught.
    code = """
import os, signal, sys, types
from probes.workloads.engine import __main__ as engine
def assemble(*_):
    exec("os.kill(os.getpid(), signal.SIGTERM)", globals())
sys.modules["probes.workloads.engine.assembly"] = types.SimpleNamespace(assemble=assemble)
sys.argv = ["engine"]
sys.exit(engine.main())
"""
    (tmp_path / "starts.py").write_text(code)
    done = subprocess.run([sys.executable, "-m", "starts"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stderr == "interrupted\n"


def test_a_stage_that_dies_is_an_error_of_one_line() -> None:
    with _engine(*_TINY, "--rate", "50", "--stages", "2") as process:
        _line(process, "ready")
        os.kill(_children(process.pid)[1], signal.SIGKILL)
        assert process.wait(PATIENCE) == 1
        assert process.stderr is not None
        assert process.stderr.read().decode() == "stage 1 ended: signal SIGKILL\n"


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(int(child) for file in listed for child in file.read_text().split())


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--rate", "-1"], "--rate -1.0: it must be a number of 0 to 1000"),
        (["--rate", "0"], "no request would ever arrive"),
        (["--stages", "9"], "--stages 9: it must be a whole number of 1 to 4"),
    ],
)
def test_wrong_options_end_in_one_line(argv: list[str], says: str, capfd: pytest.CaptureFixture[str]) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        assert main(argv) == 2
    finally:
        for number, handler in zip((signal.SIGINT, signal.SIGTERM), handlers, strict=True):
            signal.signal(number, handler)
    told = capfd.readouterr()
    assert told.out == ""
    assert says in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("limit", [None, 6 << 30])
def test_a_pool_larger_than_the_memory(limit: int | None) -> None:
    # 120 GB; or 9.7 GB under a limit for each process.
    pages = ["--blocks", "65536", "--host-blocks", "65536", "--tokens-per-block", "256" if limit is None else "24"]
    with _engine(*_TINY, *pages) as process:
        if limit is not None:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))
        assert process.wait(PATIENCE) == 4
        assert process.stderr is not None
        said = process.stderr.read().decode()
    assert re.fullmatch(r"\d+ pages of the KV cache need .* of memory: there are .*B\. Use fewer blocks\n", said)


def test_a_load_that_never_fits() -> None:
    with _engine(*_TINY, "--prompt-tokens", "0=9,1024=1") as process:
        assert process.wait(PATIENCE) == 2
        assert process.stderr is not None
        assert process.stderr.read() == (
            b"requests of 1048 tokens or more, output included, are to arrive and never fit: "
            b"the pool has 40 blocks of 16 tokens. Have more blocks, or shorter prompts and outputs\n"
        )


def test_a_port_that_is_taken() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        _engine(*_TINY, "--port", str(taken.getsockname()[1])) as process,
    ):
        assert process.wait(PATIENCE) == 2
        assert process.stderr is not None
        assert "Address already in use. Choose another one, or 0" in process.stderr.read().decode()


def test_without_torch_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['engine'];"
        "from probes.workloads.engine.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stdout == "starting the engine\n"
    assert "no torch" in done.stderr
    assert done.stderr.count("\n") == 1
