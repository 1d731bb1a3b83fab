"""The probes come up in real processes that know nothing of them, and are felt by none."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.trace.ring import Ring
from inspector.trace.ring_rows import RingRows
from probes import arming
from probes.inprocess import tap, watch
from probes.inprocess.torch_guest import CUPTI, TAP

STAND_IN = Path(__file__).with_name("cupti_stand_in.c")
# A package that is as little like torch as can be, but has what the probe looks for.
FAKE_TORCH = {
    "torch/__init__.py": "import torch.autograd.profiler\nNAME = 'torch of the test'\n",
    "torch/autograd/__init__.py": "",
    "torch/autograd/profiler.py": """
class profile:
    def __enter__(self):
        return self
    def __exit__(self, *error):
        return None
""",
}
WORKLOAD = """
import multiprocessing, sys, time
def child(queue):
    import torch
    time.sleep(0.3)
    queue.put((torch.NAME, torch.__loader__.__class__.__name__, torch.__spec__.loader.__class__.__name__))
if __name__ == "__main__":
    import torch
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get(timeout=60), flush=True)
    process.join()
    with torch.autograd.profiler.profile():
        pass
    time.sleep(0.2)
"""


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A folder as the recorder makes it."""
    folder = tmp_path / "x.inflight"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def environment(run_folder: Path) -> dict[str, str]:
    """What a recorded workload finds; without a driver there is no tap in it."""
    return arming.armed(run_folder, os.environ)[0]


def python(
    tmp_path: Path, environment: dict[str, str], *words: str, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """A Python of its own, in a folder of its own."""
    if text:
        (tmp_path / "workload.py").write_text(text, encoding="utf-8")
        words = (*words, "workload.py")
    return subprocess.run(
        [sys.executable, *words], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )


def make_torch(folder: Path) -> None:
    """Put the fake torch there."""
    for name, text in FAKE_TORCH.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_every_process_of_the_tree_gets_its_tap(tmp_path: Path, run_folder: Path, environment: dict[str, str]) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the kernel tap cannot be built")
    library = tap.build(tmp_path / "cache")
    stand_in = tmp_path / "libstandin.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", stand_in, STAND_IN, "-lpthread"], check=True)
    make_torch(tmp_path)
    environment |= {TAP: str(library), CUPTI: str(stand_in), "STAND_IN_RATE": "20000"}
    done = python(tmp_path, environment, text=WORKLOAD)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    # Nobody can tell that another loader was in between.
    assert done.stdout.strip() == "('torch of the test', 'SourceFileLoader', 'SourceFileLoader')"
    rings = [Ring(path) for path in run_folder.glob("kernels-*.ring")]
    assert len({ring.pid for ring in rings}) == 2
    paused = []
    for ring in rings:
        rows = RingRows(ring.pid)
        texts, tables = rows.resolve(ring.take())
        assert len(tables["kernels"]["start"]) > 100
        paused.append("paused for torch.profiler" in texts)
        ring.close()
    assert sorted(paused) == [False, True]


def test_without_a_driver_nothing_is_loaded_and_the_reason_is_known(run_folder: Path) -> None:
    if arming.has_driver():
        pytest.skip("this machine has a CUDA driver")
    environment, why = arming.armed(run_folder, {"PATH": "/usr/bin"})
    assert why == "there is no CUDA driver"
    assert TAP not in environment
    assert tap.INJECTION not in environment


