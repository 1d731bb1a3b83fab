"""GET /metrics: one JSON object per engine iteration, of any generation of the schema, into rows of `iterations`."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.trace.quality import Quality
from probes.server_http.client import Answer
from probes.server_http.clocks import WallClock
from probes.server_http.feed import Feed
from probes.server_http.figures import LISTED, WINDOWS, Figures
from probes.server_http.loops import Loop
from probes.server_http.numbering import Numbering
from probes.server_http.pool import Pool
from probes.server_http.reading import FAR, UNKNOWN, Json, filled, number, section, whole
from probes.server_http.steps import MOST_LISTED, Steps

_MOST_LATENCY_MS = 3.6e6


class Iterations:
    """Takes the records of one rank. `records` and `lost` count them, `lost` by gaps in their numbers.

    `is_first`: whether it is rank 0, whose drafts others repeat.
    """

    def __init__(self, feed: Feed, quality: Quality, pool: Pool, loop: Loop, is_first: bool = True) -> None:
        self._feed, self._quality, self._pool, self._loop = feed, quality, pool, loop
        self._is_first = is_first
        self._clock = WallClock(quality)
        self._figures = Figures()
        self._numbers = Numbering(every_nth=True)
        self._totals: tuple[int, int] | None = None
        self.steps = Steps(feed, quality)
        self.records = 0

    @property
    def lost(self) -> int:
        """Iterations between those that came. A server that tells every n-th loses none by that."""
        return self._numbers.lost

    @property
    def restarts(self) -> int:
        """How often the server began to count anew."""
        return self._numbers.restarts

    def take(self, answer: Answer, records: Sequence[Json]) -> None:
        """Rows of one answer, oldest first: of records that have a number."""
        stamps = [record.get("timestamp") for record in records]
        times = self._clock.times(stamps, answer.received_ns, answer.epoch_ns)
        end = answer.received_ns
        rows = []
        # From the newest back, so that one without a time of its own ends where its successor begins.
        for record, start in zip(reversed(records), reversed(times), strict=True):
            latency = number(record, "iterLatencyMS")
            length = round(latency * 1e6) if 0 <= latency <= _MOST_LATENCY_MS else 0
            if start is None:
                start = end - length
                self._quality.add("unstamped", "iterations without a time: they are put before the next one")
            end = start
            rows.append((start, start + length, record))
        for start, stop, record in reversed(rows):
            self._one(start, stop, record)

    def _one(self, start: int, end: int, record: Json) -> None:
        iteration = whole(record, "iter", FAR)
        if not self._number(iteration, record):
            return
        self.records += 1
        step = self._loop.step(iteration, record)
        batch, cache = section(record, "inflightBatchingStats"), _cache(record)
        used, free = self._pages(cache, record)
        if not batch:
            batch = section(record, "staticBatchingStats")
            batch = batch if whole(batch, "numScheduledRequests") > 0 else {}
        context = _either(batch, "numContextRequests", record, "scheduledNumPrefillRequests")
        generation = _either(batch, "numGenRequests", record, "scheduledNumDecodeRequests")
        context_tokens = _either(batch, "numCtxTokens", record, "scheduledSumPrefillTokens")
        drafted, accepted = self._drafts(record)
        reused, missed = self._reuse(record, cache)
        self._feed.add(
            "iterations",
            [
                (
                    start,
                    end,
                    step,
                    context,
                    generation,
                    whole(batch, "numPausedRequests"),
                    whole(record, "numQueuedRequests"),
                    self._tokens(record, batch, generation, context_tokens),
                    used,
                    free,
                    reused,
                    missed,
                    context_tokens,
                    drafted,
                    accepted,
                    UNKNOWN,
                    whole(record, "numCompletedRequests"),
                    _sum(record, "primaryEvictableNumBlocks"),
                    _sum(record, "secondaryUsedNumBlocks"),
                    _first(record, "maxBatchSizeRuntime", "maxBatchSizeStatic"),
                    _first(record, "maxNumTokensRuntime", "maxNumTokensStatic"),
                    UNKNOWN,
                )
            ],
        )
        entries, left_out = record.get(LISTED, ([], 0))
        if left_out:
            self._quality.add("ignored", f"requests of requestStats without an id, or beyond {MOST_LISTED}", left_out)
        self.steps.take((start, end), iteration, step, record, entries)
        for name, unit, value in self._figures.of(record):
            self._feed.counter(end, name, unit, value)
        self._size(start, cache, record)

    def _number(self, iteration: int, record: Json) -> bool:
        """Whether the record is to be taken."""
        place = self._numbers.place(iteration, record)
        if place == "same":
            self._quality.add("duplicate", "iterations that the server told twice: they count once")
            return False
        if place != "next":
            # What grows from record to record tells nothing here.
            self._totals = None
            self._figures.forget()
        if place == "late":
            self._quality.add("profiler", "iterations that came after later ones")
        elif place == "again":
            self._quality.add("duplicate", "iterations of which the server told again, and otherwise: both are shown")
        elif place == "anew":
            self.steps.forget()
            self._quality.add("profiler", "the server began to count its iterations anew: it was restarted")
        return True

    def _tokens(self, record: Json, batch: Json, generation: int, context: int) -> int:
        given = whole(batch, "numGenTokens")
        if given >= 0 and context >= 0:
            return given + context
        # Without speculation each request in the generation phase computes one token; with it nobody tells how many.
        plain = "specDecodingStats" in record and record["specDecodingStats"] is None
        return generation + context if plain and generation >= 0 and context >= 0 else UNKNOWN

    def _drafts(self, record: Json) -> tuple[int, int]:
        stats = section(record, "specDecodingStats") if self._is_first else {}
        drafted, accepted = whole(stats, "numDraftTokens"), whole(stats, "numAcceptedTokens")
        if accepted > drafted >= 0:
            # The server may read the drafts of one step beside what was accepted of the step before.
            self._quality.add("repaired", "iterations that accept more than they drafted: both are taken as unknown")
            return UNKNOWN, UNKNOWN
        return drafted, accepted

    def _reuse(self, record: Json, cache: Json) -> tuple[int, int]:
        own = _sum(record, "iterReusedBlocks"), _sum(record, "iterMissedBlocks")
        if min(own) >= 0:
            return own
        totals = whole(cache, "reusedBlocks", FAR), whole(cache, "missedBlocks", FAR)
        before, self._totals = self._totals, totals if min(totals) >= 0 else None
        if before is None or self._totals is None:
            return UNKNOWN, UNKNOWN
        reused, missed = totals[0] - before[0], totals[1] - before[1]
        return (reused, missed) if 0 <= reused < 2**31 and 0 <= missed < 2**31 else (UNKNOWN, UNKNOWN)

    def _pages(self, cache: Json, record: Json) -> tuple[int, int]:
        """Device blocks used and free."""
        most, host = whole(cache, "maxNumBlocks", FAR), _sum(record, "secondaryMaxNumBlocks")
        if host > 0 and most == host + _sum(record, "primaryMaxNumBlocks"):
            # Versions before the middle of 2026 count those in host memory too, when there are any.
            return _sum(record, "primaryUsedNumBlocks"), _sum(record, "primaryFreeNumBlocks")
        if self._pool.counts_host(most):
            text = "iterations whose used and free KV blocks include those in host memory: this version counts both"
            self._quality.add("assumed", text)
        return whole(cache, "usedNumBlocks"), whole(cache, "freeNumBlocks")

    def _size(self, time_ns: int, cache: Json, record: Json) -> None:
        blocks, tokens = whole(cache, "maxNumBlocks", FAR), filled(cache, "tokensPerBlock")
        primary, secondary = _sum(record, "primaryMaxNumBlocks"), _sum(record, "secondaryMaxNumBlocks")
        if primary > 0 and secondary >= 0:
            self._pool.places(time_ns, primary, secondary)
        if blocks > 0 and tokens > 0:
            self._pool.whole(time_ns, blocks, tokens)


def _cache(record: Json) -> Json:
    cache = section(record, "kvCacheStats")
    # All zeros is a section that nobody filled.
    return cache if whole(cache, "maxNumBlocks", FAR) > 0 else {}


def _sum(record: Json, key: str) -> int:
    """Over the window sizes of a later schema; UNKNOWN where it does not tell."""
    found = [whole(each, key) for each in section(record, WINDOWS).values() if isinstance(each, dict)]
    return sum(found) if found and min(found) >= 0 and sum(found) < 2**31 else UNKNOWN


def _either(first: Json, key: str, second: Json, other: str) -> int:
    """A count by the name of most versions, or by that of a few."""
    found = whole(first, key)
    return found if found >= 0 else whole(second, other)


def _first(record: Json, *keys: str) -> int:
    return next((value for key in keys if (value := filled(record, key)) > 0), UNKNOWN)
