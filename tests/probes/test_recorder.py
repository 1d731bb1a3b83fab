"""The recorder and its workloads as processes that live and die."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import inspector
from inspector.trace import header, lock
from inspector.trace.engine_tables import PROBE_STATES
from tests.probes.recorded import contents, producers
from tests.waiting import PATIENCE_S, ROOT, is_alive, processes, until

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a recorder of a toy into tmp_path/run.inflight; whatever is left of it ends with the test."""
    with processes() as begin:

        def run(*toy: str, options: tuple[str, ...] = (), limit: str = "") -> subprocess.Popen[str]:
            into = str(tmp_path / "run.inflight")
            record = [sys.executable, "-m", "inspector", "record", "--headless", "--out", into]
            command = [*record, *options, "--", sys.executable, "-m", "tests.probes.toy", *toy]
            return begin(["sh", "-c", f'{limit}; exec "$@"', "-", *command] if limit else command)

        yield run


def ready(process: subprocess.Popen[str]) -> int:
    """Wait for the toy to have said what it had to; its process id."""
    assert process.stdout is not None
    word, pid = process.stdout.readline().split()
    assert word == "ready"
    return int(pid)


def iterations(folder: Path) -> list[int]:
    return inspector.open(folder)["iterations"]["iteration"].tolist()  # type: ignore[no-any-return]


def kernels_of_streams(folder: Path) -> int:
    return sum(len(contents(folder, name).get("kernels", [])) for name in producers(folder))


def test_a_workload_is_recorded_and_the_recording_closed(start: Start, tmp_path: Path) -> None:
    process = start("count", "500")
    out, errors = process.communicate(timeout=PATIENCE_S)
    folder = tmp_path / "run.inflight"
    assert process.returncode == 0, errors
    # The workload's own words, unchanged; ours on the other stream.
    assert out == "said it\n"
    assert errors.startswith("and to stderr\n")
    assert "run.inflight" in errors
    assert header.read(folder).state == "complete"
    assert {path.suffix for path in folder.iterdir()} == {".arrow", ".json"}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    trace = inspector.open(folder)
    assert trace["iterations"]["iteration"].tolist() == list(range(500))
    assert trace["steps"]["iteration"].tolist() == list(range(500))
    assert sorted(trace["kernels"]["correlation"].tolist()) == list(range(500))
    assert [note for note in trace.quality.notes if note.severity == "loss"] == []
    head = header.read(folder)
    assert head.command[-3:] == ["tests.probes.toy", "count", "500"]
    assert head.clock[0].monotonic_ns < head.clock[1].monotonic_ns
    probes = {trace.names[name] for name in trace["probes"]["name"].tolist()}
    assert probes == {"toy", "recorder"}
    told = trace["probes"]
    own = [at for at, name in enumerate(told["name"].tolist()) if trace.names[name] == "recorder"]
    assert PROBE_STATES[max((told["time"][at], told["state"][at]) for at in own)[1]] == "off"


@pytest.mark.parametrize(("toy", "code"), [(("count", "1", "7"), 7), (("no such word",), 1)])
def test_the_exit_code_is_that_of_the_workload(start: Start, tmp_path: Path, toy: tuple[str, ...], code: int) -> None:
    process = start(*toy)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert header.read(tmp_path / "run.inflight").state == "complete"