def test_with_a_driver_it_is_injected_unless_somebody_is_there(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler: the kernel tap cannot be built")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(arming, "CDLL", lambda name: ctypes.CDLL(None))
    environment, why = arming.armed(run_folder, {"PYTHONPATH": "/theirs"})
    assert why == ""
    assert environment[tap.INJECTION] == environment[TAP]
    assert environment["PYTHONPATH"].split(os.pathsep)[1:] == ["/theirs"]
    other, _ = arming.armed(run_folder, {tap.INJECTION: "/opt/other.so"})
    assert other[tap.INJECTION] == "/opt/other.so"
    assert other[TAP] == environment[TAP]


def test_a_sitecustomize_that_was_there_runs_as_before(tmp_path: Path, environment: dict[str, str]) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import sys\nsys.theirs = __name__, __file__\n", encoding="utf-8")
    environment["PYTHONPATH"] += os.pathsep + str(theirs)
    done = python(tmp_path, environment, "-c", "import sys; print(sys.theirs)")
    assert done.stdout.strip() == str(("sitecustomize", str(theirs / "sitecustomize.py")))


def test_a_workload_that_imports_nothing_of_interest_has_no_trace_of_it(
    tmp_path: Path, run_folder: Path, environment: dict[str, str]
) -> None:
    text = "import sys; print(sorted(name for name in sys.modules if '_inflight_guest' in name)); import probes"
    (tmp_path / "probes.py").write_text("print('theirs')", encoding="utf-8")
    done = python(tmp_path, environment, "-c", text)
    assert done.stdout.splitlines() == ["['_inflight_guest', '_inflight_guest.watch']", "theirs"]
    assert list(run_folder.iterdir()) == []


def test_a_probe_that_fails_is_a_note_and_nothing_else(
    tmp_path: Path, run_folder: Path, environment: dict[str, str]
) -> None:
    make_torch(tmp_path)
    environment[TAP] = str(tmp_path / "there_is_none.so")
    done = python(tmp_path, environment, "-c", "import torch; print(torch.NAME)")
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("torch of the test", "", 0)
    (path,) = run_folder.glob("torch_guest-*.ring")
    ring = Ring(path)
    rows = RingRows(ring.pid)
    texts, tables = rows.resolve(ring.take())
    ring.close()
    assert 4 in tables["probes"]["state"].tolist()
    assert any("there_is_none.so" in text for text in texts)


def test_an_error_of_the_workloads_own_module_is_its_own(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('torn')", encoding="utf-8")
    done = python(tmp_path, environment, "-c", "import torch")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "RuntimeError: torn"


def test_an_error_within_an_import_looks_as_if_nobody_were_in_between(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "torch.py").write_text("def tear():\n    raise RuntimeError('torn')\ntear()\n", encoding="utf-8")
    recorded = python(tmp_path, environment, "-c", "import torch")
    bare = python(tmp_path, dict(os.environ), "-c", "import torch")
    assert recorded.stderr == bare.stderr
    assert "torn" in bare.stderr
    warning = "import warnings\nwarnings.warn('old', stacklevel=2)\n"
    (tmp_path / "torch.py").write_text(warning, encoding="utf-8")
    assert (
        python(tmp_path, environment, "-c", "import torch").stderr
        == python(tmp_path, dict(os.environ), "-c", "import torch").stderr
    )


BROKEN = """
import {guest}.watch as watch, sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("{guest}."):
            raise TypeError("too old")
sys.meta_path.insert(0, Broken())
import torch
print(torch.NAME)
"""


def test_a_guest_that_cannot_even_be_imported_is_a_note_and_nothing_else(
    tmp_path: Path, run_folder: Path, environment: dict[str, str]
) -> None:
    make_torch(tmp_path)
    done = python(tmp_path, environment, text=BROKEN.format(guest="_inflight_guest"))
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("torch of the test", "", 0)
    (left,) = run_folder.iterdir()
    assert left.name.startswith("torch_guest-")
    assert left.suffix == watch.OFF
    assert left.read_text() == "TypeError: too old"


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7", "3.8"])
def test_a_python_that_is_too_old_runs_as_if_nobody_recorded(
    version: str, tmp_path: Path, run_folder: Path, environment: dict[str, str]
) -> None:
    found = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), shutil.which(f"python{version}")]
    program = next((str(each) for each in found if each), None)
    if program is None:
        pytest.skip(f"there is no Python {version} here")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("import sys\nsys.theirs = __name__\n", encoding="utf-8")
    environment["PYTHONPATH"] += os.pathsep + str(theirs)
    (tmp_path / "torch.py").write_text("NAME = 'torch of the test'\n", encoding="utf-8")
    words = [program, "-c", "import sys, torch; print(torch.NAME + ', ' + sys.theirs)"]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("torch of the test, sitecustomize\n", "", 0)
    for left in run_folder.iterdir():
        assert left.read_text() == f"RuntimeError: Python {version} is too old: the probes need 3.9"
    assert bool(list(run_folder.iterdir())) == (version in ("3.7", "3.8"))


def test_nothing_is_armed_when_nobody_records(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(arming.HOOK)}
    environment.pop("TLLM_INSPECTOR_RUN", None)
    done = python(tmp_path, environment, "-c", "import sys; print('_inflight_guest' in sys.modules)")
    assert done.stdout.strip() == "False"


def test_the_executor_is_wrapped_in_a_spawned_worker(
    tmp_path: Path, run_folder: Path, environment: dict[str, str]
) -> None:
    package = tmp_path / "tensorrt_llm" / "_torch" / "pyexecutor"
    package.mkdir(parents=True)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").write_text("", encoding="utf-8")
    stand_in = Path(__file__).with_name("trtllm_stand_in.py").read_text(encoding="utf-8")
    made = "\n_made = executor_module('1.2', True, 3, 12)\n"
    made += "PyExecutor, ResourceManager = _made.PyExecutor, _made.ResourceManager\n"
    (package / "py_executor.py").write_text(stand_in + made, encoding="utf-8")
    text = """
import multiprocessing
def worker(queue):
    from tensorrt_llm._torch.pyexecutor.py_executor import PyExecutor
    executor = PyExecutor()
    executor.run()
    queue.put(sum(executor.truth["emitted"].values()))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=worker, args=(queue,))
    process.start()
    print(queue.get(timeout=60))
    process.join()
"""
    done = python(tmp_path, environment, text=text)
    assert done.stderr == ""
    (path,) = run_folder.glob("trtllm-*.ring")
    ring = Ring(path)
    rows = RingRows(ring.pid)
    _, tables = rows.resolve(ring.take())
    ring.close()
    assert int(tables["steps"]["emitted"][tables["steps"]["emitted"] > 0].sum()) == int(done.stdout)
