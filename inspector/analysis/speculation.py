"""Speculation: drafted k and accepted a of every step, and what follows from the two, exactly.

Everything is counted in one table, `joint[k, a]`: how many passes checked k draft tokens and accepted a of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.steps import GENERATION, Steps
from inspector.analysis.sums import sum_by
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Counts:
    """Passes of the target in the generation phase, by drafted and accepted tokens.

    `joint[k, a]` (K + 1, K + 1) int64 counts passes that checked k tokens and accepted a; `emitted` tokens were given
    out by them, -1 where that was not recorded (an end token cuts what was accepted). `odd` passes said to have
    accepted more than was drafted and are in none of the figures, as are `unknown` ones, which tell no numbers.
    """

    joint: Int
    emitted: int
    odd: int
    unknown: int

    @property
    def passes(self) -> int:
        """All passes, those that checked no draft included."""
        return int(self.joint.sum())

    @property
    def drafting(self) -> int:
        """Passes that checked at least one draft token."""
        return int(self.joint[1:].sum())

    @property
    def drafted(self) -> int:
        """Draft tokens that were checked."""
        return int((self.joint.sum(axis=1) * np.arange(len(self.joint))).sum())

    @property
    def accepted(self) -> int:
        """Draft tokens that were accepted, before an end token cut any."""
        return int((self.joint.sum(axis=0) * np.arange(len(self.joint))).sum())

    @property
    def longest(self) -> int:
        """Most tokens that were drafted for one pass."""
        return len(self.joint) - 1


@dataclass(frozen=True)
class Positions:
    """By draft position 1..K: of `drafted` passes that drafted it (or further), `accepted` accepted it (a >= i);
    `reached` are those of them that had accepted all before it (a >= i - 1).
    """

    drafted: Int
    reached: Int
    accepted: Int


@dataclass(frozen=True)
class ByRequest:
    """Requests (rows of requests) that took part in passes: how many `passes`, `drafted`, `accepted`, `emitted` tokens.

    `emitted` is -1 where that was not recorded.
    """

    row: Rows
    passes: Int
    drafted: Int
    accepted: Int
    emitted: Int

    @property
    def rate(self) -> npt.NDArray[np.float64]:
        """Accepted / drafted; NaN for a request without drafts."""
        return np.where(self.drafted > 0, self.accepted / np.maximum(self.drafted, 1), np.nan)

    @property
    def mean_rate(self) -> float:
        """Mean over the requests that had drafts; NaN without any."""
        rates = self.rate
        known = rates[np.isfinite(rates)]
        return float(known.mean()) if len(known) else float("nan")


@dataclass(frozen=True)
class Passes:
    """Generation passes that tell what they drafted, in the order of their iterations: rows of steps, their iteration
    and request rows, k, a, and tokens given out (-1 unknown)."""

    row: Rows
    iteration: Rows
    request: Rows
    drafted: Rows
    accepted: Rows
    emitted: Rows
    odd: int
    unknown: int


def passes(trace: Trace, window: Window | None = None) -> Passes:
    """Of the iterations that began in `window`; None is the whole trace."""
    steps, table = trace.index(Steps), trace["steps"]
    part = slice(0, len(steps.row))
    if window is not None:
        low, high = np.searchsorted(trace["iterations"]["start"], [window.start, window.end])
        part = steps.of(int(low), int(high))
    at = np.flatnonzero(steps.phase[part] == GENERATION) + part.start
    row = steps.row[at]
    drafted, accepted = table["drafted"][row], table["accepted"][row]
    told = (drafted >= 0) & (accepted >= 0)
    right = told & (accepted <= drafted)
    at, row = at[right], row[right]
    return Passes(
        row,
        steps.iteration[at],
        steps.request[at],
        drafted[right],
        accepted[right],
        table.get("emitted")[row],
        int(np.count_nonzero(told & ~right)),
        int(np.count_nonzero(~told)),
    )


def counts(found: Passes, mask: npt.NDArray[np.bool_] | None = None, longest: int = 0) -> Counts:
    """Count passes, those in `mask` where one is given; the table has room for at least `longest` drafted tokens."""
    rows = slice(None) if mask is None else np.flatnonzero(mask)
    drafted, accepted, emitted = found.drafted[rows], found.accepted[rows], found.emitted[rows]
    size = max(int(drafted.max(initial=0)), longest) + 1
    joint = np.bincount(drafted.astype(np.int64) * size + accepted, minlength=size * size).reshape(size, size)
    told = len(emitted) > 0 and bool((emitted >= 0).all())
    given = int(emitted.sum(dtype=np.int64)) if told else -1
    return Counts(joint.astype(np.int64), given, found.odd, found.unknown)


def positions(counted: Counts) -> Positions:
    """Acceptance by position; each denominator has only passes that drafted that far."""
    joint, size = counted.joint, len(counted.joint)
    columns = [
        (int(joint[at:].sum()), int(joint[at:, at - 1 :].sum()), int(joint[at:, at:].sum())) for at in range(1, size)
    ]
    drafted, reached, accepted = np.array(columns, np.int64).reshape(-1, 3).T
    return Positions(drafted, reached, accepted)


def by_request(found: Passes) -> ByRequest:
    """Sums of every request that took part."""
    size = int(found.request.max(initial=-1)) + 1
    made = np.bincount(found.request, minlength=size).astype(np.int64)
    row = np.flatnonzero(made)
    drafted, accepted, emitted, untold = (
        sum_by(found.request, values.astype(np.int64), size)[row]
        for values in (found.drafted, found.accepted, found.emitted, found.emitted < 0)
    )
    return ByRequest(row.astype(np.int32), made[row], drafted, accepted, np.where(untold > 0, -1, emitted))


def groups(trace: Trace, found: Passes) -> list[tuple[int, Counts]]:
    """(name id of a group of prompts, its counts), most passes first; nothing where no request has a group."""
    group = trace["requests"].get("group")[found.request]
    longest = int(found.drafted.max(initial=0))
    named = np.unique(group[group >= 0]).tolist()
    all_of = [(int(name), counts(found, group == name, longest)) for name in named]
    return sorted(all_of, key=lambda each: (-each[1].passes, each[0]))


@dataclass(frozen=True)
class OverTime:
    """`edges` (n + 1) ns; per bin the drafted and accepted tokens of the iterations that began in it, int64, and how
    many passes (-1 where only iterations tell).
    """

    edges: Int
    drafted: Int
    accepted: Int
    passes: Int


def over_time(trace: Trace, found: Passes | None, window: Window, bins: int) -> OverTime:
    """Drafted and accepted in `bins` equal parts of `window`; without passes from what the iterations tell."""
    edges = window.start + np.arange(bins + 1, dtype=np.int64) * window.length // bins
    table = trace["iterations"]
    if found is None:
        told = (table.get("drafted") >= 0) & (table.get("accepted") >= 0)
        time, drafted, accepted = (
            values[told] for values in (table["start"], table.get("drafted"), table.get("accepted"))
        )
    else:
        time, drafted, accepted = table["start"][found.iteration], found.drafted, found.accepted
    cuts = np.searchsorted(time, edges)
    made = np.diff(cuts) if found is not None else np.full(bins, -1, np.int64)
    sums = [np.diff(np.r_[0, np.cumsum(values, dtype=np.int64)][cuts]) for values in (drafted, accepted)]
    return OverTime(edges, sums[0], sums[1], made)


def of_iterations(trace: Trace, window: Window | None = None) -> tuple[int, int]:
    """(drafted, accepted) as the iterations that began in `window` tell; (0, 0) where they do not."""
    span = window or trace.whole
    found = over_time(trace, None, span, 1)
    return int(found.drafted[0]), int(found.accepted[0])
