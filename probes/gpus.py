"""The GPUs of a recording, as NVML sees them: asked by a thread of its own, since a call may never return."""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from probes.nvml import KERNEL_TIME, Absent, Nvml, Reading, connect
from probes.samples import Samples

# GPM compares samples that are a tenth of a second apart, or more.
_EVERY_S = 0.1
_MOST_WAITING = 4096
_NUMBER = re.compile(r"-?[0-9]{1,9}")


class Gpus:
    """Readings of the GPUs that a workload with that environment sees, numbered as it numbers them.

    `state` says what is sampled, or why nothing is.
    """

    def __init__(self, environment: Mapping[str, str], start: Callable[[], Nvml | Absent] = connect) -> None:
        self.state: dict[str, str] = {"absent": "NVML has not answered yet"}
        self._environment = environment
        self._start = start
        self._found: deque[tuple[int, list[Reading]]] = deque(maxlen=_MOST_WAITING)
        self._named: deque[tuple[int, str, int, int]] = deque()
        self._numbers: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self._thread.start()

    def give(self, samples: Samples) -> int:
        """Hand over what has come since the last call; how many of the times a kernel ran on one of the GPUs."""
        busy = 0
        while self._named:
            samples.device(*self._named.popleft())
        while self._found:
            now, readings = self._found.popleft()
            busy += any(reading.series == KERNEL_TIME and reading.value >= 1 for reading in readings)
            for reading in readings:
                number = self._numbers[reading.device]
                samples.counter(now, reading.series, reading.unit, reading.value, device=number)
        return busy

    def close(self, patience_s: float = 1.0) -> None:
        """End the thread; one that hangs in a call is left to the end of the process."""
        self._stop.set()
        self._thread.join(patience_s)

    def _run(self) -> None:
        nvml = self._start()
        if isinstance(nvml, Absent):
            self.state = {"absent": nvml.why, "fix": nvml.fix}
            return
        try:
            self._sample(nvml)
        finally:
            nvml.close()

    def _sample(self, nvml: Nvml) -> None:
        seen = visible(self._environment.get("CUDA_VISIBLE_DEVICES"), [gpu.number for gpu in nvml.gpus])
        if seen is None:
            self.state = {"absent": "CUDA_VISIBLE_DEVICES names the GPUs in a way that NVML's numbers do not tell"}
            return
        self._numbers = {number: place for place, number in enumerate(seen)}
        self._named.extend(
            (self._numbers[gpu.number], gpu.name, gpu.memory, gpu.bandwidth)
            for gpu in nvml.gpus
            if gpu.number in self._numbers
        )
        self.state = {"sampled every": f"{round(_EVERY_S * 1000)} ms", "GPUs": str(len(seen))}
        while not self._stop.is_set():
            now = time.monotonic_ns()
            readings = [reading for reading in nvml.sample(now) if reading.device in self._numbers]
            self._found.append((now, readings))
            told = [f"GPU {self._numbers[number]}, {what}: {why}" for (number, what), why in nvml.absent.items()]
            if told:
                self.state = {**self.state, "refused": "; ".join(told)}
            self._stop.wait(_EVERY_S)


def visible(setting: str | None, numbers: list[int]) -> list[int] | None:
    """NVML's numbers of the GPUs that CUDA_VISIBLE_DEVICES leaves, in CUDA's order; None when it does not tell.

    Both number the GPUs alike where CUDA_DEVICE_ORDER is PCI_BUS_ID, or all are of one kind.
    """
    if setting is None:
        return numbers
    seen: list[int] = []
    for word in filter(None, (part.strip() for part in setting.split(","))):
        if not _NUMBER.fullmatch(word):
            return None
        # CUDA stops at the first that is not there.
        if int(word) not in numbers or int(word) in seen:
            break
        seen.append(int(word))
    return seen
