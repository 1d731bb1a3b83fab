"""Attaching to a server: its pollers, what they bring, and the recording that it goes into."""

from __future__ import annotations

import json
import queue
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from inspector.errors import InspectorError, Missing, Unreadable
from inspector.report.text import plain
from inspector.trace.header import Header
from probes.compaction import compact
from probes.recording import Recording
from probes.server_http.client import Address, Client, NoAnswerError
from probes.server_http.feed import Feed
from probes.server_http.gauges import Gauges
from probes.server_http.iterations import Iterations
from probes.server_http.pages import Pages
from probes.server_http.poller import Poller, Told
from probes.server_http.pool import Pool
from probes.server_http.requests import Requests
from probes.signals import STOPS, caught

ENDPOINTS = (
    ("GET", "/metrics"),
    ("GET", "/perf_metrics"),
    ("POST", "/kv_cache_events"),
    ("GET", "/prometheus/metrics"),
)
DRAINED = ("/metrics", "/perf_metrics", "/kv_cache_events")
TAKES = (
    f"reading {', '.join(DRAINED[:2])} and {DRAINED[2]} takes their records away from other readers of this server, "
    "which gives each out once"
)
_FLUSH_S = 0.2
_SAY_S = 2.0
_LAST_WORD_S = 3.0
_GREETING_S = 5.0
_MISSING = {
    "iterations": "the server told of none: set enable_iter_perf_stats: true and iter_stats_max_iterations: 1000, and "
    "see that nobody else reads /metrics",
    "requests": "the server told of none that finished: set return_perf_metrics: true and perf_metrics_max_requests",
    "page_events": "the server told of none: set event_buffer_max_size and enable_block_reuse in kv_cache_config",
    "steps": "a server does not tell over HTTP what each request did in each iteration: launch it with inflight record",
    "kernels": "a server does not tell over HTTP what its GPUs ran: launch it with inflight record, or with nsys",
    "tokens": "a server does not tell token texts over HTTP: launch it with inflight record",
    "stage_work": "a server does not tell over HTTP what its stages did: launch it with inflight record",
}


@dataclass(frozen=True)
class Outcome:
    """Rows written, records known to be lost, how long; and what kept the recording from being closed."""

    path: Path
    records: int
    lost: int
    seconds: float
    failure: InspectorError | None = None


def attach(address: Address, out: Path, seconds: float | None = None, pid: int = -1) -> Outcome:
    """Record what the server tells until a signal, or for so many seconds. Raises Unreadable, Usage, InspectorError."""
    details = greet(address)
    recording = Recording(out, ["attach", str(address)], {path: {"method": method} for method, path in ENDPOINTS})
    header = recording.header
    info = msgspec.structs.replace(header.info, details=details)
    recording.header = msgspec.structs.replace(header, info=info)
    run = _Run(address, recording, pid)
    with caught() as signals:
        deadline = None if seconds is None else time.monotonic() + seconds
        run.start()
        while not any(number in STOPS for number in signals.take()) and not run.is_over:
            if deadline is not None and time.monotonic() >= deadline:
                break
            signals.wait(_FLUSH_S)
            run.look()
        return run.finish()


def greet(address: Address) -> dict[str, str]:
    """What the server says of itself, for people. Raises Unreadable when nobody answers."""
    client = Client(address, _GREETING_S)
    details = {"server": str(address)}
    try:
        for path, key in (("/version", "version"), ("/server_info", "server settings")):
            answer = client.ask("GET", path)
            if answer.status == 200:
                details[key] = _text(answer.body)
    except NoAnswerError as error:
        raise Unreadable(f"cannot attach to {address}", str(error), "check the address, and that it runs") from error
    finally:
        client.close()
    return details


