"""Attaching to a stand-in until something holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inspector
from inspector.trace.trace import Trace
from probes.server_http import attach as attaching
from probes.server_http import poller
from probes.server_http.access import Access
from probes.server_http.address import address
from probes.server_http.run import Run
from tests.probes.stand_in_server import StandIn


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask often, as no user would want it."""
    monkeypatch.setattr(poller, "LONGEST_S", 0.1)
    monkeypatch.setattr(poller, "_MOST_RETRY_S", 0.2)
    monkeypatch.setattr(attaching, "_FLUSH_S", 0.05)


class Watched(Run):
    """Ends two looks after `until` holds."""

    def __init__(self, until: Callable[[], bool], *args: Any) -> None:
        super().__init__(*args)
        self.until, self.left = until, 3

    @property
    def is_done(self) -> bool:
        return self.left <= 0

    def look(self) -> None:
        super().look()
        if self.until():
            self.left -= 1

    @property
    def is_over(self) -> bool:
        return self.is_done or super().is_over


def record(
    server: StandIn, folder: Path, until: Callable[[], bool], access: Access | None = None, *settings: object
) -> Trace:
    """Attach until `until` holds, for two more looks, and open what was recorded."""
    runs: list[Watched] = []

    def make(*args: Any) -> Run:
        runs.append(Watched(until, *args))
        return runs[0]

    plan = attaching.Plan(address(server.url), folder, access or Access(), 20.0, settings=settings)
    outcome = attaching.attach(plan, make)
    assert runs[0].is_done, "what was waited for did not come"
    assert outcome.failure is None
    return inspector.open(folder)


def asked(server: StandIn, what: str, times: int) -> Callable[[], bool]:
    return lambda: server.count(what) >= times
