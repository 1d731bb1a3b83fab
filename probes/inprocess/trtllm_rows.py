"""What the TensorRT-LLM probe copied, as rows: runs in the probe's own thread, in the order of copying."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from .columns import NEVER
from .producer import Producer

_CONTEXT, _GENERATION, _PAUSED, _FINISHED = 1, 2, 3, 4
_FREED, _ALLOCATED, _REUSED = 0, 1, 3
# Of the engine's own statistics: where a figure stands, what it is called, its unit.
_COUNTERS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("iterLatencyMS",), "iteration latency (engine)", "ms"),
    (("numActiveRequests",), "active requests (engine)", ""),
    (("numQueuedRequests",), "queued requests (engine)", ""),
    (("gpuMemUsage",), "device memory in use, all processes (engine)", "bytes"),
    (("kvCacheStats", "usedNumBlocks"), "KV blocks used (engine)", ""),
    (("kvCacheStats", "freeNumBlocks"), "KV blocks free (engine)", ""),
    (("kvCacheStats", "reusedBlocks"), "KV blocks reused so far (engine)", ""),
    (("kvCacheStats", "missedBlocks"), "KV blocks missed so far (engine)", ""),
    (("specDecodingStats", "numDraftTokens"), "draft tokens (engine)", ""),
    (("specDecodingStats", "numAcceptedTokens"), "accepted draft tokens (engine)", ""),
)


class _Request:
    """What is known of a request."""

    def __init__(self, arrival: int, prompt: int, most: int) -> None:
        self.arrival, self.prompt, self.most = arrival, prompt, most
        self.scheduled = self.first = self.last = self.finished = NEVER
        self.output = 0
        self.blocks = 0

    def row(self, number: int) -> tuple[Any, ...]:
        output = self.output if self.finished != NEVER else -1
        times = (self.arrival, self.first, self.last)
        return (number, *times, self.prompt, output, self.scheduled, self.finished, -1, self.most, -1)


class _Batch:
    """An iteration that was launched and is not settled yet."""

    def __init__(
        self, number: int, start: int, rows: list[tuple[int, int, int, int]], paused: list[int], queued: int
    ) -> None:
        self.number, self.start, self.rows, self.paused, self.queued = number, start, rows, paused, queued
        self.next: int | None = None
        self.used = self.free = -1


class Encoder:
    """Rows of iterations, requests, steps, page events and counters for `producer`."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._requests: dict[int, _Request] = {}
        self._batches: list[_Batch] = []
        self._holders: Counter[int] = Counter()
        self._pool_blocks = -1
        self._sequence = 0
        self._last = -1

    def take(self, what: tuple[Any, ...]) -> None:
        """One thing that was copied: its kind first, then what _Probe put with it."""
        getattr(self, f"_{what[0]}")(*what[1:])

    def lost(self, count: int) -> None:
        """Say that so many copies found no room."""
        self._producer.status("failed", f"{count} copies of the executor's state found no room: sums will not agree")

    def _came(self, number: int, now: int, prompt: int, most: int) -> None:
        self._requests[number] = _Request(now, prompt, most)
        self._say(number)

    def _left(self, number: int, now: int, tokens: int) -> None:
        request = self._requests.get(number)
        if request is None:
            return
        request.finished = now
        request.output = tokens if tokens >= 0 else request.output
        self._say(number)
        del self._requests[number]
        if self._last >= 0:
            self._producer.add("steps", [(self._last, number, _FINISHED, 0, 0, 0, 0, 0, -1, -1)])

    def _batch(
        self,
        number: int,
        now: int,
        rows: list[tuple[int, int, int, int]],
        paused: list[int],
        queued: int,
        settles: bool,
    ) -> None:
        for waiting in self._batches:
            if waiting.next is None:
                waiting.next = now
        if not settles:
            # Nothing else ends a batch.
            self._ended(now)
        batch = _Batch(number, now, rows, paused, queued)
        batch.used = sum(1 for count in self._holders.values() if count) if self._pool_blocks >= 0 else -1
        batch.free = self._pool_blocks - batch.used if self._pool_blocks >= 0 else -1
        self._batches.append(batch)
        for request, *_ in rows:
            known = self._requests.setdefault(request, _Request(now, -1, -1))
            if known.scheduled == NEVER:
                known.scheduled = now
                self._say(request)

    def _settled(self, number: int, now: int, rows: list[tuple[int, int, int, int]]) -> None:
        at = next((at for at, batch in enumerate(self._batches) if batch.number == number), -1)
        if at < 0:
            return
        for request, emitted, _, _ in rows:
            known = self._requests.get(request)
            if known is not None and emitted:
                known.first = now if known.first == NEVER else known.first
                known.last, known.output = now, known.output + emitted
                if known.first == now:
                    self._say(request)
        self._close(self._batches.pop(at), now, {row[0]: row for row in rows})

    def _ended(self, now: int) -> None:
        while self._batches:
            self._close(self._batches.pop(0), now, {})

    def _close(self, batch: _Batch, now: int, tokens: dict[int, tuple[int, int, int, int]]) -> None:
        end = now if batch.next is None else min(batch.next, now)
        steps = []
        sums: Counter[str] = Counter()
        for request, phase, computed, position in batch.rows:
            _, emitted, drafted, accepted = tokens.get(request, (request, -1, -1, -1))
            known = self._requests.get(request)
            blocks = known.blocks if known is not None and self._pool_blocks >= 0 else -1
            steps.append((batch.number, request, phase, computed, drafted, accepted, blocks, emitted, position, -1))
            sums["tokens"] += computed
            sums["context_tokens"] += computed if phase == _CONTEXT else 0
            for key, value in (("drafted", drafted), ("accepted", accepted), ("emitted", emitted)):
                sums[key] += max(value, 0)
            sums[str(phase)] += 1
        told = [sums[key] if tokens else -1 for key in ("drafted", "accepted", "emitted")]
        counts = (sums[str(_CONTEXT)], sums[str(_GENERATION)], len(batch.paused), batch.queued, sums["tokens"])
        pages = (batch.used, batch.free, -1, -1)
        iteration = (batch.start, end, batch.number, *counts, *pages, sums["context_tokens"], *told, *[-1] * 6)
        steps += [(batch.number, request, _PAUSED, 0, 0, 0, 0, 0, -1, -1) for request in batch.paused]
        self._producer.add_all([("iterations", [iteration]), ("steps", steps)])
        self._last = batch.number

    def _pool(self, now: int, blocks: int, tokens: int) -> None:
        self._pool_blocks = blocks
        self._producer.add("pools", [(now, blocks, 0, tokens, -1)])

    def _pages(self, now: int, changes: list[tuple[int, int, int, int]]) -> None:
        rows = []
        for request, place, block, taken in changes:
            kind = (_REUSED if self._holders[block] else _ALLOCATED) if taken else _FREED
            self._holders[block] += 1 if taken else -1
            known = self._requests.get(request)
            if known is None and taken:
                # Nobody told that it came: requests are not read, or it was there before us.
                known = self._requests[request] = _Request(now, -1, -1)
                self._say(request)
            if known is not None:
                known.blocks += 1 if taken else -1
            rows.append((now, self._sequence, block, request, kind, place, -1, 0, 0, 0))
            self._sequence += 1
        for block in [block for block, count in self._holders.items() if count <= 0]:
            del self._holders[block]
        self._producer.add("page_events", rows)

    def _statistics(self, now: int, text: str) -> None:
        try:
            found = json.loads(text)
        except ValueError:
            return
        rows = []
        for path, name, unit in _COUNTERS:
            value: Any = found
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                rows.append((now, self._producer.name(name), self._producer.name(unit), -1, float(value)))
        self._producer.add("counters", rows)

    def _say(self, number: int) -> None:
        self._producer.add("requests", [self._requests[number].row(number)])
