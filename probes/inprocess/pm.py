"""CUPTI PM sampling as a process of its own: the recorder starts it, and ends it by closing its input.

    python -m probes.inprocess.pm LIBRARY INTERVAL_NS        with TLLM_INSPECTOR_RUN in the environment

The native library (pm.c) samples each GPU into a ring. What CUPTI refuses is a sentence in the recording. Tried against
a stand-in for CUPTI, and against a real one without a driver; never on a GPU.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from .building import build
from .producer import ENVIRONMENT, from_environment

SOURCES = tuple(Path(__file__).with_name(name) for name in ("pm.c", "pm_cupti.h", "ring.h"))
INTERVAL_NS = 1_000_000
CUPTI = "TLLM_INSPECTOR_CUPTI"
_NOTE_BYTES = 1 << 16
_GPM = "HBM bandwidth at 10 Hz goes on"
_SENTENCES = {
    -1: "there is no CUDA driver",
    -2: "libcupti cannot be loaded: it comes with torch, or with the CUDA toolkit",
    -3: "its libcupti is older than 12.6, the first with PM sampling",
    -4: "the ring cannot be made",
    -5: "no thread could be started",
    -6: "this GPU has none of the counters that are wanted in one pass",
    -7: "there is no such GPU",
    -8: "there is not enough memory",
    2: "CUPTI says that the device is not valid",
    7: "it is being sampled already, by this or another program",
    8: "the hardware's buffer cannot be had: there is not enough memory on the GPU",
    11: "this libcupti has no PM sampling",
    15: "CUPTI is not initialised: libnvperf_host and libnvperf_target must lie beside libcupti, the driver be as new",
    26: "another tool uses the GPU's counters: DCGM (dcgmi profile --pause), nsys --gpu-metrics-devices or ncu",
    27: f"this GPU or its driver does not support it; {_GPM}",
    33: f"a virtual GPU does not allow it; {_GPM}",
    35: "the driver keeps counters for administrators: NVreg_RestrictProfilingToAdminUsers=0, or CAP_PERFMON or "
    f"CAP_SYS_ADMIN; {_GPM}",
    36: "another profiling interface of CUPTI is in use in this process",
    39: "another profiler has subscribed to CUPTI",
    40: "a virtual GPU does not allow it without its host's permission (enable_profiling)",
    41: "confidential computing does not allow it",
    42: "this mining GPU does not support it",
    43: "a MIG instance does not support it: counters are shared",
    44: "it is not supported with SLI",
    45: "it is not supported under WSL, whatever permission it asks for",
}


def sentence(code: int) -> str:
    """What an error of the library, or a CUptiResult, means and what would help."""
    if code <= -1001:
        code = -code - 1000
    if code > 10_000:
        return f"the CUDA driver does not start (error {code - 10_000})"
    return _SENTENCES.get(code, f"CUPTI refused with error {code}")


def libraries() -> Iterator[str]:
    """Where libcupti may be, the newest first: named, of Python packages, of CUDA toolkits, the system's."""
    named = os.environ.get(CUPTI)
    if named:
        yield named
        return
    for folder in sys.path:
        place = Path(folder or ".", "nvidia")
        if place.is_dir():
            yield from sorted(map(str, place.glob("*/lib/libcupti.so.1[0-9]")), reverse=True)
    for pattern in ("cuda*/extras/CUPTI/lib64/libcupti.so.1[0-9]", "cuda*/lib*/libcupti.so.1[0-9]"):
        yield from sorted(map(str, Path("/usr/local").glob(pattern)), reverse=True)
    yield from ("libcupti.so.13", "libcupti.so.12")


class Sampling:
    """The library in this process. Raises OSError when it cannot be loaded."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.pm_start.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64]

    def devices(self) -> int:
        """How many GPUs there are, with the first CUPTI that serves; below 0 an error."""
        code = -2
        for path in libraries():
            code = int(self._library.pm_devices(os.fsencode(path)))
            if code not in (-2, -3):
                break
        return code

    def start(self, device: int, ring: str, interval_ns: int) -> int:
        """Sample a GPU into a ring; 0 or an error."""
        return int(self._library.pm_start(device, os.fsencode(ring), interval_ns))

    def stop(self, device: int) -> None:
        """End it."""
        self._library.pm_stop(device)


def built() -> Path | str:
    """The library, or why there is none."""
    return build(SOURCES)


def main(library: str, interval: str) -> int:
    """Sample every GPU until the input is closed."""
    refused: list[str] = []
    sampling = Sampling(Path(library))
    count = sampling.devices()
    if count < 0:
        refused.append(sentence(count))
    started = []
    for device in range(max(count, 0)):
        path = os.path.join(os.environ[ENVIRONMENT], f"pm-{os.getpid()}-{device}.ring")
        code = sampling.start(device, path, int(interval))
        if code:
            refused.append(f"GPU {device}: {sentence(code)}")
        else:
            started.append(device)
    notes = from_environment("PM sampling", _NOTE_BYTES) if refused else None
    if notes is not None:
        notes.status("failed", "; ".join(refused))
    sys.stdin.buffer.read()
    for device in started:
        sampling.stop(device)
    if notes is not None:
        notes.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
