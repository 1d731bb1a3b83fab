"""What the engine lets others read over HTTP: statistics of iterations and of requests, with TensorRT-LLM's names."""

from __future__ import annotations

import datetime
import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from probes.workloads.engine.blocks import ALLOCATED, REUSED, Content, PageEvent
from probes.workloads.engine.page_feed import PageFeed, drained
from probes.workloads.engine.prometheus import RequestFigures
from probes.workloads.engine.records import CONTEXT, FINISHED, GENERATION, Iteration, Step
from probes.workloads.engine.request import Request
from probes.workloads.engine.responses import Json

MOST_ITERATIONS = 1000
MOST_REQUESTS = 1000
_MS, _SECOND = 1e6, 1e9


@dataclass
class _Tally:
    """Of one request, as long as it is in the engine."""

    allocated: int = 0
    reused: int = 0
    drafted: int = 0
    accepted: int = 0
    first_iteration: int | None = None
    last_iteration: int | None = None


class Statistics:
    """Observes an engine, on its thread; the drains and `prometheus` may be called from any other.

    Each keeps the newest thousand (or so) records; what is not read in time goes, oldest first. `window_size`: most
    tokens of a sequence; `reuse`: whether prefixes are looked for in the cache.
    """

    def __init__(self, window_size: int, reuse: bool) -> None:
        self._reuse = reuse
        self._pages = PageFeed(window_size)
        self._iterations: deque[Json] = deque(maxlen=MOST_ITERATIONS)
        self._finished: deque[Json] = deque(maxlen=MOST_REQUESTS)
        self._figures = RequestFigures()
        self._tallies: dict[int, _Tally] = {}
        self._active: set[int] = set()
        self._tokens_per_block = self._blocks = 0
        self._allocated = self._taken_again = self._reused = self._missed = self._used = 0
        self._queued_ns = 0
        self._memory, self._memory_at = 0, -_SECOND

    def iterations(self) -> list[Json]:
        """Iterations since the last call, oldest first."""
        return drained(self._iterations)

    def page_events(self) -> list[Json]:
        """KV cache events since the last call, oldest first."""
        return self._pages.drain()

    def finished(self) -> list[Json]:
        """Requests that finished since the last call, oldest first."""
        return drained(self._finished)

    def prometheus(self) -> str:
        """Figures in Prometheus' text format."""
        used = self._used / self._blocks if self._blocks else 0.0
        return self._figures.text({"kv_cache_hit_rate": self._hit_rate(), "kv_cache_utilization": used})

    def pool(self, time: int, blocks: int, host_blocks: int, tokens_per_block: int, block_bytes: int) -> None:
        """See Observer."""
        self._blocks, self._tokens_per_block = blocks, tokens_per_block
        self._pages.pool(blocks, host_blocks)

    def page(self, event: PageEvent, content: Content | None) -> None:
        """See Observer."""
        if event.kind in (ALLOCATED, REUSED):
            tally = self._tallies.setdefault(event.request, _Tally())
            if event.kind == ALLOCATED:
                tally.allocated += 1
                self._allocated += 1
            else:
                tally.reused += 1
                self._taken_again += 1
        self._pages.page(event, content)

    def request(self, request: Request) -> None:
        """See Observer."""

    def iteration(self, iteration: Iteration) -> None:
        """See Observer."""
        began = 0
        for step in iteration.steps:
            began += self._step(iteration.number, step)
        self._reused += iteration.reused_blocks
        self._missed += iteration.missed_blocks
        self._used = iteration.used_blocks
        self._iterations.append(self._record(iteration, began))
        for step in iteration.steps:
            if step.phase == FINISHED:
                self._leave(step.request)

    def rest(self) -> None:
        """See Observer."""

    def _step(self, number: int, step: Step) -> bool:
        """Count a step; whether it is the request's first."""
        if step.phase not in (CONTEXT, GENERATION):
            return False
        request = step.request
        tally = self._tallies.setdefault(request.id, _Tally())
        tally.drafted += len(step.drafts)
        tally.accepted += step.accepted
        if step.emitted:
            if tally.first_iteration is None:
                tally.first_iteration = number
            tally.last_iteration = number
        if request.id in self._active:
            return False
        self._active.add(request.id)
        if request.scheduled is not None and request.arrival is not None:
            self._queued_ns += request.scheduled - request.arrival
        return True

    def _record(self, it: Iteration, began: int) -> Json:
        batch, tokens = it.max_batch_size, it.max_num_tokens
        latency = (it.end - it.start) / _MS
        return {
            "timestamp": _wall(it.start),
            "iter": it.number,
            "iterLatencyMS": latency,
            "newActiveRequestsQueueLatencyMS": self._queued_ns / _MS,
            "numNewActiveRequests": began,
            "numActiveRequests": len(self._active),
            "numQueuedRequests": it.queued_requests,
            "numCompletedRequests": it.completed_requests,
            "maxNumActiveRequests": batch,
            "maxBatchSizeStatic": batch,
            "maxBatchSizeTunerRecommended": 0,
            "maxBatchSizeRuntime": batch,
            "maxNumTokensStatic": tokens,
            "maxNumTokensTunerRecommended": 0,
            "maxNumTokensRuntime": tokens,
            "gpuMemUsage": 0,
            "cpuMemUsage": self._resident(it.end),
            "pinnedMemUsage": 0,
            "kvCacheStats": {
                "maxNumBlocks": it.used_blocks + it.free_blocks,
                "freeNumBlocks": it.free_blocks,
                "usedNumBlocks": it.used_blocks,
                "tokensPerBlock": self._tokens_per_block,
                "allocTotalBlocks": self._allocated + self._taken_again,
                "allocNewBlocks": self._allocated,
                "reusedBlocks": self._reused,
                "missedBlocks": self._missed,
                "cacheHitRate": self._hit_rate(),
            },
            "staticBatchingStats": None,
            "inflightBatchingStats": {
                "numScheduledRequests": it.context_requests + it.generation_requests,
                "numContextRequests": it.context_requests,
                "numGenRequests": it.generation_requests,
                "numPausedRequests": it.paused_requests,
                "numCtxTokens": it.context_tokens,
                "microBatchId": 0,
                "avgNumDecodedTokensPerIter": _tokens_per_request(it),
            },
            "specDecodingStats": _speculation(it, latency),
        }

    def _hit_rate(self) -> float:
        asked = self._reused + self._missed
        return self._reused / asked if asked else 0.0

    def _resident(self, now: int) -> int:
        """Resident memory of this process in bytes, looked up at most once a second; 0 where that is not to be had."""
        if now - self._memory_at >= _SECOND:
            self._memory_at = now
            try:
                pages = int(Path("/proc/self/statm").read_text().split()[1])
            except OSError:
                pages = 0
            self._memory = pages * os.sysconf("SC_PAGE_SIZE")
        return self._memory

    def _leave(self, request: Request) -> None:
        tally = self._tallies.pop(request.id, _Tally())
        self._active.discard(request.id)
        self._figures.finished(request)
        speculation: Json = {}
        if tally.drafted:
            speculation = {
                "speculative_decoding": {
                    "acceptance_rate": tally.accepted / tally.drafted,
                    "total_accepted_draft_tokens": tally.accepted,
                    "total_draft_tokens": tally.drafted,
                }
            }
        looked_for = (len(request.prompt) - 1) // self._tokens_per_block if self._reuse else 0
        metrics = {
            "first_iter": tally.first_iteration,
            "last_iter": tally.last_iteration,
            "timing_metrics": {
                "server_arrival_time": None,
                "server_first_token_time": None,
                "arrival_time": _seconds(request.arrival),
                "first_scheduled_time": _seconds(request.scheduled),
                "first_token_time": _seconds(request.first_token),
                "last_token_time": _seconds(request.last_token),
            },
            "kv_cache_metrics": {
                "num_total_allocated_blocks": tally.allocated + tally.reused,
                "num_new_allocated_blocks": tally.allocated,
                "num_reused_blocks": tally.reused,
                "num_missed_blocks": looked_for - request.reused_tokens // self._tokens_per_block,
            },
            **speculation,
        }
        self._finished.append({"request_id": request.id, "perf_metrics": metrics})


def _tokens_per_request(it: Iteration) -> float:
    given = [len(step.emitted) for step in it.steps if step.phase == GENERATION]
    return sum(given) / len(given) if given else 0.0


def _speculation(it: Iteration, latency: float) -> Json | None:
    drafting = sum(span.end - span.start for span in it.spans if span.name == "draft") / _MS
    requests = sum(bool(step.drafts) for step in it.steps)
    if not requests and not drafting:
        return None
    return {
        "numDraftTokens": it.drafted,
        "numAcceptedTokens": it.accepted,
        "numRequestsWithDraftTokens": requests,
        "acceptanceLength": (it.accepted + requests) / requests if requests else 0.0,
        "iterLatencyMS": drafting,
        "draftOverhead": drafting / latency if latency else 0.0,
    }


def _wall(monotonic: int) -> str:
    """A time on the monotonic clock (ns) as local wall clock without a zone."""
    seconds = time.time() - (time.monotonic_ns() - monotonic) / _SECOND
    return datetime.datetime.fromtimestamp(seconds).strftime("%m-%d-%Y %H:%M:%S.%f")


def _seconds(monotonic: int | None) -> float | None:
    return None if monotonic is None else monotonic / _SECOND
