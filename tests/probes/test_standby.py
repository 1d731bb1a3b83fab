"""Prepared workloads: they record nothing until they are asked, then what they do, and go on afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import inspector
from inspector.errors import Missing
from inspector.trace.ring import Ring
from probes import standby
from probes.inprocess import tap
from probes.inprocess.standby import ATTACH, READY, STANDBY, is_alive, started
from probes.inprocess.torch_guest import CUPTI, TAP
from tests.probes.tapped import build_libraries
from tests.probes.test_hook import lay_out
from tests.probes.test_watch import make_torch
from tests.waiting import PATIENCE_S, ROOT, until

WORKLOAD = """
import multiprocessing, os, sys, time
def serve(name):
    import torch
    from tensorrt_llm._torch.pyexecutor.py_executor import PyExecutor
    class Slow(PyExecutor):
        def _append_iter_stats(self, *more):
            time.sleep(0.002)
            if os.path.exists("end"):
                self.waiting_queue = []
    executor = Slow()
    with open(name + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(name + ".part", name)
    executor.run()
    with open(name + "-served", "w") as file:
        file.write(str(executor.iter_counter))
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=serve, args=("child",))
    child.start()
    serve("parent")
    child.join()
    sys.exit(9)
"""
RECORD = """
import sys
from pathlib import Path
from probes.recorder import Plan, record_prepared
outcome = record_prepared(Plan(["attach", sys.argv[1]], Path(sys.argv[2]), float(sys.argv[3]), True), int(sys.argv[1]))
assert outcome.failure is None
print(outcome.exit_code, outcome.lost)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workload of two processes with an executor each, which serve until there is a file `end`."""
    lay_out(tmp_path, 100_000)
    (tmp_path / "workload.py").write_text(WORKLOAD, encoding="utf-8")
    make_torch(tmp_path)
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    return tmp_path


@pytest.fixture
def plain(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of all processes of a test."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder / "runtime"))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}


@pytest.fixture
def server(folder: Path, plain: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """It runs, prepared, and both of its processes serve."""
    command = [sys.executable, "-m", "inspector", "record", "--standby", "--", sys.executable, "workload.py"]
    with subprocess.Popen(command, cwd=folder, env=plain, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: (folder / "child").exists() and (folder / "parent").exists())
            yield process
        finally:
            (folder / "end").touch()
            process.wait(PATIENCE_S)


def has(folder: Path, pattern: str) -> bool:
    """Whether both processes have such a file."""
    return len(list(folder.glob(pattern))) == 2


def attach(folder: Path, plain: dict[str, str], pid: int, out: str, seconds: float = 60) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RECORD, str(pid), out, str(seconds)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=plain, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_it_is_recorded_twice_and_goes_on(folder: Path, plain: dict[str, str], server: subprocess.Popen[str]) -> None:
    pids = {int((folder / name).read_text()) for name in ("parent", "child")}
    assert server.pid in pids  # it became the command
    assert set(standby.prepared(server.pid)) == pids
    assert list(folder.rglob("*.ring")) == []
    numbers = []
    for out in ("a.inflight", "b.inflight"):
        recorder = attach(folder, plain, server.pid, out)
        until(partial(has, folder / out, "trtllm-*.iterations.arrows"))
        said, errors = recorder.communicate('{"stop": true}\n', PATIENCE_S)
        assert (recorder.returncode, said) == (0, "0 0\n"), errors
        trace = inspector.open(folder / out)
        rows = [trace["processes"]["pid"].tolist().index(pid) for pid in pids]
        for row in rows:
            mine = trace["iterations"]["iteration"][trace["iterations"]["process"] == row].tolist()
            assert mine == list(range(mine[0], mine[0] + len(mine)))
            assert mine[0] > 0
            numbers.append((row, mine[0], mine[-1]))
        assert [note.text for note in trace.quality.find("assumed")] == [standby.LATE]
        assert [note for note in trace.quality.notes if note.severity == "loss"] == []
        assert not list((folder / "runtime").rglob(f"*{ATTACH}"))
    assert server.poll() is None
    (folder / "end").touch()
    assert server.wait(PATIENCE_S) == 9
    assert server.stderr is not None
    assert f"inflight attach {server.pid}" in server.stderr.read()
    assert (folder / "child-served").exists()
    assert list((folder / "runtime").rglob(f"*{READY}")) == []


def test_a_recorder_that_is_killed_is_left(folder: Path, plain: dict[str, str], server: subprocess.Popen[str]) -> None:
    recorder = attach(folder, plain, server.pid, "a.inflight")
    rings = folder / "a.inflight"
    until(partial(has, rings, "trtllm-*.iterations.arrows"))
    recorder.kill()
    recorder.communicate()

    def closed(path: Path) -> bool:
        ring = Ring(path)
        try:
            return ring.counts().closed
        finally:
            ring.close()

    until(lambda: all(map(closed, rings.glob("*.ring"))))
    # What it asked stands there still, but does not count any more.
    assert len(list((folder / "runtime").rglob(f"*{ATTACH}"))) == 2
    recorder = attach(folder, plain, server.pid, "b.inflight", seconds=1)
    said, errors = recorder.communicate(timeout=PATIENCE_S)
    assert (recorder.returncode, said) == (0, "0 0\n"), errors


def test_two_recorders_do_not_share(folder: Path, plain: dict[str, str], server: subprocess.Popen[str]) -> None:
    first = attach(folder, plain, server.pid, "a.inflight")
    until(partial(has, folder / "a.inflight", "*.ring"))
    second = attach(folder, plain, server.pid, "b.inflight")
    _, errors = second.communicate(timeout=PATIENCE_S)
    assert "is being recorded already" in errors
    assert not (folder / "b.inflight").exists()
    assert first.poll() is None
    first.communicate('{"stop": true}\n', PATIENCE_S)
    assert first.returncode == 0


def test_kernels_start_and_stop_with_it(folder: Path, plain: dict[str, str]) -> None:
    libraries = build_libraries(folder)
    found, _ = standby.environment(plain)
    assert tap.INJECTION not in found
    found |= {TAP: str(libraries[0]), CUPTI: str(libraries[1]), "STAND_IN_RATE": "20000"}
    with subprocess.Popen([sys.executable, "workload.py"], cwd=folder, env=found) as server:
        try:
            until(lambda: (folder / "child").exists() and (folder / "parent").exists())
            for out in ("a.inflight", "b.inflight"):
                recorder = attach(folder, plain, server.pid, out)
                until(partial(has, folder / out, "kernels-*.kernels.arrows"))
                recorder.communicate('{"stop": true}\n', PATIENCE_S)
                trace = inspector.open(folder / out)
                assert len(set(trace["kernels"]["stream"].tolist())) == 4
                probes = trace["probes"]
                told = zip(probes["name"].tolist(), probes["state"].tolist(), strict=True)
                states = [state for name, state in told if trace.names[name] == "kernel tap"]
                assert states.count(0) == 2
                assert set(states) == {0, 1}
        finally:
            (folder / "end").touch()
        assert server.wait(PATIENCE_S) == 9


def test_what_is_not_prepared_is_said_with_the_next_best(folder: Path, plain: dict[str, str]) -> None:
    assert standby.prepared(os.getpid()) == []
    with pytest.raises(Missing) as caught:
        standby.Attached(os.getpid(), folder)
    assert "inflight record --standby" in str(caught.value)


def test_traces_of_processes_that_are_gone_are_swept(plain: dict[str, str]) -> None:
    place = standby.folder()
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    for pid, ticks in ((gone.pid, 5), (os.getpid(), started(os.getpid()) + 1)):
        (place / f"{pid}{READY}").write_text(json.dumps({"pid": pid, "started": ticks}))
    (place / f"7{READY}").write_text('{"pid": 8}')
    (place / f"x{READY}").write_bytes(b"\xff[[[")
    assert standby.prepared(os.getpid()) == []
    assert not (place / f"{gone.pid}{READY}").exists()
    assert is_alive(os.getpid())
    assert not is_alive(gone.pid)
    (place / f"{os.getpid()}{READY}").write_text(json.dumps({"pid": os.getpid(), "started": started(os.getpid())}))
    assert standby.prepared(os.getpid()) == [os.getpid()]
    assert standby.prepared(os.getppid()) == [os.getpid()]


def test_a_folder_of_others_is_not_used(plain: dict[str, str], folder: Path) -> None:
    standby.folder().chmod(0o777)
    with pytest.raises(Missing):
        standby.folder()
    found = {**plain, STANDBY: str(folder / "runtime" / "inflight-inspector")}
    found["PYTHONPATH"] = os.pathsep.join([str(ROOT / "probes" / "inprocess" / "hook"), found["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, "-c", "import torch"], cwd=folder, env=found, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert list((folder / "runtime").rglob(f"*{READY}")) == []
