"""Processes with the kernel tap and a stand-in for CUPTI: what they did, and what stands in their rings."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inspector.trace.ring import Ring
from inspector.trace.ring_rows import RingRows
from probes.inprocess import tap

SOURCE = Path(__file__).with_name("cupti_stand_in.c")
# Runs until so many records were handed to CUPTI's buffers, stops, and tells what both sides counted.
SCRIPT = """
import ctypes, json, os, sys, time
from pathlib import Path
from inspector.trace.ring import Ring
from probes.inprocess.tap import Tap
stand_in = ctypes.CDLL(os.environ["TLLM_INSPECTOR_CUPTI"])
for name in ("stand_in_emitted", "stand_in_unserved"):
    getattr(stand_in, name).restype = ctypes.c_int64
def until(count):
    end = time.monotonic() + 20
    while stand_in.stand_in_emitted() < count and time.monotonic() < end:
        time.sleep(0.01)
tap = Tap(Path(sys.argv[1]))
steps = json.loads(sys.argv[2])
said = []
begun = time.monotonic_ns()
for step in steps:
    if step[0] == "start":
        said.append(tap.start(cupti=os.environ["TLLM_INSPECTOR_CUPTI"], **step[1]))
    elif step[0] == "until":
        until(step[1])
    elif step[0] == "spin":
        end = time.monotonic() + 1
        while time.monotonic() < end:
            pass
    elif step[0] == "ask":
        seconds, *rest = step[1:]
        ring = Ring(Path(os.environ["TLLM_INSPECTOR_RUN"], f"kernels-{os.getpid()}.ring"), writable=True)
        ring.ask(time.monotonic_ns() + int(seconds * 1e9) if seconds else 0, *rest)
        ring.close()
    elif step[0] in ("hear", "work"):
        # The recorder counts steps and readings of a busy GPU meanwhile.
        ring = Ring(Path(os.environ["TLLM_INSPECTOR_RUN"], f"kernels-{os.getpid()}.ring"), writable=True)
        end, counts = time.monotonic() + (20 if step[0] == "hear" else 1), [0, 0]
        heard = lambda: step[0] == "hear" and any(step[1] in text for _, text in ring.take().names)
        while not heard() and time.monotonic() < end:
            counts = [count + more for count, more in zip(counts, step[2:], strict=False)]
            if step[2:]:
                ring.ask(0, False, *counts)
            time.sleep(0.01)
        ring.close()
    elif step[0] == "go":
        os.environ["TLLM_INSPECTOR_RUN"] = step[1]
    elif step[0] == "records":
        count, end = tap.counts().records, time.monotonic() + 20
        while tap.counts().records < count + step[1] and time.monotonic() < end:
            time.sleep(0.01)
    elif step[0] == "steal":
        stand_in.stand_in_steal()
    else:
        said.append(getattr(tap, step[0])(*step[1:]))
counts = tap.counts()
print(json.dumps({"said": said, "counts": counts._asdict(), "emitted": stand_in.stand_in_emitted(),
                  "unserved": stand_in.stand_in_unserved(), "begun": begun, "ended": time.monotonic_ns()}))
"""


def build_libraries(folder: Path) -> tuple[Path, Path]:
    """The tap as a launch builds it, and the stand-in."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: the kernel tap cannot be built")
    built = tap.build(folder / "cache")
    assert isinstance(built, Path), built
    out = folder / "libstandin.so"
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", out, SOURCE, "-lpthread"], check=True
    )
    return built, out


def run(
    libraries: tuple[Path, Path], folder: Path, steps: list[list[Any]], **environment: object
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the process said, and the tables of its ring."""
    env = {**os.environ, "TLLM_INSPECTOR_RUN": str(folder), "TLLM_INSPECTOR_CUPTI": str(libraries[1])}
    env |= {name: str(value) for name, value in environment.items()}
    command = [sys.executable, "-c", SCRIPT, str(libraries[0]), json.dumps(steps)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    rings = list(folder.glob("*.ring"))
    if not rings:
        return told, {}
    ring = Ring(rings[0])
    rows = RingRows(ring.pid)
    taken = ring.take()
    assert taken.damage == ""
    texts, tables = rows.resolve(taken)
    counts = ring.counts()
    ring.close()
    assert rows.quality.notes == []
    return told, {**tables, "texts": texts, "counts": counts}


def states(ring: dict[str, Any]) -> list[tuple[int, str]]:
    """What the tap said of itself, one after the other, what it only repeats left out."""
    rows = ring["probes"]
    texts = ["", *ring["texts"]]
    said = [(state, texts[text + 1]) for state, text in zip(rows["state"], rows["message"], strict=True)]
    return [one for one, before in zip(said, [None, *said], strict=False) if one != before]
