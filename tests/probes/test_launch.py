from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.errors import Missing
from probes.launch import Workload
from probes.output import Output, can_break
from tests.waiting import until

DEAF = (
    "import signal, time\nfor number in (2, 15): signal.signal(number, signal.SIG_IGN)\n"
    "print('up', flush=True)\ntime.sleep(600)"
)
LISTENING = "import sys\nprint('up', flush=True)\nfor line in sys.stdin: print('got', line.strip(), flush=True)"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Workload]]:
    started: list[Workload] = []

    def start(code: str, control: bool = False) -> Workload:
        command = [sys.executable, "-c", code]
        workload = Workload(command, dict(os.environ), control, tmp_path / f"{len(started)}.log")
        started.append(workload)
        until(lambda: printed(tmp_path, len(started) - 1).startswith("up\n"))
        return workload

    yield start
    for workload in started:
        workload.send(signal.SIGKILL)
        until(workload.has_ended)
        workload.close()


def printed(folder: Path, number: int) -> str:
    return (folder / f"{number}.log").read_text()


def test_patience_ends_one_signal_after_the_other(
    run: Callable[..., Workload], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock of the test's own: no time passes but what it says."""
    workload = run(DEAF)
    sent: list[int] = []
    send = workload.send
    monkeypatch.setattr(workload, "send", lambda number: sent.append(number) or send(number))
    assert not workload.is_stopping
    workload.tick(1e6)
    workload.stop(100.0)
    assert workload.is_stopping
    for now in (100.0, 109.9, 110.0, 114.9, 115.0, 1e9):
        workload.tick(now)
    assert sent == [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]
    until(workload.has_ended)
    assert workload.code == -signal.SIGKILL


def test_a_word_comes_before_a_signal(run: Callable[..., Workload], monkeypatch: pytest.MonkeyPatch) -> None:
    workload = run(DEAF, True)
    sent: list[int] = []
    monkeypatch.setattr(workload, "send", lambda number: bool(sent.append(number)))
    workload.tell(b'{"pause": true}', 0.0)
    assert not workload.is_stopping
    workload.tell(b'{"stop": true}', 0.0)
    workload.tick(9.9)
    assert sent == []
    workload.tick(10.0)
    assert sent == [signal.SIGINT]


def test_what_is_no_object_is_not_passed_on(run: Callable[..., Workload], tmp_path: Path) -> None:
    workload = run(LISTENING, True)
    for line in (b"no JSON", b"[1]", b"\xff", b"3", b'{"set": {"rate": 1}}'):
        workload.tell(line, 0.0)
    until(lambda: "got" in printed(tmp_path, 0))
    assert printed(tmp_path, 0) == 'up\ngot {"set": {"rate": 1}}\n'


def test_one_that_does_not_read_is_not_waited_for(run: Callable[..., Workload]) -> None:
    workload = run(DEAF, True)
    line = b'{"text": "' + b"x" * 1000 + b'"}'
    for _ in range(1000):
        workload.tell(line, 0.0)
    workload.tick(0.0)
    assert not workload.has_ended()


def test_one_that_has_closed_its_input_is_no_error(run: Callable[..., Workload]) -> None:
    workload = run("import os, time\nos.close(0)\nprint('up', flush=True)\ntime.sleep(600)", True)
    workload.tell(b'{"pause": true}', 0.0)
    assert not workload.has_ended()


@pytest.mark.parametrize("command", ["no-such-program", "/", "a\0b"])
def test_what_cannot_be_run_says_so(command: str) -> None:
    with pytest.raises(Missing, match="cannot run"):
        Workload([command], {})


def test_output_is_copied_as_far_as_it_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"")
    here, there = os.pipe()
    assert can_break(there)
    output = Output(path, there)
    data = os.urandom(300_000)
    got = b""
    with path.open("ab", buffering=0) as file:
        for at in range(0, len(data), 100_000):
            file.write(data[at : at + 100_000])
            output.forward()  # more than a pipe holds: nothing may be waited for
    while len(got) < len(data):
        got += os.read(here, 1 << 16)
        output.forward()
    assert got == data
    os.close(here)
    with path.open("ab", buffering=0) as file:
        file.write(b"to nobody")
    output.forward()
    output.forward()
    output.close()
    os.close(there)


def test_a_line_that_is_nested_without_end_is_left_out(run: Callable[..., Workload]) -> None:
    workload = run(LISTENING, control=True)
    workload.tell(b"[" * 60_000 + b"\n", 0.0)
    workload.tell(b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"\n", 0.0)
    assert not workload.is_stopping


def test_files_that_it_was_given_reach_it_and_none_of_ours(tmp_path: Path) -> None:
    given = os.open(tmp_path / "given", os.O_WRONLY | os.O_CREAT)
    mine = os.open(tmp_path / "mine", os.O_WRONLY | os.O_CREAT)
    os.set_inheritable(given, True)
    try:
        code = f"import os; os.write({given}, b'there'); print(*[f for f in range(3, 1024) if is_open(f)])"
        is_open = "import os\ndef is_open(f):\n try: return bool(os.fstat(f))\n except OSError: return False\n"
        workload = Workload([sys.executable, "-c", is_open + code], dict(os.environ), False, tmp_path / "log")
        until(workload.has_ended)
    finally:
        os.close(given)
        os.close(mine)
    assert (tmp_path / "given").read_text() == "there"
    assert str(mine) not in (tmp_path / "log").read_text().split()
    assert str(given) in (tmp_path / "log").read_text().split()
