"""Which GPU a device number means.

A process counts the devices that it may use from 0, so one number can mean two GPUs in two processes. Newer exports
tell which; where they show a clash, the number of the GPU in the machine is used instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from inspector.readers.nsys.source import Source, records


@dataclass(frozen=True)
class Gpu:
    """What the export says of a GPU; -1 unknown. `memory` in bytes, `bandwidth` in bytes/s."""

    name: str = ""
    memory: int = -1
    bandwidth: int = -1
    sm_count: int = -1


class Gpus:
    """Device numbers of processes, GPU numbers of the machine, and the numbers that the trace uses."""

    def __init__(self, source: Source) -> None:
        key = "id" if "id" in source.columns("TARGET_INFO_GPU") else "deviceId"
        fields = (key, "cuDevice", "name", "totalMemory", "memoryBandwidth", "smCount")
        self._gpus: dict[int, Gpu] = {}
        by_ordinal: dict[int, int] = {}
        for gpu, ordinal, name, memory, bandwidth, sm_count in records(source, "TARGET_INFO_GPU", *fields):
            if gpu is None:
                continue
            self._gpus[gpu] = Gpu(str(name or ""), _known(memory), _known(bandwidth), _known(sm_count))
            if ordinal is not None and 0 <= ordinal < 1 << 16:
                by_ordinal.setdefault(ordinal, gpu)
        self._of_process: dict[tuple[int, int], int] = {}
        self._of_any: dict[int, int] = dict(by_ordinal) if len(by_ordinal) == len(self._gpus) else {}
        meanings: dict[int, set[int]] = {}
        for gpu, device, pid in records(source, "TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid"):
            if gpu is not None and device is not None and pid is not None:
                self._of_process[pid, device] = gpu
                meanings.setdefault(device, set()).add(gpu)
        self.clash = any(len(gpus) > 1 for gpus in meanings.values())
        if not self.clash:
            self._of_any |= {device: gpu for device, (gpu,) in meanings.items()}

    @property
    def mapped(self) -> bool:
        """Whether the export says which GPU the device number of a process is."""
        return bool(self._of_process)

    def find(self, pid: int | None, device: int) -> tuple[int, Gpu]:
        """Number in the trace, and the GPU, of the device number `device` of process `pid`."""
        gpu = self._of_process.get((pid, device)) if pid is not None else None
        if gpu is None:
            gpu = self._of_any.get(device, device)
        return gpu if self.clash else device, self._gpus.get(gpu, Gpu())

    def of_machine(self, gpu: int) -> tuple[int, Gpu]:
        """Number in the trace, and the GPU, for the number of a GPU in the machine."""
        number = gpu
        if not self.clash:
            number = next((device for device, other in self._of_any.items() if other == gpu), gpu)
        return number, self._gpus.get(gpu, Gpu())


def _known(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else -1
