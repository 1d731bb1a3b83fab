"""What the recorder looks at itself while a workload runs: the host, its GPUs, and how the recording goes."""

from __future__ import annotations

import time
from collections.abc import Mapping

from probes.dcgm.watch import Dcgm
from probes.gpus import Gpus
from probes.host import Host
from probes.pm import Sampler
from probes.recording import Recording
from probes.samples import Samples

_SAMPLE_NS = 500_000_000
_PROBE_NS = 1_000_000_000
# Time for a process to make the ring that names it.
_NAME_NS = 15_000_000_000


class Sampling:
    """Those of `probes` (see probes.NAMES) that need nothing of the workload, as rows of the producer "host".

    `environment` is the recorder's; `gpus`: whether NVML is asked about the GPUs.
    """

    def __init__(
        self, recording: Recording, probes: frozenset[str], environment: Mapping[str, str], gpus: bool
    ) -> None:
        self._recording = recording
        self._host = Host() if "host" in probes else None
        self._gpus = Gpus(environment) if gpus and "nvml" in probes else None
        self._dcgm = Dcgm(environment) if "dcgm" in probes else None
        self._pm = Sampler(recording.path, environment) if "pm" in probes else None
        self._samples = Samples(recording.add_streams("host"))
        self._sample_ns = self._probe_ns = recording.start_ns
        # Until when the ring of a process may come, and what the system calls it; '' once it has its name.
        self._unnamed: dict[int, tuple[int, str]] = {}

    def look(self, now_ns: int, pid: int) -> int:
        """Write what is due by now of the workload `pid`, what descends from it, and its GPUs.

        How many times more NVML said that a kernel ran. Raises OSError.
        """
        if now_ns >= self._sample_ns:
            self._sample_ns = now_ns + _SAMPLE_NS
            self._sample(now_ns, pid)
        if now_ns >= self._probe_ns:
            self._probe_ns = now_ns + _PROBE_NS
            self._tell_own(now_ns, "running")
        busy = self._give()
        self._samples.flush()
        return busy

    def stop(self) -> None:
        """End what samples by itself; what it has found is still to be written."""
        if self._gpus is not None:
            self._gpus.close()
        if self._dcgm is not None:
            self._dcgm.close()
        if self._pm is not None:
            self._pm.close()
            self._recording.tell_probe("PM sampling", self._pm.state)

    def finish(self) -> None:
        """Write what is left, and that the recorder comes to its end. Raises OSError."""
        now_ns = time.monotonic_ns()
        self._name_processes(now_ns + _NAME_NS)
        self._give()
        self._tell_own(now_ns, "off")
        self._samples.flush()

    def _give(self) -> int:
        busy = 0
        if self._gpus is not None:
            busy = self._gpus.give(self._samples)
            self._recording.tell_probe("NVML", self._gpus.state)
        if self._dcgm is not None:
            self._dcgm.give(self._samples)
            self._recording.tell_probe("DCGM", self._dcgm.state)
        return busy

    def _tell_own(self, now_ns: int, state: str) -> None:
        records, lost = self._recording.num_records(), self._recording.num_lost()
        self._samples.probe(now_ns, "recorder", state, records, lost, time.process_time_ns())

    def _sample(self, now_ns: int, pid: int) -> None:
        if self._host is None:
            return
        for reading in self._host.sample(now_ns, {pid, *self._recording.pids}):
            self._samples.counter(now_ns, reading.series, reading.unit, reading.value, pid=reading.pid)
        for each in self._host.pids:
            self._unnamed.setdefault(each, (now_ns + _NAME_NS, self._host.name(each)))
        self._name_processes(now_ns)

    def _name_processes(self, now_ns: int) -> None:
        """The ring of a process tells what it is; one without is called as the system calls it."""
        for pid, (since, name) in self._unnamed.items():
            if name and now_ns >= since:
                self._unnamed[pid] = (since, "")
                if pid not in self._recording.pids:
                    self._samples.process(pid, name)
