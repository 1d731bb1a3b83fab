"""All that the speculation view shows: figures, curves and bars, by group and together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inspector.analysis.draft_length import DraftCost, Estimate, NoCost, draft_cost, estimate
from inspector.analysis.speculation import (
    ByRequest,
    Counts,
    OverTime,
    Positions,
    by_request,
    counts,
    groups,
    of_iterations,
    over_time,
    passes,
    positions,
)
from inspector.analysis.steps import Steps
from inspector.picture.changes import Changes
from inspector.picture.groups import group_ranks
from inspector.picture.ribbon import Ribbon, ribbon, told_requests
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


_DRAFTING = "draft"
"""Settings of the engine that begin so say whether, by what and how far it drafts."""


@dataclass(frozen=True)
class Group:
    """Requests of one kind of prompt, the `rank`-th; or (-1, without a name) all of them."""

    rank: int
    name: str
    counts: Counts
    positions: Positions
    estimate: Estimate


@dataclass(frozen=True)
class SpeculationPicture:
    """`everything` and, where prompts have groups, each of `groups`. Where no steps were recorded `everything` is None,
    and `drafted`, `accepted` are what the iterations tell. `missing` says what the trace has no data for. `selected` is
    the time of the selected iteration, `changes` what the user changed within the span (see Changes).
    """

    trace: Trace
    span: Window
    drafted: int
    accepted: int
    everything: Group | None
    groups: tuple[Group, ...]
    over_time: OverTime
    by_request: ByRequest | None
    cost: DraftCost | NoCost
    ribbon: Ribbon | None
    missing: tuple[str, ...]
    selected: Window | None
    changes: tuple[tuple[int, str], ...]

    @property
    def mixed(self) -> tuple[tuple[int, str], ...]:
        """Those of the changes after which it was drafted otherwise: figures are of both sides of them."""
        inside = (each for each in self.changes if self.span.start < each[0] < self.span.end)
        return tuple(each for each in inside if each[1].startswith(_DRAFTING))


def speculation(
    trace: Trace,
    window: Window | None,
    request: int | None,
    bins: int,
    iteration: int | None = None,
    process: int | None = None,
) -> SpeculationPicture:
    """Of the iterations that began in `window` (None: the whole trace); `request` is the id whose tokens are shown.

    Where none is given they are those of a request that took part in the `iteration` (its number, of a `process`).
    """
    span = window or trace.whole
    row = _row_of(trace, iteration, process)
    told = _ribbon(trace, request, row)
    table = trace["iterations"]
    selected = None if row < 0 else Window(int(table["start"][row]), int(table["end"][row]))
    changes = tuple(each for each in trace.index(Changes).all if span.start <= each[0] <= span.end)
    drafted, accepted = of_iterations(trace, window)
    cost: DraftCost | NoCost = NoCost("no steps of requests were recorded")
    missing: list[str] = []
    if not len(trace["steps"]):
        how = trace.info.missing.get("steps", "record with inflight record, which hooks the engine")
        missing.append(f"No steps of requests, so acceptance by position and by request is not known: {how}")
        binned = over_time(trace, None, span, bins)
        return SpeculationPicture(
            trace, span, drafted, accepted, None, (), binned, None, cost, told, tuple(missing), selected, changes
        )
    made = passes(trace, window)
    cost = draft_cost(trace, window)
    everything = _group(-1, "", counts(made), cost)
    ranks = group_ranks(trace)
    found = sorted((ranks[name], trace.names[name], each) for name, each in groups(trace, made))
    parts = tuple(_group(rank, name, each, cost) for rank, name, each in found)
    unplaced = trace.index(Steps).unplaced
    if unplaced:
        missing.append(f"{unplaced:,} steps without iteration or request are in no figure")
    if everything.counts.odd:
        missing.append(f"{everything.counts.odd:,} passes accepted more than was drafted and are in no figure")
    if everything.counts.unknown:
        missing.append(f"{everything.counts.unknown:,} passes do not tell what they drafted and are in no figure")
    return SpeculationPicture(
        trace,
        span,
        everything.counts.drafted,
        everything.counts.accepted,
        everything,
        parts if len(parts) > 1 else (),
        over_time(trace, made, span, bins),
        by_request(made),
        cost,
        told,
        tuple(missing),
        selected,
        changes,
    )


def _group(rank: int, name: str, counted: Counts, cost: DraftCost | NoCost) -> Group:
    return Group(rank, name, counted, positions(counted), estimate(counted, cost))


def _row_of(trace: Trace, iteration: int | None, process: int | None) -> int:
    """The row of iterations with that number; -1 for none."""
    table = trace["iterations"]
    if iteration is None or not len(table):
        return -1
    rows = np.flatnonzero((table["iteration"] == iteration) & ((table["process"] == process) | (process is None)))
    return int(rows[0]) if len(rows) else -1


def _ribbon(trace: Trace, request: int | None, iteration: int) -> Ribbon | None:
    """Of the request that is selected, if its tokens are there; else of one that has tokens of the iteration (a row);
    else of the last one whose tokens are.
    """
    told = told_requests(trace)
    if not len(told):
        return None
    chosen = told[trace["requests"]["request"][told] == (-1 if request is None else request)]
    if not len(chosen) and iteration >= 0:
        table = trace["tokens"]
        chosen = np.unique(table["request"][(table["iteration"] == iteration) & (table["request"] >= 0)])
    return ribbon(trace, int(chosen[0] if len(chosen) else told[-1]))
