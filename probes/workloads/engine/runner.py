"""One forward pass over the packed parts of many requests, through a paged cache of keys and values.

Whoever can do that is a Runner: LocalRunner in this process, the pipeline's stages in several.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from probes.workloads.engine.blocks import Transfer
from probes.workloads.engine.model import Decoder
from probes.workloads.engine.packing import Layout, Piece
from probes.workloads.engine.paged import PagedLayers


@dataclass(frozen=True)
class Result:
    """Logits (rows, entries) of the last `Piece.logits` tokens of each piece, in the order of the pieces.

    `span` (start, end in ns on the monotonic clock) is that of a forward pass on a processor, which stands in for
    device work; None where it is recorded otherwise. `cpu` is the processor time of the thread in it, ns.
    `micro_batches`: the one that each piece was in.
    """

    logits: Tensor
    span: tuple[int, int] | None = None
    cpu: int = -1
    micro_batches: tuple[int, ...] | None = None


class Runner(Protocol):
    """Runs a model over a paged cache. Used by one thread."""

    @property
    def block_bytes(self) -> int:
        """Bytes of keys and values of one page."""

    @property
    def on_host(self) -> bool:
        """Whether the pages are in the host's memory, which is promised first and taken when it is written to."""

    @property
    def positions(self) -> int:
        """Most tokens that a sequence can have."""

    def forward(self, pieces: Sequence[Piece], iteration: int) -> Result:
        """Compute the pieces, writing keys and values into their pages. `iteration` is the engine's number."""

    def move(self, transfers: Sequence[Transfer]) -> None:
        """Copy pages to and from host memory, in that order."""

    def resize(self, blocks: int) -> None:
        """Have `blocks` pages; those that stay keep their content.

        Raises Missing, and changes nothing, when there is no memory for more than there were.
        """

    def close(self) -> None:
        """Give back what it holds."""


class LocalRunner:
    """All layers in this process. Raises Missing when there is no memory for the pages."""

    def __init__(self, model: Decoder, blocks: int, tokens_per_block: int, host_blocks: int = 0) -> None:
        self._model = model
        self._layers = PagedLayers(model, range(model.shape.layers), blocks, tokens_per_block, host_blocks)

    @property
    def block_bytes(self) -> int:
        """See Runner."""
        return self._layers.block_bytes

    @property
    def on_host(self) -> bool:
        """See Runner."""
        return self._layers.device.type == "cpu"

    @property
    def positions(self) -> int:
        """See Runner."""
        return self._model.shape.positions

    @torch.inference_mode()
    def forward(self, pieces: Sequence[Piece], iteration: int) -> Result:
        """See Runner."""
        start, cpu = time.monotonic_ns(), time.thread_time_ns()
        layout = Layout.of(pieces, self._layers.tokens_per_block, self._layers.device, self._layers.dtype)
        x = self._layers.run(self._model.embed(layout.ids), layout)
        logits = self._model.unembed(x[layout.wanted])
        cpu = time.thread_time_ns() - cpu
        return Result(logits, (start, time.monotonic_ns()), cpu) if self.on_host else Result(logits)

    def move(self, transfers: Sequence[Transfer]) -> None:
        """See Runner."""
        self._layers.move(transfers)

    def resize(self, blocks: int) -> None:
        """See Runner."""
        self._layers.resize(blocks)

    def close(self) -> None:
        """See Runner."""
