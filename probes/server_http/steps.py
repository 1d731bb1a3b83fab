"""`requestStats` of /metrics (enable_iter_req_stats): what each request did in each iteration, as far as it is told.

A record lists every request with its stage, how many tokens it has made, how far its prompt is computed, and whether it
took part. What it did is the difference to the record before. Ids are the engine's own, which no other path tells.
Written from public sources; no server that tells it was at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from inspector.trace.quality import Quality
from inspector.trace.schema import NEVER, PHASES
from probes.server_http.feed import Feed
from probes.server_http.reading import FAR, UNKNOWN, Json, filled, whole

STAGES = ("QUEUED", "CONTEXT_IN_PROGRESS", "GENERATION_IN_PROGRESS", "GENERATION_COMPLETE")
_QUEUED, _IN_CONTEXT, _, _COMPLETE = range(len(STAGES))
_CONTEXT, _GENERATION, _FINISHED = map(PHASES.index, ("context", "generation", "finished"))
MOST_LISTED = 4096
"""Requests of one record of which more than their number is kept: no engine has more in flight."""
_TOLD = (
    "steps are what requestStats tells: who took part by its flag, which with the overlap scheduler may be that of the "
    "batch before, tokens by what was made since the record before"
)
_ARRIVALS = (
    "requests known from requestStats only: when they came is not told, so neither are TTFT, queue wait and E2E; they "
    "are drawn from where they are first listed"
)


class Listed(NamedTuple):
    """One request in one record: counts are UNKNOWN where they are not told."""

    request: int
    stage: int
    took_part: bool
    made: int
    position: int
    blocks: int


def listed(entries: Sequence[Any]) -> tuple[list[Listed], int]:
    """Those that are in the engine or leave it, and how many more there are. Who waits in the queue did nothing."""
    found: list[Listed] = []
    more = 0
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("stage") not in STAGES[1:]:
            continue
        request = whole(entry, "id", FAR)
        if request < 0 or len(found) >= MOST_LISTED:
            more += 1
            continue
        counts = whole(entry, "numGeneratedTokens"), whole(entry, "contextPrefillPosition")
        blocks = filled(entry, "allocTotalBlocksPerRequest")
        found.append(Listed(request, STAGES.index(entry["stage"]), entry.get("scheduled") is True, *counts, blocks))
    return found, more


class Steps:
    """Takes the requests of records in their order. `count` rows were made."""

    def __init__(self, feed: Feed, quality: Quality) -> None:
        self._feed, self._quality = feed, quality
        self._before: dict[int, Listed] = {}
        self._came: dict[int, int] = {}
        self._last: int | None = None
        self._is_over, self._why = False, ""
        self.count = 0

    def stop(self, why: str) -> None:
        """Take no more, and say why where there is something to be taken."""
        self._why = self._why or why
        self._is_over = True

    def forget(self) -> None:
        """The server counts anew: its new requests may have the numbers of old ones, which nobody could tell apart."""
        if self.count:
            self.stop("steps after a restart of the server: its requests have numbers that came before")

    def take(self, span: tuple[int, int], number: int, step: int, record: Json, entries: Sequence[Listed]) -> None:
        """Rows of the record `number`, which tells of the iteration `step` over `span` (ns)."""
        if self._is_over and entries:
            self._quality.add("ignored", self._why, len(entries))
        if self._is_over:
            return
        follows = self._last is not None and number == self._last + 1
        self._last = number
        drafts = "specDecodingStats" not in record or record["specDecodingStats"] is not None
        for now in entries:
            self._one(span, step, now, follows, drafts)
        gone = self._before.keys() - {now.request for now in entries}
        for request in gone:
            del self._before[request], self._came[request]
        self._before.update((now.request, now) for now in entries)

    def _one(self, span: tuple[int, int], step: int, now: Listed, follows: bool, drafts: bool) -> None:
        start, end = span
        before = self._before.get(now.request)
        is_new = before is None
        came = self._came.setdefault(now.request, start)
        if not self.count and is_new:
            self._quality.add("assumed", _TOLD)
            self._quality.add("assumed", _ARRIVALS)
        # One that was not listed in the record before had made nothing by then.
        made_before = before.made if before is not None else 0
        made = now.made - made_before if follows and now.made >= 0 and made_before >= 0 else UNKNOWN
        made = max(made, UNKNOWN)
        moved = now.position - before.position if follows and before and min(now.position, before.position) >= 0 else 0
        took_part = now.took_part or made > 0 or moved > 0
        was_in_context = before.stage == _IN_CONTEXT and before.made <= 0 if before else follows and now.made <= 1
        in_context = now.stage == _IN_CONTEXT or moved > 0 or was_in_context
        if is_new or now.stage == _COMPLETE:
            self._tell(now, came, end)
        if took_part:
            tokens = moved if in_context and moved > 0 else 1 if not in_context and not drafts else UNKNOWN
            phase = _CONTEXT if in_context else _GENERATION
            told = UNKNOWN if drafts else 0
            self._add((step, now.request, phase, tokens, told, told, now.blocks, made, UNKNOWN, UNKNOWN))
        if now.stage == _COMPLETE:
            self._add((step, now.request, _FINISHED, 0, 0, 0, 0, 0, UNKNOWN, UNKNOWN))

    def _tell(self, now: Listed, came: int, end: int) -> None:
        # Without a time of arrival nobody can tell how long it waited, for its first token or for its last.
        is_done = now.stage == _COMPLETE
        made, finished = (now.made, end) if is_done else (UNKNOWN, NEVER)
        row = (now.request, came, NEVER, NEVER, UNKNOWN, made, NEVER, finished, UNKNOWN, UNKNOWN, -1)
        self._feed.add("requests", [row])

    def _add(self, row: tuple[int, ...]) -> None:
        self.count += 1
        self._feed.add("steps", [row])
