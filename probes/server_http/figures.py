"""Figures of an iteration record that have no column of `iterations`, of every generation of the schema: counters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from probes.server_http.reading import Json, number, section
from probes.server_http.steps import listed


class Figure(NamedTuple):
    """Where it stands, what it is called, its unit, and by what it is multiplied for that.

    `zero` False: 0 is what is put there when nobody measured. `sum` True: it counts since the start, so differences are
    taken.
    """

    path: tuple[str, ...]
    name: str
    unit: str = ""
    zero: bool = True
    sum: bool = False
    scale: float = 1.0


_BATCH, _CACHE, _DRAFTS = "inflightBatchingStats", "kvCacheStats", "specDecodingStats"
_FILLED = {_CACHE: "maxNumBlocks", "crossKvCacheStats": "maxNumBlocks", "staticBatchingStats": "numScheduledRequests"}
"""Sections that are put there full of zeros where they do not apply, and what is never 0 where they do."""
FIGURES: tuple[Figure, ...] = (
    Figure(("numActiveRequests",), "active requests", "requests"),
    Figure(("numNewActiveRequests",), "new requests", "requests"),
    Figure(("newActiveRequestsQueueLatencyMS",), "queue latency of new requests", "ms", sum=True),
    Figure(("maxNumActiveRequests",), "most active requests", "requests", zero=False),
    Figure(("maxBatchSizeTunerRecommended",), "batch size that the tuner recommends", "requests", zero=False),
    Figure(("maxNumTokensTunerRecommended",), "tokens that the tuner recommends", "tokens", zero=False),
    Figure(("gpuMemUsage",), "GPU memory in use", "bytes", zero=False),
    Figure(("cpuMemUsage",), "engine host memory", "bytes", zero=False),
    Figure(("pinnedMemUsage",), "engine pinned memory", "bytes", zero=False),
    Figure(("hostStepTimeMS",), "host time of the loop", "ms", zero=False),
    Figure(("prevDeviceStepTimeMS",), "device time of the step before", "ms", zero=False),
    Figure(("gpuForwardTimeMS",), "device time of the forward pass", "ms", zero=False),
    Figure((_CACHE, "allocTotalBlocks"), "KV blocks allocated", "blocks", sum=True),
    Figure((_CACHE, "allocNewBlocks"), "KV blocks newly allocated", "blocks", sum=True),
    Figure((_CACHE, "cacheHitRate"), "KV cache hit rate since the start", "%", scale=100.0),
    Figure(("crossKvCacheStats", "usedNumBlocks"), "cross KV blocks used", "blocks"),
    Figure(("crossKvCacheStats", "freeNumBlocks"), "cross KV blocks free", "blocks"),
    Figure(("staticBatchingStats", "emptyGenSlots"), "empty generation slots", "requests"),
    Figure((_BATCH, "numScheduledRequests"), "scheduled requests", "requests"),
    Figure((_BATCH, "avgNumDecodedTokensPerIter"), "decoded tokens per request", "tokens", zero=False),
    Figure((_BATCH, "numCtxKvTokens"), "KV tokens in the context phase", "tokens"),
    Figure((_BATCH, "numGenKvTokens"), "KV tokens in the generation phase", "tokens"),
    Figure((_BATCH, "numQueuedContextRequests"), "queued context requests", "requests"),
    Figure((_BATCH, "numQueuedCtxTokens"), "queued context tokens", "tokens"),
    Figure((_BATCH, "numQueuedGenRequests"), "queued generation requests", "requests"),
    Figure((_BATCH, "numQueuedGenKvTokens"), "KV tokens of queued generation requests", "tokens"),
    Figure((_BATCH, "numPausedKvTokens"), "KV tokens of paused requests", "tokens"),
    Figure(("scheduledSumPrefillKvTokens",), "KV tokens in the context phase", "tokens"),
    Figure(("scheduledSumDecodeKvTokens",), "KV tokens in the generation phase", "tokens"),
    Figure(("queuedNumPrefillRequests",), "queued context requests", "requests"),
    Figure(("queuedSumPrefillTokens",), "queued context tokens", "tokens"),
    Figure(("queuedNumDecodeRequests",), "queued generation requests", "requests"),
    Figure(("queuedSumDecodeKvTokens",), "KV tokens of queued generation requests", "tokens"),
    Figure((_DRAFTS, "numRequestsWithDraftTokens"), "requests with drafts", "requests"),
    Figure((_DRAFTS, "acceptanceLength"), "acceptance length", "tokens"),
    Figure((_DRAFTS, "iterLatencyMS"), "host time of the draft model", "ms", zero=False),
    Figure((_DRAFTS, "draftOverhead"), "share of drafting", "%", zero=False, scale=100.0),
)
_BY_SECTION: dict[tuple[str, ...], dict[str, Figure]] = {}
for _figure in FIGURES:
    _BY_SECTION.setdefault(_figure.path[:-1], {})[_figure.path[-1]] = _figure
_PER_WINDOW: tuple[tuple[str, str, str], ...] = (
    ("iterAllocTotalBlocks", "KV blocks allocated", "blocks"),
    ("iterAllocNewBlocks", "KV blocks newly allocated", "blocks"),
    ("iterFullReusedBlocks", "KV blocks reused whole", "blocks"),
    ("iterPartialReusedBlocks", "KV blocks reused in part", "blocks"),
    ("iterGenAllocBlocks", "KV blocks allocated for generation", "blocks"),
    ("iterOnboardBlocks", "KV blocks restored from the host", "blocks"),
    ("iterOnboardBytes", "KV restored from the host", "bytes"),
    ("iterOffloadBlocks", "KV blocks offloaded to the host", "blocks"),
    ("iterOffloadBytes", "KV offloaded to the host", "bytes"),
    ("iterIntraDeviceCopyBlocks", "KV blocks copied on the device", "blocks"),
    ("iterIntraDeviceCopyBytes", "KV copied on the device", "bytes"),
    ("iterHostDroppedBlocks", "KV blocks dropped from the host", "blocks"),
    ("iterHostDroppedBytes", "KV dropped from the host", "bytes"),
    ("iterDiskPrefetchBlocks", "KV blocks fetched from disk", "blocks"),
    ("iterSuspendedRequests", "requests suspended", "requests"),
    ("iterResumedRequests", "requests resumed", "requests"),
)
WINDOWS = "kvCacheIterationStats"
STAGES, LISTED = "requestStats", "requests listed"
_STAGES = {
    "QUEUED": "requests queued",
    "CONTEXT_IN_PROGRESS": "requests in the context phase",
    "GENERATION_IN_PROGRESS": "requests in the generation phase",
    "GENERATION_COMPLETE": "requests that finished",
}


def kept(record: Any) -> Any:
    """A record without its list of requests, which is most of it: how many are in which stage instead, and what those
    in the engine did (see `listed`), with how many of those are left out.
    """
    if isinstance(record, dict):
        record.pop(LISTED, None)
    if not isinstance(record, dict) or not isinstance(record.get(STAGES), list):
        return record
    record[LISTED] = listed(record[STAGES])
    counts = dict.fromkeys(_STAGES, 0)
    for request in record[STAGES]:
        stage = request.get("stage") if isinstance(request, dict) else None
        if isinstance(stage, str) and stage in counts:
            counts[stage] += 1
    record[STAGES] = counts
    return record


class Figures:
    """Takes the figures of records in their order."""

    def __init__(self) -> None:
        self._before: dict[tuple[str, ...], float] = {}
        self._no_sums: set[tuple[str, ...]] = set()

    def forget(self) -> None:
        """The server was restarted: what counts since the start begins anew."""
        self._before.clear()

    def of(self, record: Json) -> Iterator[tuple[str, str, float]]:
        """Name, unit and value of each figure that the record tells."""
        windows = [each for each in section(record, WINDOWS).values() if isinstance(each, dict)]
        per_window = set()
        for key, name, unit in _PER_WINDOW if windows else ():
            values = [value for each in windows if key in each and not math.isnan(value := number(each, key))]
            if values:
                per_window.add(name)
                yield name, unit, sum(values)
        for groups, figures in _BY_SECTION.items():
            within = section(record, *groups)
            if groups and groups[0] in _FILLED and not number(within, _FILLED[groups[0]]) > 0:
                continue
            for key, figure in figures.items():
                if key not in within:
                    continue
                value = number(within, key)
                if math.isnan(value) or (not value and not figure.zero):
                    continue
                if figure.sum:
                    value = self._grown(figure.path, value)
                if value >= 0 and figure.name not in per_window:
                    yield figure.name, figure.unit, value * figure.scale
        stages = section(record, STAGES)
        for stage, name in _STAGES.items():
            if stage in stages:
                yield name, "requests", number(stages, stage)

    def _grown(self, path: tuple[str, ...], value: float) -> float:
        """By how much a sum grew; NaN where that is not known. One that has fallen was none: it is told as it is."""
        before = self._before.get(path)
        self._before[path] = value
        if before is not None and value < before:
            self._no_sums.add(path)
        if path in self._no_sums:
            return value
        return math.nan if before is None else value - before
