"""What this machine allows: one check per means of opening, showing or capturing, each with its fix.

The checks look at files, programs and installed packages only; nothing is loaded into this process, started or changed.
The GPU ones have never met a machine with a GPU: they follow the paths that NVIDIA's driver documents.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

State = Literal["yes", "partly", "no"]


@dataclass(frozen=True)
class Check:
    """One means: whether it works here, why (not), and what to do to get it."""

    what: str
    state: State
    why: str
    fix: str = ""


def checks(root: Path = Path("/")) -> list[Check]:
    """All checks in order; `root` is where /proc, /dev and /usr are looked for."""
    return [check(root) for check in _CHECKS]


def _window(root: Path) -> Check:
    what = "window"
    if importlib.util.find_spec("PySide6") is None:
        return Check(what, "no", "PySide6 is not installed", "pip install 'PySide6-Essentials<6.12'")
    shown = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
    if sys.platform in ("win32", "darwin") or shown:
        return Check(what, "yes", "a display is there")
    return Check(what, "no", "no display", "run under a desktop, or over ssh -X; the commands work without")


def _traces(root: Path) -> Check:
    return Check("open .sqlite, parquetdir, arrowdir, .json(.gz), .inflight", "yes", "needs nothing else")


def _nsys(root: Path) -> Check:
    what = "open and record .nsys-rep"
    found = shutil.which("nsys")
    if found:
        return Check(what, "yes", "nsys is on the path")
    folders = ("opt/nvidia/nsight-systems", "usr/local/cuda/bin", "opt/nvidia/nsight-systems-cli")
    beside = [folder for folder in folders if (root / folder).exists()]
    if beside:
        return Check(what, "partly", f"nsys is not on the path; look in /{beside[0]}", "put its folder on PATH")
    return Check(
        what, "no", "no nsys program", "install Nsight Systems, or export elsewhere: nsys export --type=sqlite"
    )


def _driver(root: Path) -> Check:
    what = "NVIDIA driver"
    version = root / "proc/driver/nvidia/version"
    if version.exists():
        line = version.read_text(errors="replace").splitlines()[:1]
        release = [word for word in (line[0] if line else "").split() if word[:1].isdigit() and "." in word]
        return Check(what, "yes", f"version {release[0]}" if release else "loaded")
    if _wsl(root) and (root / "dev/dxg").exists():
        return Check(what, "partly", "WSL: the driver is Windows' own; device metrics are not sampled there")
    if (root / "dev/nvidiactl").exists():
        return Check(
            what, "partly", "/dev/nvidiactl is there but no driver in /proc", "run on the host, not in a sandbox"
        )
    return Check(what, "no", "no GPU driver", "traces and recordings open without one")


def _counters(root: Path) -> Check:
    what = "GPU performance counters (HBM bandwidth)"
    params = root / "proc/driver/nvidia/params"
    if not params.exists():
        return Check(what, "no", "no NVIDIA driver")
    text = params.read_text(errors="replace")
    if "RmProfilingAdminOnly: 1" in text and os.geteuid() != 0:
        return Check(
            what,
            "partly",
            "the driver allows fine-grained counters to administrators only; kernel timelines keep working",
            "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, then reboot",
        )
    return Check(what, "yes", "allowed for this user")


def _mig(root: Path) -> Check:
    what = "a whole GPU, not a MIG slice"
    if (root / "proc/driver/nvidia/capabilities/mig").exists():
        instances = list((root / "proc/driver/nvidia/capabilities").glob("gpu*/mig/gi*"))
        if instances:
            return Check(what, "partly", f"MIG: {len(instances)} GPU instances; figures are of a slice")
    if not (root / "proc/driver/nvidia/gpus").exists():
        return Check(what, "no", "no NVIDIA driver")
    return Check(what, "yes", "not divided into MIG instances")


def _profiler(root: Path) -> Check:
    what = "no other profiler in the way"
    names = [name for name in os.environ if name.startswith(("NSYS_", "CUDA_INJECTION64_PATH"))]
    if names:
        return Check(what, "partly", f"set here: {', '.join(sorted(names))}", "unset them before recording")
    return Check(what, "yes", "no profiler is set in the environment")


def _attach(root: Path) -> Check:
    what = "look into another process (attach)"
    scope = root / "proc/sys/kernel/yama/ptrace_scope"
    if sys.platform != "linux":
        return Check(what, "no", "Linux only")
    value = scope.read_text().strip() if scope.exists() else "0"
    if value == "0" or os.geteuid() == 0:
        return Check(what, "yes", "processes of this user can be looked into")
    return Check(what, "partly", f"ptrace_scope is {value}: children only", "sysctl kernel.yama.ptrace_scope=0")


def _package(module: str, what: str, fix: str) -> Callable[[Path], Check]:
    def check(root: Path) -> Check:
        if importlib.util.find_spec(module) is not None:
            return Check(what, "yes", f"{module} is installed")
        return Check(what, "no", f"{module} is not installed", fix)

    return check


def _wsl(root: Path) -> bool:
    version = root / "proc/version"
    return version.exists() and "microsoft" in version.read_text(errors="replace").lower()


_CHECKS: tuple[Callable[[Path], Check], ...] = (
    _window,
    _traces,
    _nsys,
    _driver,
    _counters,
    _mig,
    _profiler,
    _attach,
    _package("torch", "torch workloads", "pip install torch"),
    _package("tensorrt_llm", "TensorRT-LLM workloads", "install TensorRT-LLM in the environment of the workload"),
    _package("pandas", "tables as pandas frames", "pip install pandas"),
)