class _Run:
    def __init__(self, address: Address, recording: Recording, pid: int) -> None:
        self._recording = recording
        self._feed = Feed(recording.add_streams("server"), pid, f"server {address}")
        quality, pool = recording.quality, Pool(self._feed)
        self._iterations = Iterations(self._feed, quality, pool)
        self._requests = Requests(self._feed, quality, address.is_here)
        self._pages = Pages(self._feed, quality, pool)
        self._gauges = Gauges(self._feed, quality)
        self._told: queue.SimpleQueue[Told] = queue.SimpleQueue()
        self._pollers = [Poller(address, method, path, self._told) for method, path in ENDPOINTS]
        self._failure: InspectorError | None = None
        self._probe_ns = 0
        self._say_at = time.monotonic() + _SAY_S

    @property
    def is_over(self) -> bool:
        """Whether going on makes no sense: the disk is full, or the server has nothing of what is asked."""
        absent = all(poller.asked and poller.state == "off" for poller in self._pollers)
        return self._failure is not None or absent

    def start(self) -> None:
        for poller in self._pollers:
            poller.start()

    def look(self) -> None:
        """Take in what came, and write it."""
        if self._failure is not None:
            return
        while not self._told.empty():
            self._take(self._told.get())
        now = time.monotonic_ns()
        if now - self._probe_ns >= 1_000_000_000:
            self._probe_ns = now
            self._probes(now)
        try:
            self._feed.flush()
            self._recording.drain()
        except OSError as error:
            why = error.strerror or str(error)
            do = f"what was recorded until then opens: {self._recording.path}"
            self._failure = Missing("the recording stopped", why, do)
        if time.monotonic() >= self._say_at:
            self._say_at += _SAY_S
            self._say()

    def finish(self) -> Outcome:
        """End the pollers and close the recording."""
        for poller in self._pollers:
            poller.stop()
        until = time.monotonic() + _LAST_WORD_S
        for poller in self._pollers:
            poller.join(max(until - time.monotonic(), 0.0))
        for poller in self._pollers:
            poller.abort()
            poller.join(1.0)
        self._probe_ns = 0
        self.look()
        recording = self._recording
        if self._failure is None and self.is_over and not self._records:
            recording.close_streams()
            recording.discard()
            paths = ", ".join(path for _, path in ENDPOINTS)
            raise Unreadable("this server tells nothing that can be recorded", f"it has none of {paths}")
        self._close()
        ended = time.monotonic_ns()
        seconds = (ended - recording.start_ns) / 1e9
        return Outcome(recording.path, recording.num_records(), self._lost, seconds, self._failure)

    @property
    def _records(self) -> int:
        return sum(each.records for each in (self._iterations, self._requests, self._pages, self._gauges))

    @property
    def _lost(self) -> int:
        return self._iterations.lost + self._pages.lost

    def _take(self, told: Told) -> None:
        quality, answer = self._recording.quality, told.answer
        if not told.whole:
            quality.add("truncated", f"answers of {told.path} that broke off: what else stood in them is lost")
        if told.path == "/prometheus/metrics" or (told.path == "/metrics" and not told.is_array):
            self._gauges.take(answer)
        elif not told.is_array:
            quality.add("invalid", f"answers of {told.path} that are no JSON array")
        elif told.path == "/metrics":
            self._iterations.take(answer, told.items)
        elif told.path == "/perf_metrics":
            self._requests.take(answer, told.items)
        else:
            if told.items:
                self._assume_blocks()
            self._pages.take(answer, told.items)

    def _assume_blocks(self) -> None:
        text = "page events tell hashes only: block numbers are the least that are free, times those of arrival"
        if not any(note.text == text for note in self._recording.quality.notes):
            self._recording.quality.add("assumed", text)

    def _probes(self, now: int) -> None:
        counts = {
            "/metrics": (self._iterations.records, self._iterations.lost),
            "/perf_metrics": (self._requests.records, 0),
            "/kv_cache_events": (self._pages.records, self._pages.lost),
            "/prometheus/metrics": (self._gauges.records, 0),
        }
        for poller in self._pollers:
            records, lost = counts[poller.path]
            self._feed.probe(now, poller.path, poller.state, records, lost, poller.message)

    def _say(self) -> None:
        troubles = [f"{poller.path}: {poller.message}" for poller in self._pollers if poller.state == "failed"]
        text = (
            f"{self._iterations.records:,} iterations, {self._requests.records:,} requests, "
            f"{self._pages.records:,} page events, {self._lost:,} lost"
        )
        sys.stdout.write("; ".join([text, *troubles]) + "\n")
        sys.stdout.flush()

    def _close(self) -> None:
        recording = self._recording
        for lost, what in (
            (self._iterations.lost, "iterations"),
            (self._pages.lost, "page events"),
        ):
            if lost:
                text = f"{what} that did not come: another reader took them, or the server dropped them"
                recording.quality.add("profiler-loss", text, lost)
        recording.quality.notes += self._feed.quality.notes
        head: Header = recording.header
        missing = {table: why for table, why in _MISSING.items() if not self._feed.num_rows(table)}
        info = msgspec.structs.replace(head.info, missing=missing)
        recording.header = msgspec.structs.replace(head, info=info)
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


def _text(body: bytes) -> str:
    """JSON on one line, shortened."""
    try:
        text = json.dumps(json.loads(body), separators=(",", ":"))
    except (ValueError, RecursionError):
        text = plain(" ".join(body.decode("utf-8", "replace").split()))
    return text[:2000]
