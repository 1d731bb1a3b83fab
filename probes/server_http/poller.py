"""One path of the server, asked again and again by a thread of its own, as often as it has something to tell."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from probes.server_http import figures, pages
from probes.server_http.access import TOKEN, Access
from probes.server_http.address import Address
from probes.server_http.client import Answer, Client, NoAnswerError
from probes.server_http.reading import is_array, items
from probes.server_http.words import shown

SHORTEST_S, LONGEST_S = 0.1, 1.0
_AT_ONCE = 50
"""So many records are wanted per answer."""
_NEARLY_FULL = 900
"""Servers keep 1,000 records by default and drop the oldest."""
_ABSENT = (404, 405, 501)
# A part of what there is (206) is better than nothing, and has been taken away from the server.
_TELLS = (200, 203, 206)
_ABSENT_S = 30.0
_MOST_RETRY_S = 5.0
MOST_HELD = 128 << 20


def _all(item: Any) -> Any:
    return item


@dataclass(frozen=True)
class Endpoint:
    """A path of a server: whether reading takes its records away, what is kept of an item, and how often it is asked
    where that does not depend on how much comes (s).
    """

    method: str
    path: str
    drains: bool = False
    keep: Callable[[Any], Any] = _all
    every_s: float | None = None


METRICS, PERF, EVENTS, PROMETHEUS, CLOCK = (
    "/metrics",
    "/perf_metrics",
    "/kv_cache_events",
    "/prometheus/metrics",
    "/steady_clock_offset",
)
ENDPOINTS = (
    Endpoint("GET", METRICS, drains=True, keep=figures.kept),
    Endpoint("GET", PERF, drains=True),
    Endpoint("POST", EVENTS, drains=True, keep=pages.kept),
    Endpoint("GET", PROMETHEUS, every_s=1.0),
    Endpoint("GET", CLOCK, every_s=10.0),
)


@dataclass(frozen=True)
class Told:
    """An answer of `path`: its `items` where it is a JSON array; `is_array` False where it is something else.

    `whole` is False where it broke off.
    """

    path: str
    answer: Answer
    items: list[object]
    is_array: bool
    whole: bool


class Held:
    """How many bytes of answers were taken from the server and are not worked in yet; of any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = 0

    def has_room(self) -> bool:
        """Whether more may be taken."""
        return self._bytes < MOST_HELD

    def add(self, count: int) -> None:
        """More was taken, or less than nothing: worked in."""
        with self._lock:
            self._bytes += count


class Poller(threading.Thread):
    """Puts what the server tells into `into`. `state` is off, running or failed, `message` says why."""

    def __init__(
        self, address: Address, access: Access, endpoint: Endpoint, into: queue.SimpleQueue[Told], held: Held
    ) -> None:
        super().__init__(name=endpoint.path, daemon=True)
        self.path = endpoint.path
        self.state, self.message = "off", ""
        self._endpoint = endpoint
        self._client = Client(address, access)
        self._into, self._held = into, held
        self._ended = threading.Event()
        self.is_absent = False
        """Whether the server said that it does not have it."""
        self._was_there = False
        self._wait = 0.0
        self._last = time.monotonic()

    def run(self) -> None:
        """Ask until `stop`."""
        while not self._ended.wait(self._wait):
            self._once()
        self._client.close()

    def stop(self) -> None:
        """Let it end when the answer that it waits for has come: what the server has given out is given out once."""
        self._ended.set()

    def abort(self) -> None:
        """Let it end now."""
        self._ended.set()
        self._client.abort()

    def _once(self) -> None:
        # While so much waits to be written, the server is the better place for what comes.
        if not self._held.has_room():
            self._wait = SHORTEST_S
            return
        try:
            answer = self._client.ask(self._endpoint.method, self.path)
        except NoAnswerError as error:
            if not self._ended.is_set():
                self._fail(f"{error}: {error.do}" if error.do else str(error))
            return
        # One that was there is only away, as behind a proxy while the server starts again.
        if answer.status in _ABSENT and not self._was_there:
            self.state, self.message, self._wait = "off", "this server does not have it", _ABSENT_S
            self.is_absent = True
            return
        if answer.status not in _TELLS:
            self._fail(_why(answer))
            return
        self.state, self.message, self._was_there = "running", "", True
        self.is_absent = False
        array = is_array(answer.body)
        found, complete = items(answer.body, self._endpoint.keep) if array else ([], not answer.cut)
        self._held.add(len(answer.body))
        self._into.put(Told(self.path, answer, found, array, complete and not answer.cut))
        self._pace(len(found), array)

    def _pace(self, count: int, array: bool) -> None:
        if self._endpoint.every_s is not None or not array:
            self._wait = (self._endpoint.every_s or 1.0) * LONGEST_S
            return
        now = time.monotonic()
        passed, self._last = max(now - self._last, 1e-3), now
        if count >= _NEARLY_FULL:
            self._wait = 0.0
        elif count:
            wanted = min(max(_AT_ONCE * passed / count, SHORTEST_S), LONGEST_S)
            self._wait = (max(self._wait, SHORTEST_S) + wanted) / 2
        else:
            self._wait = min(max(self._wait, SHORTEST_S) * 1.5, LONGEST_S)

    def _fail(self, why: str) -> None:
        if self.state != "failed":
            self._wait = SHORTEST_S
        self.state, self.message = "failed", why
        self._wait = min(max(self._wait, SHORTEST_S) * 2, _MOST_RETRY_S)


def _why(answer: Answer) -> str:
    if 300 <= answer.status < 400:
        where = f" to {shown(answer.location, 200)}" if answer.location else ""
        return f"it sends us elsewhere{where}, which is not followed: attach to that address"
    if answer.status == 401:
        return (
            f"it wants a token, or another one (status 401): type it into the window's Attach (Ctrl+T), set {TOKEN}, "
            "or name its file with --token-file"
        )
    if answer.status == 403:
        return "it does not let us (status 403): it wants another token, one that may read its metrics"
    return f"it answers with status {answer.status}"
