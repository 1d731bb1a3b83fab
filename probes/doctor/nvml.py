"""What NVML says of the GPUs, asked in a process of its own: a call may never return.

`python -m probes.doctor.nvml` is that process.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from probes.doctor.check import Check, Machine, State
from probes.nvml import Absent, connect


@dataclass(frozen=True)
class Said:
    """What it said: why there is nothing, or the names of the GPUs, why which has no GPM, and whether the GPUs keep
    their secrets (confidential computing without developer tools).
    """

    absent: str = ""
    fix: str = ""
    gpus: tuple[str, ...] = ()
    without_gpm: tuple[tuple[str, str], ...] = ()
    confidential: bool = False


def ask(machine: Machine) -> Said:
    """Ask it."""
    answer = machine.run([sys.executable, "-I", "-m", "probes.doctor.nvml"])
    if answer is None:
        return Said(absent="NVML does not answer", fix="see what nvidia-smi says")
    told = json.loads(answer)
    return Said(
        told["absent"],
        told["fix"],
        tuple(told["gpus"]),
        tuple((name, why) for name, why in told["without_gpm"]),
        told["confidential"],
    )


def nvml(said: Said) -> Check:
    """Utilisation, memory, power, clocks and links of the GPUs."""
    what = "NVML: utilisation, memory, power, clocks"
    if said.absent:
        return Check(what, "no", said.absent, said.fix, "everything but these counters")
    if not said.gpus:
        return Check(what, "no", "it sees no GPU", "in a container: start it with --gpus all", "recordings open")
    return Check(what, "yes", f"{len(said.gpus)} GPU{'s' if len(said.gpus) > 1 else ''}: {', '.join(said.gpus)}")


def gpm(said: Said) -> Check:
    """HBM read and write at 10 Hz."""
    what = "GPM: HBM bandwidth and tensor cores at 10 Hz"
    still = "bytes modelled per iteration, and Nsight GPU metrics"
    if said.absent or not said.gpus:
        return Check(what, "no", said.absent or "no GPU", said.fix, still)
    if not said.without_gpm:
        return Check(what, "yes", "by NVML, without a lock on the counters")
    whys = "; ".join(dict.fromkeys(f"{name}: {why}" for name, why in said.without_gpm))
    state: State = "no" if len(said.without_gpm) == len(said.gpus) else "partly"
    fix = "sudo, or CAP_SYS_ADMIN for this program" if "ermission" in whys else ""
    return Check(what, state, whys, fix, still)


def confidential(said: Said) -> Check:
    """Whether the GPUs let themselves be looked into."""
    what = "no confidential computing"
    if said.confidential:
        return Check(
            what,
            "no",
            "the GPUs are in confidential computing mode, which refuses CUPTI (error 41)",
            "devtools mode: nvidia-smi conf-compute -srs, or nvtrust's gpu-admin-tools --set-cc-mode=devtools",
            "iterations, requests and pages of the engine; NVML",
        )
    return Check(what, "yes", "not in that mode" if said.gpus else "no GPU that could be")


def main() -> None:
    """Print what NVML says."""
    found = connect()
    if isinstance(found, Absent):
        told: dict[str, Any] = {"absent": found.why, "fix": found.fix, "gpus": [], "without_gpm": []}
        sys.stdout.write(json.dumps({**told, "confidential": False}))
        return
    pynvml: Any = importlib.import_module("pynvml")
    hidden = False
    # Drivers that do not know the call are older than the mode.
    with suppress(pynvml.NVMLError, AttributeError):
        state = pynvml.nvmlSystemGetConfComputeState()
        hidden = bool(state.ccFeature) and not state.devToolsMode
    # A driver that supports GPM may still refuse this user, which only a sample tells.
    found.sample(time.monotonic_ns())
    names = {gpu.number: gpu.name for gpu in found.gpus}
    without = [(names[at], why) for (at, about), why in found.absent.items() if about == "GPM" and at in names]
    found.close()
    told = {"absent": "", "fix": "", "gpus": list(names.values()), "without_gpm": without, "confidential": hidden}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
