"""What the environment of a workload must say for the probes to come up in it, and in whatever it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from ctypes import CDLL
from pathlib import Path

from probes.inprocess import tap
from probes.inprocess.producer import ENVIRONMENT
from probes.inprocess.torch_guest import GRAPHS, TAP
from probes.inprocess.trtllm_slices import SLICES

HOOK = Path(tap.__file__).parent / "hook"


def armed(
    folder: Path, environment: Mapping[str, str], node_level: bool = False, without_tap: str = ""
) -> tuple[dict[str, str], str]:
    """`environment` with what the guest needs to record into `folder`, and why there will be no kernel records, or ''.

    A Python finds the guest's sitecustomize first, and runs the one that was found before. The CUDA driver loads the
    kernel tap, unless somebody else's library stands there already: then the guest loads it. `node_level`: each kernel
    of CUDA graphs. `without_tap`: why there is to be none.
    """
    found = dict(environment)
    found[ENVIRONMENT] = str(folder)
    before = found.get("PYTHONPATH", "")
    found["PYTHONPATH"] = os.pathsep.join([str(HOOK), *([before] if before else [])])
    for name in (TAP, GRAPHS, SLICES):
        found.pop(name, None)
    why = without_tap or ("" if has_driver() else "there is no CUDA driver")
    if not why:
        library = tap.build()
        if isinstance(library, str):
            why = library
            found[SLICES] = "1"
        else:
            found[TAP] = str(library)
            found[GRAPHS] = "node" if node_level else "graph"
            found.setdefault(tap.INJECTION, str(library))
    return found, why


def has_driver() -> bool:
    """Whether the CUDA driver can be loaded here."""
    try:
        CDLL("libcuda.so.1")
    except OSError:
        return False
    return True
