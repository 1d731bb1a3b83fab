"""KV cache events for /kv_cache_events: which content can be reused, from the device or from host memory."""

from __future__ import annotations

import itertools
from collections import deque

from probes.workloads.engine.blocks import CACHED, DEVICE, EVICTED, HOST, OFFLOADED, RESTORED, Content, PageEvent
from probes.workloads.engine.responses import Json

MOST = 16_384
"""Events kept until they are read; then the oldest goes, which the gap in `event_id` shows."""
_PRIORITY = 35


class PageFeed:
    """Made from the page events of one pool, on the engine's thread; `drain` may be called from any other.

    `window_size`: most tokens that attention looks back.
    """

    def __init__(self, window_size: int) -> None:
        self._window_size = window_size
        self._events: deque[Json] = deque(maxlen=MOST)
        self._ids = itertools.count()
        self._tiers: tuple[set[int], set[int]] = set(), set()

    def drain(self) -> list[Json]:
        """The events since the last call, oldest first."""
        return drained(self._events)

    def pool(self, blocks: int, host_blocks: int) -> None:
        """The pool was made, or has another size."""
        self._tell({"type": "created", "num_blocks_per_cache_level": [blocks, host_blocks]})

    def page(self, event: PageEvent, content: Content | None) -> None:
        """A page changed hands."""
        if content is None:
            return
        before = self._level(content.hash)
        device, host = self._tiers
        if event.kind in (CACHED, RESTORED):
            device.add(content.hash)
        if event.kind == OFFLOADED:
            host.add(content.hash)
            device.discard(content.hash)
        if event.kind == RESTORED:
            host.discard(content.hash)
        if event.kind == EVICTED:
            self._tiers[event.tier].discard(content.hash)
        after = self._level(content.hash)
        if before == after:
            return
        if before is None:
            self._tell({"type": "stored", "parent_hash": content.parent or None, "blocks": [_stored(content, after)]})
        elif after is None:
            self._tell({"type": "removed", "block_hashes": [content.hash]})
        else:
            level = {"type": "event_diff", "new_value": after, "old_value": before}
            self._tell({"type": "updated", "block_hash": content.hash, "cache_level": level, "priority": None})

    def _level(self, hash: int) -> int | None:
        return next((tier for tier in (DEVICE, HOST) if hash in self._tiers[tier]), None)

    def _tell(self, data: Json) -> None:
        self._events.append({"event_id": next(self._ids), "data": data, "window_size": self._window_size})


def _stored(content: Content, level: int | None) -> Json:
    tokens = [{"type": "unique_token", "token_id": token, "token_extra_id": 0} for token in content.tokens]
    return {
        "type": "stored_block",
        "block_hash": content.hash,
        "tokens": tokens,
        "cache_level": level,
        "priority": _PRIORITY,
    }


def drained(events: deque[Json]) -> list[Json]:
    """All that `events` holds, which is taken out, while another thread may add to it."""
    taken: list[Json] = []
    while events:
        try:
            taken.append(events.popleft())
        except IndexError:  # another reader was faster
            break
    return taken
