"""Checks of what records kernels and of where the records go: the kernel tap, its rivals, Nsight Systems, the disk."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from inspector import units
from probes.doctor.check import Check, Machine
from probes.inprocess import building, tap
from probes.inprocess.producer import KERNEL_CAPACITY
from probes.inprocess.ring import CAPACITY

_OLDEST_CUPTI = 12
# Where libcupti lies: CUDA's own folders, the distribution's, and those of Python packages.
_CUPTI = (
    "usr/local/cuda*/extras/CUPTI/lib64/libcupti.so.*",
    "usr/local/cuda*/lib64/libcupti.so.*",
    "usr/lib/*-linux-gnu/libcupti.so.*",
    "usr/local/lib/python3*/*-packages/nvidia/*/lib/libcupti.so.*",
    "usr/lib/python3*/*-packages/nvidia/*/lib/libcupti.so.*",
)
_MAJOR = re.compile(r"libcupti\.so\.(\d+)(?:\.|$)")
# Names that other profilers set in the environment of what they start.
_RIVALS = ("NSYS_", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "QUADD_INJECTION", "NVIDIA_PROCESS_INJECTION")
_NSYS_FOLDERS = (
    "opt/nvidia/nsight-systems*/*/bin/nsys",
    "usr/local/cuda*/bin/nsys",
    "opt/nvidia/nsight-systems*/bin/nsys",
)
# Room for a few processes and a few minutes.
_WANTED_BYTES = 1 << 30


def kernel_tap(machine: Machine) -> Check:
    """Whether the library that records kernels can be built."""
    what = "kernel tap: every kernel, copy and launch"
    still = "forward passes and operators by torch.profiler, Nsight Systems"
    if not machine.driver and not machine.is_wsl:
        return Check(what, "no", "no NVIDIA driver", "", "forward passes of the demo, timed on the processor")
    if building.shipped(tap.SOURCES):
        return Check(what, "yes", "came with this program, and is loaded by the CUDA driver")
    if not any(machine.program(name) for name in ("cc", "gcc", "clang")) and "CC" not in machine.environment:
        why = "there is no C compiler (cc, gcc or clang), and it is built on first use"
        return Check(what, "no", why, "apt install gcc (no CUDA headers are needed)", still)
    return Check(what, "yes", "is built on first use, and loaded by the CUDA driver")


def cupti(machine: Machine) -> Check:
    """Which libcupti is about: the one that the workload's own process has is taken."""
    what = "libcupti of CUDA 12 or later"
    found: dict[int, Path] = {}
    prefixes = [machine.environment[name] for name in ("VIRTUAL_ENV", "CONDA_PREFIX") if name in machine.environment]
    paths = [path for pattern in _CUPTI for path in machine.some(pattern)]
    paths += [
        path
        for prefix in prefixes
        for path in Path(prefix).glob("lib/python3*/site-packages/nvidia/*/lib/libcupti.so.*")
    ]
    for path in paths:
        major = _MAJOR.search(path.name)
        # A file is called by release too: libcupti.so.2025.1.1.
        if major is not None and int(major[1]) < 1000:
            found.setdefault(int(major[1]), path)
    if not found:
        why = "none in the usual places; torch brings one of its own into the workload"
        return Check(what, "partly", why, "", "the workload's own is taken, wherever it lies")
    listed = ", ".join(f"{major} ({path.parent})" for major, path in sorted(found.items(), reverse=True))
    if max(found) < _OLDEST_CUPTI:
        return Check(
            what, "no", f"version {listed}", "use torch or CUDA 12 or later", "Nsight Systems, the engine's own"
        )
    return Check(what, "yes", f"version {listed}")


def rivals(machine: Machine) -> Check:
    """Whether another profiler has put itself into what is started from here."""
    what = "no other profiler in the way"
    names = sorted(name for name in machine.environment if name.startswith(_RIVALS))
    if not names:
        return Check(what, "yes", "none is set in the environment")
    named = f"set here: {', '.join(names)}"
    foreign = machine.environment.get(tap.INJECTION)
    if names == [tap.INJECTION] and foreign:
        why = f"{named} ({foreign}); the tap comes in by Python then, and one of both may get no records"
        return Check(what, "partly", why, f"unset {tap.INJECTION}", "all of it in Python workloads")
    fix = f"unset {' '.join(names)}; not inside nsys or ncu"
    return Check(what, "partly", named, fix, "all but kernel records: CUPTI serves one of both")


def nsys(machine: Machine) -> Check:
    """Which Nsight Systems is here."""
    what = "Nsight Systems: record --nsys, open .nsys-rep"
    still = "exports open without it: nsys export --type=sqlite where it is"
    program = machine.program("nsys")
    if program is None:
        beside = next((path for pattern in _NSYS_FOLDERS for path in machine.some(pattern)), None)
        if beside is not None:
            why = f"nsys is not on the PATH, but at {beside}"
            return Check(what, "partly", why, f"export PATH={beside.parent}:$PATH", still)
        return Check(what, "no", "no nsys program", "apt install nsight-systems-cli (NVIDIA's package source)", still)
    said = machine.run([program, "--version"])
    version = re.search(r"\d{4}\.\d+(?:\.\d+)*", said or "")
    if said is None or version is None:
        return Check(what, "partly", f"{program} does not tell its version", "see what nsys --version says", still)
    return Check(what, "yes", f"version {version[0]}; a report needs this version or an older one")


def room(machine: Machine, folder: Path | None = None) -> Check:
    """Whether the disk under the current folder takes a recording."""
    what = "room for recordings in this folder"
    try:
        place = folder or Path.cwd()
        free = shutil.disk_usage(place).free
    except OSError as error:
        return Check(what, "no", error.strerror or str(error), "change to a folder that exists")
    each = f"a process takes {units.size(CAPACITY)}, with kernels {units.size(CAPACITY + KERNEL_CAPACITY)}"
    do = "name a place with more room: record --out"
    if free < CAPACITY + KERNEL_CAPACITY:
        return Check(what, "no", f"{units.size(free)} free; {each}", do)
    if free < _WANTED_BYTES:
        return Check(what, "partly", f"{units.size(free)} free; {each}", do, "short recordings")
    return Check(what, "yes", f"{units.size(free)} free; {each}")
