"""The ranks of a server that tells of several: each with iterations, pages and a pool, as a process of its own.

Rank 0 is the server's process. Others get process numbers below -1, since nobody tells their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inspector.trace.quality import Quality
from probes.server_http.client import Answer
from probes.server_http.feed import Feed
from probes.server_http.iterations import Iterations
from probes.server_http.loops import Loop
from probes.server_http.pages import Pages
from probes.server_http.pool import Pool
from probes.server_http.reading import FAR, Json, whole

MOST = 64
"""Each has files of its own that stay open, of which a process may have a thousand."""


class Rank:
    """What one rank tells."""

    def __init__(self, number: int, feed: Feed, quality: Quality, loop: Loop) -> None:
        self.feed = feed
        pool = Pool(feed)
        self.iterations = Iterations(feed, quality, pool, loop, number == 0)
        self.pages = Pages(feed, quality, pool)


class Ranks:
    """Rank 0, and others once they tell something. `feed` makes the feed of a rank."""

    def __init__(self, feed: Callable[[int], Feed], quality: Quality, loop: Loop) -> None:
        self._feed, self._quality, self._loop = feed, quality, loop
        self._ranks = {0: Rank(0, feed(0), quality, loop)}

    @property
    def first(self) -> Rank:
        """Rank 0."""
        return self._ranks[0]

    @property
    def all(self) -> list[Rank]:
        """Those that told something, and rank 0."""
        return list(self._ranks.values())

    def take_iterations(self, answer: Answer, records: Sequence[Any]) -> None:
        """Records of /metrics, of any ranks."""
        good = [record for record in records if isinstance(record, dict) and whole(record, "iter", FAR) >= 0]
        if len(good) < len(records):
            text = "iterations that are no record, or have no number"
            self._quality.add("invalid", text, len(records) - len(good))
        for rank, mine in self._by_rank(good, ("attentionDpRank", "rank")).items():
            rank.iterations.take(answer, mine)

    def take_pages(self, answer: Answer, events: Sequence[Any]) -> None:
        """Events of /kv_cache_events, of any ranks."""
        good = [event for event in events if isinstance(event, dict)]
        if len(good) < len(events):
            self._quality.add("invalid", "page events that are no record", len(events) - len(good))
        for rank, mine in self._by_rank(good, ("attention_dp_rank",)).items():
            rank.pages.take(answer, mine)

    def _by_rank(self, records: Sequence[Json], keys: tuple[str, ...]) -> dict[Rank, list[Json]]:
        found: dict[Rank, list[Json]] = {}
        for record in records:
            number = max(0, *(whole(record, key) for key in keys))
            rank = self._ranks.get(number)
            if rank is None:
                if number >= MOST:
                    self._quality.add("ignored", f"records of ranks beyond {MOST}")
                    continue
                rank = self._ranks[number] = Rank(number, self._feed(number), self._quality, self._loop)
            found.setdefault(rank, []).append(record)
        return found
