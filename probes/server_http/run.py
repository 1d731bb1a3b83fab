"""One recording of a server: its pollers, what they bring, and the rows that become of it."""

from __future__ import annotations

import queue
import time

import msgspec

from inspector.errors import InspectorError, Missing, Unreadable
from inspector.trace.header import Header
from probes.compaction import compact
from probes.recording import Recording
from probes.saying import report
from probes.server_http.access import Access
from probes.server_http.address import Address
from probes.server_http.exposed import Exposed
from probes.server_http.exposition import MOST_LINE, is_exposition
from probes.server_http.feed import Feed
from probes.server_http.greeting import Greeting
from probes.server_http.loops import Loop
from probes.server_http.poller import CLOCK, ENDPOINTS, EVENTS, METRICS, PERF, PROMETHEUS, Held, Poller, Told
from probes.server_http.pool import Pool
from probes.server_http.ranks import Ranks
from probes.server_http.requests import Requests

_SAY_S = 2.0
_LAST_WORD_S = 3.0
_PROBE_NS = 1_000_000_000
_MISSING = {
    "iterations": "the server told of none: set enable_iter_perf_stats: true and iter_stats_max_iterations: 1000, and "
    "see that nobody else reads /metrics (with return_perf_metrics some versions read it themselves, for Prometheus)",
    "requests": "the server told of none that finished: set return_perf_metrics: true and perf_metrics_max_requests",
    "page_events": "the server told of none: set event_buffer_max_size and enable_block_reuse in kv_cache_config; "
    "with pipeline stages it may tell none at all",
    "steps": "the server told of none: set enable_iter_perf_stats and enable_iter_req_stats, or launch it with "
    "inflight record, which tells more",
}
_NEVER_TOLD = {
    "kernels": "a server does not tell over HTTP what its GPUs ran: launch it with inflight record, or with nsys",
    "devices": "a server does not tell over HTTP what the memory of its GPUs does: launch it with inflight record",
    "tokens": "a server does not tell token texts over HTTP: launch it with inflight record",
    "stage_work": "a server does not tell over HTTP what its stages did: launch it with inflight record",
}
_CLIENT_IDS = (
    "steps by requestStats: requests came with ids for clients before, and nobody tells which of the engine's they are"
)
_OF_TRITON = "Triton tells figures of its last iteration only, not each one: they stand among the counters"
_HASHES = "page events tell hashes only: block numbers are the least that are free, times those of arrival"


