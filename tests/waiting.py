"""Processes of a test, and waiting for what they do: always for a condition, never for long."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60.0
Start = Callable[[Sequence[str]], "subprocess.Popen[str]"]


def until(true: Callable[[], object], what: str = "it", at_most: float = PATIENCE_S) -> None:
    """Wait until that holds; fails after `at_most` seconds."""
    deadline = time.monotonic() + at_most
    while not true():
        assert time.monotonic() < deadline, f"never {what}"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has reaped yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def processes() -> Iterator[Start]:
    """Starts commands that know this tree, with pipes; whatever is left of them ends with the context."""
    started: list[subprocess.Popen[str]] = []

    def start(command: Sequence[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
            process.communicate()
