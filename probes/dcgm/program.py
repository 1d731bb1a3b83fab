"""The program dcgmi: whether it is there, what it knows, and why it does not answer."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from probes.dcgm.printed import Field, Gpu, listed

PROGRAM = "dcgmi"
EVERY_MS = 100
"""DCGM makes none that are shorter."""
_PATIENCE_S = 10.0
_MOST_BYTES = 1 << 20
_DRAM = re.compile(r"\b1005\b")
EMPTY = "only N/A"
_HINTS = (
    (EMPTY.lower(), "DCGM has no figures of these GPUs (MIG, or not supported there)", "see dcgmi profile --list"),
    (
        "unable to establish a connection",
        "no DCGM host engine runs",
        "sudo nv-hostengine, or systemctl start nvidia-dcgm",
    ),
    ("not currently loaded", "the host engine lacks its profiling module", "install all of datacenter-gpu-manager"),
    ("ermission", "the host engine may not read the counters", "run the host engine as root"),
    ("in use", "another profiler holds the counters", "end it, or dcgmi profile --resume where DCGM was paused"),
    ("paused", "profiling is paused in DCGM", "dcgmi profile --resume"),
)


class Absent(NamedTuple):
    """Why there is nothing from DCGM, and what would help."""

    why: str
    fix: str


def connect(environment: Mapping[str, str]) -> tuple[str, list[Gpu]] | Absent:
    """The program that talks to the host engine, and the GPUs that it knows; or why there are none."""
    program = shutil.which(PROGRAM, path=environment.get("PATH", os.defpath))
    if program is None:
        return Absent("dcgmi is not on the PATH", "install datacenter-gpu-manager, NVIDIA's package")
    said = _say(program, "discovery", "-l")
    if isinstance(said, Absent):
        return said
    gpus = listed(said)
    return (program, gpus) if gpus else Absent("DCGM knows no GPU", "see what dcgmi discovery -l says")


def offers(environment: Mapping[str, str]) -> list[str] | Absent:
    """The names of the GPUs of which DCGM can tell DRAM activity, without asking for any; or why there are none."""
    found = connect(environment)
    if isinstance(found, Absent):
        return found
    program, gpus = found
    names = []
    refused = Absent("DCGM has no DRAM activity of these GPUs", "see what dcgmi profile --list says")
    for gpu in gpus:
        said = _say(program, "profile", "--list", "-i", str(gpu.number))
        if isinstance(said, Absent):
            refused = said
        elif _DRAM.search(said):
            names.append(gpu.name)
    return names or refused


def dmon(fields: Sequence[Field], gpus: Sequence[int]) -> list[str]:
    """The words after dcgmi by which it prints those fields of those GPUs until it is ended."""
    ids = ",".join(str(field.number) for field in fields)
    return ["dmon", "-e", ids, "-d", str(EVERY_MS), "-i", ",".join(map(str, gpus))]


def order() -> list[str]:
    """UUIDs of this machine's GPUs in the order of NVML's numbers; none where NVML does not answer."""
    try:
        # It ships no types.
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
        count = range(pynvml.nvmlDeviceGetCount())
        found = [pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(number)) for number in count]
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return []
    return [uuid.decode() if isinstance(uuid, bytes) else str(uuid) for uuid in found]


def _say(program: str, *words: str) -> str | Absent:
    """What a short command prints."""
    try:
        done = subprocess.run(
            [program, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Absent("dcgmi does not answer", "see whether dcgmi discovery -l does")
    except OSError as error:
        return Absent(f"dcgmi cannot be run: {error.strerror or error}", "check its installation")
    text = (done.stdout[:_MOST_BYTES] + b"\n" + done.stderr[:_MOST_BYTES]).decode("utf-8", "replace")
    return text if done.returncode == 0 else why(text)


def why(said: str) -> Absent:
    """Why it ended, from what it said."""
    for words, reason, fix in _HINTS:
        if words in said.lower():
            return Absent(reason, fix)
    text = "".join(letter if letter.isprintable() else " " for letter in said)
    return Absent(" ".join(text.split())[:200] or "it said nothing", "see what dcgmi dmon -e 1005 says")
