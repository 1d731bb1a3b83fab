"""Checks of driver and device: what stands between this program and the GPU's records and counters."""

from __future__ import annotations

import re

from probes.doctor.check import Check, Machine
from probes.inprocess.pm import sentence

# The first driver for CUDA 12, whose CUPTI the kernel tap needs.
_FIRST_DRIVER = 525
_VGPU = re.compile(r"\bGRID\b|\bvGPU\b|-\d+[QCAB]\b")


def driver(machine: Machine) -> Check:
    """Whether there is a driver, and new enough a one."""
    what = "NVIDIA driver"
    version = machine.driver
    if version:
        major = version.split(".")[0]
        if major.isdecimal() and len(major) < 10 and int(major) < _FIRST_DRIVER:
            why = f"version {version} is older than CUDA 12, which the kernel tap needs"
            return Check(
                what, "partly", why, f"install driver {_FIRST_DRIVER} or later", "NVML, nsys, the engine's own"
            )
        return Check(what, "yes", f"version {version}")
    if machine.is_wsl and machine.has("dev/dxg"):
        return Check(what, "yes", "Windows' own, by /dev/dxg")
    if machine.has("dev/nvidiactl"):
        why = "/dev/nvidiactl is there but no driver in /proc"
        return Check(what, "partly", why, "run on the host, or in a container that shows /proc/driver")
    fix = "in a container: start it with --gpus all; on a host: install the driver" if machine.container else ""
    return Check(what, "no", "no GPU driver", fix, "traces and recordings open, and the demo runs")


def wsl(machine: Machine) -> Check:
    """Whether it is WSL, where device counters do not come."""
    what = "not under WSL"
    if not machine.is_wsl:
        return Check(what, "yes", "not Windows' Linux")
    # Its error for counters speaks of permission, and is wrong: no permission helps.
    return Check(
        what,
        "partly",
        "WSL: no fine-grained counters there, whatever the error says, and kernel records may not come",
        "record on Linux itself, or with nsys on the side of Windows",
        "iterations, requests and pages of the engine; part of NVML",
    )


def counters(machine: Machine) -> Check:
    """Whether this user may use the GPU's performance counters."""
    what = "GPU performance counters (finer than 10 Hz)"
    text = machine.text("proc/driver/nvidia/params")
    if not text:
        return Check(what, "no", "no NVIDIA driver")
    allowed = machine.is_administrator or machine.may("SYS_ADMIN") or machine.may("PERFMON")
    if not re.search(r"^RmProfilingAdminOnly: 1\b", text, re.MULTILINE) or allowed:
        return Check(what, "yes", "allowed for this user")
    option = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"
    fix = f"'{option}' into /etc/modprobe.d of the host, then reboot"
    if machine.container:
        fix = f"start the container with --cap-add=SYS_ADMIN; or {fix}"
    why = "the driver keeps them for administrators (RmProfilingAdminOnly: 1)"
    return Check(what, "partly", why, fix, "kernel timeline, and HBM bandwidth at 10 Hz")


def mig(machine: Machine) -> Check:
    """Whether the GPUs are whole."""
    what = "whole GPUs, not MIG slices"
    if not machine.driver:
        return Check(what, "no", "no NVIDIA driver")
    found = machine.some("proc/driver/nvidia/capabilities/gpu*/mig/gi*")
    if not found:
        return Check(what, "yes", "not divided into MIG instances")
    why = f"MIG: {len(found)} GPU instance{'s' if len(found) > 1 else ''}; figures are of a slice, counters are shared"
    fix = "nvidia-smi -mig 0, where the machine is yours"
    return Check(what, "partly", why, fix, "kernel records of each compute instance; memory and power")


def vgpu(machine: Machine) -> Check:
    """Whether the GPU is a part of one that a hypervisor hands out."""
    what = "no vGPU"
    models = [
        line.partition(":")[2].strip()
        for path in machine.some("proc/driver/nvidia/gpus/*/information")
        for line in machine.text(str(path.relative_to(machine.root))).splitlines()
        if line.startswith("Model:")
    ]
    found = [model for model in models if _VGPU.search(model)]
    if not found:
        return Check(what, "yes", "the GPUs are not virtual" if models else "no GPU that could be")
    return Check(
        what,
        "partly",
        f"{', '.join(dict.fromkeys(found))}: CUPTI is refused (33, 40) unless the host allows it",
        "ask who runs the hypervisor for vGPU profiling (enable_profiling)",
        "iterations, requests and pages of the engine; NVML",
    )


def pm_sampling(machine: Machine) -> Check:
    """Whether the GPU's counters can be sampled at 1 kHz."""
    what = "PM sampling: HBM, SMs and tensor cores at 1 kHz (record --probe +pm)"
    still = "HBM bandwidth at 10 Hz"
    if not machine.driver and not machine.is_wsl:
        return Check(what, "no", "no NVIDIA driver")
    # In the order in which CUPTI would refuse; under WSL its word of permission would be wrong.
    for check, code in ((wsl, 45), (vgpu, 33), (mig, 43), (counters, 35)):
        found = check(machine)
        if found.state == "partly":
            return Check(what, "no", sentence(code), found.fix, still)
    return Check(what, "yes", "where libcupti is of 12.6 or later; it locks the clocks of the GPUs meanwhile")


def mps(machine: Machine) -> Check:
    """Whether processes share a GPU through NVIDIA's service for that."""
    what = "no MPS"
    if machine.has("tmp/nvidia-mps/control") or "CUDA_MPS_PIPE_DIRECTORY" in machine.environment:
        why = "MPS runs: counters of the device are sums over all its clients"
        return Check(what, "partly", why, "echo quit | nvidia-cuda-mps-control", "kernel records of each client")
    return Check(what, "yes", "not running")
