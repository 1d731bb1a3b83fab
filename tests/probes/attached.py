"""Attaching to a stand-in until something holds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import inspector
from inspector.trace.trace import Trace
from probes.server_http import attach as attaching
from probes.server_http import poller
from probes.server_http.client import address
from tests.probes.stand_in_server import StandIn


def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask often, as no user would want it."""
    monkeypatch.setattr(poller, "LONGEST_S", 0.1)
    monkeypatch.setattr(poller, "_MOST_RETRY_S", 0.2)
    monkeypatch.setattr(attaching, "_FLUSH_S", 0.05)


def record(server: StandIn, folder: Path, until: Callable[[], bool], at_most: float = 20.0) -> Trace:
    """Attach until `until` holds, for two more looks, and open what was recorded."""
    done = threading.Event()
    run = attaching._Run
    look = run.look

    class Watched(run):  # type: ignore[valid-type, misc]
        left = 3

        def look(self) -> None:
            look(self)
            if until():
                self.left -= 1
            if self.left <= 0:
                done.set()

        @property
        def is_over(self) -> bool:
            return done.is_set() or run.is_over.fget(self)  # type: ignore[attr-defined, no-any-return]

    attaching._Run = Watched  # type: ignore[misc]
    try:
        outcome = attaching.attach(address(server.url), folder, at_most)
    finally:
        attaching._Run = run  # type: ignore[misc]
    assert done.is_set(), "what was waited for did not come"
    assert outcome.failure is None
    return inspector.open(folder)


def asked(server: StandIn, what: str, times: int) -> Callable[[], bool]:
    return lambda: server.count(what) >= times
