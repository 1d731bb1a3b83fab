"""Layers of a decoder over a paged cache of keys and values, on the device and in host memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from inspector.errors import Missing
from probes.workloads.engine import memory
from probes.workloads.engine.blocks import Transfer
from probes.workloads.engine.model import Decoder
from probes.workloads.engine.packing import Group, Layout


class PagedLayers:
    """Layers `which` of `model`, with `blocks` pages on its device and `host_blocks` in host memory for each of them.

    A page holds keys and values of `tokens_per_block` tokens of all these layers; its number is the same in each.
    Raises Missing when there is no memory for them.
    """

    def __init__(self, model: Decoder, which: range, blocks: int, tokens_per_block: int, host_blocks: int = 0) -> None:
        weight = model.embedding.weight
        self.tokens_per_block = tokens_per_block
        self.device: torch.device = weight.device
        self.dtype: torch.dtype = weight.dtype
        self._model = model
        self._which = which
        # Keys and values, layer, page, place in the page, KV head, channel.
        self._page = (tokens_per_block, model.shape.kv_heads, model.shape.per_head)
        self._cache = self._pages(blocks, self.device)
        self._host = self._pages(host_blocks, torch.device("cpu"))

    @property
    def block_bytes(self) -> int:
        """Bytes of keys and values of one page, these layers."""
        return self._cache[:, :, :1].numel() * self._cache.element_size()

    def run(self, x: Tensor, layout: Layout) -> Tensor:
        """The layers' output (n, d) for `x` (n, d): n packed tokens; their keys and values go into their slots."""
        cos, sin = self._model.rotations(layout.positions)
        for at, number in enumerate(self._which):
            layer = self._model.layer(number)
            queries, keys, values = layer.qkv(x, cos, sin)
            cached_keys, cached_values = self._cache[0, at], self._cache[1, at]
            cached_keys.flatten(0, 1).index_copy_(0, layout.slots, keys)
            cached_values.flatten(0, 1).index_copy_(0, layout.slots, values)
            parts = [_attend(queries, cached_keys, cached_values, group) for group in layout.groups]
            x = layer.mlp(layer.out(x, parts[0] if len(parts) == 1 else torch.cat(parts)))
        return x

    def move(self, transfers: Sequence[Transfer]) -> None:
        """Copy pages to and from host memory, in that order."""
        for block, page, back in transfers:
            if back:
                self._cache[:, :, block].copy_(self._host[:, :, page])
            else:
                self._host[:, :, page].copy_(self._cache[:, :, block])

    def resize(self, blocks: int) -> None:
        """Have `blocks` pages on the device; those that stay keep their content.

        Raises Missing, and changes nothing, when there is no memory for more than there were.
        """
        old = self._cache
        kept = min(blocks, old.shape[2])
        try:
            self._cache = self._pages(blocks, self.device)
        except Missing:
            if blocks > kept:
                raise
            # Fewer pages without memory for a copy of them: they stay where they are, beside those that are not used.
            self._cache = old[:, :, :kept]
        else:
            self._cache[:, :, :kept] = old[:, :, :kept]

    def _pages(self, count: int, device: torch.device) -> Tensor:
        shape = (2, len(self._which), count, *self._page)
        try:
            if device.type == "cpu":
                # Zeros of numpy's take no memory, and no time, before they are written to; torch's take both at once.
                return torch.from_numpy(np.zeros(shape, torch.empty(0, dtype=self.dtype).numpy().dtype))
            return torch.zeros(shape, dtype=self.dtype, device=device)
        except (MemoryError, torch.OutOfMemoryError) as error:
            there = memory.obtainable() if device.type == "cpu" else torch.cuda.mem_get_info(device)[0]
            raise memory.refusal(count, math.prod(shape) * self.dtype.itemsize, there) from error


def _attend(queries: Tensor, keys: Tensor, values: Tensor, group: Group) -> Tensor:
    """Attention of one group, (rows, h * e). `keys` and `values` are the pages of a layer.

    The query heads that share a KV head stand side by side as further queries of it, so that nothing is repeated.
    """
    count, length = group.count, group.length
    _, heads, per_head = queries.shape
    kv_heads = keys.shape[2]
    times = heads // kv_heads
    asked = queries[group.begin : group.begin + count * length].view(count, length, kv_heads, times, per_head)
    asked = asked.permute(0, 2, 3, 1, 4).reshape(count, kv_heads, times * length, per_head)
    mask = group.mask if length == 1 else group.mask.repeat(1, 1, times, 1)
    attended = functional.scaled_dot_product_attention(
        asked,
        keys.index_select(0, group.table).view(count, -1, kv_heads, per_head).transpose(1, 2),
        values.index_select(0, group.table).view(count, -1, kv_heads, per_head).transpose(1, 2),
        attn_mask=mask,
    )
    attended = attended.view(count, kv_heads, times, length, per_head).permute(0, 3, 1, 2, 4)
    return attended.reshape(count * length, heads * per_head)
