"""Attaching to a server until a signal, a word on standard input, or the end of a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from inspector.configuration.options import read_server_info
from inspector.configuration.settings import Configuration, merged
from inspector.errors import InspectorError
from probes.recording import Recording
from probes.server_http import processes
from probes.server_http.access import Access
from probes.server_http.address import Address
from probes.server_http.control import Control
from probes.server_http.greeting import Greeting, greet
from probes.server_http.poller import ENDPOINTS
from probes.server_http.run import Run
from probes.signals import STOPS, caught
from probes.workloads import configuration

_DRAINED = [each.path for each in ENDPOINTS if each.drains]
TAKES = (
    f"reading {', '.join(_DRAINED[:-1])} and {_DRAINED[-1]} takes their records away from other readers of this "
    "server, which gives each out once"
)
_STDIN = 0
_FLUSH_S = 0.2


@dataclass(frozen=True)
class Outcome:
    """Rows written, records known to be lost, how long; and what kept the recording from being closed.

    Of `broken` answers nobody knows how many records stood in the rest of them.
    """

    path: Path
    records: int
    lost: int
    seconds: float
    failure: InspectorError | None = None
    broken: int = 0


@dataclass(frozen=True)
class Plan:
    """Which server, into which folder, for how many seconds (None: until it is told to end).

    `pid` is its process, -1 where that is not known; `settings` what is known of its settings before it is asked. With
    `control` a line on standard input may end it.
    """

    address: Address
    out: Path
    access: Access = field(default_factory=Access)
    seconds: float | None = None
    pid: int = -1
    settings: Sequence[object] = ()
    control: bool = False


def attach(plan: Plan, make: Callable[..., Run] = Run) -> Outcome:
    """Record what the server tells. Raises Unreadable, Usage, InspectorError."""
    began = time.monotonic()
    greeting = greet(plan.address, plan.access, plan.seconds)
    probes = {each.path: {"method": each.method} for each in ENDPOINTS}
    recording = Recording(plan.out, ["attach", plan.access.without_token(str(plan.address))], probes)
    info = msgspec.structs.replace(recording.header.info, details=greeting.details)
    recording.header = msgspec.structs.replace(recording.header, info=info)
    configuration.tell(recording, _configuration(plan, greeting))
    run = make(plan.address, plan.access, recording, plan.pid, greeting)
    for settings in plan.settings:
        run.learn(settings)
    control = Control(_STDIN if plan.control else -1)
    with caught() as signals:
        run.start()
        while not any(number in STOPS for number in signals.take()) and not (run.is_over or control.is_over):
            if plan.seconds is not None and time.monotonic() - began >= plan.seconds:
                break
            if signals.wait(_FLUSH_S, control.files):
                control.hear()
            run.look()
        run.finish()
        seconds = (time.monotonic_ns() - recording.start_ns) / 1e9
        return Outcome(recording.path, recording.num_records(), run.lost, seconds, run.failure, run.broken)


def _configuration(plan: Plan, greeting: Greeting) -> Configuration:
    """What the server says of itself, then what the command line says with which it was started, where it is here."""
    told = read_server_info(greeting.settings, "/server_info")
    if plan.pid <= 0:
        return told
    clean = plan.access.without_token
    words = [clean(word) for word in processes.command(plan.pid)]
    environment = {name: clean(value) for name, value in processes.environment(plan.pid).items()}
    place = processes.folder(plan.pid) or Path("/")
    return merged([told, configuration.of_command(words, environment, place)])
