"""How full the batch was: requests and tokens of each iteration against what it may hold, and who waited outside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.iterations import Iterations
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.configuration.settings import Configuration
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Batches:
    """The iterations of one engine process in order, from whatever tells of them; -1 is unknown everywhere.

    `row` is the row of the iterations table, -1 where they come from ranges. `scheduled` requests are those in the
    context and the generation phase; `room` and `budget` are what the iteration may hold, in requests and tokens;
    `room_from` and `budget_from` say where the configuration has them, '' where they were recorded.
    """

    source: str
    process: int
    row: Rows
    number: Int
    start: Int
    end: Int
    context: Rows
    generation: Rows
    paused: Rows
    queued: Rows
    tokens: Rows
    context_tokens: Rows
    room: Rows
    budget: Rows
    room_from: str = ""
    budget_from: str = ""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def scheduled(self) -> Rows:
        """Requests in the batch."""
        known = (self.context >= 0) & (self.generation >= 0)
        batch: Rows = np.where(known, self.context + self.generation, -1).astype(np.int32)
        return batch


def engine_batches(trace: Trace, process: int | None) -> Batches | None:
    """Those of a process (None: the first one), with the limits of the configuration where none were recorded."""
    found, config = trace.index(EngineBatches).of(process), trace.info.configuration
    if found is None:
        return None
    size, tokens = (_limit(found, config, name) for name in ("max_batch_size", "max_num_tokens"))
    if size is not None and not (found.room > 0).any():
        found = replace(found, room=size, room_from=config.settings["max_batch_size"].origin)
    if tokens is not None and not (found.budget > 0).any():
        found = replace(found, budget=tokens, budget_from=config.settings["max_num_tokens"].origin)
    return found


def _limit(batches: Batches, config: Configuration, name: str) -> Rows | None:
    limit = config.integer(name)
    # Beyond that it is no limit of anything.
    return None if limit is None or limit >= 1 << 31 else np.full(len(batches), limit, np.int32)


@dataclass(frozen=True)
class EngineBatches:
    """Batches of each process that ran iterations, the one with most iterations first."""

    engines: tuple[Batches, ...]

    @classmethod
    def build(cls, trace: Trace) -> EngineBatches:
        """From engine records, else from executor ranges; other steps say nothing of a batch."""
        if len(trace["iterations"]):
            return cls(_ordered([_recorded(trace, process) for process in _processes(trace["iterations"]["process"])]))
        found = trace.index(Iterations)
        if not len(found) or not ((found.context >= 0) | (found.generation >= 0)).any():
            return cls(())
        return cls(_ordered([_from_ranges(found, process) for process in _processes(found.process)]))

    def of(self, process: int | None) -> Batches | None:
        """Those of a process; the first ones where None is asked for, None where there are none."""
        return next((each for each in self.engines if process is None or each.process == process), None)


@dataclass(frozen=True)
class Fill:
    """`used` of `room`, summed over the `count` iterations that tell both; `most` is the fullest one's use."""

    count: int
    used: int
    room: int
    most: int


@dataclass(frozen=True)
class Batching:
    """Occupancy over `iterations` that began in a range: requests against max_batch_size, tokens against
    max_num_tokens. `queue_most` is the longest queue, `queue_sum` its length summed over `queue_count` iterations.
    """

    iterations: int
    requests: Fill
    tokens: Fill
    queue_count: int
    queue_sum: int
    queue_most: int


def batching(batches: Batches, window: Window | None = None) -> Batching:
    """Of the iterations that began in `window`; None is all of them."""
    part = slice(0, len(batches))
    if window is not None:
        low, high = np.searchsorted(batches.start, [window.start, window.end])
        part = slice(int(low), int(high))
    queued = batches.queued[part]
    known = queued[queued >= 0]
    return Batching(
        len(batches.start[part]),
        _fill(batches.scheduled[part], batches.room[part]),
        _fill(batches.tokens[part], batches.budget[part]),
        len(known),
        int(known.sum(dtype=np.int64)),
        int(known.max(initial=0)),
    )


def _fill(used: Rows, room: Rows) -> Fill:
    known = (used >= 0) & (room > 0)
    used = used[known]
    return Fill(
        len(used), int(used.sum(dtype=np.int64)), int(room[known].sum(dtype=np.int64)), int(used.max(initial=0))
    )


def _processes(process: Rows) -> list[int]:
    found: list[int] = np.unique(process).tolist()
    return found


def _ordered(engines: list[Batches]) -> tuple[Batches, ...]:
    return tuple(sorted(engines, key=lambda each: (-len(each), each.process)))


def _recorded(trace: Trace, process: int) -> Batches:
    table = trace["iterations"]
    row = np.flatnonzero(table["process"] == process).astype(np.int32)

    def column(name: str) -> Rows:
        values: Rows = table.get(name)[row]
        return values

    return Batches(
        "engine records",
        process,
        row,
        table["iteration"][row],
        table["start"][row],
        table["end"][row],
        column("context_requests"),
        column("generation_requests"),
        column("paused_requests"),
        column("queued_requests"),
        column("tokens"),
        column("context_tokens"),
        column("max_batch_size"),
        column("max_num_tokens"),
    )


def _from_ranges(found: Iterations, process: int) -> Batches:
    mine = np.flatnonzero(found.process == process)
    none = np.full(len(mine), -1, np.int32)
    start, number = found.start[mine], found.number[mine]
    context, generation = found.context[mine], found.generation[mine]
    more = (none, none, none, none, none, none)
    return Batches(found.source, process, none, number, start, start + found.host_ns[mine], context, generation, *more)
