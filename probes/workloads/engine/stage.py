"""One pipeline stage: a process that holds some layers of the model and their part of the paged cache.

Run by StagesRunner as `stage NUMBER INLET OUTLET`.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from inspector.errors import Missing
from inspector.trace.schema import RANGE_KINDS
from probes.inprocess.producer import Producer, from_environment
from probes.workloads.engine.chain import serve
from probes.workloads.engine.handing import Message, MicroBatch, Move, Refused, Resize, Setup
from probes.workloads.engine.model import Decoder
from probes.workloads.engine.packing import Layout
from probes.workloads.engine.paged import PagedLayers

_ANNOTATION = RANGE_KINDS.index("annotation")


class Stage:
    """Answers the messages. The layers are there once Setup has come."""

    def __init__(self, number: int, producer: Producer | None) -> None:
        self._number = number
        self._log = _Log(number, producer)
        self._parts = 0

    def handle(self, message: Message) -> Message:
        """Do what `message` says; returns what the next stage is to do."""
        try:
            return self._handle(message)
        except Missing as error:
            return Refused(error)

    def _handle(self, message: Message) -> Message:
        match message:
            case MicroBatch():
                return self._forward(message)
            case Move(transfers):
                start = time.monotonic_ns()
                self._layers.move(transfers)
                self._log.did("move pages", start, time.monotonic_ns())
            case Resize(blocks):
                start = time.monotonic_ns()
                self._layers.resize(blocks)
                self._log.did("resize", start, time.monotonic_ns())
            case Setup():
                self._set_up(message)
        return message

    def sent(self) -> None:
        """What `handle` returned has been handed on."""
        self._log.sent()

    def _set_up(self, setup: Setup) -> None:
        torch.set_num_threads(setup.threads)
        part = setup.parts[self._number]
        self._parts = len(setup.parts)
        weights = {name: torch.from_numpy(values) for name, values in part.weights.items()}
        dtype = next(iter(weights.values())).dtype
        self._model = Decoder(setup.shape).to(dtype).eval().requires_grad_(False)
        self._model.load_state_dict(weights, strict=False)
        self._layers = PagedLayers(self._model, part.layers, setup.blocks, setup.tokens_per_block, setup.host_blocks)
        settle()
        self._log.begin(part.layers)

    @torch.inference_mode()
    def _forward(self, batch: MicroBatch) -> MicroBatch:
        start, cpu = time.monotonic_ns(), time.thread_time_ns()
        layout = Layout.of(batch.pieces, self._layers.tokens_per_block, self._layers.device, self._layers.dtype)
        x = self._model.embed(layout.ids) if batch.x is None else torch.from_numpy(batch.x)
        x = self._layers.run(x, layout)
        if self._number == self._parts - 1:
            x = self._model.unembed(x[layout.wanted])
        cpu = time.thread_time_ns() - cpu
        self._log.did("forward", start, time.monotonic_ns(), Pass(batch.iteration, batch.number, cpu))
        return replace(batch, x=x.numpy())


class Pass(NamedTuple):
    """A forward pass of a micro-batch, which took `cpu` ns of the processor."""

    iteration: int
    micro_batch: int
    cpu: int


class _Log:
    """Tells the recording what the stage did, if there is one: when it has been handed on and nobody waits for it."""

    def __init__(self, number: int, producer: Producer | None) -> None:
        self._number = number
        self._producer = producer
        self._thread = threading.get_native_id()
        self._correlation = 0
        self._handed_on = time.monotonic_ns()
        self._done: tuple[str, int, int, Pass | None] | None = None

    def begin(self, layers: range) -> None:
        """The stage holds `layers` from now on."""
        if self._producer is not None:
            which = f"layer {layers[0]}" if len(layers) == 1 else f"layers {layers[0]} to {layers[-1]}"
            self._producer.thread_name(f"stage {self._number}: {which}")
            self._producer.device(self._number, f"CPU stage {self._number} (no GPU)")

    def did(self, name: str, start: int, end: int, forward: Pass | None = None) -> None:
        """What the last message asked for was done from `start` to `end` (ns)."""
        self._done = name, start, end, forward

    def sent(self) -> None:
        """What came of the last message has been handed on."""
        now, before = time.monotonic_ns(), self._handed_on
        self._handed_on = now
        if self._done is None or self._producer is None:
            return
        what, start, end, forward = self._done
        self._done = None
        name, domain = self._producer.name, self._producer.name("stage")
        spans = (("receive", before, start), (what, start, end), ("send", end, now))
        ranges = [(begin, until, self._thread, name(text), _ANNOTATION, domain) for text, begin, until in spans]
        told: list[tuple[str, Sequence[tuple[int, ...]]]] = [("ranges", ranges)]
        if forward is not None:
            self._correlation += 1
            launch = name("stage forward"), self._correlation
            # The forward pass stands in for device work; the call that launched it begins with it.
            told += [
                ("stage_work", [(start, end, self._number, *forward)]),
                ("host_calls", [(start, end, self._thread, *launch)]),
                ("kernels", [(start, end, self._number, 0, *launch)]),
            ]
        self._producer.add_all(told)


def settle() -> None:
    """Leave all that was made so far out of garbage collections: torch alone would halt each full one for 0.1 s."""
    gc.collect()
    gc.freeze()


def main(argv: Sequence[str]) -> None:
    """Be stage NUMBER between two file descriptors, until one of them is closed."""
    number, inlet, outlet = map(int, argv)
    torch.set_num_threads(1)
    producer = from_environment(f"stage{number}")
    stage = Stage(number, producer)
    serve(stage.handle, inlet, outlet, stage.sent)
    if producer is not None:
        producer.close()


if __name__ == "__main__":
    main(sys.argv[1:])
