"""KV pages at a moment: what each page is, who holds it, the page table of a request, how full the pages are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_log import OFFLOADED
from inspector.analysis.page_replay import FREE, KEPT, UNKNOWN, USED, Replay
from inspector.analysis.page_steps import CERTAIN, STATUS
from inspector.analysis.told_pages import ToldPages
from inspector.trace.schema import NEVER, PHASES
from inspector.trace.table import Array

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

_GENERATION = PHASES.index("generation")
_WORKS = (PHASES.index("context"), _GENERATION)


@dataclass(frozen=True)
class Counts:
    """Pages of a pool of `blocks` at a moment: `used` are referenced, `kept` unowned with contents that can be reused.

    used + kept + free + unknown = blocks, and `host` + `host_unknown` of `host_blocks` host pages are not free, where
    the events fit the pool. A negative `free` says that they do not. Where ToldPages apply, `unknown` pages are either
    cached or free; all are before anything is told.
    """

    blocks: int
    used: int
    kept: int
    unknown: int
    host_blocks: int
    host: int
    host_unknown: int

    @property
    def free(self) -> int:
        """Pages that hold nothing."""
        return self.blocks - self.used - self.kept - self.unknown

    @property
    def available(self) -> int:
        """Pages that a request can have: free ones and, their contents lost, cached ones."""
        return self.free + self.kept


@dataclass(frozen=True)
class Pages:
    """All pages at `time`, after `after` events.

    Per device page: `status` (FREE, USED, KEPT, UNKNOWN), `refs`, `owner` (row of requests of its newest holder, -1),
    `since` (ns of its last event; NEVER without), `content` (the event that gave it its contents, -1). `certain` is
    False where more requests than `refs` tells may hold it. Per host page `host_status` (FREE, KEPT, UNKNOWN),
    `host_content` and `host_since`. `held` are the references that are open, as the events that took them.
    """

    time: int
    after: int
    counts: Counts
    status: npt.NDArray[np.int8]
    refs: Rows
    certain: npt.NDArray[np.bool_]
    owner: Rows
    since: Int
    content: Rows
    host_status: npt.NDArray[np.int8]
    host_since: Int
    host_content: Rows
    held: Rows

    def __len__(self) -> int:
        return len(self.status)


def pages_at(trace: Trace, time: int) -> Pages:
    """Everything known of the pages at `time` (ns)."""
    replay = trace.index(Replay)
    log = replay.log
    after = log.at(time)
    point = replay.checkpoint(after)
    counts = counts_at(trace, time)
    stretch = replay.stretch(after)
    start = int(replay.stretches.starts[stretch]) if len(replay.stretches.starts) else 0
    base = int(replay.stretches.base[stretch]) if len(replay.stretches.base) else 0
    last = _sized(point.last, counts.blocks)
    known = last >= max(start, 0)
    at = np.where(known, last, -1)
    flags = _pick(replay.flags, at, 0)
    fresh = np.where(np.arange(len(last)) < base, UNKNOWN, FREE)
    status = np.where(known, flags & STATUS, fresh).astype(np.int8)
    if trace.index(ToldPages).applies:
        # Without contents to be reused a page may well be in use.
        status[status == FREE] = UNKNOWN
    refs = _pick(replay.refs, at, 0)
    # Pages outside of the pool are shown as long as somebody is on them.
    size = max(counts.blocks, int(np.flatnonzero((status == USED) | (status == KEPT)).max(initial=-1)) + 1)
    owner = np.full(len(last), -1, np.int32)
    owner[log.block[point.held]] = log.request[point.held]
    host_last = _sized(point.host_last, counts.host_blocks)[: counts.host_blocks]
    host_known = host_last >= max(start, 0)
    host_at = np.where(host_known, host_last, -1)
    full = _pick(log.kind, host_at, -1) == OFFLOADED
    host_base = int(replay.stretches.host_base[stretch]) if len(replay.stretches.host_base) else 0
    host_fresh = np.where(np.arange(len(host_last)) < host_base, UNKNOWN, FREE)
    host_status = np.where(host_known, np.where(full, KEPT, FREE), host_fresh).astype(np.int8)
    holds = (status == USED) | (status == KEPT)
    return Pages(
        time,
        after,
        counts,
        status[:size],
        refs[:size],
        (known & (flags & CERTAIN != 0) | (fresh == FREE))[:size],
        owner[:size],
        _pick(log.time, at[:size], NEVER),
        _pick(replay.content, np.where(holds, at, -1)[:size], -1),
        host_status,
        _pick(log.time, host_at, NEVER),
        _pick(replay.content, np.where(host_status == KEPT, host_at, -1), -1),
        point.held,
    )


def _pick(values: Array, at: Array, missing: int) -> Array:
    """The values at those places, `missing` at -1; without a copy of all of them."""
    picked = np.full(len(at), missing, values.dtype)
    known = at >= 0
    picked[known] = values[at[known]]
    return picked


def _sized(last: Rows, size: int) -> Rows:
    sized: Rows = np.r_[last, np.full(max(size - len(last), 0), -1, np.int32)]
    return sized


def counts_at(trace: Trace, time: int) -> Counts:
    """How many pages are what at `time` (ns)."""
    found = counts_of(trace, np.array([time], np.int64))
    return Counts(*(int(column[0]) for column in found))


def counts_of(trace: Trace, times: Int) -> tuple[Int, ...]:
    """The fields of Counts at each of `times` (ns), int64."""
    replay = trace.index(Replay)
    pools, stretches = replay.pools, replay.stretches
    after = np.searchsorted(replay.log.time, times, "right")
    row = np.maximum(np.searchsorted(pools.time, times, "right") - 1, 0)
    blocks, host_blocks = pools.blocks[row], pools.host_blocks[row]
    counts = [_pick(each, after - 1, 0).astype(np.int64) for each in replay.counts]
    stretch = np.maximum(np.searchsorted(stretches.starts, after - 1, "right") - 1, 0)
    used, kept, settled, host, host_settled = counts
    unknown = np.maximum(np.minimum(stretches.base[stretch], blocks) - settled, 0)
    host_unknown = np.maximum(np.minimum(stretches.host_base[stretch], host_blocks) - host_settled, 0)
    told = trace.index(ToldPages)
    if told.applies:
        # Without any event nothing is known of what is cached, neither here nor in host memory.
        perhaps, host_unknown = (unknown, host_unknown) if len(replay) else (blocks, host_blocks)
        blocks, used, kept, unknown = told.counts(times, blocks, kept, perhaps)
    return blocks, used, kept, unknown, host_blocks, host, host_unknown


def use_times(trace: Trace) -> Int:
    """When pages in use may change, ns: at page events, or where those do not tell, at iterations."""
    told = trace.index(ToldPages)
    return told.start if told.applies else trace.index(Replay).log.time


def settled_use(trace: Trace, which: slice) -> Int:
    """Pages in use after each of those times; -1 where others of the same time follow, since nobody can look in
    between, and where it is not told.
    """
    told, replay = trace.index(ToldPages), trace.index(Replay)
    if told.applies:
        return told.used[which]
    time = replay.log.time[which]
    return np.where(np.append(time[1:] != time[:-1], True), replay.counts[0, which], -1).astype(np.int64)


def busiest(trace: Trace) -> int:
    """When most pages were in use since the trace began, ns; 0 where nobody tells."""
    times = use_times(trace)
    # A server tells of iterations too that it made before it was asked for the first time.
    first = int(np.searchsorted(times, 0))
    used = settled_use(trace, slice(first, None))
    return int(times[first + int(np.argmax(used))]) if len(used) else 0


@dataclass(frozen=True)
class PageTable:
    """The pages of one request, by `index` (logical place, -1 unknown): `block`, `refs` and `filled` tokens.

    `tokens` of the request are in the cache (after its last step that had ended), -1 unknown; then `filled` is -1 too.
    """

    index: Int
    block: Int
    refs: Rows
    filled: Int
    tokens: int

    def __len__(self) -> int:
        return len(self.block)


def page_table(trace: Trace, pages: Pages, request: int) -> PageTable:
    """The page table of a row of requests."""
    log = trace.index(Replay).log
    held = pages.held[log.request[pages.held] == request]
    index = log.column(trace, "index")[held].astype(np.int64)
    order = np.lexsort((held, index))
    held, index = held[order], index[order]
    tokens = int(cached_tokens(trace, pages.time)[request])
    block = log.block[held]
    return PageTable(index, block, pages.refs[block], _filled(trace, pages, index, np.full(len(held), tokens)), tokens)


def _filled(trace: Trace, pages: Pages, index: Int, tokens: Int) -> Int:
    """Tokens in each page of requests that have `tokens` in all; -1 where the place or the number is not known."""
    pools = trace.index(Replay).pools
    size = int(pools.tokens[pools.row(pages.time)])
    known = (index >= 0) & (tokens >= 0) & (size > 0)
    return np.where(known, np.clip(tokens - index * size, 0, size), -1)


def cached_tokens(trace: Trace, time: int) -> Int:
    """Tokens that each row of requests has in the cache after its last step that ended by `time`; -1 not known.

    Drafted tokens that were not accepted are taken back. Steps are in the order of their iterations.
    """
    steps, iterations = trace["steps"], trace["iterations"]
    tokens = np.full(len(trace["requests"]), -1, np.int64)
    if not len(steps):
        return tokens
    ended = iterations["end"] <= time
    rows = np.flatnonzero(ended[steps["iteration"]] & np.isin(steps["phase"], _WORKS) & (steps["request"] >= 0))
    rows = rows[np.argsort(steps["iteration"][rows], kind="stable")]
    position = steps.get("position")[rows].astype(np.int64)
    lost = np.maximum(steps["drafted"][rows], 0) - np.maximum(steps["accepted"][rows], 0)
    # Of several steps of a request numpy keeps the last one written.
    tokens[steps["request"][rows]] = np.where(position >= 0, position + steps["tokens"][rows] - lost, -1)
    return tokens
