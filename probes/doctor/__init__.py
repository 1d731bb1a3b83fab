"""What this machine allows: one check per means of opening, showing or capturing, each with its fix.

The checks look at files, programs and installed packages; NVML, nsys and dcgmi are asked in processes of
their own. Nothing is loaded into this process or changed. Those of a GPU follow what NVIDIA documents and what others
met; a machine with a GPU has seen none of them.
"""

from __future__ import annotations

from collections.abc import Callable

from probes.doctor import dcgm, gpu, nvml, records, system
from probes.doctor.check import Check, Machine

_FIRST: tuple[Callable[[Machine], Check], ...] = (system.window, system.traces, gpu.driver)
_OF_NVML: tuple[Callable[[nvml.Said], Check], ...] = (nvml.nvml, nvml.gpm, nvml.confidential)
_REST: tuple[Callable[[Machine], Check], ...] = (
    records.kernel_tap,
    records.cupti,
    records.rivals,
    dcgm.dcgm,
    gpu.counters,
    gpu.pm_sampling,
    gpu.mig,
    gpu.vgpu,
    gpu.mps,
    gpu.wsl,
    system.container,
    system.attach,
    records.nsys,
    system.tensorrt_llm,
    system.torch,
    records.room,
    system.package(
        "yaml", "options of yours for TensorRT-LLM", "pip install PyYAML", "TensorRT-LLM without such a file"
    ),
    system.package("pandas", "tables as pandas frames", "pip install pandas", "tables as numpy arrays"),
)


def checks(machine: Machine | None = None) -> list[Check]:
    """All checks of `machine` (None: this one), in order."""
    here = machine or Machine()
    said = nvml.ask(here)
    return [
        *(check(here) for check in _FIRST),
        *(check(said) for check in _OF_NVML),
        *(check(here) for check in _REST),
    ]
