"""Nsight Systems around a workload: what is asked of it, when, and what is left when it fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import inspector
from inspector.cli import main, parser
from inspector.commands import record
from inspector.errors import Missing, Usage
from inspector.trace import header
from probes.nsys_cli import Nsys, Range
from tests.readers.nsys_export import CALL, KERNEL, STRINGS, global_pid, global_tid, to_folder, write
from tests.waiting import PATIENCE_S, ROOT, is_alive, processes, until

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the stand-in, which is called `nsys` on the PATH, keeps its sessions and calls."""
    folder = tmp_path / "nsys"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "nsys"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {ROOT / "tests/probes/nsys_stand_in.py"} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NSYS_STAND_IN", str(folder))
    return folder


@pytest.fixture
def start(tmp_path: Path, home: Path) -> Iterator[Start]:
    record = [sys.executable, "-m", "inspector", "record", "--headless", "--out", str(tmp_path / "a 1%p.inflight")]
    with processes() as start:
        yield lambda *words: start([*record, *words])


def calls(home: Path) -> list[str]:
    path = home / "calls"
    return [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []


def toy(*words: str) -> list[str]:
    return ["--", sys.executable, "-m", "tests.probes.toy", *words]


def moments(path: Path) -> tuple[int, int]:
    since, upto = path.read_text().splitlines()[1].split()
    return int(since), int(upto)


def test_a_range_of_time_is_collected(start: Start, home: Path, tmp_path: Path) -> None:
    process = start("--nsys-from", "0.3", "--nsys-seconds", "0.4", *toy("wait", "5"))
    report = tmp_path / "a 1%p.nsys-rep"
    until(report.exists, "written")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3, err
    assert "heard SIGINT" in out
    assert "kernel tap is off" in err
    assert str(report.name) in err
    head = header.read(tmp_path / "a 1%p.inflight")
    since, upto = moments(report)
    assert since - head.clock[0].monotonic_ns >= 300_000_000
    assert upto - since >= 400_000_000
    assert head.probes["Nsight Systems"]["report"] == report.name
    assert "Nsight Systems" in head.probes["kernel tap"]["absent"]
    assert head.command[1:2] == ["launch"]
    assert head.command[-2:] == ["wait", "5"]
    assert head.state == "complete"
    assert [word for word in calls(home) if word != "start"] == ["launch", "stop", "shutdown"]


def test_all_of_a_run_is_collected_until_the_recorder_ends_it(start: Start, home: Path, tmp_path: Path) -> None:
    process = start("--nsys", "--seconds", "2", *toy("wait", "5"))
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    # While the workload lived: nsys' own processes are whole then.
    assert "heard SIGINT" in out
    assert (tmp_path / "a 1%p.nsys-rep").exists()
    assert calls(home)[-2:] == ["stop", "shutdown"]


def test_a_workload_that_ends_by_itself_leaves_its_report(start: Start, home: Path, tmp_path: Path) -> None:
    """nsys has closed the collection by then, so that its stop finds none."""
    process = start("--nsys", "--control", *toy("echo"))
    assert process.stdin is not None
    until(lambda: list(home.glob("*.collecting")), "collecting")
    process.stdin.write('{"stop": true}\n')
    process.stdin.flush()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert (tmp_path / "a 1%p.nsys-rep").exists()
    note = header.read(tmp_path / "a 1%p.inflight").probes["Nsight Systems"]["note"]
    assert note == "nsys stop failed: Session " + note.split("Session ")[1]


def test_a_range_of_iterations_is_collected(start: Start, home: Path, tmp_path: Path) -> None:
    process = start("--nsys-iterations", "3-5", "--control", *toy("echo"))
    assert process.stdin is not None
    assert process.stdout is not None

    def iterate(count: int) -> None:
        for _ in range(count):
            process.stdin.write("{}\n")
            process.stdin.flush()
            while "got" not in process.stdout.readline():
                assert process.poll() is None

    iterate(2)
    until(lambda: "launch" in calls(home))
    assert "start" not in calls(home)
    iterate(1)
    until(lambda: list(home.glob("*.collecting")), "collecting")
    assert "stop" not in calls(home)
    report = tmp_path / "a 1%p.nsys-rep"
    more = 0
    while not report.exists():
        iterate(1)
        more += 1
        time.sleep(0.02)
        assert more < 1000
    assert more >= 3
    process.stdin.write('{"stop": true}\n')
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    first, last = header.read(tmp_path / "a 1%p.inflight").probes["Nsight Systems"]["iterations"].split(" to ")
    # It is known to collect a moment after it does.
    assert int(first) >= 3
    assert int(last) - int(first) >= 2


def test_by_hand_there_are_as_many_reports_as_are_asked_for(start: Start, home: Path, tmp_path: Path) -> None:
    process = start("--nsys-from", "1000", "--control", *toy("echo"))
    assert process.stdin is not None
    for name in ("a 1%p.nsys-rep", "a 1%p-2.nsys-rep"):
        process.stdin.write('{"nsys": "start"}\n')
        process.stdin.flush()
        until(lambda: list(home.glob("*.collecting")), "collecting")
        process.stdin.write('{"nsys": "stop"}\n')
        process.stdin.flush()
        until((tmp_path / name).exists, name)
    process.stdin.write('{"stop": true}\n')
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "nsys" not in out


def test_a_session_that_comes_up_late_is_waited_for(
    start: Start, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYS_FAULTS", "late")
    process = start("--nsys-seconds", "0.1", *toy("wait", "1"))
    until((tmp_path / "a 1%p.nsys-rep").exists, "written")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 3, err
    assert calls(home).count("start") > 1


def test_report_and_recording_open_as_one(
    start: Start, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the report says of a process stands with what its rings said, at the time when it was."""
    process = start("--nsys-seconds", "0.1", *toy("wait", "5"))
    report, folder = tmp_path / "a 1%p.nsys-rep", tmp_path / "a 1%p.inflight"
    until(report.exists, "written")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    recording = inspector.open(folder)
    row = int(recording["iterations"]["process"][2])
    pid = int(recording["processes"]["pid"][row])
    began = int(recording["iterations"]["start"][2])
    assert recording.info.start_epoch_ns is not None
    # nsys counts from 5,000 ns before that iteration; a kernel runs from its beginning on.
    content = {
        "StringIds": STRINGS,
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": recording.info.start_epoch_ns + began - 5_000}],
        "CUPTI_ACTIVITY_KIND_KERNEL": [{**KERNEL, "start": 5_000, "end": 6_000, "globalPid": global_pid(pid)}],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [{**CALL, "start": 4_000, "end": 4_500, "globalTid": global_tid(pid)}],
    }
    to_folder(write(tmp_path / "export.sqlite", content), home / "export", "parquet")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = tmp_path / "both.inflight"
    assert main(["convert", str(folder), str(report), str(out)]) == 0
    both = inspector.open(out)
    at = (both["kernels"]["end"] - both["kernels"]["start"]).tolist().index(1_000)
    assert int(both["kernels"]["start"][at]) == int(both["iterations"]["start"][2])
    assert both["processes"]["pid"].tolist().count(pid) == 1
    owner = int(both["streams"]["process"][both["kernels"]["stream"][at]])
    assert owner == int(both["iterations"]["process"][2])
    # The toy's main thread, which made the ranges and, as the report says, the call.
    caller = int(both["host_calls"]["thread"][both["host_calls"]["start"].tolist().index(began - 1_000)])
    assert caller in both["ranges"]["thread"].tolist()


class Clock:
    """Ticks with a clock of the test's own: only the commands take real time."""

    def __init__(self, nsys: Nsys) -> None:
        self.nsys, self.now = nsys, 0.0

    def go(self, seconds: float, iteration: int = -1) -> None:
        self.now += seconds
        self.nsys.tick(self.now, iteration)
        if self.nsys._call is not None:
            self.nsys._call.wait(PATIENCE_S)
            self.nsys.tick(self.now, iteration)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("start", "nsys start failed: Unable to start the collection."),
        ("stop", "nsys stop failed: Importation failed."),
    ],
)
def test_what_nsys_says_is_told(
    fault: str, said: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYS_FAULTS", fault)
    nsys = Nsys(tmp_path / "a.inflight", Range(seconds=1.0), os.environ)
    (home / f"inflight-{os.getpid()}").touch()
    clock = Clock(nsys)
    for _ in range(9):
        clock.go(10.0)
    nsys.close()
    assert nsys.failed == said
    assert nsys.told == {"absent": said}
    assert nsys.reports == []
    assert not nsys.is_busy


def test_a_program_that_cannot_be_run_is_told(home: Path, tmp_path: Path) -> None:
    nsys = Nsys(tmp_path / "a.inflight", Range(), os.environ)
    (home / "bin" / "nsys").chmod(0o600)
    clock = Clock(nsys)
    for _ in range(9):
        clock.go(10.0)
    nsys.close()
    assert "nsys start failed" in nsys.failed


def test_a_command_that_hangs_is_ended(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSYS_FAULTS", "hang")
    (home / f"inflight-{os.getpid()}").touch()
    nsys = Nsys(tmp_path / "a.inflight", Range(), os.environ)
    nsys.tick(0.0, -1)
    nsys.tick(600.0, -1)
    assert (nsys.is_busy, nsys.failed) == (True, "")
    nsys.tick(600.1, -1)
    assert (nsys.is_busy, nsys.failed) == (False, "nsys start has not ended in 600 s")
    nsys.tick(601.0, -1)
    nsys.close()
    assert calls(home)[-1] == "shutdown"


def test_a_start_that_hangs_holds_up_no_end(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither it nor what it has started is left."""
    program = home / "bin" / "nsys"
    child = home / "child"
    nsys = Nsys(tmp_path / "a.inflight", Range(), os.environ)
    program.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {child}.part; mv {child}.part {child}; wait\n")
    nsys.tick(0.0, -1)
    until(child.exists)
    nsys.end()
    assert nsys.is_busy
    nsys.tick(1.0, -1)
    assert (nsys.is_busy, nsys.failed) == (False, "")
    assert nsys.why_nothing == "nsys start had not ended when the run did"
    until(lambda: not is_alive(int(child.read_text())))
    program.write_text("#!/bin/sh\n")
    nsys.close()


def test_nothing_begins_after_the_end(home: Path, tmp_path: Path) -> None:
    nsys = Nsys(tmp_path / "a.inflight", Range(), os.environ)
    nsys.end()
    Clock(nsys).go(1.0)
    assert calls(home) == []


def test_ranges() -> None:
    assert not Range(2.0, 3.0).wants(1.9, -1, None)
    assert Range(2.0, 3.0).wants(2.0, -1, None)
    assert Range(2.0, 3.0).wants(7.0, -1, (4.5, -1))
    assert not Range(2.0, 3.0).wants(7.5, -1, (4.5, -1))
    assert Range(2.0).wants(1e9, -1, (2.0, -1))
    some = Range(iterations=(10, 12))
    assert [some.wants(0.0, number, None) for number in (-1, 8, 9, 40)] == [False, False, True, True]
    assert [some.wants(0.0, number, (0.0, 9)) for number in (9, 11, 12)] == [True, True, False]
    # Begun late, it is as long as it should be.
    assert [some.wants(0.0, number, (0.0, 40)) for number in (40, 42, 43)] == [True, True, False]
    assert Range(iterations=(0, 3)).wants(0.0, -1, None)


def test_without_nsys_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    out = tmp_path / "a.inflight"
    assert main(["record", "--headless", "--nsys", "--out", str(out), "--", sys.executable, "-c", "1"]) == 4
    assert "nsight-systems-cli" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Missing):
        Nsys(out, Range(), {})


def test_the_window_asks_for_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(record, "open_window", lambda words: given.append(list(words)) or 0)
    for words in (
        ["--nsys", "--nsys-from", "2.5", "--nsys-seconds", "3", "--keep-options"],
        ["--nsys-iterations", "10-12"],
        ["--nsys-by-hand"],
        [],
    ):
        assert main(["record", "--out", str(tmp_path / "a.inflight"), *words, "--", "trtllm-serve", "--nsys"]) == 0
        program = given.pop()
        asked, before = parser().parse_args(program), parser().parse_args(["record", *words, "--", "a"])
        assert asked.words == ["trtllm-serve", "--nsys"]
        for name in ("nsys", "nsys_from", "nsys_seconds", "nsys_iterations", "nsys_by_hand", "keep_options"):
            assert getattr(asked, name) == getattr(before, name)


def test_a_program_that_is_not_there_is_told_without_nsys(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.inflight"
    assert main(["record", "--headless", "--nsys", "--out", str(out), "--", "no-such-program"]) == 4
    assert "cannot run no-such-program" in capsys.readouterr().err
    assert not out.exists()
    assert calls(home) == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("old", "nsys 2020.3.2.6 is too old to record with: its reports are of another kind. Install Nsight Systems"),
        ("mute", "--version ended with 1: libcuda.so.1: cannot open shared object file"),
    ],
)
def test_an_nsys_that_cannot_is_refused_before_anything_runs(
    fault: str,
    said: str,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("NSYS_FAULTS", fault)
    out = tmp_path / "a.inflight"
    assert main(["record", "--headless", "--nsys", "--out", str(out), *toy("echo")]) == 4
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1
    assert not out.exists()
    assert calls(home) == []


def test_an_option_that_a_release_has_not_is_left_out(
    start: Start, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--trace-fork-before-exec=true" in Nsys(tmp_path / "a.inflight", Range(), os.environ).command(["true"])
    monkeypatch.setenv("NSYS_FAULTS", "noforks")
    process = start("--nsys", "--seconds", "1", *toy("wait", "5"))
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert (tmp_path / "a 1%p.nsys-rep").exists()


def test_no_report_is_told_with_the_room_that_there_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYS_FAULTS", "full")
    (home / f"inflight-{os.getpid()}").touch()
    for free, said in ((1000, "(1.00 kB are free on its disk)"), (1 << 40, ".nsys-rep")):
        monkeypatch.setattr("shutil.disk_usage", lambda path, free=free: SimpleNamespace(free=free))
        nsys = Nsys(tmp_path / "a.inflight", Range(seconds=1.0), os.environ)
        clock = Clock(nsys)
        for _ in range(4):
            clock.go(1.0)
        assert nsys.failed.startswith("nsys stop wrote no ")
        assert nsys.failed.endswith(said)


def test_a_workload_that_ends_before_its_range_says_so(start: Start, home: Path, tmp_path: Path) -> None:
    process = start("--nsys-from", "300", *toy("count", "1", "7"))
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 7
    assert "no report of Nsight Systems: the workload ended before 300 s after the start" in err
    assert calls(home) == ["launch", "shutdown"]


def test_by_hand_nothing_is_collected_until_it_is_asked_for(start: Start, home: Path, tmp_path: Path) -> None:
    process = start("--nsys-by-hand", "--control", *toy("echo"))
    assert process.stdin is not None

    def tell(line: str) -> None:
        process.stdin.write(line + "\n")
        process.stdin.flush()

    def words() -> list[str]:
        trace = inspector.open(tmp_path / "a 1%p.inflight")
        probes = trace["probes"]
        mine = [row for row in range(len(probes)) if trace.names[probes["name"][row]] == "Nsight Systems"]
        return [trace.names[probes["message"][row]] for row in mine]

    until(lambda: (tmp_path / "a 1%p.inflight" / "recording.json").exists() and bool(words()), "told")
    assert "start" not in calls(home)
    tell('{"nsys" : "start"}')
    until(lambda: any(word.startswith("collecting since") for word in words()), "collecting")
    tell('{"nsys":"stop"}')
    until(lambda: "wrote a 1%p.nsys-rep" in words(), "written")
    tell('{"stop": true}')
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert words()[0] == "waits for somebody who asks for it"
    assert words()[-1] == "wrote a 1%p.nsys-rep"


def test_by_hand_nobody_has_to_ask(start: Start, home: Path) -> None:
    process = start("--nsys-by-hand", *toy("count", "1", "5"))
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 5
    assert "no report" not in err


def test_a_report_is_never_written_over(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.nsys-rep").touch()
    with pytest.raises(Usage, match="is there already"):
        Nsys(tmp_path / "a.inflight", Range(), os.environ)


@pytest.mark.parametrize(
    "words",
    [
        ("--nsys-iterations", "5-3"),
        ("--nsys-iterations", "a-b"),
        ("--nsys-iterations", "1-2", "--nsys-seconds", "3"),
        ("--nsys-from", "-1"),
        ("--nsys-by-hand", "--nsys-seconds", "3"),
    ],
)
def test_ranges_that_cannot_be_are_refused(
    words: tuple[str, ...], home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.inflight"
    try:
        code = main(["record", "--headless", "--out", str(out), *words, "--", "true"])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert not out.exists()
