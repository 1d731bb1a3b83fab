"""The probes come up in the workers of real launchers: multiprocessing, torchrun, MPI; recorded as a user would."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import inspector
from probes.inprocess.ring import RANKS

ROOT = Path(__file__).parents[2]
MPI_PYTHON = os.environ.get("INFLIGHT_TEST_MPI_PYTHON", sys.executable)
"""A Python that has mpi4py; it needs nothing of ours."""
# An engine's worker: what it emitted goes into a file of its own, since launchers mix what workers print.
WORKER = """
import os, sys
def serve(rank, seed):
    from tensorrt_llm._torch.pyexecutor.py_executor import PyExecutor, plan
    executor = plan(seed)
    executor.run()
    emitted = sum(executor.truth["emitted"].values())
    with open(f"truth-{rank}", "w") as file:
        file.write(f"{os.getpid()} {emitted}")
    return emitted
"""
SPAWN = """
import multiprocessing, sys
from worker import serve
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=serve, args=(number, number)) for number in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.stdout.write("whole\\n")
    sys.exit(7)
"""
TORCHRUN = """
import os, sys
import torch, torch.distributed as dist
from worker import serve
dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.tensor([serve(rank, rank)])
dist.all_reduce(total)
with open(f"total-{rank}", "w") as file:
    file.write(str(int(total)))
dist.destroy_process_group()
sys.exit(0)
"""
MPIRUN = """
import sys
from mpi4py import MPI
from worker import serve
world = MPI.COMM_WORLD
total = world.allreduce(serve(world.Get_rank(), world.Get_rank()))
sys.stdout.write(f"total {total}\\n")
MPI.Finalize()
sys.exit(0)
"""
POOL = """
import sys
from mpi4py.futures import MPIPoolExecutor
from worker import serve
if __name__ == "__main__":
    with MPIPoolExecutor(max_workers=2) as pool:
        print("total", sum(pool.map(serve, range(2), range(2))))
"""


def lay_out(folder: Path, num_requests: int = 12) -> Path:
    """Put a workload there: a package that looks like TensorRT-LLM's executor, and the worker."""
    package = folder / "tensorrt_llm" / "_torch" / "pyexecutor"
    package.mkdir(parents=True)
    for each in (package, package.parent, package.parent.parent):
        (each / "__init__.py").write_text("", encoding="utf-8")
    stand_in = Path(__file__).with_name("trtllm_stand_in.py").read_text(encoding="utf-8")
    made = f"""
_made = executor_module('1.2', True, 3, {num_requests})
PyExecutor, ResourceManager = _made.PyExecutor, _made.ResourceManager
def plan(seed):
    executor = PyExecutor()
    executor.waiting_queue = executor.waiting_queue[:6 + 3 * seed]
    return executor
"""
    (package / "py_executor.py").write_text(stand_in + made, encoding="utf-8")
    (folder / "worker.py").write_text(WORKER, encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the workload lives."""
    return lay_out(tmp_path)


def record(folder: Path, script: str, *launcher: str) -> subprocess.CompletedProcess[str]:
    """`inflight record -- LAUNCHER script`."""
    (folder / "workload.py").write_text(script, encoding="utf-8")
    plain = {name: value for name, value in os.environ.items() if name not in {each for each, _ in RANKS}}
    plain |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)])}
    command = [sys.executable, "-m", "inspector", "record", "--headless", "--probe", "host,executor"]
    command += ["--out", "x.inflight", "--", *launcher, "workload.py"]
    return subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, timeout=150, check=False)


def check(folder: Path, ranks: list[int]) -> int:
    """Each worker's recording says what the worker did, under its rank; the tokens of all workers."""
    trace = inspector.open(folder / "x.inflight")
    processes, steps = trace["processes"], trace["steps"]
    iteration_process = trace["iterations"]["process"][steps["iteration"]]
    told = {}
    for rank in (0, 1):
        pid, emitted = map(int, (folder / f"truth-{rank}").read_text().split())
        (row,) = [at for at, each in enumerate(processes["pid"].tolist()) if each == pid]
        mine = (iteration_process == row) & (steps["emitted"] > 0)
        assert int(steps["emitted"][mine].sum()) == emitted
        assert int(processes["rank"][row]) == ranks[rank]
        told[rank] = emitted
    assert told[0] != told[1]
    notes = [note for note in trace.quality.notes if note.severity == "loss"]
    assert notes == []
    return sum(told.values())


def test_multiprocessing_spawn(folder: Path) -> None:
    done = record(folder, SPAWN, sys.executable)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "whole\n"
    check(folder, [-1, -1])


def test_torchrun(folder: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: torchrun is not tried")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = record(folder, TORCHRUN, *launcher)
    assert done.returncode == 0, done.stderr
    total = check(folder, [0, 1])
    assert {(folder / f"total-{rank}").read_text() for rank in (0, 1)} == {str(total)}


def test_torchrun_passes_the_exit_code_on(folder: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed: torchrun is not tried")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"]
    alone = "import sys; sys.exit(5)"
    (folder / "workload.py").write_text(alone, encoding="utf-8")
    bare = subprocess.run([*launcher, "workload.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert record(folder, alone, *launcher).returncode == bare.returncode != 0


@pytest.fixture(scope="module")
def mpirun() -> str:
    """The launcher of the MPI library that mpi4py finds."""
    probe = "from mpi4py import MPI; MPI.Get_library_version()"
    done = subprocess.run([MPI_PYTHON, "-c", probe], capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.splitlines() or ["?"])[-1]
        pytest.skip(f"no mpi4py with an MPI library in {MPI_PYTHON} ({why}): pip install mpi4py mpich")
    path = os.pathsep.join([str(Path(MPI_PYTHON).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which("mpirun", path=path)
    if found is None:
        pytest.skip("mpi4py is there, but no mpirun beside it or on the PATH")
    return found


def test_mpirun(folder: Path, mpirun: str) -> None:
    done = record(folder, MPIRUN, mpirun, "-n", "2", MPI_PYTHON)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"total {check(folder, [0, 1])}"] * 2


def test_mpirun_passes_the_exit_code_on(folder: Path, mpirun: str) -> None:
    script = "import sys; from mpi4py import MPI; MPI.Finalize(); sys.exit(3)"
    assert record(folder, script, mpirun, "-n", "2", MPI_PYTHON).returncode == 3


def test_mpi_pool(folder: Path, mpirun: str) -> None:
    # One worker may take both tasks; their tokens are recorded all the same, and the ranks are those of the workers.
    done = record(folder, POOL, mpirun, "-n", "1", MPI_PYTHON)
    assert done.returncode == 0, done.stderr
    truth = [tuple(map(int, (folder / f"truth-{number}").read_text().split())) for number in (0, 1)]
    assert done.stdout == f"total {sum(emitted for _, emitted in truth)}\n"
    trace = inspector.open(folder / "x.inflight")
    emitted = trace["steps"]["emitted"]
    assert int(emitted[emitted > 0].sum()) == sum(emitted for _, emitted in truth)
    ranks = dict(zip(trace["processes"]["pid"].tolist(), trace["processes"]["rank"].tolist(), strict=True))
    assert {ranks[pid] for pid, _ in truth} <= {0, 1}
