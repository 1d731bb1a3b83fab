"""A program that behaves as the documentation of Nsight Systems says of launch, start, stop and shutdown.

Its sessions lie in the folder $NSYS_STAND_IN, with a log of its calls; $NSYS_FAULTS names what goes wrong. A report is
two moments of CLOCK_MONOTONIC: when the collection was started and when it was stopped. `export` gives the folder
"export" in $NSYS_STAND_IN for any report.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(os.environ["NSYS_STAND_IN"])
MAGIC = "NVIDIA Tegra Profiler Report 2025@6@1@190-256136895201v0."
FAULTS = os.environ.get("NSYS_FAULTS", "").split()


def main() -> int:
    word, *words = sys.argv[1:]
    if word == "--version":
        if "mute" in FAULTS:
            return said("libcuda.so.1: cannot open shared object file", 1)
        sys.stdout.write(f"NVIDIA Nsight Systems version {'2020.3.2.6' if 'old' in FAULTS else '2026.1.1.204'}-v0\n")
        return 0
    fork = "--trace-fork-before-exec"
    if words == ["--help"]:
        sys.stdout.write(
            "usage: nsys launch\n --session-new= --trace= " + ("" if "noforks" in FAULTS else fork) + "=\n"
        )
        return 0
    with (HOME / "calls").open("a") as log:
        log.write(" ".join([word, *words]) + "\n")
    if word == "export":
        shutil.copytree(HOME / "export", words[words.index("-o") + 1])
        return 0
    options = {}
    while words and words[0].startswith("--"):
        name, _, value = words.pop(0).partition("=")
        options[name] = value
    known = {
        "launch": {"--session-new", "--trace"} | (set() if "noforks" in FAULTS else {fork}),
        "start": {"--session", "--output", "--sample"},
    }
    if unknown := sorted(set(options) - known.get(word, {"--session"})):
        return said(f"unrecognised option '{unknown[0]}'", 1)
    session = HOME / (options.get("--session-new") or options["--session"])
    collecting = session.with_suffix(".collecting")
    if word == "launch":
        return launch(session, collecting, words)
    if not session.exists():
        return said(f"Session {session.name} does not exist.", 1)
    if word == "start":
        if "hang" in FAULTS:
            signal.pause()
        if "start" in FAULTS:
            return said("Unable to start the collection.", 1)
        if collecting.exists():
            return said("A collection is active already.", 1)
        collecting.write_text(f"{options['--output'].replace('%%', '%')}\n{time.monotonic_ns()}\n")
    elif word == "stop":
        if not collecting.exists():
            return said("There is no active collection.", 1)
        if "stop" in FAULTS:
            return said("Importation failed.", 1)
        if "full" in FAULTS:
            collecting.unlink()
            return 0
        report(collecting)
    return 0


def launch(session: Path, collecting: Path, command: list[str]) -> int:
    child = subprocess.Popen(command, env={**os.environ, "CUDA_INJECTION64_PATH": "/nsys/libToolsInjection64.so"})
    if "late" in FAULTS:
        time.sleep(0.7)  # its session comes up behind the first try to start
    session.touch()
    while True:
        try:
            code = child.wait()
            break
        except KeyboardInterrupt:
            continue
    if collecting.exists():
        report(collecting)
    session.unlink()
    return 128 - code if code < 0 else code


def report(collecting: Path) -> None:
    path, since = collecting.read_text().split("\n")[:2]
    Path(f"{path}.nsys-rep").write_text(f"{MAGIC}\n{since} {time.monotonic_ns()}")
    collecting.unlink()


def said(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
