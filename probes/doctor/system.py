"""Checks of the system around: display, container, other processes, Python packages."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib import metadata

from probes.doctor.check import Check, Machine
from probes.workloads.trtllm import known_fields

_GVISOR = ("4.4.0", "15:06:54 PST 2016")


def window(machine: Machine) -> Check:
    """Whether the window can open."""
    what = "window"
    if importlib.util.find_spec("PySide6") is None:
        return Check(what, "no", "PySide6 is not installed", "pip install 'PySide6-Essentials<6.12'", "the commands")
    shown = any(machine.environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))
    if sys.platform in ("win32", "darwin") or shown:
        return Check(what, "yes", "a display is there")
    return Check(what, "no", "no display", "run under a desktop, or over ssh -X", "the commands")


def traces(machine: Machine) -> Check:
    """What opens everywhere."""
    return Check("open .sqlite, parquetdir, arrowdir, .json(.gz), .inflight", "yes", "needs nothing else")


def container(machine: Machine) -> Check:
    """What a container or a sandbox takes away."""
    what = "container"
    version = machine.text("proc/version")
    if all(word in version for word in _GVISOR):
        why = "this looks like gVisor: no fine-grained counters, and no looking into other users' processes"
        return Check(what, "partly", why, "record where there is a Linux kernel", "launching workloads, NVML")
    kind = machine.container
    if not kind:
        return Check(what, "yes", "none that can be seen")
    wanted = {"SYS_ADMIN": "fine-grained counters", "SYS_PTRACE": "looking into processes"}
    lacking = {name: brings for name, brings in wanted.items() if not machine.may(name)}
    if not lacking:
        return Check(what, "yes", f"{kind}, with all that is needed")
    flag = "--cap-add={}" if kind != "Kubernetes" else "securityContext.capabilities.add: {}"
    fix = ", ".join(f"{flag.format(name)} for {brings}" for name, brings in lacking.items())
    return Check(what, "partly", f"{kind}, without {', '.join(lacking)}", fix, "launching workloads under the probes")


def attach(machine: Machine) -> Check:
    """Whether other processes of this user can be looked into."""
    what = "look into another process (attach by number)"
    if sys.platform != "linux":
        return Check(what, "no", "Linux only", "", "attach by address: http://HOST:PORT")
    scope = machine.text("proc/sys/kernel/yama/ptrace_scope").strip() or "0"
    if scope == "0" or machine.may("SYS_PTRACE"):
        return Check(what, "yes", "processes of this user can be looked into")
    if scope == "3":
        return Check(what, "no", "ptrace_scope is 3: nobody may, until reboot", "", "attach by address")
    why = f"ptrace_scope is {scope}: {'children only' if scope == '1' else 'administrators only'}"
    return Check(
        what, "partly", why, "sudo sysctl kernel.yama.ptrace_scope=0", "attach by address, and what is launched"
    )


def torch(machine: Machine) -> Check:
    """torch beside this program; a workload may have its own."""
    what = "torch beside this program: the demo"
    if importlib.util.find_spec("torch") is None:
        return Check(what, "no", "torch is not installed", "pip install 'inflight-inspector[demo]'", "all but the demo")
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return Check(what, "yes", "of unknown version")
    return Check(what, "yes", f"version {version}")


def tensorrt_llm(machine: Machine) -> Check:
    """TensorRT-LLM: by its programs, since it may live in an environment of its own."""
    what = "TensorRT-LLM: record -- trtllm-serve ..."
    fix = "record in the environment, or the container, where TensorRT-LLM is"
    program = machine.program("trtllm-serve")
    if program is None and importlib.util.find_spec("tensorrt_llm") is None:
        return Check(what, "no", "trtllm-serve is not on the PATH", fix, "attach to a server by its address")
    if program is None:
        return Check(what, "partly", "the package is here, trtllm-serve is not on the PATH", fix)
    known = known_fields(program, machine.environment)
    if known is not None and "enable_iter_perf_stats" not in known:
        why = f"{program} is too old to keep statistics per iteration"
        return Check(what, "partly", why, "TensorRT-LLM 1.0 or later", "kernels, and what it logs")
    return Check(what, "yes", program)


def package(module: str, what: str, fix: str, still: str) -> Callable[[Machine], Check]:
    """A check for an optional Python package."""

    def check(machine: Machine) -> Check:
        if importlib.util.find_spec(module) is not None:
            return Check(what, "yes", f"{module} is installed")
        return Check(what, "no", f"{module} is not installed", fix, still)

    return check
