"""How long requests waited and how fast their tokens came: queue wait, TTFT, TPOT, ITL, E2E."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.steps import Steps
from inspector.trace.schema import NEVER
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

UNKNOWN = -1


@dataclass(frozen=True)
class Spread:
    """How a figure is spread over `count` requests or tokens, ns; by nearest rank, so each value is one that occurred.

    Of none there is nothing to say: all are 0.
    """

    count: int
    p50: float
    p90: float
    p99: float
    longest: float


@dataclass(frozen=True)
class RequestTimes:
    """Per request (rows of requests in `row`), ns, UNKNOWN where something is missing for it.

    `wait` from arrival to the first iteration, `ttft` to the first token, `e2e` to the last one of a finished request.
    TPOT is `decode` (first to last token) / `later` (tokens after the first).
    """

    row: Rows
    wait: Int
    ttft: Int
    e2e: Int
    decode: Int
    later: Int

    @property
    def tpot(self) -> npt.NDArray[np.float64]:
        """Time per output token, ns; NaN where unknown."""
        known = (self.decode >= 0) & (self.later > 0)
        return np.where(known, self.decode / np.maximum(self.later, 1), np.nan)


@dataclass(frozen=True)
class Latency:
    """Spreads over the requests that arrived in a range: `requests` of them, `finished` of which have left.

    `itl` is from one pass that gave a request tokens to the next one that did; where no steps were recorded its count
    is 0.
    """

    requests: int
    finished: int
    wait: Spread
    ttft: Spread
    tpot: Spread
    itl: Spread
    e2e: Spread


def request_times(trace: Trace, rows: Rows) -> RequestTimes:
    """The times of those requests (rows of requests)."""
    table = trace["requests"]
    arrival, first, last = (table[name][rows] for name in ("arrival", "first_token", "last_token"))
    output, left = table["output_tokens"][rows], table.get("finished")[rows]
    ended = (left != NEVER) if "finished" in table else last != NEVER
    later = np.where(output > 0, output - 1, 0).astype(np.int64)
    return RequestTimes(
        rows,
        _apart(scheduled(trace, rows), arrival),
        _apart(first, arrival),
        np.where(ended, _apart(last, arrival), UNKNOWN),
        np.where(ended, _apart(last, first), UNKNOWN),
        later,
    )


def scheduled(trace: Trace, rows: Rows) -> Int:
    """When requests (rows of requests) first took part in an iteration, ns; NEVER where that is not known."""
    told: Int = trace["requests"].get("scheduled")[rows]
    missing = np.flatnonzero(told == NEVER)
    if len(missing) and len(trace["steps"]):
        told = told.copy()
        told[missing] = begun_at(trace, rows[missing])
    return told


def begun_at(trace: Trace, rows: Rows) -> Int:
    """Start of the iteration of a request's first step, ns; NEVER without steps."""
    steps = trace.index(Steps)
    times: Int = np.full(len(rows), NEVER, np.int64)
    known = np.flatnonzero(steps.begun[rows] >= 0)
    process, start = trace["iterations"]["process"], trace["iterations"]["start"]
    single = len(process) > 0 and bool((process == process[0]).all())
    for each in np.unique(steps.process[rows[known]]).tolist():
        mine = known[steps.process[rows[known]] == each]
        starts = start if single else start[process == each]
        times[mine] = starts[steps.begun[rows[mine]]]
    return times


def latency(trace: Trace, window: Window | None = None) -> Latency:
    """Of the requests that arrived in `window`; None is the whole trace."""
    arrival = trace["requests"]["arrival"]
    low, high = (0, len(arrival)) if window is None else np.searchsorted(arrival, [window.start, window.end])
    rows = np.arange(low, high, dtype=np.int32)
    times = request_times(trace, rows)
    tpot = times.tpot
    return Latency(
        len(rows),
        int(np.count_nonzero(times.e2e != UNKNOWN)),
        spread(times.wait[times.wait != UNKNOWN]),
        spread(times.ttft[times.ttft != UNKNOWN]),
        spread(tpot[np.isfinite(tpot)]),
        spread(_between_tokens(trace, int(low), int(high))),
        spread(times.e2e[times.e2e != UNKNOWN]),
    )


def spread(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> Spread:
    """Percentiles by nearest rank: the smallest value that at least that share does not exceed."""
    size = len(values)
    if not size:
        return Spread(0, 0, 0, 0, 0)
    ranks = [-(-size * share // 100) - 1 for share in (50, 90, 99)] + [size - 1]
    ordered = np.partition(values, ranks)
    return Spread(size, *(ordered[rank].item() for rank in ranks))


def _between_tokens(trace: Trace, low: int, high: int) -> Int:
    """Times between passes that gave tokens, of requests in [low, high), ns."""
    if not len(trace["steps"]):
        return np.empty(0, np.int64)
    steps, end = trace.index(Steps), trace["iterations"]["end"]
    rows = np.flatnonzero((steps.before >= 0) & (steps.request >= low) & (steps.request < high))
    between: Int = end[steps.iteration[rows]] - end[steps.before[rows]]
    return between


def _apart(later: Int, earlier: Int) -> Int:
    known = (later != NEVER) & (earlier != NEVER)
    apart: Int = np.where(known, later - np.where(known, earlier, 0), UNKNOWN)
    return apart
