"""Bytes that iterations must move at the least, from the model's shape and number format: modelled, never measured.

Definition of specs/analyses.md, "HBM bandwidth": the weights once, and the KV of the running sequences. Activations,
draft models and weights that a second micro-batch reads again are not counted in, so that less cannot be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.iterations import Iterations
from inspector.analysis.steps import CONTEXT, GENERATION, Steps
from inspector.configuration.sizes import Derived, kv_bytes_per_token, pass_bytes
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.configuration.settings import Configuration
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]

# Sums of such numbers fit int64 with room to spare.
_MOST = 1 << 60


@dataclass(frozen=True)
class ModelledBytes:
    """Of rows of `Iterations`, all ranks together, int64: `weights` are 0 in an iteration that computed nothing, -1
    where nobody tells whether it did; `read` and `written` are of the KV cache, -1 where the trace does not tell which
    tokens the sequences had.

    `weights_of`, `kv_of` say how a pass's weights and a token's KV were reckoned. `why` says why nothing is known.
    """

    weights: Int
    read: Int
    written: Int
    weights_of: Derived
    kv_of: Derived
    why: str = ""

    @property
    def total(self) -> Int:
        """All of it that is known; -1 where not even the weights are."""
        kv = np.maximum(self.read, 0) + np.maximum(self.written, 0)
        return np.where(self.weights < 0, -1, self.weights + kv)


def modelled_bytes(trace: Trace, first: int, last: int) -> ModelledBytes:
    """Of the rows [first, last) of `Iterations`. Every sequence reads its own keys and values once."""
    config, iterations = trace.info.configuration, trace.index(Iterations)
    weights, kv = pass_bytes(config), kv_bytes_per_token(config)
    unknown = np.full(last - first, -1, np.int64)
    if weights.value is None or not len(iterations):
        why = weights.why if weights.value is None else "there are no iterations"
        return ModelledBytes(unknown, unknown, unknown, weights, kv, why)
    if weights.value > _MOST:
        return ModelledBytes(unknown, unknown, unknown, weights, kv, "the model would be too large")
    works = _works(trace, iterations, first, last)
    moved = np.where(works < 0, -1, np.where(works > 0, weights.value, 0))
    before, new = _tokens(trace, iterations, first, last, config.integer("sliding_window"))
    most = int(max(before.max(initial=0), new.max(initial=0)))
    if kv.value is None or kv.value * max(most, 1) > _MOST:
        return ModelledBytes(moved, unknown, unknown, weights, kv)
    read, written = (np.where(tokens < 0, -1, tokens * kv.value) for tokens in (before, new))
    return ModelledBytes(moved, read, written, weights, kv)


def ranks(trace: Trace) -> tuple[int, str]:
    """How many devices share that work, and by what; 0 and why where it is not known."""
    config = trace.info.configuration
    names = ("tensor_parallel", "pipeline_parallel", "context_parallel")
    sizes = {name: size for name in names if (size := config.integer(name)) is not None}
    if sizes:
        count = 1
        for size in sizes.values():
            count *= size
        # What is left open is one: so take it the servers themselves.
        return count, _by(config, sizes)
    busy = sum(len(work) > 0 for work in trace.index(Work).devices)
    if busy <= 1:
        return 1, "one device is at work"
    return 0, "neither tensor_parallel nor pipeline_parallel is known"


def _by(config: Configuration, sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size} ({config.settings[name].origin})" for name, size in sizes.items())


def _works(trace: Trace, iterations: Iterations, first: int, last: int) -> Int:
    """1 where an iteration computed something, 0 where nothing, -1 unknown."""
    context, generation = iterations.context[first:last], iterations.generation[first:last]
    told = (context >= 0) & (generation >= 0)
    works = np.where(told, np.where(context + generation > 0, 1, 0), -1)
    if iterations.source == "engine records":
        tokens = trace["iterations"]["tokens"][first:last]
        works = np.where(tokens >= 0, np.where(tokens > 0, 1, 0), works)
    return works.astype(np.int64)


def _tokens(trace: Trace, iterations: Iterations, first: int, last: int, window: int | None) -> tuple[Int, Int]:
    """Tokens of each iteration whose KV its sequences had before, and new ones; -1 unknown. With a `window` of tokens
    no more of a sequence's count: layers that attend further are not told apart from those that do not."""
    count = last - first
    if iterations.source != "engine records" or not len(trace["steps"]):
        return np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    steps, table = trace.index(Steps), trace["steps"]
    part = steps.of(first, last)
    works = (steps.phase[part] == CONTEXT) | (steps.phase[part] == GENERATION)
    row, of = steps.row[part][works], steps.iteration[part][works]
    new, before = table["tokens"][row].astype(np.int64), table.get("position")[row].astype(np.int64)
    wrong = (before < 0) | (new < 0)
    if window is not None:
        before = np.minimum(before, window)
    edges = np.searchsorted(of, np.arange(first, last + 1))
    sums = [_sums(np.where(wrong, 0, values), edges) for values in (before, new)]
    # An iteration whose steps are not in the trace tells as little as one with a step that says nothing.
    bad = (_sums(wrong.astype(np.int64), edges) > 0) | (
        (np.diff(edges) == 0) & (_works(trace, iterations, first, last) != 0)
    )
    return np.where(bad, -1, sums[0]), np.where(bad, -1, sums[1])


def _sums(values: Int, edges: Int) -> Int:
    total = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
    found: Int = total[edges[1:]] - total[edges[:-1]]
    return found
