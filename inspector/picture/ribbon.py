"""A request's output as a ribbon: pass after pass, which tokens were drafted, and what became of each of them.

pass 1  [the][cat]            accepted, accepted, and the target's own
pass 2  [sat][/on/][in]       accepted, rejected, corrected
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.picture.palette import ink
from inspector.trace.schema import TOKEN_KINDS

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Rows = npt.NDArray[np.int32]

KIND_INKS: tuple[int, ...] = tuple(ink(name) for name in ("from the target", "accepted", "rejected", "corrected"))
"""Ink of an index into TOKEN_KINDS."""
KIND_MARKS: tuple[str, ...] = ("", "✓", "×", "↻")
"""What stands beside the colour."""
_REJECTED = TOKEN_KINDS.index("rejected")


@dataclass(frozen=True)
class Token:
    """One token: its text, place in the output, and an index into TOKEN_KINDS."""

    text: str
    position: int
    kind: int


@dataclass(frozen=True)
class Pass:
    """What one pass of the target gave and turned down; `iteration` is the engine's own number."""

    iteration: int
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Ribbon:
    """The passes of a request (the engine's own id) in order. `total` is how many there are; `passes` may be fewer."""

    request: int
    passes: tuple[Pass, ...]
    total: int


def told_requests(trace: Trace) -> Rows:
    """Rows of the requests whose token texts were recorded."""
    found = np.unique(trace["tokens"]["request"])
    return found[found >= 0]


def ribbon(trace: Trace, request: int, most: int = 400) -> Ribbon:
    """Of a row of requests; the last `most` passes, so that what is newest is there."""
    table = trace["tokens"]
    rows = np.flatnonzero((table["request"] == request) & (table["iteration"] >= 0))
    iteration, position, kind = (table[name][rows] for name in ("iteration", "position", "kind"))
    # What was turned down stands before what took its place, as the target saw it.
    order = np.lexsort((kind != _REJECTED, position, iteration))
    rows, iteration = rows[order], iteration[order]
    starts = np.flatnonzero(np.r_[True, iteration[1:] != iteration[:-1]]) if len(rows) else np.empty(0, np.int64)
    ends = np.r_[starts[1:], len(rows)]
    numbers = trace["iterations"]["iteration"]
    passes = [
        Pass(int(numbers[iteration[first]]), tuple(_token(trace, row) for row in rows[first:last].tolist()))
        for first, last in list(zip(starts.tolist(), ends.tolist(), strict=True))[-most:]
    ]
    return Ribbon(int(trace["requests"]["request"][request]), tuple(passes), len(starts))


def _token(trace: Trace, row: int) -> Token:
    table = trace["tokens"]
    return Token(trace.names[int(table["name"][row])], int(table["position"][row]), int(table["kind"][row]))
