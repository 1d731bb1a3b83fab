from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from inspector.trace.schema import PROBE_STATES
from probes.host import Host, Reading
from probes.samples import Samples
from probes.streams import Streams
from tests.probes.recorded import contents

MIB = 1 << 20


def of(readings: list[Reading], series: str, pid: int) -> float:
    (found,) = [reading.value for reading in readings if (reading.series, reading.pid) == (series, pid)]
    return found


def proc(folder: Path, pid: int, *, ticks: int, started: int = 7, name: str = "a (b) c", children: str = "") -> None:
    """A process as proc(5) shows it: ticks of user time, two threads, 100 pages."""
    (folder / str(pid) / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
    fields = ["S", "1", *["0"] * 9, str(ticks), "0", *["0"] * 4, "2", "0", str(started), "0", "100", *["0"] * 20]
    (folder / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
    (folder / str(pid) / "task" / str(pid) / "children").write_text(children)


def machine(folder: Path, busy: int, idle: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 0\n")
    (folder / "meminfo").write_text("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\n")
    (folder / "loadavg").write_text("1.50 1.00 0.50 2/300 4711\n")


def test_shares_are_those_of_the_time_between(tmp_path: Path) -> None:
    folder, ticks = tmp_path / "proc", os.sysconf("SC_CLK_TCK")
    host = Host(folder)
    machine(folder, 100, 100)
    proc(folder, 10, ticks=5, children="11 ")
    proc(folder, 11, ticks=0)
    first = host.sample(10**9, [10])
    assert {reading.series for reading in first if reading.pid == 10} == {"resident memory", "threads"}
    assert of(first, "machine memory in use", -1) == 600 * 1024
    machine(folder, 130, 110)
    proc(folder, 10, ticks=5 + ticks)
    proc(folder, 11, ticks=ticks // 2)
    second = host.sample(3 * 10**9, [10])
    assert of(second, "process CPU", 10) == pytest.approx(50)
    assert of(second, "process CPU", 11) == pytest.approx(25)
    assert of(second, "resident memory", 11) == 100 * os.sysconf("SC_PAGE_SIZE")
    assert of(second, "threads", 11) == 2
    assert of(second, "machine CPU", -1) == pytest.approx(75)
    assert of(second, "load average (1 min)", -1) == 1.5
    assert host.name(11) == "a (b) c"


def test_a_number_that_was_given_to_another_process_is_not_the_old_one(tmp_path: Path) -> None:
    folder = tmp_path / "proc"
    host = Host(folder)
    machine(folder, 1, 1)
    proc(folder, 10, ticks=5, children="11")
    proc(folder, 11, ticks=900)
    host.sample(10**9, [10])
    proc(folder, 10, ticks=6)
    proc(folder, 11, ticks=1, started=99, name="stranger")
    found = host.sample(2 * 10**9, [10])
    assert host.pids == [10]
    assert {reading.pid for reading in found} == {10, -1}


def test_what_is_not_there_is_left_out(tmp_path: Path) -> None:
    assert Host(tmp_path).sample(10**9, [10]) == []


def test_real_processes_and_their_children(tmp_path: Path) -> None:
    """A child of a thread, which burns time and holds memory, as Linux tells it."""
    code = f"import sys\nheld = bytearray({64 * MIB})\nprint('held', flush=True)\nwhile True: pass"
    children: list[subprocess.Popen[str]] = []
    done = threading.Event()

    def launch() -> None:
        children.append(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True))
        assert children[0].stdout is not None
        children[0].stdout.readline()
        done.set()

    threading.Thread(target=launch).start()
    assert done.wait(60)
    (child,) = children
    host = Host()
    try:
        host.sample(time.monotonic_ns(), [os.getpid()])
        deadline = time.monotonic() + 60
        cpu = 0.0
        while cpu < 1:
            assert time.monotonic() < deadline
            threading.Event().wait(0.1)
            readings = host.sample(time.monotonic_ns(), [os.getpid()])
            cpu = of(readings, "process CPU", child.pid)
        assert cpu < 150
        assert of(readings, "resident memory", child.pid) >= 64 * MIB
        assert of(readings, "threads", child.pid) == 1
    finally:
        child.kill()
        child.communicate()
    assert child.pid not in {reading.pid for reading in host.sample(time.monotonic_ns(), [os.getpid()])}


def test_samples_become_rows_of_a_producer(tmp_path: Path) -> None:
    streams = Streams(tmp_path, "host")
    samples = Samples(streams)
    samples.counter(5, "threads", "threads", 3.0, pid=10)
    samples.counter(5, "power", "W", 70.5, device=1)
    samples.flush()
    samples.device(1, "H200", 7, 9)
    samples.process(10, "python")
    samples.counter(6, "threads", "threads", 4.0, pid=10)
    samples.counter(6, "threads", "threads", 9.0, pid=11)
    samples.counter(6, "load", "", 0.5)
    samples.probe(7, "recorder", "running", 5, 1, 99, "so far")
    samples.flush()
    streams.close()
    rows = contents(tmp_path, "host")
    assert [(row[0], row[2]) for row in rows["counters"]] == [(5, 3.0), (5, 70.5), (6, 4.0), (6, 9.0), (6, 0.5)]
    assert [key for key, *_ in rows["processes"]] == [("10",), ("11",)]
    assert rows["processes"][0] == (("10",), (0, 10), (1, "python"))
    assert rows["devices"] == [(("1",), (0, 1), (1, "H200"), (2, 7), (3, 9))]
    assert rows["probes"] == [(7, -1, "recorder", PROBE_STATES.index("running"), 5, 1, 99, "so far")]
    assert streams.rows == {"processes": 3, "devices": 2, "series": 4, "counters": 5, "probes": 1}
