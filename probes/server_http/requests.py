"""GET /perf_metrics: the times of finished requests into rows of `requests`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from inspector.trace.quality import Quality
from inspector.trace.schema import NEVER
from probes.server_http.client import Answer
from probes.server_http.clocks import SteadyClock
from probes.server_http.feed import Feed
from probes.server_http.reading import UNKNOWN, Json, number, section, whole

_MOST_S = 1e9
_FAR = 2**62


class Requests:
    """Takes the finished requests of each answer."""

    def __init__(self, feed: Feed, quality: Quality, is_here: bool) -> None:
        self._feed, self._quality = feed, quality
        self._clock = SteadyClock(quality, is_here)
        self.records = 0

    def take(self, answer: Answer, items: Sequence[Any]) -> None:
        """Rows of one answer."""
        found: list[tuple[int, Json]] = []
        for item in items:
            metrics = section(item, "perf_metrics") if isinstance(item, dict) else {}
            request = _id(item) if isinstance(item, dict) else UNKNOWN
            timing = section(metrics, "timing_metrics")
            if request < 0 or not timing:
                self._quality.add("invalid", "finished requests without an id, or without times")
                continue
            found.append((request, timing))
        newest = max((time for _, timing in found for key in _KEYS if (time := _time(timing, key)) > 0), default=0.0)
        if newest:
            self._clock.settle(newest, answer.received_ns)
        for request, timing in found:
            self._one(request, timing)

    def _one(self, request: int, timing: Json) -> None:
        arrival = self._moment(timing, "arrival_time")
        if arrival == NEVER:
            arrival = self._moment(timing, "server_arrival_time")
        if arrival == NEVER:
            self._quality.add("unstamped", "finished requests that do not tell when they came")
            return
        scheduled, first, last = (self._moment(timing, key) for key in _KEYS[1:])
        if any(time != NEVER and time < arrival for time in (scheduled, first, last)):
            self._quality.add("reversed", "finished requests with a time before their arrival")
        self.records += 1
        # What is listed here has finished; when, only its last token tells.
        row = (request, arrival, first, last, UNKNOWN, UNKNOWN, scheduled, last, UNKNOWN, UNKNOWN, -1)
        self._feed.add("requests", [row])

    def _moment(self, timing: Json, key: str) -> int:
        seconds = _time(timing, key)
        return self._clock.monotonic(seconds) if seconds > 0 else NEVER


_KEYS = ("arrival_time", "first_scheduled_time", "first_token_time", "last_token_time")


def _time(timing: Json, key: str) -> float:
    """Seconds; 0 where it is not filled or cannot be."""
    seconds = number(timing, key)
    return 0.0 if math.isnan(seconds) or not 0 < seconds < _MOST_S else seconds


def _id(item: Json) -> int:
    given = item.get("request_id")
    if isinstance(given, str) and given.isdigit() and len(given) < 19:
        return int(given)
    return whole(item, "request_id", _FAR)
