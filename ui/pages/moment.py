"""What the KV pages view asks of a moment, and the words for a page, for the figures and for what is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from inspector import units
from inspector.analysis.page_figures import PageFigures, page_figures
from inspector.analysis.page_log import PageLog
from inspector.analysis.page_replay import KEPT, UNKNOWN, USED, Replay
from inspector.analysis.page_steps import OPENS
from inspector.analysis.pages import Pages, PageTable, busiest, page_table, pages_at
from inspector.analysis.prefix_tree import prefix_tree
from inspector.analysis.told_pages import ToldPages
from inspector.picture.labels import moment as moment_text
from inspector.picture.page_map import By, Mask, PageMap, page_map
from inspector.picture.prefixes import PrefixPicture, prefix_picture
from inspector.trace.schema import NEVER

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

_TOLD = (
    "Pages in use are counted by the engine's records of its iterations. Which page is in use, and by whom, is not "
    "told: the map shows what holds cached contents."
)
Lines = list[tuple[str, str]]


@dataclass(frozen=True)
class Wanted:
    """`time` (ns) is None for the newest moment of a trace that grows, the busiest of one that does not. `request` is
    the engine's id; with `seek` the moment is moved to where that request last took a page if it has none at `time`.
    """

    time: int | None = None
    by: By = "request"
    request: int | None = None
    seek: bool = False
    tree: bool = False


@dataclass(frozen=True)
class Moment:
    """Everything that is shown of one moment. `row` is that of `request` in requests, -1 none; `mine` its pages. It was
    `sought` where it is another moment than the one wanted, for the sake of the request."""

    trace: Trace
    wanted: Wanted
    pages: Pages
    map: PageMap
    figures: PageFigures
    row: int
    sought: bool
    table: PageTable | None
    mine: Mask | None
    tree: PrefixPicture | None
    iteration: int | None
    notes: tuple[str, ...]

    @property
    def time(self) -> int:
        """The moment, ns."""
        return self.pages.time


def moment(trace: Trace, wanted: Wanted) -> Moment:
    """Work it out."""
    replay = trace.index(Replay)
    row = row_of(trace, wanted.request)
    time = wanted.time
    if time is None:
        time = trace.end_ns if trace.generation else busiest(trace)
    # Of what was before only the end is at hand.
    earliest = trace.kept.from_ns
    pages = pages_at(trace, max(time, earliest))
    sought = False
    if wanted.seek and row >= 0 and not (replay.log.request[pages.held] == row).any():
        taken = np.flatnonzero((replay.log.request == row) & (replay.flags & OPENS != 0))
        if len(taken):
            pages, sought = pages_at(trace, max(int(replay.log.time[taken[-1]]), earliest)), True
    table = mine = None
    if row >= 0:
        table = page_table(trace, pages, row)
        mine = np.zeros(len(pages), bool)
        mine[table.block] = True
    starts = trace["iterations"]["start"]
    at = int(np.searchsorted(starts, pages.time, "right")) - 1
    return Moment(
        trace,
        wanted,
        pages,
        page_map(trace, pages, wanted.by),
        page_figures(trace, pages),
        row,
        sought,
        table,
        mine,
        prefix_picture(prefix_tree(trace, pages)) if wanted.tree else None,
        int(trace["iterations"]["iteration"][at]) if at >= 0 else None,
        notes(trace),
    )


def row_of(trace: Trace, request: int | None) -> int:
    """Row of requests of the engine's id; -1 none."""
    if request is None:
        return -1
    rows = np.flatnonzero(trace["requests"]["request"] == request)
    return int(rows[0]) if len(rows) else -1


def notes(trace: Trace) -> tuple[str, ...]:
    """What makes the picture less than certain, one sentence each."""
    log, replay = trace.index(PageLog), trace.index(Replay)
    said = []
    if trace.index(ToldPages).applies:
        said.append(_TOLD)
    if log.missing:
        said.append(
            f"{log.missing:,} page events are missing, in {_times(len(log.holes), 'place')}: pages are unknown from "
            "there on until an event settles them."
        )
    elif len(log.holes):
        said.append("The recording began after the engine: pages are unknown until an event settles them.")
    if replay.pools.assumed:
        said.append("Nobody told the size of the pool: it is taken from the largest number seen.")
    if replay.contradictions:
        said.append(f"{_times(replay.contradictions, 'event')} did not fit what the page was; the later one counts.")
    if log.repeated:
        said.append(f"{_times(log.repeated, 'event')} came twice and count once.")
    if log.strange:
        said.append(f"{_times(log.strange, 'event')} named a page that can be none, and are left out.")
    if log.engines > 1:
        said.append(f"{log.engines} engines are in this trace; page events do not say whose they are. Open one alone.")
    return tuple(said)


def _times(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def page_lines(shown: Moment, page: int) -> Lines:
    """What the box beside the pointer says of a page: a title, then label and value."""
    pages, log = shown.pages, shown.trace.index(Replay).log
    status = int(pages.status[page])
    lines: Lines = [("", f"page {page:,}")]
    if status == USED:
        held = pages.held[log.block[pages.held] == page]
        names = [_request(shown.trace, int(row)) for row in log.request[held].tolist()]
        places = log.column(shown.trace, "index")[held].tolist()
        who = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
        if not pages.certain[page]:
            who += " (others may hold it too)"
        lines.append(("held by", who or "a request that is not known"))
        if places and min(places) >= 0:
            lines.append(("place", ", ".join(str(place) for place in sorted(set(places))[:4])))
        if shown.table is not None and shown.mine is not None and shown.mine[page]:
            at = int(np.flatnonzero(shown.table.block == page)[0])
            size = page_tokens(shown.trace, shown.time)
            if shown.table.filled[at] >= 0:
                lines.append(("filled", f"{int(shown.table.filled[at])} of {size} tokens"))
    else:
        words = {KEPT: "cached: held by none, can be reused", UNKNOWN: "not known since events are missing"}
        if shown.trace.index(ToldPages).applies:
            words = {KEPT: "cached: can be reused, whether in use is not told", UNKNOWN: "not told"}
        lines.append(("is", words.get(status, "free")))
    if int(pages.since[page]) != NEVER:
        lines.append(("for", units.time(pages.time - int(pages.since[page]))))
    if int(pages.content[page]) >= 0:
        lines.append(("hash", f"{int(log.column(shown.trace, 'hash')[int(pages.content[page])]):016x}"))
    return lines


def host_lines(shown: Moment, page: int) -> Lines:
    """The same of a host page."""
    pages = shown.pages
    words = {KEPT: "contents moved out of the device", UNKNOWN: "not known since events are missing"}
    lines: Lines = [("", f"host page {page:,}"), ("is", words.get(int(pages.host_status[page]), "free"))]
    if int(pages.host_since[page]) != NEVER:
        lines.append(("for", units.time(pages.time - int(pages.host_since[page]))))
    return lines


def page_tokens(trace: Trace, time: int) -> int:
    """Tokens of one page; -1 not known."""
    pools = trace.index(Replay).pools
    return int(pools.tokens[pools.row(time)])


def _request(trace: Trace, row: int) -> str:
    return f"request {int(trace['requests']['request'][row])}" if row >= 0 else "a request that is not named"


def where(shown: Moment) -> str:
    """The moment in words."""
    iteration = f", iteration {shown.iteration:,}" if shown.iteration is not None else ""
    return f"at {moment_text(shown.time)}{iteration}"
