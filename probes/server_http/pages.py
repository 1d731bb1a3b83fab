"""POST /kv_cache_events: which prefixes are cached where, into rows of `page_events`.

The events tell hashes, never the number of a block or the request that holds it. So blocks get numbers of ours, the
least that is free, and all that is known of a block is that it is cached, in which tier, and after which other one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from inspector.trace.quality import Quality
from inspector.trace.schema import PAGE_EVENTS
from probes.server_http.client import Answer
from probes.server_http.feed import Feed
from probes.server_http.numbering import Numbering
from probes.server_http.pool import Pool
from probes.server_http.reading import FAR, Json, key64, section, whole

MOST_BLOCKS = 1 << 22
"""Far more than any pool has."""
_MOST_HELD = 1 << 12
_CACHED, _EVICTED, _OFFLOADED, _RESTORED = map(PAGE_EVENTS.index, ("cached", "evicted", "offloaded", "restored"))


class Numbers:
    """Numbers for what comes and goes: the least that is free."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0

    def take(self) -> int:
        """A free one."""
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        """It is free again."""
        heapq.heappush(self._free, number)


def kept(event: Any) -> Any:
    """An event without the tokens of its blocks, which are most of it."""
    blocks = section(event, "data").get("blocks")
    for block in blocks if isinstance(blocks, list) else ():
        if isinstance(block, dict):
            block.pop("tokens", None)
            block.pop("mm_keys", None)
    return event


class Pages:
    """Takes the events of one rank. `lost` counts gaps in their numbers.

    With several attention windows, or groups of layers, each block is told once for each: of windows the widest has all
    blocks, of groups the first that tells is followed.
    """

    def __init__(self, feed: Feed, quality: Quality, pool: Pool) -> None:
        self._feed, self._quality, self._pool = feed, quality, pool
        self._order = Numbering()
        # Told twice, or the beginning of a new life that began as the one before.
        self._held: list[Json] = []
        self._window: int | None = None
        self._group: int | None = None
        self._places: dict[int, tuple[int, int]] = {}
        self._numbers = (Numbers(), Numbers())
        self._sequence = 0
        self.records = 0
        self._take: dict[str, Callable[[int, Json], None]] = {
            "created": self._created,
            "stored": self._stored,
            "removed": self._removed,
            "updated": self._updated,
        }

    @property
    def lost(self) -> int:
        """Events between those that came."""
        return self._order.lost

    @property
    def restarts(self) -> int:
        """How often the server began to count anew."""
        return self._order.restarts

    def take(self, answer: Answer, events: Sequence[Json]) -> None:
        """Rows of one answer, all at the time of its arrival: events have none of their own."""
        for event in events:
            for each in self._placed(answer.received_ns, event):
                self._one(answer.received_ns, each)

    def _one(self, time_ns: int, event: Json) -> None:
        data = section(event, "data")
        does = self._take.get(str(data.get("type")))
        if does is None:
            self._quality.add("invalid", "page events of a kind that is not known")
            return
        self.records += 1
        if self._is_followed(time_ns, event):
            does(time_ns, data)

    def _is_followed(self, time_ns: int, event: Json) -> bool:
        window, group = whole(event, "window_size", FAR), whole(event, "layer_group_id", FAR)
        if self._window is None or window > self._window:
            # What was told for narrower ones is told again for this one.
            self._clear(time_ns)
            self._window, self._group = window, group
        if window < self._window:
            self._quality.add("ignored", "page events of narrower attention windows")
            return False
        if group != self._group:
            self._quality.add("ignored", "page events of further groups of layers")
            return False
        return True

    def _placed(self, time_ns: int, event: Json) -> Sequence[Json]:
        """The events that are to be taken now."""
        number = whole(event, "event_id", FAR)
        if number < 0:
            self._quality.add("unstamped", "page events without a number")
            return (event,)
        place = self._order.place(number, event)
        if place == "same":
            self._quality.add("duplicate", "page events that the server told twice: they count once")
            self._held = [*self._held[1 - _MOST_HELD :], event]
            return ()
        held, self._held = self._held, []
        if place == "late":
            self._quality.add("profiler", "page events that came after later ones")
        elif place == "anew":
            # What was cached has gone.
            self._quality.add("profiler", "the server began to count its page events anew: it was restarted")
            self._window = None
            self._clear(time_ns)
            return (*held, event)
        return (event,)

    def _clear(self, time_ns: int) -> None:
        for digest, (tier, number) in self._places.items():
            self._row(time_ns, number, _EVICTED, tier, digest)
        self._places.clear()
        self._numbers = (Numbers(), Numbers())

    def _created(self, time_ns: int, data: Json) -> None:
        levels = data.get("num_blocks_per_cache_level")
        if isinstance(levels, list) and levels and all(type(level) is int and 0 <= level < FAR for level in levels):
            self._pool.places(time_ns, levels[0], min(sum(levels[1:]), FAR))

    def _stored(self, time_ns: int, data: Json) -> None:
        parent = key64(data.get("parent_hash"))
        blocks = data.get("blocks")
        for block in blocks if isinstance(blocks, list) else ():
            digest = key64(block.get("block_hash")) if isinstance(block, dict) else 0
            if not digest:
                self._quality.add("invalid", "stored blocks without a hash")
                continue
            tier = self._tier(block, "cache_level")
            if len(self._places) >= MOST_BLOCKS:
                self._quality.add("ignored", f"stored blocks beyond {MOST_BLOCKS:,} at a time")
                continue
            if digest in self._places:
                self._quality.add("duplicate", "blocks that were stored twice")
            else:
                number = self._numbers[tier].take()
                self._places[digest] = tier, number
                self._row(time_ns, number, _CACHED, tier, digest, parent)
            parent = digest

    def _removed(self, time_ns: int, data: Json) -> None:
        hashes = data.get("block_hashes")
        for given in hashes if isinstance(hashes, list) else ():
            digest = key64(given)
            place = self._places.pop(digest, None)
            if place is None:
                # Stored before this was attached, or in events that were lost.
                self._quality.add("unlinked", "blocks that were removed and had not been seen stored")
                continue
            tier, number = place
            self._row(time_ns, number, _EVICTED, tier, digest)
            self._numbers[tier].give_back(number)

    def _updated(self, time_ns: int, data: Json) -> None:
        digest = key64(data.get("block_hash"))
        level = section(data, "cache_level")
        if not level:
            return  # only its priority
        place = self._places.get(digest)
        if place is None:
            self._quality.add("unlinked", "blocks that moved and had not been seen stored")
            return
        tier, number = place
        to = self._tier(level, "new_value")
        if to == tier:
            return
        other = self._numbers[to].take()
        self._places[digest] = to, other
        if to:
            self._row(time_ns, number, _OFFLOADED, 0, digest, other=other)
        else:
            self._row(time_ns, other, _RESTORED, 0, digest, other=number)
        self._numbers[tier].give_back(number)

    def _tier(self, record: Json, key: str) -> int:
        """0 on the device, 1 elsewhere."""
        level = whole(record, key)
        if level < 0:
            self._quality.add("assumed", "blocks whose place is not told: they are taken to be on the device")
        elif level > 1:
            self._quality.add("assumed", "blocks on disk: they are shown as if in host memory")
        return min(max(level, 0), 1)

    def _row(
        self, time_ns: int, block: int, kind: int, tier: int, digest: int, parent: int = 0, other: int = -1
    ) -> None:
        self._feed.add("page_events", [(time_ns, self._sequence, block, -1, kind, -1, other, tier, digest, parent)])
        self._sequence += 1
