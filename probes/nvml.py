"""What NVML says of the GPUs, sampled by the recorder: memory, power, clocks, links; HBM bandwidth from Hopper on.

A call can take tens of milliseconds, and hang when a GPU falls off the bus: only the recorder process makes them.
Tried against a stand-in library only; no real driver has answered yet. In MIG mode GPM is not asked: its whole-device
call is refused there, which shows as an absence with its reason.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

# GPM compares two samples. Closer ones are not valid on Hopper.
SHORTEST_GPM_NS = 100_000_000
_PCIE_NS = 1_000_000_000
KERNEL_TIME = "time with a kernel running"
_MIB = 1 << 20
_REASONS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
}


class Reading(NamedTuple):
    """One sample of one counter: its series, the unit, the device number and the value."""

    series: str
    unit: str
    device: int
    value: float


@dataclass(frozen=True)
class Gpu:
    """A GPU as NVML numbers it. `memory` in bytes; `bandwidth` is the DRAM peak in bytes/s; -1 unknown."""

    number: int
    name: str
    memory: int
    bandwidth: int


class Absent(NamedTuple):
    """Why there is no NVML, and what would help."""

    why: str
    fix: str


def connect() -> Nvml | Absent:
    """NVML of this machine, or why not."""
    try:
        # It ships no types.
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return Absent("the Python package nvidia-ml-py is not installed", "pip install nvidia-ml-py")
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
            return Absent("there is no NVIDIA driver (libnvidia-ml.so.1)", "install the NVIDIA driver")
        return Absent(f"NVML does not start: {error}", "see what nvidia-smi says")
    return Nvml(pynvml, count)


class Nvml:
    """The GPUs of this machine. `absent` tells, per device and quantity, what does not answer and why."""

    def __init__(self, pynvml: Any, count: int) -> None:
        self._nvml = pynvml
        self.absent: dict[tuple[int, str], str] = {}
        self._handles: dict[int, Any] = {}
        self._pcie_ns: dict[int, int] = {}
        for number in range(count):
            handle = self._ask(number, "the device", partial(pynvml.nvmlDeviceGetHandleByIndex, number))
            if handle is not None:
                self._handles[number] = handle
        self.gpus = [self._gpu(number, handle) for number, handle in self._handles.items()]
        self._gpm = {number: gpm for number in self._handles if (gpm := self._gpm_of(number)) is not None}

    def sample(self, now_ns: int) -> list[Reading]:
        """What the devices say now (CLOCK_MONOTONIC ns); what one does not answer is left out and stands in `absent`.

        A device that is lost is not asked again.
        """
        found: list[Reading] = []
        for number, handle in list(self._handles.items()):
            for quantity, ask in self._quantities(handle):
                if (number, quantity) not in self.absent:
                    values = self._ask(number, quantity, ask)
                    found += [Reading(series, unit, number, value) for series, unit, value in values or ()]
            gpm = self._gpm.get(number)
            if (
                gpm is None
                and (number, "PCIe") not in self.absent
                and now_ns - self._pcie_ns.get(number, 0) >= _PCIE_NS
            ):
                self._pcie_ns[number] = now_ns
                values = self._ask(number, "PCIe", partial(self._pcie, handle))
                found += [Reading(series, unit, number, value) for series, unit, value in values or ()]
            if gpm is not None and number in self._handles:
                values = self._ask(number, "GPM", partial(gpm.sample, now_ns))
                found += [Reading(series, unit, number, value) for series, unit, value in values or ()]
                if (number, "GPM") in self.absent:
                    self._gpm.pop(number, None)
        return found

    def close(self) -> None:
        """Let go of the library."""
        for gpm in self._gpm.values():
            gpm.close()
        self._nvml.nvmlShutdown()

    def _quantities(self, handle: Any) -> list[tuple[str, Callable[[], list[tuple[str, str, float]]]]]:
        nvml = self._nvml
        return [
            ("utilisation", lambda: self._utilisation(handle)),
            ("memory", lambda: [("device memory in use", "bytes", nvml.nvmlDeviceGetMemoryInfo(handle).used)]),
            ("power", lambda: [("power", "W", nvml.nvmlDeviceGetPowerUsage(handle) / 1000)]),
            ("SM clock", lambda: [("SM clock", "MHz", nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))]),
            (
                "memory clock",
                lambda: [("memory clock", "MHz", nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))],
            ),
            ("temperature", lambda: [("temperature", "°C", nvml.nvmlDeviceGetTemperature(handle, 0))]),
            ("clock limits", lambda: self._throttling(handle)),
        ]

    def _utilisation(self, handle: Any) -> list[tuple[str, str, float]]:
        # Both are shares of time over up to a second, not of work or of bandwidth: their names say so.
        rates = self._nvml.nvmlDeviceGetUtilizationRates(handle)
        return [
            (KERNEL_TIME, "%", float(rates.gpu)),
            ("time with memory being accessed", "%", float(rates.memory)),
        ]

    def _throttling(self, handle: Any) -> list[tuple[str, str, float]]:
        reasons = self._nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
        return [(f"clock limited by {text}", "", float(bool(reasons & bit))) for bit, text in _REASONS.items()]

    def _pcie(self, handle: Any) -> list[tuple[str, str, float]]:
        # Each takes 20 ms, over which it counts; GPM's are had for nothing and of all of the time.
        ask, nvml = self._nvml.nvmlDeviceGetPcieThroughput, self._nvml
        names = (("PCIe sent", nvml.NVML_PCIE_UTIL_TX_BYTES), ("PCIe received", nvml.NVML_PCIE_UTIL_RX_BYTES))
        return [(f"{name} (20 ms in each second)", "bytes/s", 1000.0 * ask(handle, which)) for name, which in names]

    def _gpu(self, number: int, handle: Any) -> Gpu:
        nvml = self._nvml
        name = self._ask(number, "name", lambda: nvml.nvmlDeviceGetName(handle))
        memory = self._ask(number, "memory size", lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total)
        # Two transfers per clock over the whole bus.
        peak = self._ask(
            number,
            "DRAM peak",
            lambda: (
                2
                * 10**6
                * nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)
                * (nvml.nvmlDeviceGetMemoryBusWidth(handle) // 8)
            ),
        )
        return Gpu(number, name or f"GPU {number}", memory if memory is not None else -1, peak if peak else -1)

    def _gpm_of(self, number: int) -> _Gpm | None:
        nvml, handle = self._nvml, self._handles[number]
        support = self._ask(number, "GPM", lambda: nvml.nvmlGpmQueryDeviceSupport(handle))
        if support is None:
            return None
        if not support.isSupportedDevice:
            self.absent[number, "GPM"] = "HBM bandwidth by GPM needs Hopper or later"
            return None
        gpm: _Gpm | None = self._ask(number, "GPM", lambda: _Gpm(nvml, handle))
        return gpm

    def _ask(self, number: int, quantity: str, ask: Callable[[], Any]) -> Any:
        """What `ask` gives; None where NVML refuses, which is remembered with its words."""
        nvml = self._nvml
        try:
            return ask()
        except nvml.NVMLError as error:
            self.absent[number, quantity] = str(error)
            if error.value in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
                self.absent[number, "the device"] = str(error)
                self._handles.pop(number, None)
            return None


class _Gpm:
    """GPU performance monitoring of one device: rates between two samples."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._metrics = (
            (nvml.NVML_GPM_METRIC_DRAM_BW_UTIL, "HBM read and write", "% of peak", 1.0),
            (nvml.NVML_GPM_METRIC_SM_UTIL, "SMs active", "%", 1.0),
            (nvml.NVML_GPM_METRIC_SM_OCCUPANCY, "SM occupancy", "%", 1.0),
            (nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL, "tensor cores active", "%", 1.0),
            (nvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC, "PCIe sent", "bytes/s", _MIB),
            (nvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC, "PCIe received", "bytes/s", _MIB),
            (nvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, "NVLink sent", "bytes/s", _MIB),
            (nvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, "NVLink received", "bytes/s", _MIB),
        )
        self._before = nvml.nvmlGpmSampleAlloc()
        self._now = nvml.nvmlGpmSampleAlloc()
        self._taken_ns: int | None = None

    def sample(self, now_ns: int) -> list[tuple[str, str, float]]:
        """The rates since the last sample; nothing at first and where that is less than 100 ms ago."""
        nvml = self._nvml
        if self._taken_ns is not None and now_ns - self._taken_ns < SHORTEST_GPM_NS:
            return []
        nvml.nvmlGpmSampleGet(self._handle, self._now)
        first = self._taken_ns is None
        self._taken_ns = now_ns
        self._before, self._now = self._now, self._before
        if first:
            return []
        get = nvml.c_nvmlGpmMetricsGet_t()
        get.version = nvml.NVML_GPM_METRICS_GET_VERSION
        get.numMetrics = len(self._metrics)
        # After the swap `_now` is the older one.
        get.sample1, get.sample2 = self._now, self._before
        for place, (metric, *_) in enumerate(self._metrics):
            get.metrics[place].metricId = metric
        nvml.nvmlGpmMetricsGet(get)
        return [
            (series, unit, get.metrics[place].value * scale)
            for place, (_, series, unit, scale) in enumerate(self._metrics)
            if get.metrics[place].nvmlReturn == nvml.NVML_SUCCESS
        ]

    def close(self) -> None:
        """Give the samples back."""
        for sample in (self._before, self._now):
            self._nvml.nvmlGpmSampleFree(sample)
