"""What the pages of a moment amount to: reuse, evictions, unfilled slots, contiguous memory, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_log import ALLOCATED, EVICTED, OFFLOADED, RESTORED, REUSED
from inspector.analysis.page_replay import USED, Replay
from inspector.analysis.pages import Pages, cached_tokens, counts_of
from inspector.analysis.told_pages import ToldPages
from inspector.trace.selection import Window
from inspector.trace.table import Table

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]

GROWTH_NS = 2_000_000_000
"""The growth of pages is that of this long before the moment."""
STALLED_ITERATIONS = 64
"""So many iterations in which nothing moves are a stall; more than the tokens of a usual page."""


@dataclass(frozen=True)
class PageFigures:
    """Figures at a moment. Counts of events are those since the trace began.

    `reused` of `reused` + `missed` pages of prompts were there already, as `reuse_from` ("engine records", "page
    events", or "" where nobody tells) says. `evicted`, `host_dropped`, `offloaded`, `restored` count events.

    `slots` tokens fit into the pages in use, `filled` of them are there; -1 where places or steps are not known.
    `live` requests hold pages; for those of them that tell (`told`) contiguous memory for the worst case would have
    taken `worst_tokens` (prompt + most tokens they may make); `worst_pages` is that in pages, -1 where the size of a
    page is not known. `shared` pages have several holders and save `saved` pages.

    `growth` is in pages per second over the GROWTH_NS before, `exhausted_ns` how long the pages that can be had last
    at that rate; None where there is no growth. `pressure` says that none can be had while requests wait.
    """

    reused: int
    missed: int
    reuse_from: str
    evicted: int
    host_dropped: int
    offloaded: int
    restored: int
    slots: int
    filled: int
    live: int
    told: int
    worst_tokens: int
    worst_pages: int
    shared: int
    saved: int
    growth: float
    exhausted_ns: int | None
    waiting: int
    pressure: bool


def page_figures(trace: Trace, pages: Pages) -> PageFigures:
    """Figures of `pages`."""
    replay = trace.index(Replay)
    kinds, host = replay.log.kind[: pages.after], replay.log.host[: pages.after]
    events = np.bincount(kinds[~host], minlength=RESTORED + 1)
    reused, missed, source = _reuse(trace, pages)
    slots, filled = _fill(trace, pages)
    live, told, worst, worst_pages = _contiguous(trace, pages)
    growth, left = _growth(trace, pages)
    waiting = _waiting(trace["iterations"], pages.time)
    extra = np.maximum(pages.refs.astype(np.int64) - 1, 0)
    return PageFigures(
        reused,
        missed,
        source,
        int(events[EVICTED]),
        int(np.count_nonzero(kinds[host] == EVICTED)),
        int(events[OFFLOADED]),
        int(events[RESTORED]),
        slots,
        filled,
        live,
        told,
        worst,
        worst_pages,
        int(np.count_nonzero(extra)),
        int(extra.sum()),
        growth,
        left,
        waiting,
        waiting > 0 and pages.counts.available <= 0 and pages.counts.unknown == 0,
    )


def _reuse(trace: Trace, pages: Pages) -> tuple[int, int, str]:
    iterations = trace["iterations"]
    ended = iterations["end"] <= pages.time
    reused, missed = iterations["reused_blocks"][ended], iterations["missed_blocks"][ended]
    told = (reused >= 0) & (missed >= 0)
    if told.any():
        return int(reused[told].sum(dtype=np.int64)), int(missed[told].sum(dtype=np.int64)), "engine records"
    log, pools = trace.index(Replay).log, trace.index(Replay).pools
    kind, request = log.kind[: pages.after], log.request[: pages.after]
    tokens = int(pools.tokens[pools.row(pages.time)])
    index = log.column(trace, "index")[: pages.after]
    if tokens <= 0 or not len(trace["requests"]) or (index < 0).all():
        return 0, 0, ""
    # A new page behind the prompt is for tokens that nobody had computed before.
    prompt = np.append(trace["requests"]["prompt_tokens"], np.int32(-1))[request].astype(np.int64)
    missing = (kind == ALLOCATED) & (index >= 0) & (index.astype(np.int64) * tokens < prompt)
    return int(np.count_nonzero(kind == REUSED)), int(np.count_nonzero(missing)), "page events"


def _fill(trace: Trace, pages: Pages) -> tuple[int, int]:
    """Token slots of the pages in use, and how many are filled; a shared page counts once, by its fullest user."""
    replay = trace.index(Replay)
    size = int(replay.pools.tokens[replay.pools.row(pages.time)])
    used = int(np.count_nonzero(pages.status == USED))
    if size <= 0:
        return -1, -1
    request = replay.log.request[pages.held]
    index = replay.log.column(trace, "index")[pages.held].astype(np.int64)
    tokens = np.append(cached_tokens(trace, pages.time), -1)[request]
    known = (request >= 0) & (index >= 0)
    if not known.all() or (known & (tokens < 0)).all():
        return used * size, -1
    filled = np.zeros(len(pages), np.int64)
    # A request whose first step has not ended has filled nothing yet.
    np.maximum.at(filled, replay.log.block[pages.held], np.clip(np.maximum(tokens, 0) - index * size, 0, size))
    return used * size, int(filled.sum())


def _contiguous(trace: Trace, pages: Pages) -> tuple[int, int, int, int]:
    """Requests with pages, those that tell their worst case, its tokens, and its pages."""
    replay, requests = trace.index(Replay), trace["requests"]
    holders = np.unique(replay.log.request[pages.held])
    holders = holders[holders >= 0]
    prompt, most = requests["prompt_tokens"][holders], requests.get("max_tokens")[holders]
    told = (prompt >= 0) & (most >= 0)
    worst = (prompt.astype(np.int64) + most)[told]
    size = int(replay.pools.tokens[replay.pools.row(pages.time)])
    in_pages = int((-(-worst // size)).sum()) if size > 0 else -1
    return len(holders), int(told.sum()), int(worst.sum()), in_pages


def _growth(trace: Trace, pages: Pages) -> tuple[float, int | None]:
    """Pages per second, and ns until none can be had."""
    span = min(GROWTH_NS, pages.time)
    counts, told = pages.counts, trace.index(ToldPages).applies
    # What is cached or free can be had either way; before the first record nothing is told.
    if span <= 0 or (counts.unknown and not (told and counts.unknown < counts.blocks)):
        return 0.0, None
    used = counts_of(trace, np.array([pages.time - span, pages.time], np.int64))[1]
    grown = int(used[1] - used[0])
    if grown <= 0:
        return grown * 1e9 / span, None
    return grown * 1e9 / span, max(counts.available + counts.unknown, 0) * span // grown


def _waiting(iterations: Table, time: int) -> int:
    """Requests that wait or are paused in the last iteration that began by `time`; 0 where nobody tells."""
    row = int(np.searchsorted(iterations["start"], time, "right")) - 1
    if row < 0:
        return 0
    return sum(max(int(iterations[name][row]), 0) for name in ("queued_requests", "paused_requests"))


@dataclass(frozen=True)
class Stall:
    """So many `iterations` over `window` in which all pages were taken, no request finished and none was admitted;
    `emitted` tokens came out of them (-1 unknown)."""

    window: Window
    iterations: int
    emitted: int


@dataclass(frozen=True)
class Pressure:
    """`windows` (as starts and ends, ns) in which no page could be had while requests waited, `total_ns` in all; the
    `stalls`. `known` is False where no iteration says how many pages are free."""

    starts: Int
    ends: Int
    stalls: tuple[Stall, ...]
    known: bool

    @property
    def total_ns(self) -> int:
        """How long in all."""
        return int((self.ends - self.starts).sum())


def pressure(trace: Trace, least: int = STALLED_ITERATIONS) -> Pressure:
    """Over the whole trace, by its iterations; one lasts until the next begins. Stalls last `least` or more."""
    iterations = trace["iterations"]
    free = iterations["free_blocks"].astype(np.int64)
    none = np.empty(0, np.int64)
    if not (free >= 0).any():
        return Pressure(none, none, (), False)
    start = iterations["start"]
    end = np.r_[start[1:], iterations["end"][-1:]]
    waiting = np.maximum(iterations["queued_requests"], 0) + np.maximum(iterations["paused_requests"], 0)
    taken = free == 0
    low, high = _runs(taken & (waiting > 0))
    still = taken & ~_moved(trace, start, end)
    first, last = _runs(still)
    emitted = iterations.get("emitted").astype(np.int64)
    stalls = tuple(
        Stall(Window(int(start[a]), int(end[b - 1])), b - a, _sum_known(emitted[a:b]))
        for a, b in zip(first.tolist(), last.tolist(), strict=True)
        if b - a >= least
    )
    return Pressure(start[low], end[high - 1], stalls, True)


def _moved(trace: Trace, start: Int, end: Int) -> npt.NDArray[np.bool_]:
    """Iterations in which a request finished or was admitted."""
    iterations, requests = trace["iterations"], trace["requests"]
    moved: npt.NDArray[np.bool_] = iterations.get("completed_requests") > 0
    moved |= iterations["context_requests"] > 0
    for name in ("finished", "scheduled"):
        times = requests.get(name)
        row = np.searchsorted(start, times, "right") - 1
        inside = (row >= 0) & (times <= end[np.maximum(row, 0)])
        moved[row[inside]] = True
    return moved


def _runs(mask: npt.NDArray[np.bool_]) -> tuple[Int, Int]:
    """First and one past the last place of every run of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False].astype(np.int8)))
    return edges[::2], edges[1::2]


def _sum_known(values: Int) -> int:
    """Their sum; -1 where one is not known."""
    return int(values.sum()) if (values >= 0).all() else -1
