"""dcgmi as a child of the recorder, read line by line by a thread of its own."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from probes.dcgm.printed import FEWER, FIELDS, Field, numbers, parse
from probes.dcgm.program import EMPTY, EVERY_MS, Absent, connect, dmon, order, why
from probes.samples import Samples

CONFLICT = "before Hopper no other profiler of counters runs beside it"
_MOST_WAITING = 4096
# Lines of N/A for each GPU, of which there are a few at first.
_MOST_EMPTY = 50
_LONGEST_LINE = 1 << 12


class Dcgm:
    """Readings of the GPUs that a workload with that environment sees. `state` says what is sampled, or why nothing is.

    `order` asks for the UUIDs of this machine's GPUs in the order of their numbers.
    """

    def __init__(self, environment: Mapping[str, str], order: Callable[[], Sequence[str]] = order) -> None:
        self.state: dict[str, str] = {"absent": "DCGM has not answered yet"}
        self.samples = 0
        """Lines of figures so far."""
        self._environment, self._order = environment, order
        self._found: deque[tuple[int, int, list[tuple[str, str, float]]]] = deque()
        self._lost = 0
        self._stop = threading.Event()
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._run, name="dcgm", daemon=True)
        self._thread.start()

    def give(self, samples: Samples) -> None:
        """Hand over what has come since the last call."""
        while self._found:
            now, device, figures = self._found.popleft()
            for series, unit, value in figures:
                samples.counter(now, series, unit, value, device=device)

    def close(self, patience_s: float = 3.0) -> None:
        """End dcgmi and the thread."""
        self._stop.set()
        os.write(self._waker, b".")
        self._thread.join(patience_s)
        if not self._thread.is_alive():
            os.close(self._wake)
            os.close(self._waker)

    def _run(self) -> None:
        found = connect(self._environment)
        if isinstance(found, Absent):
            self.state = {"absent": found.why, "fix": found.fix}
            return
        program, gpus = found
        mine = numbers(gpus, self._environment.get("CUDA_VISIBLE_DEVICES"), self._order())
        if not mine:
            self.state = {"absent": "DCGM's numbers do not tell which GPUs the workload sees"}
            return
        for fields in (FIELDS, FEWER):
            before = self.samples
            said = self._watch(program, fields, mine)
            if self._stop.is_set() or self.samples > before:
                break
        if not self._stop.is_set():
            told = why(said)
            self.state = {**self.state, "absent": f"dcgmi ended: {told.why}", "fix": told.fix}

    def _watch(self, program: str, fields: Sequence[Field], mine: Mapping[int, int]) -> str:
        """Read what dcgmi prints until it ends or is to end; what it said that were no figures."""
        # Into a terminal, so that it writes line by line.
        reading, writing = os.openpty()
        try:
            with subprocess.Popen(
                [program, *dmon(fields, list(mine))],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                env=dict(self._environment),
                start_new_session=True,
            ) as process:
                os.close(writing)
                writing = -1
                try:
                    return self._read(reading, fields, mine)
                finally:
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(1.0)
                    process.kill()
        except OSError as error:
            return error.strerror or str(error)
        finally:
            for file in (reading, writing):
                if file >= 0:
                    os.close(file)

    def _read(self, file: int, fields: Sequence[Field], mine: Mapping[int, int]) -> str:
        begun, said = b"", ""
        empty = 0
        while not self._stop.is_set():
            select.select([file, self._wake], [], [])
            if self._stop.is_set():
                break
            try:
                data = os.read(file, 1 << 16)
            except OSError:
                break  # A terminal at whose other end nobody is any more.
            if not data:
                break
            *lines, begun = (begun + data).split(b"\n")
            begun = begun[-_LONGEST_LINE:]
            now = time.monotonic_ns()
            for line in lines:
                text = line[:_LONGEST_LINE].decode("utf-8", "replace").strip()
                row = parse(text, fields)
                if row is None:
                    said = said if text.startswith("#") or text in ("", "ID", "Id") else f"{said} {text}"[-1000:]
                elif row[0] in mine and row[1]:
                    self._keep(now, mine[row[0]], row[1], len(mine))
                    empty = 0
                else:
                    empty += 1
            if not self.samples and empty > _MOST_EMPTY * len(mine):
                return EMPTY
        return said + begun.decode("utf-8", "replace")

    def _keep(self, now: int, device: int, figures: list[tuple[str, str, float]], count: int) -> None:
        self.samples += 1
        if len(self._found) >= _MOST_WAITING:
            self._found.popleft()
            self._lost += 1
        self._found.append((now, device, figures))
        state = {"sampled every": f"{EVERY_MS} ms", "GPUs": str(count), "note": CONFLICT}
        self.state = {**state, "lost": str(self._lost)} if self._lost else state