def test_a_workload_that_is_killed_leaves_all_that_it_said(start: Start, tmp_path: Path) -> None:
    process = start("wait", "300")
    os.kill(ready(process), signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGKILL
    assert header.read(tmp_path / "run.inflight").state == "complete"
    assert iterations(tmp_path / "run.inflight") == list(range(300))


def test_a_recorder_that_is_killed_leaves_the_workload_alone(start: Start, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    process = start("on", str(stop))
    pid = ready(process)
    folder = tmp_path / "run.inflight"
    until(lambda: kernels_of_streams(folder) > 20, "recorded")
    assert lock.is_held(folder)
    process.kill()
    process.wait(PATIENCE_S)
    assert not lock.is_held(folder)
    before = kernels_of_streams(folder)
    until(lambda: kernels_of_streams(folder) > before + 20, "went on into its ring")
    assert is_alive(pid)
    stop.touch()
    until(lambda: not is_alive(pid), "ended")
    said, lost = map(int, stop.read_text().split())
    assert lost == 0
    (producer,) = [name for name in producers(folder) if name.startswith("toy-")]
    rows = contents(folder, producer)
    # Each once: what the streams hold, and what is left in the ring.
    assert [number for *_, number in rows["kernels"]] == list(range(said))
    assert len(rows["steps"]) == said
    assert header.read(folder).state == "recording"


def test_seconds_end_a_workload_politely(start: Start, tmp_path: Path) -> None:
    process = start("wait", "5", options=("--seconds", "1"))
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert "heard SIGINT" in out
    assert process.returncode == 0, errors
    assert iterations(tmp_path / "run.inflight") == list(range(5))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_workload_and_close_the_recording(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    process = start("wait", "5")
    ready(process)
    process.send_signal(number)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert f"heard {number.name}" in out
    assert process.returncode == 3
    assert header.read(tmp_path / "run.inflight").state == "complete"


def test_one_that_does_not_listen_is_ended_more_and_more_firmly(start: Start, tmp_path: Path) -> None:
    process = start("wait", "5", "deaf")
    pid = ready(process)

    def again() -> bool:
        process.send_signal(signal.SIGINT)
        return not is_alive(pid)

    until(again, "ended")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGKILL
    assert not is_alive(pid)
    assert iterations(tmp_path / "run.inflight") == list(range(5))


def test_control_lines_reach_the_workload_and_its_output_us(start: Start, tmp_path: Path) -> None:
    process = start("echo", options=("--control",))
    ready(process)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"set": {"rate": 3}}\nno JSON\n[1]\n')
    process.stdin.flush()
    assert process.stdout.readline() == 'got {"set": {"rate": 3}}\n'
    process.stdin.write('{"stop": true}\n')
    process.stdin.flush()
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert out == 'got {"stop": true}\nend of input\n'
    assert process.returncode == 0, errors
    assert not (tmp_path / "run.inflight" / "output.log").exists()


def test_a_window_that_is_gone_stops_neither_recorder_nor_workload(start: Start, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    process = start("on", str(stop), options=("--control",))
    ready(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        pipe.close()
    folder = tmp_path / "run.inflight"
    before = kernels_of_streams(folder)
    until(lambda: kernels_of_streams(folder) > before + 100, "went on")
    assert lock.is_held(folder)
    stop.touch()
    until(lambda: process.poll() is not None, "ended")
    assert process.returncode == 0
    process.stdout = process.stderr = process.stdin = None
    said, _ = map(int, stop.read_text().split())
    assert len(iterations(folder)) == said


def test_a_full_disk_ends_the_recording_and_not_the_workload(start: Start, tmp_path: Path) -> None:
    """The largest size of a file stands in for the disk: for the recorder a real limit of the system."""
    stop = tmp_path / "stop"
    process = start("on", str(stop), limit="ulimit -S -f 40")
    pid = ready(process)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert said.startswith("inflight: the recording stopped after ")
    assert "The workload goes on" in said
    folder = tmp_path / "run.inflight"
    assert not lock.is_held(folder)
    assert is_alive(pid)
    stop.touch()
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4
    assert "what was recorded until then opens" in errors
    notes = [note.text for note in inspector.open(folder).quality.find("truncated")]
    assert any(re.fullmatch(r"the recording stopped after \d+\.\d s: File too large", text) for text in notes)
    count, lost = map(int, stop.read_text().split())
    (producer,) = [name for name in producers(folder) if name.startswith("toy-")]
    rows = contents(folder, producer)
    assert [number for *_, number in rows["kernels"]] == list(range(count))
    assert lost == 0


def test_processes_of_a_workload_are_told_apart(start: Start, tmp_path: Path) -> None:
    script = f'{sys.executable} -m tests.probes.toy count 20 & "{sys.executable}" -m tests.probes.toy count 30; wait'
    folder = tmp_path / "two.inflight"
    record = [sys.executable, "-m", "inspector", "record", "--headless", "--out", str(folder), "--", "sh", "-c", script]
    done = subprocess.run(
        record,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    trace = inspector.open(folder)
    processes = trace["iterations"]["process"].tolist()
    assert sorted(processes.count(row) for row in set(processes)) == [20, 30]
    names = [trace.names[trace["processes"]["name"][row]] for row in set(processes)]
    assert names == ["toy", "toy"]
    # The shell has no ring, and is there all the same, by what the system calls it.
    assert "sh" in [trace.names[name] for name in trace["processes"]["name"].tolist()]
    counters = {trace.names[name] for name in trace["series"]["name"].tolist()}
    assert {"resident memory", "threads", "machine memory in use"} <= counters


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--", "no-such-program"], 4, "cannot run no-such-program"),
        ([], 2, "no command to record"),
        (["--seconds", "0", "--", "true"], 2, "number of seconds above 0"),
        (["--out", "taken.inflight", "--", "true"], 2, "is there already"),
        (["--out", "plain", "--", "true"], 2, "does not end in .inflight"),
        (["--out", "no/such/folder.inflight", "--", "true"], 3, "cannot record into"),
    ],
)
def test_what_the_user_can_mend_is_one_line(tmp_path: Path, words: list[str], code: int, said: str) -> None:
    (tmp_path / "taken.inflight").mkdir()
    before = sorted(tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-m", "inspector", "record", "--headless", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_no_display_and_nothing_heavy_is_needed(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from inspector.cli import main\n"
        "code = main(['record', '--headless', '--out', sys.argv[1], '--', 'true'])\n"
        "assert not code\n"
        "print(*{'PySide6', 'pyqtgraph', 'pandas', 'torch'} & sys.modules.keys())"
    )
    environment = {key: text for key, text in os.environ.items() if key not in ("DISPLAY", "QT_QPA_PLATFORM")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "true.inflight")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=environment,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_the_default_name_says_what_and_when(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "inspector", "record", "--headless", "--", shutil.which("true") or "true"],
        cwd=tmp_path,
        capture_output=True,
        timeout=PATIENCE_S,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    (folder,) = tmp_path.iterdir()
    assert folder.match("true-20??????-??????.inflight")
    assert json.loads((folder / "recording.json").read_text())["state"] == "complete"


def test_only_the_probes_that_were_asked_for_are_there(start: Start, tmp_path: Path) -> None:
    process = start("count", "20", options=("--probe", "kernels"))
    process.communicate(timeout=PATIENCE_S)
    trace = inspector.open(tmp_path / "run.inflight")
    assert len(trace["iterations"]) == 20
    assert not len(trace["counters"])
    probes = header.read(tmp_path / "run.inflight").probes
    assert probes["executor"] == {"absent": "it was not asked for"}
    assert "NVML" not in probes


def test_in_a_folder_that_was_taken_away_what_has_a_whole_path_is_recorded(tmp_path: Path) -> None:
    out = tmp_path / "x.inflight"
    record = [sys.executable, "-m", "inspector", "record", "--headless", "--out", str(out), "--", "true"]
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["sh", "-c", script, "-", *record], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert header.read(out).state == "complete"


@pytest.mark.parametrize("options", [["-I"], ["-S"], ["-E"]])
def test_a_workload_that_keeps_the_probes_out_is_said_to(tmp_path: Path, options: list[str]) -> None:
    out = tmp_path / "x.inflight"
    command = [sys.executable, *options, "-c", "print('there')"]
    record = [sys.executable, "-m", "inspector", "record", "--headless", "--out", str(out), "--", *command]
    done = subprocess.run(record, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert "nothing was recorded from within the workload. No process of it imported torch" in done.stderr
    (note,) = inspector.open(out).quality.find("probe")
    assert "-I, -E, -S" in note.text


def test_a_workload_that_dies_of_a_signal_leaves_a_note(start: Start, tmp_path: Path) -> None:
    process = start("wait", "5")
    os.kill(ready(process), signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGKILL
    (note,) = inspector.open(tmp_path / "run.inflight").quality.find("truncated")
    assert re.fullmatch(r"the workload was ended by signal 9 \(SIGKILL\) after \d+\.\d s", note.text)


def test_the_last_line_of_control_needs_no_newline(start: Start, tmp_path: Path) -> None:
    process = start("echo", options=("--control",))
    ready(process)
    process.communicate('{"stop": true}', timeout=PATIENCE_S)
    assert process.returncode == 0
    assert header.read(tmp_path / "run.inflight").state == "complete"


def test_a_ring_that_cannot_be_made_is_said(start: Start, tmp_path: Path) -> None:
    """Files may not be as large as a ring; the workload goes on to its end."""
    process = start("bare", limit="ulimit -f 4096")
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert out == "said it\n"
    assert process.returncode == 4
    assert "its ring could not be made: File too large" in errors
    assert "nothing was recorded of the workload" in errors
    assert "or choose another with --out" in errors
    (note,) = inspector.open(tmp_path / "run.inflight").quality.find("probe")
    assert note.text.endswith("their rings could not be made: File too large")
    assert note.first.startswith("toy-")


def test_a_reason_that_could_harm_is_not_passed_on(start: Start, tmp_path: Path) -> None:
    """A workload may put anything into the folder: a reason that steers a terminal, or that never ends."""
    process = start("wait", "5")
    pid = ready(process)
    folder = tmp_path / "run.inflight"
    (folder / "\x1b[31mbad.unmade").touch()
    os.mkfifo(folder / "bad-1.unmade")
    (tmp_path / "reason").write_text("\x1b]0;title\x07" * 1000)
    (tmp_path / "reason").rename(folder / "bad-2.unmade")
    until(lambda: len(header.read(folder).quality) == 2, "said")
    os.kill(pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "nothing is recorded of bad-1: its ring could not be made: no room on the disk" in errors
    assert "\x1b" not in errors
    notes = inspector.open(folder).quality.find("probe")
    assert [note.first for note in notes] == ["bad-1", "bad-2"]
    assert all(note.text.isprintable() and len(note.text) < 300 for note in notes)
    assert iterations(folder) == list(range(5))


def test_of_a_folder_that_was_taken_away_nothing_is_promised(start: Start, tmp_path: Path) -> None:
    process = start("wait", "5")
    pid = ready(process)
    (tmp_path / "run.inflight").rename(tmp_path / "away")
    shutil.rmtree(tmp_path / "away")
    assert process.stderr is not None
    line = ""
    while "recording stopped" not in line:
        line = process.stderr.readline()
        assert line
    assert "its folder is gone. The workload goes on" in line
    os.kill(pid, signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert "opens" not in errors
