"""What pipeline stages hand from one to the next. A module of its own: pickles name it alike in every process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.errors import Missing
from probes.workloads.engine.blocks import Transfer
from probes.workloads.engine.model import Shape
from probes.workloads.engine.packing import Piece

Float = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Part:
    """What one stage holds: `layers`, their weights by name, and the embedding where it is the first or the last."""

    layers: range
    weights: Mapping[str, Float]


@dataclass(frozen=True)
class Setup:
    """The first message: the model's shape, what each stage holds, and the size of the cache."""

    shape: Shape
    parts: tuple[Part, ...]
    blocks: int
    tokens_per_block: int
    host_blocks: int
    threads: int


@dataclass(frozen=True)
class MicroBatch:
    """Part of an iteration on its way: `x` is None before the first stage, (n, d) between two, logits at the end."""

    iteration: int
    number: int
    pieces: Sequence[Piece]
    x: Float | None = None


@dataclass(frozen=True)
class Move:
    """Copy pages to and from host memory."""

    transfers: Sequence[Transfer]


@dataclass(frozen=True)
class Resize:
    """Have that many pages."""

    blocks: int


@dataclass(frozen=True)
class Refused:
    """What stands in for Setup or Resize after a stage that has no memory for it."""

    error: Missing


Message = Setup | MicroBatch | Move | Resize | Refused
