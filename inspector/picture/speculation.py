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
from inspector.picture.groups import group_ranks
from inspector.picture.ribbon import Ribbon, ribbon, told_requests
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


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
    and `drafted`, `accepted` are what the iterations tell. `missing` says what the trace has no data for.
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


def speculation(trace: Trace, window: Window | None, request: int | None, bins: int) -> SpeculationPicture:
    """Of the iterations that began in `window` (None: the whole trace); `request` is the id whose tokens are shown."""
    span = window or trace.whole
    drafted, accepted = of_iterations(trace, window)
    cost: DraftCost | NoCost = NoCost("no steps of requests were recorded")
    missing: list[str] = []
    if not len(trace["steps"]):
        how = trace.info.missing.get("steps", "record with inflight record, which hooks the engine")
        missing.append(f"No steps of requests, so acceptance by position and by request is not known: {how}")
        binned = over_time(trace, None, span, bins)
        return SpeculationPicture(
            trace, span, drafted, accepted, None, (), binned, None, cost, _ribbon(trace, request), tuple(missing)
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
        _ribbon(trace, request),
        tuple(missing),
    )


def _group(rank: int, name: str, counted: Counts, cost: DraftCost | NoCost) -> Group:
    return Group(rank, name, counted, positions(counted), estimate(counted, cost))


def _ribbon(trace: Trace, request: int | None) -> Ribbon | None:
    """Of the request that is selected, if its tokens are there; else of the last one whose tokens are."""
    told = told_requests(trace)
    if not len(told):
        return None
    chosen = np.flatnonzero(trace["requests"]["request"][told] == (-1 if request is None else request))
    return ribbon(trace, int(told[chosen[0]] if len(chosen) else told[-1]))
