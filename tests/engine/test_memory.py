"""Pages that there is no memory for: said in one line, and what was there stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inspector.errors import Missing
from probes.workloads.engine import memory

_LIMITED = """
import resource, sys, torch
from inspector.errors import Missing
from probes.workloads.engine.packing import Piece
from probes.workloads.engine.runner import LocalRunner
from probes.workloads.engine.stages import StagesRunner
from tests.engine import tiny

def limit(more):
    mapped = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024
    resource.setrlimit(resource.RLIMIT_AS, (mapped + more, resource.RLIM_INFINITY))

def refused(call, *given):
    try:
        call(*given)
    except Missing as error:
        return print(error)
    raise SystemExit("it was not refused")

text = list(range(12))
"""
_GIB = 1 << 30
MORE = 300_000


def _run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", _LIMITED + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_larger_pool_is_refused_and_the_old_one_serves_on() -> None:
    # Of 600 MB of pages: 1 GB more is out of reach, so are 300 MB while the first 600 are there.
    said = _run(
        """
runner = LocalRunner(tiny.target(), 200_000, 8)
runner.forward([Piece(text[:8], 0, [3], 1)], 0)
limit(200 << 20)
refused(runner.resize, 400_000)
runner.resize(100_000)
refused(runner.resize, 300_000)
logits = runner.forward([Piece(text[8:], 8, [3, 9], 1)], 1).logits
torch.testing.assert_close(logits[0], tiny.target()(torch.tensor([text]))[0, -1])
refused(LocalRunner, tiny.target(), 10**6, 8)
"""
    )
    assert len(said) == 3
    assert said[0].startswith("400000 pages of the KV cache need 1.23 GB of memory: there are ")
    assert said[1].startswith("300000 pages of the KV cache need 922 MB of memory: there are ")
    assert all(line.endswith("MB. Use fewer blocks") for line in said)


def test_a_stage_that_has_no_memory_tells_and_the_others_go_back() -> None:
    said = _run(
        """
from tests.engine.test_memory import MORE
refused(lambda: StagesRunner(tiny.target(), 2, 2, 10**13, 8).ready())
runner = StagesRunner(tiny.target(), 2, 2, 20, 8)
runner.ready()
runner.forward([Piece(text[:8], 0, [3], 1)], 0)
refused(runner.resize, 10**13)
# Now the second alone, after the first has grown.
resource.prlimit(runner.pids[1], resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))
refused(runner.resize, MORE)
logits = runner.forward([Piece(text[8:], 8, [3, 9], 1)], 1).logits
torch.testing.assert_close(logits[0], tiny.target()(torch.tensor([text]))[0, -1])
resource.prlimit(runner.pids[1], resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
runner.resize(MORE)
logits = runner.forward([Piece(text[8:], 8, [3, MORE - 1], 1)], 2).logits
torch.testing.assert_close(logits[0], tiny.target()(torch.tensor([text]))[0, -1])
runner.close()
"""
    )
    assert [line.split(":")[0] for line in said] == [
        "10000000000000 pages of the KV cache need 15360 TB of memory",
        "10000000000000 pages of the KV cache need 15360 TB of memory",
        f"{MORE} pages of the KV cache need 461 MB of memory",
    ]


def test_more_than_the_machine_has_is_refused_before_it_is_promised() -> None:
    there = memory.available()
    assert there is not None
    memory.check(10, there // 2)
    with pytest.raises(
        Missing, match=r"^10 pages of the KV cache need .*B of memory: there are .*B. Use fewer blocks$"
    ):
        memory.check(10, 4 * there)


def test_what_is_there_is_the_least_of_machine_and_groups(tmp_path: Path) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    assert memory.available(proc, groups) is None
    (proc / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 4000000 kB\n")
    assert memory.available(proc, groups) == 4_000_000 * 1024
    (proc / "self" / "cgroup").write_text("4:memory:/elsewhere\n0::/a/b\n")
    assert memory.available(proc, groups) == 4_000_000 * 1024
    _group(groups / "a" / "b", "max", 10, 5)
    assert memory.available(proc, groups) == 4_000_000 * 1024
    _group(groups / "a", 3 * _GIB, 2 * _GIB, 100)
    assert memory.available(proc, groups) == _GIB + 100
    _group(groups, _GIB, 2 * _GIB, 0)
    assert memory.available(proc, groups) == 0


def _group(folder: Path, limit: object, used: int, files: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {files}\n")


def test_what_may_be_mapped_follows_the_limit() -> None:
    code = "limit(123 << 20); from probes.workloads.engine import memory; print(memory.obtainable())"
    assert 50 << 20 < int(_run(code)[0]) <= 123 << 20
