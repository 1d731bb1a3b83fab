"""The recorder: starts a workload, empties its rings ten times a second, looks at the host, and closes the recording.

A probe that fails, a disk that is full: the recording ends, the workload does not.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from inspector.errors import InspectorError, Missing
from probes import NAMES
from probes.arming import armed
from probes.asking import Asking
from probes.bursts import Rule
from probes.collecting import Collecting
from probes.compaction import OUTPUT, compact
from probes.dcgm.watch import CONFLICT
from probes.inprocess.watch import WITHOUT
from probes.launch import Workload
from probes.nsys_cli import Nsys, Range
from probes.output import Output, can_break
from probes.recording import Recording
from probes.sampling import Sampling
from probes.saying import say
from probes.signals import PASSED_ON, STOPS, Signals, caught
from probes.standby import LATE, Attached
from probes.workloads import configuration, mpi, trtllm
from probes.workloads.trtllm import Prepared

_STDIN, _STDOUT = 0, 1
_DRAIN_S = 0.1
NOT_WANTED = "it was not asked for"
UNDER_NSYS = "since Nsight Systems owns CUPTI there"
_STRANGERS = "nothing was recorded from within the workload"
_WHY_STRANGERS = (
    "No process of it imported torch or TensorRT-LLM, or Python ran with -I, -E, -S or without its environment, which "
    "keep the probes out"
)
PROBES = {
    "rings": {"emptied every": "100 ms"},
    "host": {"sampled every": "500 ms", "from": "/proc"},
}


@dataclass(frozen=True)
class Plan:
    """What to record: a command, into which folder, for how many seconds (None: until it ends).

    `nice` is added to its priority number; `probes` are some of probes.NAMES. With `control` it is told JSON lines that
    come on standard input. `gpus`: whether NVML is asked about its GPUs. `keep_options`: add nothing to the command.
    `nsys`: what Nsight Systems is to collect; None for not at all. `bursts`: when every kernel of CUDA graphs is
    recorded; None for on request only.
    """

    command: Sequence[str]
    out: Path
    seconds: float | None = None
    control: bool = False
    nice: int = 0
    gpus: bool = True
    keep_options: bool = False
    nsys: Range | None = None
    probes: frozenset[str] = frozenset(NAMES)
    bursts: Rule | None = None


@dataclass(frozen=True)
class Outcome:
    """How it went: the workload's exit code (128 + n for signal n, 0 when the recorder was to end it), whether it was
    asked to end, rows written and lost, how long it ran, the number of the last iteration (-1 none), what kept the
    recording from being closed, and the reports of Nsight Systems beside it.
    """

    path: Path
    exit_code: int
    was_stopped: bool
    records: int
    lost: int
    seconds: float
    last_iteration: int
    failure: InspectorError | None = None
    reports: tuple[Path, ...] = ()


def record(plan: Plan) -> Outcome:
    """Run the workload under the probes until it ends. Raises Usage, Missing, InspectorError when it does not start."""
    # Before there is a folder: without nsys nothing is begun.
    nsys = None if plan.nsys is None else Nsys(Path(os.path.abspath(plan.out)), plan.nsys, os.environ)
    recording = Recording(plan.out, plan.command, PROBES)
    with caught() as signals:
        try:
            why = UNDER_NSYS if nsys else "" if "kernels" in plan.probes else NOT_WANTED
            environment, no_kernels = armed(recording.path, os.environ, without_tap=why)
            if "executor" not in plan.probes:
                environment[WITHOUT] = "trtllm"
                recording.tell_probe("executor", {"absent": NOT_WANTED})
            recording.tell_probe("kernel tap", {"absent": no_kernels} if no_kernels else {"level": "graph"})
            command = _command(plan, recording, environment, nsys)
            # A pipe may break under a workload that must not notice: it gets a file, which is copied to the pipe.
            output = recording.path / OUTPUT if plan.control and can_break(_STDOUT) else None
            workload = Workload(command, environment, plan.control, output, plan.nice)
        except InspectorError:
            # Nothing has run: there is nothing to keep.
            recording.discard()
            raise
        return _Run(plan, recording, workload, signals, output, nsys).until_end()


def record_prepared(plan: Plan, pid: int) -> Outcome:
    """Record process `pid` and what it has started, which run and were started prepared, until they end or a signal.

    They go on then. Raises Usage, Missing, InspectorError when there is nothing to record.
    """
    recording = Recording(plan.out, plan.command, PROBES)
    with caught() as signals:
        try:
            attached = Attached(pid, recording.path)
        except InspectorError:
            recording.discard()
            raise
        recording.quality.add("assumed", LATE)
        return _Run(plan, recording, attached, signals, None, None).until_end()


def _command(plan: Plan, recording: Recording, environment: Mapping[str, str], nsys: Nsys | None) -> list[str]:
    """What is really run, which is said before, and stands in the header."""
    prepared = Prepared(list(plan.command))
    if not plan.keep_options:
        prepared = trtllm.prepare(plan.command, recording.path, environment)
    ours = [name for name, value in environment.items() if os.environ.get(name) != value]
    command, exported = mpi.exporting(prepared.command, ours, environment)
    told = [*prepared.told, *exported]
    configuration.tell(recording, configuration.of_launch(plan.command, prepared.command, environment))
    if prepared.told:
        recording.tell_probe("TensorRT-LLM options", prepared.added or {"absent": prepared.told[0]})
    if nsys is not None:
        if shutil.which(command[0], path=environment.get("PATH")) is None:
            # nsys would only say so in its own words, and end.
            raise Missing(f"cannot run {command[0]}", "there is no such program", "check the command after --")
        command = nsys.command(command)
        told.append(f"under Nsight Systems: the kernel tap is off, {UNDER_NSYS}")
    if "dcgm" in plan.probes:
        told.append(f"DCGM reads counters of the GPUs: {CONFLICT}")
    for line in told:
        say(line)
    recording.tell_command(command)
    return command


class _Run:
    def __init__(
        self,
        plan: Plan,
        recording: Recording,
        workload: Workload | Attached,
        signals: Signals,
        output: Path | None,
        nsys: Nsys | None,
    ) -> None:
        self._plan, self._recording, self._workload, self._signals = plan, recording, workload, signals
        self._collecting = Collecting(recording, nsys)
        self._failure: InspectorError | None = None
        self._ended_by_us = False
        self._output = Output(output, _STDOUT) if output is not None else None
        self._asking = Asking(recording, plan.bursts)
        self._said = b""
        self._hears = plan.control
        self._sampling = Sampling(recording, plan.probes, os.environ, plan.gpus)
        self._unmade: dict[str, str] = {}
        self._off: set[str] = set()

    def until_end(self) -> Outcome:
        deadline = None if self._plan.seconds is None else time.monotonic() + self._plan.seconds
        due = time.monotonic()
        while not self._workload.has_ended():
            now = time.monotonic()
            if deadline is not None and now >= deadline and not self._workload.is_stopping:
                self._ended_by_us = True
                # What nsys has collected is whole only while its processes live.
                if not self._collecting.end():
                    self._workload.stop(now)
            self._workload.tick(now)
            if now >= due:
                due = max(due + _DRAIN_S, now)
                self._collecting.tick()
                self._guarded_look()
                if self._output is not None:
                    self._output.forward()
            if self._signals.wait(due - time.monotonic(), [_STDIN] if self._hears else []):
                self._hear()
            for number in self._signals.take():
                self._receive(number)
        ended = time.monotonic_ns()
        self._end_collecting()
        self._sampling.stop()
        self._workload.close()
        self._close()
        if self._output is not None:
            self._output.finish()
            self._output.close()
        self._recording.leave()
        code = self._workload.code or 0
        return Outcome(
            self._recording.path,
            0 if self._ended_by_us else 128 - code if code < 0 else code,
            self._workload.is_stopping,
            self._recording.num_records(),
            self._recording.num_lost(),
            (ended - self._recording.start_ns) / 1e9,
            self._recording.last_iteration(),
            self._failure,
            self._collecting.reports,
        )

    def _end_collecting(self) -> None:
        """Wait for the report of Nsight Systems; a signal to stop ends the waiting."""
        while self._collecting.end() and not any(number in STOPS for number in self._signals.take()):
            self._collecting.tick()
            self._signals.wait(_DRAIN_S)
        self._collecting.tick()
        if why := self._collecting.close():
            say(f"no report of Nsight Systems: {why}")

    def _receive(self, number: int) -> None:
        workload = self._workload
        if number in STOPS:
            workload.stop(time.monotonic(), signal.Signals(number))
        elif number in PASSED_ON:
            workload.send(number)
        elif number == signal.SIGTSTP:
            # Its session has no terminal that could stop it.
            workload.send(signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            workload.send(signal.SIGCONT)

    def _hear(self) -> None:
        data = b""
        with suppress(OSError):
            data = os.read(_STDIN, 1 << 16)
        self._hears = bool(data)  # when the window is gone the recording goes on
        *lines, self._said = (self._said + (data or b"\n")).split(b"\n")
        if len(self._said) > 1 << 16:
            self._said = b""
        for line in lines:
            if not (self._collecting.hear(line) or self._asking.hear(line, time.monotonic_ns())):
                self._workload.tell(line, time.monotonic())
        self._ended_by_us = self._ended_by_us or self._workload.is_stopping

    def _guarded_look(self) -> None:
        if self._failure is not None:
            return
        try:
            self._look()
        except OSError as error:
            self._fail(error)

    def _look(self) -> None:
        self._recording.drain()
        self._collecting.write()
        for producer, why in self._recording.unmade_rings().items():
            if producer in self._unmade:
                continue
            if not self._unmade:
                say(f"nothing is recorded of {producer}: its ring could not be made: {why}")
            self._unmade[producer] = why
            text = f"processes of which nothing is recorded: their rings could not be made: {why}"
            self._recording.quality.add("probe", text, first=producer)
        for probe, why in self._recording.off_probes().items():
            if probe not in self._off:
                if not self._off:
                    say(f"{probe} is off: {why}")
                self._off.add(probe)
                self._recording.quality.add("probe", f"probes that are off in processes of the workload: {why}")
        now = time.monotonic_ns()
        self._asking.saw_busy(self._sampling.look(now, self._workload.pid))
        self._asking.tick(now)
        if "absent" not in self._recording.header.probes.get("kernel tap", {}):
            self._recording.tell_probe("kernel tap", {"level": "graph"} | self._asking.told)

    def _close(self) -> None:
        self._note_death()
        self._guarded_look()
        if self._failure is not None:
            return
        try:
            self._recording.drain()
            self._sampling.finish()
            self._note_strangers()
            self._recording.finish()
        except OSError as error:
            self._fail(error)
            return
        if self._unmade and not self._recording.pids:
            self._failure = Missing(
                "nothing was recorded of the workload",
                f"its ring could not be made: {next(iter(self._unmade.values()))}",
                "make room on the disk of the recording, or choose another with --out",
            )
        self._compact()

    def _compact(self) -> None:
        path = self._recording.path
        try:
            if not compact(path, self._recording.header):
                say(f"{path} is larger than this machine's memory allows to sort, so it stays as streams")
        except OSError as error:
            # Nothing is lost by that: the streams are all of it.
            if not path.is_dir():
                self._fail(error)
            else:
                say(f"{path} stays as streams, which open more slowly: {error.strerror or error}")
        except InspectorError as error:
            self._failure = error

    def _note_strangers(self) -> None:
        """Say that no process of the workload told of itself, where some were to."""
        wanted = self._plan.probes & {"kernels", "executor"}
        if wanted and self._plan.nsys is None and not self._recording.pids and not self._unmade:
            say(f"{_STRANGERS}. {_WHY_STRANGERS}")
            self._recording.quality.add("probe", f"{_STRANGERS}: {_WHY_STRANGERS}")

    def _note_death(self) -> None:
        """Say in the recording what ended the workload where that was not its own doing, nor what it was asked to."""
        number = -(self._workload.code or 0)
        if number > 0 and (number == signal.SIGKILL or not self._workload.is_stopping):
            name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
            text = f"the workload was ended by signal {number} ({name}) after {self._seconds():.1f} s"
            self._recording.quality.add("truncated", text)

    def _fail(self, error: OSError) -> None:
        """The disk does not take it: what is written stays, and the workload goes on without us."""
        recording = self._recording
        gone = not recording.path.is_dir()
        why = "its folder is gone" if gone else error.strerror or str(error)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        what = f"the recording stopped after {self._seconds():.1f} s"
        kept = f"what was recorded until then opens: {recording.path}"
        do = "record again" if gone else f"make room and record again; {kept}" if full else kept
        self._failure = Missing(what, why, do)
        recording.stop(f"{what}: {why}")
        if not self._workload.has_ended():
            say(f"{what}: {why}. The workload goes on")

    def _seconds(self) -> float:
        return (time.monotonic_ns() - self._recording.start_ns) / 1e9
