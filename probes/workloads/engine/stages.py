"""A runner over pipeline stages: the layers in several processes, micro-batches handed from one to the next.

```
 stage 0   |0|1|2|. .              the batch of an iteration in three micro-batches: stage 1 waits for the first,
 stage 1   . |0|1|2| .             stage 0 after its last. All come back before the next iteration begins.
 stage 2   . . |0|1|2|
```
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from heapq import heapreplace
from itertools import accumulate, pairwise

import numpy as np
import torch

from inspector.errors import Missing, Usage
from probes.workloads.engine.blocks import Transfer
from probes.workloads.engine.chain import Chain
from probes.workloads.engine.handing import Message, MicroBatch, Move, Part, Refused, Resize, Setup
from probes.workloads.engine.model import Decoder
from probes.workloads.engine.packing import Piece
from probes.workloads.engine.runner import Result

COMMAND = (sys.executable, "-I", "-m", "probes.workloads.engine.stage")


class StagesRunner:
    """`model`, on the CPU, in `stages` processes, each batch in at most `micro_batches` parts.

    Raises Usage when there are more stages than layers. Every method raises LinkEnded when a stage is gone.
    """

    def __init__(
        self,
        model: Decoder,
        stages: int,
        micro_batches: int,
        blocks: int,
        tokens_per_block: int,
        host_blocks: int = 0,
        threads: int = 1,
    ) -> None:
        if stages > model.shape.layers:
            raise Usage(f"--stages {stages}", f"the model has {model.shape.layers} layers")
        self._shape = model.shape
        self._dtype = model.embedding.weight.numpy().dtype
        self._micro_batches = micro_batches
        self._tokens_per_block = tokens_per_block
        self._unanswered = 0
        self._blocks = blocks
        parts = tuple(_part(model, layers) for layers in split(model.shape.layers, stages))
        self._starting = True
        self._chain = Chain(COMMAND, stages, "stage")
        with ExitStack() as undo:
            undo.callback(self.close)
            self._tell(Setup(model.shape, parts, blocks, tokens_per_block, host_blocks, threads))
            undo.pop_all()

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the stages, first to last."""
        return self._chain.pids

    @property
    def block_bytes(self) -> int:
        """See Runner: over all stages."""
        return self._shape.kv_bytes_per_token // 4 * self._dtype.itemsize * self._tokens_per_block

    @property
    def on_host(self) -> bool:
        """See Runner."""
        return True

    @property
    def positions(self) -> int:
        """See Runner."""
        return self._shape.positions

    def ready(self) -> None:
        """Wait until the stages have done all that they were told. Raises Missing when one has no memory for it."""
        refused: Missing | None = None
        while self._unanswered:
            reply = self._chain.receive()
            self._unanswered -= 1
            if isinstance(reply, Refused):
                refused = reply.error
        self._starting = False
        if refused is not None:
            raise refused

    def forward(self, pieces: Sequence[Piece], iteration: int) -> Result:
        """See Runner. The stages themselves record their passes."""
        members = deal([len(piece.tokens) for piece in pieces], self._micro_batches)
        for number, chosen in enumerate(members):
            self._chain.send(MicroBatch(iteration, number, [pieces[at] for at in chosen]))
        self.ready()
        # While the first micro-batches are on their way: after the last one the stages wait for this.
        micro_batches = [0] * len(pieces)
        for number, chosen in enumerate(members):
            for at in chosen:
                micro_batches[at] = number
        ends = list(accumulate(piece.logits for piece in pieces))
        places = [[row for at in chosen for row in range(ends[at] - pieces[at].logits, ends[at])] for chosen in members]
        logits = np.empty((ends[-1], self._shape.entries), self._dtype)
        for rows in places:
            logits[rows] = self._chain.receive().x
        return Result(torch.from_numpy(logits), micro_batches=tuple(micro_batches))

    def move(self, transfers: Sequence[Transfer]) -> None:
        """See Runner."""
        self._tell(Move(transfers))

    def resize(self, blocks: int) -> None:
        """See Runner."""
        self._tell(Resize(blocks))
        try:
            self.ready()
        except Missing:
            # The stages before the one that refused have them already.
            self._tell(Resize(self._blocks))
            self.ready()
            raise
        self._blocks = blocks

    def close(self) -> None:
        """End the stages: at once while they start, which takes them seconds. May be called again."""
        self._chain.close(0.0 if self._starting else None)

    def _tell(self, message: Message) -> None:
        self._chain.send(message)
        self._unanswered += 1


def split(layers: int, stages: int) -> list[range]:
    """Layers of each stage: as equal as can be, the earlier ones get what is over."""
    each, over = divmod(layers, stages)
    begins = [stage * each + min(stage, over) for stage in range(stages + 1)]
    return [range(begin, end) for begin, end in pairwise(begins)]


def deal(tokens: Sequence[int], parts: int) -> list[list[int]]:
    """Places in `tokens`, dealt to at most `parts` hands with about equal sums: largest first, to the least so far.

    No hand is empty; within one the places are in order.
    """
    hands: list[list[int]] = [[] for _ in range(min(parts, len(tokens)))]
    # Tokens so far, members so far, hand: a heap as it stands.
    least = [(0, 0, hand) for hand in range(len(hands))]
    for at in sorted(range(len(tokens)), key=lambda at: -tokens[at]):
        total, members, hand = least[0]
        hands[hand].append(at)
        heapreplace(least, (total + tokens[at], members + 1, hand))
    return [sorted(hand) for hand in hands]


def _part(model: Decoder, layers: range) -> Part:
    prefixes = tuple(f"layers.{number}." for number in layers)
    if layers.start == 0:
        prefixes = ("embedding.", *prefixes)
    if layers.stop == model.shape.layers:
        prefixes = ("embedding.", "norm.", *prefixes)
    weights = model.state_dict().items()
    return Part(layers, {name: values.numpy() for name, values in weights if name.startswith(prefixes)})
