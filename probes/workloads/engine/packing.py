"""Parts of many requests laid out for one forward pass: packed tokens, slots of the cache, groups of equal length."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor


class Piece(NamedTuple):
    """The part of one request that is computed: `tokens` (ids), the first at position `start`, over its block table.

    Logits are wanted of the last `logits` tokens. All positions before `start` are in the cache.
    """

    tokens: Sequence[int]
    start: int
    blocks: Sequence[int]
    logits: int


@dataclass(frozen=True)
class Group:
    """`count` pieces of `length` tokens each, packed in rows `begin` to `begin` + count * length.

    `table` (count * pages) are their blocks, filled up with block 0. `mask` (count, 1, length, s), s the tokens of that
    many pages, is 0 where a token may look and -inf elsewhere.
    """

    begin: int
    count: int
    length: int
    table: Tensor
    mask: Tensor


@dataclass(frozen=True)
class Layout:
    """n packed tokens: `ids`, `positions` and cache `slots` (each n), and the rows of which logits are `wanted`.

    `wanted` is in the order in which the pieces were given, whatever the order of packing.
    """

    ids: Tensor
    positions: Tensor
    slots: Tensor
    wanted: Tensor
    groups: tuple[Group, ...]

    @classmethod
    def of(
        cls, pieces: Sequence[Piece], tokens_per_block: int, device: torch.device, dtype: torch.dtype = torch.float32
    ) -> Layout:
        """Pack `pieces`: those of equal length side by side. `dtype` is that of the masks."""
        by_length: defaultdict[int, list[int]] = defaultdict(list)
        for at, piece in enumerate(pieces):
            by_length[len(piece.tokens)].append(at)
        ids: list[int] = []
        positions, slots = [], []
        begins = [0] * len(pieces)
        groups = []
        for length in sorted(by_length):
            members = by_length[length]
            begin = len(ids)
            starts = np.array([pieces[at].start for at in members], np.int64)
            pages = -(-(int(starts.max()) + length) // tokens_per_block)
            table = np.zeros((len(members), pages), np.int64)
            for row, at in enumerate(members):
                begins[at] = len(ids)
                ids.extend(pieces[at].tokens)
                held = pieces[at].blocks[:pages]
                table[row, : len(held)] = held
            places = starts[:, None] + np.arange(length)
            page, within = np.divmod(places, tokens_per_block)
            positions.append(places.ravel())
            slots.append((np.take_along_axis(table, page, 1) * tokens_per_block + within).ravel())
            hidden = np.arange(pages * tokens_per_block) > places[:, :, None]
            mask = torch.zeros((), dtype=dtype).masked_fill(torch.from_numpy(hidden), -torch.inf)
            groups.append(
                Group(
                    begin,
                    len(members),
                    length,
                    torch.from_numpy(table.ravel()).to(device),
                    mask.unsqueeze(1).to(device),
                )
            )
        wanted = [
            row
            for begin, piece in zip(begins, pieces, strict=True)
            for row in range(begin + len(piece.tokens) - piece.logits, begin + len(piece.tokens))
        ]
        return cls(
            torch.tensor(ids, device=device),
            torch.from_numpy(np.concatenate(positions)).to(device),
            torch.from_numpy(np.concatenate(slots)).to(device),
            torch.tensor(wanted, dtype=torch.int64, device=device),
            tuple(groups),
        )
