"""What static batching would have cost the same arrivals: a batch waits until it is full, and until its last one ends.

Modelled, from the cost of a pass as it was measured here. Requests are taken in the order of their arrival, as many as
the batch may hold; the batch begins when the last of them has come and the batch before has ended (what is left at the
end begins when its last one has come), computes all prompts within the token budget, then makes one pass after the
other, in every one of which the places of requests that have ended are computed as padding:

    arrivals  a  b    c d                         a waits for d; d ends last, a b c are padding from their end on
    batch               |prompts|pass|pass|pass|
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.batching import Batches
from inspector.analysis.pass_cost import PassCost
from inspector.analysis.steps import GENERATION, Steps
from inspector.trace.schema import NEVER

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class StaticBatching:
    """The model's answer for the finished requests `row` (rows of requests, by arrival); times in ns of the trace.

    Per request: its `batch`, `begin` (its batch leaves the queue), `context_end`, `end` (its last token) and
    `batch_end`: from `end` on its place is padding. `left_out` requests had not finished, so that nobody knows how
    long they are. `padded` of `places` request-passes were padding. `makespan_ns` is from the first arrival to
    the end of the last batch; `in_flight_ns` the same as measured, `waited_ns` and `in_flight_waited_ns` the waits
    added up; `tokens` were given out.
    """

    cost: PassCost
    size: int
    row: Rows
    batch: Rows
    begin: Int
    context_end: Int
    end: Int
    batch_end: Int
    left_out: int
    padded: int
    places: int
    tokens: int
    makespan_ns: int
    in_flight_ns: int
    waited_ns: int
    in_flight_waited_ns: int


@dataclass(frozen=True)
class NoModel:
    """Why there is no answer, as a sentence."""

    reason: str


def pass_cost(batches: Batches) -> PassCost | None:
    """From iterations that computed something; None without."""
    known = batches.tokens > 0
    return PassCost.fit(batches.tokens[known], (batches.end - batches.start)[known])


def static_batching(trace: Trace, batches: Batches, size: int = 0) -> StaticBatching | NoModel:
    """For the requests of that process; `size` is that of a batch, 0 for the max_batch_size that was in force."""
    cost, table = pass_cost(batches), trace["requests"]
    if cost is None:
        return NoModel("no tokens per iteration were recorded, so a pass has no known cost")
    room = batches.room[batches.room > 0]
    size = size or int(room.max(initial=0))
    if not size:
        return NoModel("no max_batch_size was recorded")
    known = (table["last_token"] != NEVER) & (table["output_tokens"] > 0) & (table["prompt_tokens"] >= 0)
    if "finished" in table:
        known &= table["finished"] != NEVER
    mine = table.get("process")
    ours = (mine == batches.process) | (mine < 0)
    row = np.flatnonzero(known & ours).astype(np.int32)
    if not len(row):
        return NoModel("no request has finished yet")
    budget = int(batches.budget[batches.budget > 0].max(initial=0))
    return _model(trace, cost, size, budget, row, int(np.count_nonzero(ours & ~known)))


def _model(trace: Trace, cost: PassCost, size: int, budget: int, row: Rows, left_out: int) -> StaticBatching:
    table = trace["requests"]
    arrival, prompt = table["arrival"][row], table["prompt_tokens"][row].astype(np.int64)
    output = table["output_tokens"][row].astype(np.int64)
    passes, width = _passes(trace, row, output)
    begin, context_end, end, batch_end = (np.empty(len(row), np.int64) for _ in range(4))
    free, padded, places = int(arrival[0]), 0, 0
    for low in range(0, len(row), size):
        part = slice(low, min(low + size, len(row)))
        begin[part] = start = max(free, int(arrival[part][-1]))
        start += _context(cost, int(prompt[part].sum()), budget)
        context_end[part] = start
        count, own = part.stop - part.start, passes[part]
        step = cost.of(round(count * width))
        end[part] = start + own * step
        longest = int(own.max())
        batch_end[part] = free = start + longest * step
        padded += count * longest - int(own.sum())
        places += count * longest
    return StaticBatching(
        cost,
        size,
        row,
        (np.arange(len(row)) // size).astype(np.int32),
        begin,
        context_end,
        end,
        batch_end,
        left_out,
        padded,
        places,
        int(output.sum()),
        int(batch_end.max()) - int(arrival[0]),
        int(table["last_token"][row].max()) - int(arrival[0]),
        int((begin - arrival).sum()),
        _waited(trace, row),
    )


def _passes(trace: Trace, row: Rows, output: Int) -> tuple[Int, float]:
    """Passes that each request needs after its prompt, and tokens that one computes of it: as recorded, drafts and all;
    without steps one token each.
    """
    if not len(trace["steps"]):
        return output - 1, 1.0
    steps = trace.index(Steps)
    made = np.flatnonzero(steps.phase == GENERATION)
    counts = np.bincount(steps.request[made], minlength=len(trace["requests"]))[row]
    tokens = trace["steps"]["tokens"][steps.row[made]]
    told = tokens[tokens >= 0]
    # Where nobody tells, as without steps.
    each = int(told.sum(dtype=np.int64)) / len(told) if len(told) else 1.0
    return counts.astype(np.int64), each


def _context(cost: PassCost, tokens: int, budget: int) -> int:
    """Time to compute so many prompt tokens, in chunks that fit the budget (0: all at once)."""
    if budget <= 0:
        return cost.of(tokens)
    whole, rest = divmod(tokens, budget)
    return whole * cost.of(budget) + (cost.of(rest) if rest else 0)


def _waited(trace: Trace, row: Rows) -> int:
    from inspector.analysis.latency import UNKNOWN, request_times

    wait = request_times(trace, row).wait
    return int(wait[wait != UNKNOWN].sum())
