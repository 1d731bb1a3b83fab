"""The size of the server's KV pool, of which one path tells one half and another one the other, into `pools`."""

from __future__ import annotations

from probes.server_http.feed import Feed
from probes.server_http.reading import UNKNOWN


class Pool:
    """A row whenever more or other things are known. Blocks in all, where nobody tells them apart by place."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._places: tuple[int, int] | None = None
        self._whole: tuple[int, int] | None = None
        self._told: tuple[int, int, int] | None = None

    def places(self, time_ns: int, device: int, host: int) -> None:
        """Blocks on the device and in host memory."""
        self._places = device, host
        self._tell(time_ns)

    def whole(self, time_ns: int, blocks: int, tokens_per_block: int) -> None:
        """Blocks, perhaps with those in host memory, and the tokens of each."""
        self._whole = blocks, tokens_per_block
        self._tell(time_ns)

    def counts_host(self, blocks: int) -> bool:
        """Whether so many are those on the device and those in host memory together."""
        return self._places is not None and self._places[1] > 0 and blocks == sum(self._places)

    def _tell(self, time_ns: int) -> None:
        if self._whole is None:
            return
        blocks, tokens = self._whole
        device, host = self._places or (blocks, 0)
        if self._told != (device, host, tokens):
            self._told = device, host, tokens
            self._feed.add("pools", [(time_ns, device, host, tokens, UNKNOWN)])