class Run:
    """From `start` to `finish`, with `look` in between, several times a second."""

    def __init__(self, address: Address, access: Access, recording: Recording, pid: int, greeting: Greeting) -> None:
        self._recording, self._pid = recording, pid
        self._address = access.without_token(str(address))
        self._feeds: list[Feed] = []
        quality, loop = recording.quality, Loop(recording.quality)
        loop.learn(greeting.settings)
        self._loop = loop
        self._ranks = Ranks(self._feed_of_rank, quality, loop)
        self._feed = self._ranks.first.feed
        self._requests = Requests(self._feed_of_start, quality, pid > 0 or address.is_here)
        self._exposed = Exposed(self._feed, quality, Pool(self._feed), loop, access.without_token)
        self._told: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._held = Held()
        self._pollers = [Poller(address, access, each, self._told, self._held) for each in ENDPOINTS]
        self._failure: InspectorError | None = None
        self.broken = 0
        """Answers that broke off: nobody knows how many records stood in the rest of them."""
        self._probe_ns = 0
        self._say_at = time.monotonic() + _SAY_S

    def learn(self, settings: object) -> None:
        """Take what else is known of the server's settings."""
        self._loop.learn(settings)

    @property
    def is_over(self) -> bool:
        """Whether going on makes no sense: the disk is full, or the server has nothing of what is asked."""
        absent = all(poller.is_absent for poller in self._pollers if poller.path != CLOCK)
        return self._failure is not None or absent

    @property
    def failure(self) -> InspectorError | None:
        """What kept the recording from being written or closed."""
        return self._failure

    @property
    def lost(self) -> int:
        """Records that the server made and that did not come, by gaps in their numbers."""
        return sum(rank.iterations.lost + rank.pages.lost for rank in self._ranks.all)

    @property
    def records(self) -> int:
        """Records that came."""
        return sum(self._counts(path)[0] for path in (METRICS, PERF, EVENTS, PROMETHEUS))

    def start(self) -> None:
        """Begin to ask."""
        self._note_missing(_NEVER_TOLD)
        for poller in self._pollers:
            poller.start()

    def look(self) -> None:
        """Take in what came, and write it."""
        if self._failure is not None:
            return
        while not self._told.empty():
            told = self._told.get()
            self._take(told)
            self._held.add(-len(told.answer.body))
        now = time.monotonic_ns()
        if now - self._probe_ns >= _PROBE_NS:
            self._probe_ns = now
            for poller in self._pollers:
                records, lost = self._counts(poller.path)
                self._feed.probe(now, poller.path, poller.state, records, lost, poller.message)
        try:
            for feed in self._feeds:
                feed.flush()
            self._recording.drain()
        except OSError as error:
            why = error.strerror or str(error)
            do = f"what was recorded until then opens: {self._recording.path}"
            if not self._recording.path.exists():
                why, do = "its folder is gone", "choose a place that stays"
            self._failure = Missing("the recording stopped", why, do)
        if time.monotonic() >= self._say_at:
            self._say_at = time.monotonic() + _SAY_S
            self._say()

    def finish(self) -> None:
        """End the pollers and close the recording. Raises Unreadable where there was nothing to record."""
        for poller in self._pollers:
            poller.stop()
        until = time.monotonic() + _LAST_WORD_S
        for poller in self._pollers:
            poller.join(max(until - time.monotonic(), 0.0))
        for poller in self._pollers:
            poller.abort()
        until = time.monotonic() + 1.0
        for poller in self._pollers:
            poller.join(max(until - time.monotonic(), 0.0))
        self._probe_ns = 0
        nothing = self._failure is None and self.is_over
        self.look()
        if nothing and not self.records:
            self._recording.close_streams()
            self._recording.discard()
            paths = ", ".join(each.path for each in ENDPOINTS if each.path != CLOCK)
            raise Unreadable(
                "this server tells nothing that can be recorded",
                f"it has none of {paths}",
                "name the address of trtllm-serve, or of Triton's metrics (port 8002, where it is not set otherwise)",
            )
        self._close()

    def _feed_of_rank(self, rank: int) -> Feed:
        if not rank:
            return self._new_feed("server", self._pid, f"server {self._address}")
        return self._new_feed(f"server-rank-{rank}", -1 - rank, f"rank {rank} of {self._address}")

    def _feed_of_start(self, start: int) -> Feed:
        if not start:
            return self._feed
        return self._new_feed(f"server-start-{start}", -1001 - start, f"server {self._address}, started again")

    def _feed_of_clients(self, start: int) -> Feed:
        again = f", started again ({start})" if start else ""
        process = f"requests of {self._address} by their ids for clients{again}"
        return self._new_feed(f"server-clients-{start}", -2001 - start, process)

    def _new_feed(self, producer: str, pid: int, process: str) -> Feed:
        feed = Feed(self._recording.add_streams(producer), pid, process)
        self._feeds.append(feed)
        return feed

    def _counts(self, path: str) -> tuple[int, int]:
        """Records that came of a path, and those lost."""
        ranks = self._ranks.all
        if path == METRICS:
            of_triton = self._exposed.records if self._exposed.is_triton else 0
            return self._num_iterations + of_triton, sum(rank.iterations.lost for rank in ranks)
        if path == EVENTS:
            return sum(rank.pages.records for rank in ranks), sum(rank.pages.lost for rank in ranks)
        if path == PERF:
            return self._requests.records, 0
        if path == PROMETHEUS:
            return 0 if self._exposed.is_triton else self._exposed.records, 0
        return 0, 0

    def _take(self, told: Told) -> None:
        quality, answer = self._recording.quality, told.answer
        if told.path == CLOCK:
            self._requests.compare(answer)
            return
        if not told.whole:
            self.broken += 1
            quality.add("truncated", f"answers of {told.path} that broke off: what else stood in them is lost")
        if told.is_array and told.path in (METRICS, PERF, EVENTS):
            if told.path == METRICS:
                self._ranks.take_iterations(answer, told.items)
            elif told.path == PERF:
                if any(rank.iterations.steps.count for rank in self._ranks.all):
                    self._requests.stand_apart(self._feed_of_clients)
                self._requests.take(answer, told.items)
                if self._requests.is_beside and told.items:
                    self._ranks.first.iterations.steps.stop(_CLIENT_IDS)
            else:
                if told.items and not any(note.text == _HASHES for note in quality.notes):
                    quality.add("assumed", _HASHES)
                self._ranks.take_pages(answer, told.items)
        elif told.path in (METRICS, PROMETHEUS) and is_exposition(answer.body[:MOST_LINE].decode("utf-8", "replace")):
            self._exposed.take(answer)
        elif answer.body.strip() or told.path != PROMETHEUS:
            quality.add("invalid", f"answers of {told.path} that are no JSON array and no figures for Prometheus")

    def _say(self) -> None:
        troubles = [f"{poller.path}: {poller.message}" for poller in self._pollers if poller.state == "failed"]
        counts = [self._num_iterations, *(self._counts(path)[0] for path in (PERF, EVENTS))]
        text = "{:,} iterations, {:,} requests, {:,} page events, {:,} lost".format(*counts, self.lost)
        if self._exposed.records:
            text = f"{self._exposed.records:,} samples of counters, {text}"
        if self.broken:
            text += f", answers that broke off: {self.broken:,}"
        report("; ".join([text, *troubles]))

    def _note_missing(self, missing: dict[str, str]) -> None:
        """What is not to be had, and what the server told of itself, goes into the header."""
        head: Header = self._recording.header
        details = {**head.info.details, **self._exposed.details}
        info = msgspec.structs.replace(head.info, missing=missing, details=details)
        self._recording.header = msgspec.structs.replace(head, info=info)

    def _close(self) -> None:
        recording = self._recording
        for path, what in ((METRICS, "iterations"), (EVENTS, "page events")):
            lost = self._counts(path)[1]
            if lost:
                text = f"{what} that did not come: another reader took them, or the server dropped them"
                recording.quality.add("profiler-loss", text, lost)
        for feed in self._feeds:
            recording.quality.notes += feed.quality.notes
        missing = {table: why for table, why in (_MISSING | _NEVER_TOLD).items() if not self._num_rows(table)}
        if self._exposed.is_triton and "iterations" in missing:
            missing["iterations"] = _OF_TRITON
        self._note_missing(missing)
        try:
            if self._failure is None:
                recording.finish()
                compact(recording.path, recording.header)
            else:
                recording.close_streams()
        except OSError as error:
            self._failure = Missing(
                "the recording could not be closed", error.strerror or str(error), f"it opens: {recording.path}"
            )
        except InspectorError as error:
            self._failure = error
        recording.leave()

    @property
    def _num_iterations(self) -> int:
        return sum(rank.iterations.records for rank in self._ranks.all)

    def _num_rows(self, table: str) -> int:
        return sum(feed.num_rows(table) for feed in self._feeds)
