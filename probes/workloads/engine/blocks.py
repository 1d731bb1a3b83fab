"""The pages of the paged KV cache: who holds them, which can be reused, which go to host memory.

A device block is free, used (references by requests), or cached (no references, but its content is registered under a
hash and can be reused). Free blocks are given out lowest number first; when there are none, the cached block that was
let go longest ago gives way, to a host page where there are some.
"""

from __future__ import annotations

import heapq
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from inspector.trace.schema import PAGE_EVENTS

FREED, ALLOCATED, CACHED, REUSED, EVICTED, OFFLOADED, RESTORED = range(len(PAGE_EVENTS))
DEVICE, HOST = 0, 1


class PageEvent(NamedTuple):
    """A page changing hands, in the order of the columns of page_events; `time` is on the monotonic clock (ns).

    `place` is that in the block table of `request`.
    """

    time: int
    sequence: int
    block: int
    request: int
    kind: int
    place: int = -1
    other: int = -1
    tier: int = DEVICE
    hash: int = 0
    parent: int = 0


class Transfer(NamedTuple):
    """The content of a page is to be copied: to the host page, or from it (`back`)."""

    block: int
    page: int
    back: bool


class Content(NamedTuple):
    """What a full page holds: `tokens`; `hash` of all up to its end, `parent` of all before (0: nothing is before)."""

    hash: int
    parent: int
    tokens: tuple[int, ...]


def chain(parent: int, tokens: Sequence[int], salt: str = "") -> int:
    """The hash (64 bits, never 0) of a page that holds `tokens` after the page with hash `parent` (0 none)."""
    told = ",".join(map(str, tokens))
    digest = blake2b(f"{salt}|{parent}|{told}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") or 1


