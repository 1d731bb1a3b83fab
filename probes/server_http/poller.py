"""One path of the server, asked again and again by a thread of its own, as often as it has something to tell."""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass

from probes.server_http.client import Address, Answer, Client, NoAnswerError
from probes.server_http.reading import items

SHORTEST_S, LONGEST_S = 0.1, 1.0
_AT_ONCE = 50
"""So many records are wanted per answer."""
_NEARLY_FULL = 900
"""Servers keep 1,000 records by default and drop the oldest."""
_ABSENT = (404, 405, 501)
_ABSENT_S = 30.0
_MOST_RETRY_S = 5.0


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


class Poller(threading.Thread):
    """Puts what the server tells into `into`. `state` is off, running or failed, `message` says why."""

    def __init__(self, address: Address, method: str, path: str, into: queue.SimpleQueue[Told]) -> None:
        super().__init__(name=path, daemon=True)
        self.path = path
        self.state, self.message = "off", ""
        self.asked = 0
        self._method = method
        self._client = Client(address)
        self._into = into
        self._ended = threading.Event()
        self._wait = SHORTEST_S
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
        try:
            answer = self._client.ask(self._method, self.path)
        except NoAnswerError as error:
            if not self._ended.is_set():
                self._fail(str(error))
            return
        finally:
            self.asked += 1
        if answer.status in _ABSENT:
            self.state, self.message, self._wait = "off", "this server does not have it", _ABSENT_S
            return
        if answer.status != 200:
            self._fail(f"it answers with status {answer.status}")
            return
        self.state, self.message = "running", ""
        is_array = answer.body.lstrip()[:1] == b"["
        found, complete = items(answer.body) if is_array else ([], not answer.cut)
        self._into.put(Told(self.path, answer, found, is_array, complete and not answer.cut))
        self._pace(len(found))

    def _pace(self, count: int) -> None:
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
