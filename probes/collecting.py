"""Nsight Systems in one recording: asked by its range or by lines of control, its state written beside the records.

A line {"nsys": "start"} begins a collection, {"nsys": "stop"} ends it.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from probes.nsys_cli import Nsys
from probes.recording import Recording
from probes.samples import Samples

PROBE = "Nsight Systems"
_STATES = {"idle": "paused", "starting": "paused", "collecting": "running", "stopping": "running", "closing": "running"}


class Collecting:
    """What `nsys` does for `recording`; None for nothing. `reports` are those that were written."""

    def __init__(self, recording: Recording, nsys: Nsys | None) -> None:
        self._recording, self._nsys = recording, nsys
        self._samples = Samples(recording.add_streams("nsys")) if nsys is not None else None
        self._last: tuple[str, str] | None = None

    @property
    def reports(self) -> tuple[Path, ...]:
        """What was written."""
        return tuple(self._nsys.reports) if self._nsys is not None else ()

    def hear(self, line: bytes) -> bool:
        """Whether a line of control was for nsys; it is obeyed then, at the next `tick`."""
        if self._nsys is None:
            return False
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(said, dict) or len(said) != 1 or said.get("nsys") not in ("start", "stop"):
            return False
        self._nsys.ask(said["nsys"] == "start")
        return True

    def tick(self) -> None:
        """Go on."""
        if self._nsys is not None:
            seconds = (time.monotonic_ns() - self._recording.start_ns) / 1e9
            self._nsys.tick(seconds, self._recording.last_iteration())
            self._recording.tell_probe(PROBE, self._nsys.told)

    def write(self) -> None:
        """Put a change of its state into the recording. Raises OSError."""
        nsys, samples = self._nsys, self._samples
        if nsys is None or samples is None:
            return
        state = "failed" if nsys.failed else "off" if nsys.is_over else _STATES[nsys.state]
        if (state, nsys.words) != self._last:
            self._last = state, nsys.words
            samples.probe(time.monotonic_ns(), PROBE, state, 0, 0, -1, nsys.words)
            samples.flush()

    def end(self) -> bool:
        """Have it close what it collects; whether that goes on. Nothing is begun any more."""
        if self._nsys is None:
            return False
        self._nsys.end()
        return self._nsys.is_busy

    def close(self) -> str:
        """End its session, whatever it is doing; why there is no report, in a line, '' where there is one."""
        if self._nsys is None:
            return ""
        self._nsys.close()
        return self._nsys.failed or ("" if self._nsys.reports else self._nsys.why_nothing)