class BlockPool:
    """Bookkeeping of `blocks` device pages and `host_blocks` host pages; holds no tensors.

    `observe` is told of every event, with the content that the page has, gets or loses. What the events imply is to be
    copied (`take_transfers`) before the pages are next written or read. With `reuse` off nothing is registered.
    `evictions` (from the device, for good), `offloads` and `restores` count what happened.
    """

    def __init__(
        self,
        blocks: int,
        host_blocks: int = 0,
        *,
        reuse: bool = True,
        observe: Callable[[PageEvent, Content | None], object] | None = None,
    ) -> None:
        self.blocks = blocks
        self.host_blocks = host_blocks
        self._reuse = reuse
        self.evictions = self.offloads = self.restores = 0
        self._transfers: list[Transfer] = []
        self._observe = observe
        self._sequence = 0
        self._refs = [0] * blocks
        self._content: list[Content | None] = [None] * blocks
        self._free = list(range(blocks))
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._by_hash: dict[int, int] = {}
        self._host: OrderedDict[int, tuple[int, Content]] = OrderedDict()
        self._host_free = list(range(host_blocks))

    @property
    def available(self) -> int:
        """Blocks that can be allocated: free ones and cached ones."""
        return len(self._free) + len(self._cached)

    @property
    def used(self) -> int:
        """Blocks with at least one reference."""
        return self.blocks - self.available

    @property
    def cached(self) -> int:
        """Blocks without a reference whose content can be reused."""
        return len(self._cached)

    @property
    def host_used(self) -> int:
        """Host pages that hold something."""
        return len(self._host)

    def references(self, block: int) -> int:
        """How many requests hold `block`."""
        return self._refs[block]

    def find(self, hash: int) -> int | None:
        """The device block with that content, if there is one."""
        return self._by_hash.get(hash)

    def can_reuse(self, hash: int) -> bool:
        """Whether that content is on the device or the host."""
        return hash in self._by_hash or hash in self._host

    def allocate(self, request: int, index: int) -> int:
        """A block for place `index` of the block table of `request`, which becomes its only holder.

        Raises IndexError when none is available.
        """
        block = self._take_free()
        self._refs[block] = 1
        self._tell(block, request, ALLOCATED, index)
        return block

    def publish(self, block: int, request: int, content: Content) -> bool:
        """Register the content of a full `block` that `request` holds; False where it is registered elsewhere."""
        if not self._reuse or self._content[block] is not None or content.hash in self._by_hash:
            return False
        self._content[block] = content
        self._by_hash[content.hash] = block
        self._tell(block, request, CACHED, content=content)
        return True

    def reuse(self, hash: int, request: int, index: int) -> int | None:
        """The block with that content, one reference more of it going to `request`; None where there is none.

        Content in host memory comes back into a device block, if one is available.
        """
        block = self._by_hash.get(hash)
        if block is None:
            block = self._restore(hash)
            if block is None:
                return None
        self._cached.pop(block, None)
        self._refs[block] += 1
        self._tell(block, request, REUSED, index, content=self._content[block])
        return block

    def release(self, block: int, request: int) -> None:
        """`request` drops its reference of `block`."""
        self._refs[block] -= 1
        self._tell(block, request, FREED)
        if self._refs[block] == 0:
            if self._content[block] is None:
                heapq.heappush(self._free, block)
            else:
                self._cached[block] = None

    def resize(self, blocks: int) -> None:
        """Have `blocks` device pages. Raises ValueError when one that would go is held by a request."""
        if any(self._refs[blocks:]):
            raise ValueError(f"blocks from {blocks} on are held")
        for block in [block for block in self._cached if block >= blocks]:
            self._evict(block)
        grown = range(self.blocks, blocks)
        self._free = [block for block in self._free if block < blocks] + list(grown)
        heapq.heapify(self._free)
        self._refs = self._refs[:blocks] + [0] * len(grown)
        self._content = self._content[:blocks] + [None] * len(grown)
        self.blocks = blocks

    def take_transfers(self) -> list[Transfer]:
        """The copies to carry out now, in order."""
        taken, self._transfers = self._transfers, []
        return taken

    def _take_free(self) -> int:
        if not self._free:
            if not self._cached:
                raise IndexError("no block is available")
            self._evict(next(iter(self._cached)))
        return heapq.heappop(self._free)

    def _evict(self, block: int) -> None:
        """A cached block gives up its content, to a host page where there are some, and is free."""
        del self._cached[block]
        content = self._content[block]
        assert content is not None
        self._content[block] = None
        del self._by_hash[content.hash]
        heapq.heappush(self._free, block)
        if content.hash in self._host:
            self._host.move_to_end(content.hash)
        elif (page := self._host_page()) is not None:
            self._host[content.hash] = page, content
            self._transfers.append(Transfer(block, page, back=False))
            self.offloads += 1
            self._tell(block, -1, OFFLOADED, other=page, content=content)
            return
        self.evictions += 1
        self._tell(block, -1, EVICTED, content=content)

    def _host_page(self) -> int | None:
        """A free host page; None where there are no host pages that could be had."""
        if not self._host_free:
            if not self._host:
                return None
            _, (page, content) = self._host.popitem(last=False)
            heapq.heappush(self._host_free, page)
            self._tell(page, -1, EVICTED, tier=HOST, content=content)
        return heapq.heappop(self._host_free)

    def _restore(self, hash: int) -> int | None:
        if hash not in self._host or not self.available:
            return None
        # Out of the list first: making room on the device may send another block to the host.
        page, content = self._host.pop(hash)
        block = self._take_free()
        heapq.heappush(self._host_free, page)
        self._transfers.append(Transfer(block, page, back=True))
        self._content[block] = content
        self._by_hash[hash] = block
        self._cached[block] = None
        self.restores += 1
        self._tell(block, -1, RESTORED, other=page, content=content)
        return block

    def _tell(
        self,
        block: int,
        request: int,
        kind: int,
        index: int = -1,
        other: int = -1,
        tier: int = DEVICE,
        content: Content | None = None,
    ) -> None:
        if self._observe is None:
            return
        hash, parent = (0, 0) if content is None else (content.hash, content.parent)
        # There are dozens in an iteration: PageEvent(...) would take three times as long.
        row = (time.monotonic_ns(), self._sequence, block, request, kind, index, other, tier, hash, parent)
        self._sequence += 1
        self._observe(tuple.__new__(PageEvent, row), content)
