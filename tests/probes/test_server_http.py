"""Polling a server: what each generation tells becomes rows, faults become notes, and nothing hangs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from inspector.trace.schema import NEVER, PAGE_EVENTS
from inspector.trace.trace import Trace
from tests.probes.attached import asked, hurry, record
from tests.probes.stand_in_server import later, pytorch, stamp, stand_in, tensorrt


@pytest.fixture(autouse=True)
def asks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "a.inflight"


def test_iterations_of_the_pytorch_backend(out: Path) -> None:
    before = time.monotonic_ns()
    with stand_in() as server:
        server.say("GET /version", {"version": "1.2.1"}, then={"version": "1.2.1"})
        server.say("GET /metrics", [pytorch(5), pytorch(6)], [pytorch(7)])
        trace = record(server, out, asked(server, "GET /metrics", 4))
    rows = trace["iterations"]
    assert rows["iteration"].tolist() == [5, 6, 7]
    assert (rows["end"] - rows["start"]).tolist() == [12_500_000] * 3
    # Near to now on our own clock, whatever zone the stamps are in.
    assert abs(int(rows["start"][0]) + trace.info.origin_ns - before) < 20 * 10**9
    assert rows["context_requests"].tolist() == [1] * 3
    assert rows["generation_requests"].tolist() == [3] * 3
    assert rows["tokens"].tolist() == [131] * 3
    assert rows["used_blocks"].tolist() == [40] * 3
    # Sums since the start become differences, of which the first is not known.
    assert rows["reused_blocks"].tolist() == [-1, 10, 10]
    assert rows["missed_blocks"].tolist() == [-1, 3, 3]
    assert rows["max_batch_size"].tolist() == [-1] * 3
    assert trace["pools"]["blocks"].tolist() == [100]
    assert trace["pools"]["tokens_per_block"].tolist() == [32]
    told = series(trace)
    assert told["GPU memory in use", "bytes"] == [70e9] * 3
    assert told["scheduled requests", "requests"] == [4] * 3
    assert told["KV blocks newly allocated", "blocks"] == [0, 0]
    assert told["KV cache hit rate since the start", "%"] == pytest.approx([70] * 3)
    # What nobody filled is not told as 0.
    assert not [name for name, _ in told if "pinned" in name or "host memory" in name or "decoded tokens" in name]
    assert trace.info.details["version"] == '{"version":"1.2.1"}'
    assert "kernels" in trace.info.missing
    assert "page_events" in trace.info.missing
    assert trace.quality.count("profiler-loss") == 0


def test_other_generations(out: Path) -> None:
    with stand_in() as server:
        server.say("GET /metrics", [tensorrt(1), later(2), {"iter": 3}, {**later(4), "attentionDpRank": 3}])
        trace = record(server, out, asked(server, "GET /metrics", 3))
    rows = trace["iterations"]
    mine = rows["process"] == rows["process"][0]
    # The second says that its loop overlaps: it was closed one step later than it began.
    assert rows["iteration"][mine].tolist() == [1, 1, 3]
    assert rows["max_batch_size"][mine].tolist() == [32, -1, -1]
    assert rows["max_num_tokens"][mine].tolist() == [8192, -1, -1]
    assert rows["reused_blocks"][mine].tolist() == [-1, 8, -1]
    assert rows["cached_blocks"][mine].tolist() == [-1, 40, -1]
    assert rows["host_blocks"][mine].tolist() == [-1, 10, -1]
    assert rows["drafted"][mine].tolist() == [-1, 12, -1]
    assert rows["accepted"][mine].tolist() == [-1, 7, -1]
    # With speculation nobody tells how many tokens were computed.
    assert rows["tokens"][mine].tolist() == [131, -1, -1]
    assert rows["used_blocks"][mine].tolist() == [40, 40, -1]
    assert trace.quality.count("unstamped") == 1
    # The one of another rank is of another process, and its drafts are those of rank 0 once more.
    other = rows["process"][~mine].tolist()
    assert "rank 3" in trace.process_name(other[0])
    assert rows["drafted"][~mine].tolist() == [-1]
    told = series(trace)
    assert told["host time of the loop", "ms"] == [3.2, 3.2]
    assert told["requests in the generation phase", "requests"] == [1, 1]
    assert told["KV offloaded to the host", "bytes"] == [8192.0, 8192.0]
    assert told["engine host memory", "bytes"] == [1e6]


def series(trace: Trace) -> dict[tuple[str, str], list[float]]:
    """Values of each counter by its name and unit, in their order."""
    rows, counters = trace["series"], trace["counters"]
    found: dict[tuple[str, str], list[float]] = {}
    for row, (name, unit) in enumerate(zip(rows["name"].tolist(), rows["unit"].tolist(), strict=True)):
        key = trace.names[name], trace.names[unit] if unit >= 0 else ""
        found.setdefault(key, []).extend(counters["value"][counters["series"] == row].tolist())
    return found


def test_gaps_in_the_numbers_are_losses(out: Path) -> None:
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1), pytorch(2)], [pytorch(10)])
        server.say("POST /kv_cache_events", [event(0, "created", num_blocks_per_cache_level=[9, 2])], [removed(5, 1)])
        trace = record(server, out, asked(server, "POST /kv_cache_events", 4))
    assert trace.quality.count("profiler-loss") == 7 + 4
    table = trace["probes"]
    newest = {trace.names[name]: int(lost) for name, lost in zip(table["name"], table["lost"], strict=True)}
    assert newest["/metrics"] == 7
    assert newest["/kv_cache_events"] == 4


def test_a_server_that_tells_every_tenth_iteration_loses_none(out: Path) -> None:
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(n) for n in range(0, 100, 10)])
        trace = record(server, out, asked(server, "GET /metrics", 3))
    assert trace.quality.count("profiler-loss") == 0
    assert len(trace["iterations"]) == 10


def test_impossible_counts_are_unknown(out: Path) -> None:
    wrong = pytorch(1, numQueuedRequests=2**40, numCompletedRequests=-3, kvCacheStats=None, inflightBatchingStats=7)
    spoilt = pytorch(
        2, specDecodingStats={"numDraftTokens": 3, "numAcceptedTokens": 5}, timestamp="99-99-2025 00:00:00"
    )
    with stand_in() as server:
        server.say("GET /metrics", [wrong, spoilt, "text", {"iter": True}, None])
        trace = record(server, out, asked(server, "GET /metrics", 3))
    rows = trace["iterations"]
    assert rows["iteration"].tolist() == [1, 2]
    assert rows["queued_requests"].tolist() == [-1, 2]
    assert rows["completed_requests"].tolist() == [-1, 1]
    assert rows["used_blocks"].tolist() == [-1, 40]
    assert rows["drafted"].tolist() == rows["accepted"].tolist() == [-1, -1]
    assert trace.quality.count("repaired") == 1
    assert trace.quality.count("invalid") == 3


def test_a_server_ahead_of_us_has_no_records_of_the_future(out: Path) -> None:
    with stand_in() as server:
        then = round(time.time()) + 90
        ahead = [pytorch(n, timestamp=stamp(then + n / 100), iterLatencyMS=0.0) for n in range(3)]
        server.say("GET /metrics", ahead)
        trace = record(server, out, asked(server, "GET /metrics", 3))
    rows = trace["iterations"]
    assert int(rows["start"][-1]) + trace.info.origin_ns <= time.monotonic_ns()
    assert (rows["start"][1:] - rows["start"][:-1]).tolist() == [10_000_000, 10_000_000]
    assert trace.quality.count("clock") == 1


def test_finished_requests(out: Path) -> None:
    now = time.monotonic()

    def item(request: Any, **timing: Any) -> dict[str, Any]:
        return {"request_id": request, "perf_metrics": {"first_iter": 1, "timing_metrics": timing}}

    whole = item(
        7,
        server_arrival_time=None,
        arrival_time=now - 4,
        first_scheduled_time=now - 3,
        first_token_time=now - 2,
        last_token_time=now - 1,
    )
    unfilled = item("8", arrival_time=now - 2, first_scheduled_time=0.0, first_token_time=None, last_token_time=now - 1)
    with stand_in() as server:
        server.say("GET /metrics")
        server.say("GET /perf_metrics", [whole, unfilled, item(9), {"request_id": 3}, item(10, arrival_time=0.0)])
        trace = record(server, out, asked(server, "GET /perf_metrics", 3))
    rows = trace["requests"]
    assert rows["request"].tolist() == [7, 8]
    assert abs(int(rows["arrival"][0]) + trace.info.origin_ns - round((now - 4) * 1e9)) < 10
    assert int(rows["first_token"][0] - rows["arrival"][0]) == pytest.approx(2e9, abs=10)
    assert rows["scheduled"].tolist()[1] == NEVER
    assert rows["finished"].tolist() == rows["last_token"].tolist()
    assert rows["prompt_tokens"].tolist() == [-1, -1]
    assert trace.quality.count("unaligned") == 0
    assert trace.quality.count("invalid") == 2
    assert trace.quality.count("unstamped") == 1


def test_requests_of_another_machines_clock_are_said_to_be(out: Path) -> None:
    timing = {
        "arrival_time": 1000.0,
        "first_scheduled_time": 1000.5,
        "first_token_time": 1001.0,
        "last_token_time": 1e8,
    }
    with stand_in() as server:
        server.say("GET /metrics")
        server.say("GET /perf_metrics", [{"request_id": 1, "perf_metrics": {"timing_metrics": timing}}])
        trace = record(server, out, asked(server, "GET /perf_metrics", 3))
    assert trace.quality.count("unaligned") == 1
    assert int(trace["requests"]["last_token"][0]) + trace.info.origin_ns <= time.monotonic_ns()


def event(number: int, kind: str, **data: Any) -> dict[str, Any]:
    return {"event_id": number, "data": {"type": kind, **data}, "window_size": 4096}


def stored(number: int, parent: int | None, *hashes: Any, level: int = 0) -> dict[str, Any]:
    blocks = [
        {"type": "stored_block", "block_hash": digest, "tokens": [], "cache_level": level, "priority": 35}
        for digest in hashes
    ]
    return event(number, "stored", parent_hash=parent, blocks=blocks)


def removed(number: int, *hashes: Any) -> dict[str, Any]:
    return event(number, "removed", block_hashes=list(hashes))


def moved(number: int, digest: int, level: int | None) -> dict[str, Any]:
    diff = None if level is None else {"type": "event_diff", "new_value": level, "old_value": 1 - level}
    return event(number, "updated", block_hash=digest, cache_level=diff, priority=None)


def test_page_events(out: Path) -> None:
    large = 2**64 - 3
    first = [
        event(0, "created", num_blocks_per_cache_level=[8, 4]),
        stored(1, None, 11, large),
        stored(2, large, 33),
        moved(3, 33, 1),
        moved(4, 11, None),
    ]
    second = [moved(5, 33, 0), removed(6, 11, 99), stored(7, None, 44), {"event_id": 8, "data": {"type": "new"}}]
    narrow = [{**stored(9, None, 55), "window_size": 128}, {**stored(10, None, 66), "layer_group_id": 1}]
    other = [{**stored(3, None, 11), "attention_dp_rank": 2}]
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        server.say("POST /kv_cache_events", first, second + narrow + other)
        trace = record(server, out, asked(server, "POST /kv_cache_events", 4))
    pools = trace["pools"]
    # 100 in all, until it is told which of them are where.
    assert (pools["blocks"][-1], pools["host_blocks"][-1], pools["tokens_per_block"][-1]) == (8, 4, 32)
    # No request says whose they are, but the stream that they came in: another rank's stand beside.
    assert [trace.names[name].split(" of ")[0] for name in trace["processes"]["name"]][-1] == "rank 2"
    events = trace["page_events"]
    rows = {name: events[name][:-1] for name in ("kind", "block", "other", "hash", "parent", "sequence")}
    assert trace["page_events"]["hash"][-1] == 11
    kinds = [PAGE_EVENTS[kind] for kind in rows["kind"]]
    assert kinds == ["cached", "cached", "cached", "offloaded", "restored", "evicted", "cached"]
    # Numbers are the least that are free: 33 leaves 2 for host page 0 and comes back to 2; 44 takes what 11 left.
    assert rows["block"].tolist() == [0, 1, 2, 2, 2, 0, 0]
    assert rows["other"].tolist() == [-1, -1, -1, 0, 0, -1, -1]
    assert rows["hash"].tolist() == [11, large, 33, 33, 33, 11, 44]
    assert rows["parent"].tolist() == [0, 11, large, 0, 0, 0, 0]
    assert rows["sequence"].tolist() == list(range(7))
    assert trace.quality.count("unlinked") == 1
    assert trace.quality.count("invalid") == 1
    assert trace.quality.count("ignored") == 2
    assert trace.quality.count("profiler-loss") == 0
    assert trace.quality.count("assumed") >= 1


def test_a_restart_is_told_and_forgets_what_was_cached(out: Path) -> None:
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(100)], [pytorch(1), pytorch(2)])
        server.say("POST /kv_cache_events", [stored(50, None, 5)], [stored(0, None, 6)])
        trace = record(server, out, asked(server, "POST /kv_cache_events", 4))
    assert trace["iterations"]["iteration"].tolist() == [100, 1, 2]
    assert trace["iterations"]["reused_blocks"].tolist() == [-1, -1, 10]
    assert [PAGE_EVENTS[kind] for kind in trace["page_events"]["kind"]] == ["cached", "evicted", "cached"]
    assert trace.quality.count("profiler") == 2
    assert trace.quality.count("profiler-loss") == 0
