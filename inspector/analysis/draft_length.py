"""Which draft length pays: an estimate from the acceptance and the cost of passes that were measured.

Tokens of a pass with K drafts: 1 + the sum over i = 1..K of the chance that positions 1..i are all accepted, a product
of measured conditional acceptances, so that passes which drafted less do not bias it. Beyond the longest draft that was
seen the last conditional acceptance is taken to go on. A pass costs the target's time for K + 1 tokens of each
request, K draft passes, and the rest of the iteration; the speedup is against the same batch without drafts.

A run with one draft length and a full batch has passes of one size, which do not tell what fewer tokens would have
cost. So the speedup is a range, over all costs that the passes allow, and a best length is named only where it is one
for all of them whether to draft, and never one beyond what was drafted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.iterations import union_by
from inspector.analysis.pass_cost import PassCost
from inspector.analysis.speculation import Counts, Positions, positions
from inspector.trace.links import process_of
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

DRAFT = re.compile(r"\bdraft(?:ing|er)?[ _.]*(?:model)?[ _.]*(?:forward|pass|model)\b", re.IGNORECASE)
TARGET = re.compile(r"\btarget[ _.]*(?:model)?[ _.]*(?:forward|pass|model)\b", re.IGNORECASE)
BEYOND = 4
"""So many lengths beyond the longest draft that was seen are estimated too."""


@dataclass(frozen=True)
class DraftCost:
    """Measured over `count` iterations that only generated, ns: the `target`'s pass by its tokens, one `draft` pass
    (per drafted position), and the `rest` of an iteration. `batch` is the mean number of requests in them. `bounds`
    are the target's costs with the least and the most for a token that the passes allow.
    """

    target: PassCost
    draft: float
    rest: float
    batch: float
    count: int
    bounds: tuple[PassCost, PassCost]

    def cost(self, length: int, target: PassCost | None = None) -> float:
        """An iteration with drafts of that length, ns; with another cost of the target than the likeliest."""
        return (target or self.target).at(self.batch * (length + 1)) + length * self.draft + self.rest

    def speedups(self, tokens: npt.NDArray[np.float64], target: PassCost) -> npt.NDArray[np.float64]:
        """Of drafts of 0..n tokens, where a pass brings `tokens`, against none."""
        costs = np.array([self.cost(length, target) for length in range(len(tokens))])
        speedups: npt.NDArray[np.float64] = tokens * costs[0] / costs
        return speedups


@dataclass(frozen=True)
class NoCost:
    """Why there is none, as a sentence."""

    reason: str


@dataclass(frozen=True)
class Estimate:
    """For drafts of 0..n tokens: `tokens` of a pass, `speedup` and its range `low`..`high` (NaN without a cost), up to
    `seen` from what was measured, beyond it extrapolated. `best` is the length with the highest speedup of those that
    were drafted, -1 where it is not known; `among` are the shortest and the longest that may be best. Where drafts may
    pay or not (`among` holds 0 and others) `best` is not known either.
    """

    tokens: npt.NDArray[np.float64]
    speedup: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    seen: int
    best: int
    among: tuple[int, int]

    @property
    def doubtful(self) -> bool:
        """Whether there is a cost, and yet it cannot be told whether drafts pay."""
        return self.best < 0 <= self.among[0]


def draft_cost(trace: Trace, window: Window | None = None) -> DraftCost | NoCost:
    """From passes of draft and target in iterations that began in `window`; None is the whole trace."""
    table = trace["iterations"]
    drafts, targets = _passes(trace, DRAFT), _passes(trace, TARGET)
    if targets is None:
        return NoCost("the target's passes have no time of their own here: no kernel or range is called target forward")
    if drafts is None:
        return NoCost("what drafting costs is not known: no kernel or range is called draft forward")
    generating = (table["context_requests"] == 0) & (table["generation_requests"] > 0) & (table["tokens"] > 0)
    generating &= (targets > 0) & (table.get("drafted") >= 0)
    if window is not None:
        generating &= (table["start"] >= window.start) & (table["start"] < window.end)
    rows = np.flatnonzero(generating)
    if not len(rows):
        return NoCost("no iteration that only generated has been measured")
    target = PassCost.fit(table["tokens"][rows], targets[rows])
    longest = _longest(trace, rows)
    drafted = int(longest.sum())
    if target is None or not drafted:
        return NoCost("nothing was drafted in the iterations that were measured")
    rest = (table["end"] - table["start"])[rows] - targets[rows] - drafts[rows]
    batch = float(table["generation_requests"][rows].mean())
    return DraftCost(
        target,
        int(drafts[rows].sum()) / drafted,
        max(float(rest.mean()), 0.0),
        batch,
        len(rows),
        PassCost.bounds(table["tokens"][rows], targets[rows], batch * int(longest.max())),
    )


def estimate(counted: Counts, cost: DraftCost | NoCost) -> Estimate:
    """Tokens of a pass and speedup by draft length."""
    chances = chain(positions(counted))
    seen = len(chances)
    if seen:
        last = chances[-1] / chances[-2] if seen > 1 and chances[-2] else chances[-1]
        chances = np.r_[chances, chances[-1] * last ** np.arange(1, BEYOND + 1)]
    tokens = 1 + np.r_[0.0, np.cumsum(chances)]
    if isinstance(cost, NoCost):
        unknown = np.full(len(tokens), np.nan)
        return Estimate(tokens, unknown, unknown, unknown, seen, -1, (-1, -1))
    found = np.array([cost.speedups(tokens, target) for target in (cost.target, *cost.bounds)])
    bests = np.argmax(found[:, : seen + 1], axis=1)
    among = int(bests.min()), int(bests.max())
    best = int(bests[0]) if among[0] or not among[1] else -1
    return Estimate(tokens, found[0], found.min(axis=0), found.max(axis=0), seen, best, among)


def chain(found: Positions) -> npt.NDArray[np.float64]:
    """Chance that positions 1..i are all accepted, for i = 1..K; it ends where a position was never reached."""
    reached = found.reached > 0
    end = len(reached) if reached.all() else int(np.argmin(reached))
    chances: npt.NDArray[np.float64] = np.cumprod(found.accepted[:end] / found.reached[:end], dtype=np.float64)
    return chances


def _passes(trace: Trace, spelling: re.Pattern[str]) -> Int | None:
    """Time in each iteration (row) in which a pass of that name ran, ns; kernels first, else ranges; None without."""
    table = trace["iterations"]
    ids = np.array([number for number, text in enumerate(trace.names.texts) if spelling.search(text)], np.int32)
    for name in ("kernels", "ranges"):
        rows = np.flatnonzero(np.isin(trace[name]["name"], ids))
        if not len(rows):
            continue
        start, end, process = trace[name]["start"][rows], trace[name]["end"][rows], process_of(trace, name)[rows]
        owner = np.full(len(rows), -1, np.int32)
        for each in np.unique(table["process"]).tolist():
            mine = np.flatnonzero(table["process"] == each)
            at = np.flatnonzero((process == each) | (process < 0) | (each < 0))
            place = np.searchsorted(table["start"][mine], start[at], "right") - 1
            held = mine[np.maximum(place, 0)]
            owner[at] = np.where((place >= 0) & (start[at] < table["end"][held]), held, -1)
        own = np.flatnonzero(owner >= 0)
        own = own[np.argsort(owner[own], kind="stable")]
        return union_by(owner[own], start[own], end[own], len(table))
    return None


def _longest(trace: Trace, rows: Int) -> Int:
    """Most tokens drafted for one request in each of those iterations: so many draft passes were made."""
    steps = trace["steps"]
    most = np.zeros(len(trace["iterations"]), np.int64)
    known = np.flatnonzero((steps["iteration"] >= 0) & (steps["drafted"] > 0))
    np.maximum.at(most, steps["iteration"][known], steps["drafted"][known])
    return most[rows]
