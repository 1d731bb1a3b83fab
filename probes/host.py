"""What the host is doing, out of /proc: the processor time, memory and threads of a workload's processes, the machine.

A few system calls per process, twice a second. What has ended between two looks is no error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Reading(NamedTuple):
    """One value: its counter, unit, the process (-1 the machine)."""

    series: str
    unit: str
    pid: int
    value: float


class _Process(NamedTuple):
    started: int
    name: str
    cpu_ticks: int
    threads: int
    resident: int


class Host:
    """Samples of the host. Shares of processor time are those since the sample before, in % of one processor."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._ticks = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._before: dict[int, _Process] = {}
        self._machine: tuple[int, int] | None = None
        self._at_ns = 0

    def sample(self, now_ns: int, roots: Iterable[int]) -> list[Reading]:
        """Readings of the processes `roots`, of those that descend from them, of those seen before, of the machine."""
        found: list[Reading] = []
        passed = (now_ns - self._at_ns) / 1e9
        processes: dict[int, _Process] = {}
        for pid in self._tree({*roots, *self._before}):
            process = self._process(pid)
            before = self._before.get(pid)
            if process is None or (before is not None and before.started != process.started and pid not in roots):
                continue
            processes[pid] = process
            found.append(Reading("resident memory", "bytes", pid, process.resident))
            found.append(Reading("threads", "threads", pid, process.threads))
            if before is not None and before.started == process.started and passed > 0:
                used = (process.cpu_ticks - before.cpu_ticks) / self._ticks
                found.append(Reading("process CPU", "% of one processor", pid, 100 * used / passed))
        self._before, self._at_ns = processes, now_ns
        return found + self._of_machine()

    def name(self, pid: int) -> str:
        """What the process of the last sample is called; '' when it was not there."""
        process = self._before.get(pid)
        return process.name if process else ""

    @property
    def pids(self) -> list[int]:
        """The processes of the last sample."""
        return list(self._before)

    def _tree(self, roots: Iterable[int]) -> list[int]:
        found: dict[int, None] = {}
        waiting = list(roots)
        while waiting:
            pid = waiting.pop()
            if pid in found:
                continue
            found[pid] = None
            try:
                for task in os.listdir(self._proc / str(pid) / "task"):
                    text = (self._proc / str(pid) / "task" / task / "children").read_text()
                    waiting += map(int, text.split())
            except OSError:
                continue
        return sorted(found)

    def _process(self, pid: int) -> _Process | None:
        try:
            text = (self._proc / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return None
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        # Numbers of proc(5), counted from the field after the name, which is its third.
        if fields[0] in ("Z", "X"):
            return None
        cpu = int(fields[14 - 3]) + int(fields[15 - 3])
        return _Process(int(fields[22 - 3]), name, cpu, int(fields[20 - 3]), int(fields[24 - 3]) * self._page)

    def _of_machine(self) -> list[Reading]:
        found: list[Reading] = []
        try:
            words = (self._proc / "stat").read_text().split("\n", 1)[0].split()[1:9]
            memory = dict(line.split(":") for line in (self._proc / "meminfo").read_text().splitlines())
            load = float((self._proc / "loadavg").read_text().split()[0])
        except OSError:
            return found
        ticks = [int(word) for word in words]
        total, idle = sum(ticks), ticks[3] + ticks[4]
        if self._machine is not None and total > self._machine[0]:
            busy = 1 - (idle - self._machine[1]) / (total - self._machine[0])
            found.append(Reading("machine CPU", "% of all processors", -1, 100 * busy))
        self._machine = (total, idle)
        used = sum(sign * int(memory[key].split()[0]) * 1024 for sign, key in ((1, "MemTotal"), (-1, "MemAvailable")))
        found.append(Reading("machine memory in use", "bytes", -1, used))
        found.append(Reading("load average (1 min)", "threads", -1, load))
        return found
