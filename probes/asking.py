"""What the recorder asks of the kernel taps of a workload, and tells them: by the heads of their rings.

A line of control {"nodes": SECONDS} records every kernel of CUDA graphs for so long, {"kernels": "off"} nothing of CUDA
until {"kernels": "on"}. Nothing is sent and nobody answers: the tap looks ten times a second, and a recorder that is
gone leaves a burst that ends by itself.
"""

from __future__ import annotations

import json
from contextlib import suppress

from inspector.errors import Unreadable, Usage
from probes.bursts import Bursts, Rule
from probes.recording import Recording
from probes.streams import Drain


class Asking:
    """The wishes of one run; `told` says in words what is asked for now."""

    def __init__(self, recording: Recording, rule: Rule | None = None) -> None:
        self._recording = recording
        self._bursts = Bursts(rule, recording.start_ns)
        self._off = False
        self._busy = self._newly_busy = self._rows = 0

    @property
    def told(self) -> dict[str, str]:
        """For the header of the recording."""
        told = {"bursts of single kernels": str(self._bursts.count)} if self._bursts.count else {}
        return told | ({"stopped": "on demand"} if self._off else {})

    def hear(self, line: bytes, now_ns: int) -> bool:
        """Whether a line of control was for the taps; it is obeyed then, at the next `tick`."""
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return False
        if not isinstance(said, dict) or len(said) != 1:
            return False
        wanted = said.get("nodes")
        if isinstance(wanted, int | float) and not isinstance(wanted, bool):
            with suppress(Usage):
                self._bursts.request(now_ns, float(wanted))
            return True
        if said.get("kernels") in ("on", "off"):
            self._off = said["kernels"] == "off"
            return True
        return False

    def saw_busy(self, times: int) -> None:
        """NVML said so many times more that a kernel ran on a GPU of the workload."""
        self._newly_busy += times

    def tick(self, now_ns: int) -> None:
        """Take the durations of new steps, and write what is wanted where the taps look."""
        durations: list[int] = []
        steps: dict[int, int] = {}
        for drain in self._recording.drains:
            streams = drain.streams
            durations += streams.durations
            streams.durations.clear()
            # An engine without a GPU gives its forward passes as kernels itself: its steps prove no launch.
            if "kernels" not in streams.rows:
                pid = drain.ring.pid
                steps[pid] = steps.get(pid, 0) + streams.rows.get("iterations", 0)
        self._bursts.tick(now_ns, durations)
        taps = [drain for drain in self._recording.drains if is_tap(drain)]
        rows = sum(sum(drain.streams.rows.values()) - drain.streams.rows.get("probes", 0) for drain in taps)
        # While one process records its work, nobody needs to be told that the GPU is busy.
        self._busy += self._newly_busy if rows == self._rows else 0
        self._rows, self._newly_busy = rows, 0
        for drain in taps:
            with suppress(Unreadable):
                drain.ring.ask(self._bursts.until_ns, self._off, steps.get(drain.ring.pid, 0), self._busy)


def is_tap(drain: Drain) -> bool:
    """Whether the ring is that of a kernel tap."""
    return "graphs" in drain.ring.tables
