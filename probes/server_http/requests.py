"""GET /perf_metrics: the times of finished requests into rows of `requests`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from inspector.trace.quality import Quality
from inspector.trace.schema import NEVER
from probes.server_http.client import Answer
from probes.server_http.clocks import SteadyClock
from probes.server_http.feed import Feed
from probes.server_http.reading import FAR, UNKNOWN, Json, number, section, whole

_MOST_S = 1e9
_MOST_DIGITS = 18
# Between two readings of one time on a clock that was compared again.
_SAME_NS = 1_000_000_000
_MOST_KNOWN = 1 << 17
# Each has files of its own that stay open.
_MOST_STARTS = 16


class Requests:
    """Takes the finished requests of each answer.

    A number that comes again with another arrival is of a server that was started again, and counts anew: `feed` makes
    the feed of its n-th start. Behind a server that splits context and generation over workers, an item holds what both
    tell of the request.
    """

    def __init__(self, feed: Callable[[int], Feed], quality: Quality, is_here: bool) -> None:
        self._feeds, self._quality = feed, quality
        self._feed = feed(0)
        self._starts = 0
        self._is_apart = False
        self._arrivals: dict[int, int] = {}
        self._clock = SteadyClock(quality, is_here)
        self.records = 0

    @property
    def is_beside(self) -> bool:
        """Whether its rows stand where an engine's own requests would."""
        return not self._is_apart and self.records > 0

    def stand_apart(self, feed: Callable[[int], Feed]) -> None:
        """Have rows of their own from the first on: the engine numbers requests otherwise than clients are told."""
        if not self._is_apart and not self.records:
            self._is_apart = True
            self._feeds, self._feed = feed, feed(0)

    def compare(self, answer: Answer) -> None:
        """Take what /steady_clock_offset says of the server's clock."""
        try:
            told = json.loads(answer.body)
        except (ValueError, RecursionError):
            told = None
        receive, transmit = (number(section(told), key) for key in ("receive_ts", "transmit_ts"))
        if 0 < receive < _MOST_S and 0 < transmit < _MOST_S:
            self._clock.compare(answer.asked_ns, answer.received_ns, receive, transmit)

    def take(self, answer: Answer, items: Sequence[Any]) -> None:
        """Rows of one answer."""
        found: list[tuple[int, Json, Json]] = []
        for item in items:
            context, own = section(item, "ctx_perf_metrics"), section(item, "gen_perf_metrics") or section(item)
            request = _id(own)
            metrics = section(own, "perf_metrics")
            timing = section(metrics, "timing_metrics")
            if request < 0 or not timing:
                self._quality.add("invalid", "finished requests without an id, or without times")
                continue
            if context:
                # It came to the context worker first; both clocks are one, which the servers see to.
                came = section(context, "perf_metrics", "timing_metrics")
                timing = {**timing, **{key: came[key] for key in _KEYS[:3] if _time(came, key) > 0}}
            found.append((request, timing, metrics))
        newest = max((time for _, timing, _ in found for key in _KEYS if (time := _time(timing, key)) > 0), default=0.0)
        if newest:
            self._clock.settle(newest, answer.received_ns)
        for request, timing, metrics in found:
            self._one(request, timing, metrics)

    def _one(self, request: int, timing: Json, metrics: Json) -> None:
        arrival = self._moment(timing, "arrival_time")
        if arrival == NEVER:
            arrival = self._moment(timing, "server_arrival_time")
        if arrival == NEVER:
            self._quality.add("unstamped", "finished requests that do not tell when they came")
            return
        scheduled, first, last = (self._moment(timing, key) for key in _KEYS[1:])
        if any(time != NEVER and time < arrival for time in (scheduled, first, last)):
            self._quality.add("reversed", "finished requests with a time before their arrival")
        known = self._arrivals.get(request)
        is_another = known is not None and abs(known - arrival) > _SAME_NS
        if is_another and self._starts >= _MOST_STARTS:
            self._quality.add(
                "duplicate", "requests whose number came again, after many restarts: the last one is kept"
            )
        elif is_another:
            self._starts += 1
            self._arrivals.clear()
            self._feed = self._feeds(self._starts)
            self._quality.add("profiler", "the server began to number its requests anew: it was restarted")
        if len(self._arrivals) >= _MOST_KNOWN:
            del self._arrivals[next(iter(self._arrivals))]
        self._arrivals[request] = arrival
        self.records += 1
        # What is listed here has finished; when, only its last token tells.
        row = (request, arrival, first, last, UNKNOWN, UNKNOWN, scheduled, last, UNKNOWN, UNKNOWN, -1)
        self._feed.add("requests", [row])
        at = next((time for time in (last, first, arrival) if time != NEVER), arrival)
        for path, key, name, unit, scale in _FIGURES:
            value = number(section(metrics, path), key)
            if not math.isnan(value):
                self._feed.counter(at, f"{name} of a finished request", unit, value * scale)

    def _moment(self, timing: Json, key: str) -> int:
        seconds = _time(timing, key)
        return self._clock.monotonic(seconds) if seconds > 0 else NEVER


_CACHE, _DRAFTS, _TIMING = "kv_cache_metrics", "speculative_decoding", "timing_metrics"
_FIGURES = (
    (_CACHE, "num_total_allocated_blocks", "KV blocks allocated", "blocks", 1.0),
    (_CACHE, "num_new_allocated_blocks", "KV blocks newly allocated", "blocks", 1.0),
    (_CACHE, "num_reused_blocks", "KV blocks reused", "blocks", 1.0),
    (_CACHE, "num_missed_blocks", "KV blocks missed", "blocks", 1.0),
    (_DRAFTS, "acceptance_rate", "drafts accepted", "%", 100.0),
    (_DRAFTS, "total_draft_tokens", "draft tokens", "tokens", 1.0),
    (_DRAFTS, "total_accepted_draft_tokens", "accepted draft tokens", "tokens", 1.0),
    (_TIMING, "kv_cache_size", "KV moved", "bytes", 1.0),
)
"""Where it stands, what it is called, its unit, and the scale to that."""
_KEYS = ("arrival_time", "first_scheduled_time", "first_token_time", "last_token_time")


def _time(timing: Json, key: str) -> float:
    """Seconds; 0 where it is not filled or cannot be."""
    seconds = number(timing, key)
    return 0.0 if math.isnan(seconds) or not 0 < seconds < _MOST_S else seconds


def _id(item: Json) -> int:
    given = item.get("request_id")
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS:
        return int(given)
    return whole(item, "request_id", FAR)
