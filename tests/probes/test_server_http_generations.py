"""What differs between generations of the server: blocks in host memory, ranks, split serving, clocks, restarts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.pages import pages_at
from inspector.trace.quality import Quality
from inspector.trace.schema import NEVER, PAGE_EVENTS
from probes.server_http import figures, pages, poller
from probes.server_http.access import Access
from probes.server_http.clocks import SteadyClock
from probes.server_http.poller import Held
from probes.server_http.reading import items
from tests.probes.attached import asked, hurry, record
from tests.probes.stand_in_server import later, pytorch, stamp, stand_in

SECOND = 10**9


@pytest.fixture(autouse=True)
def asks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "a.inflight"


def window(**more: int) -> dict[str, Any]:
    whole = {"primaryMaxNumBlocks": 80, "primaryUsedNumBlocks": 30, "primaryFreeNumBlocks": 50}
    return {"kvCacheIterationStats": {"4096": {**whole, "secondaryMaxNumBlocks": 20, **more}}}


def test_blocks_in_host_memory_are_no_device_blocks(out: Path) -> None:
    """100 in all, of those 80 on the device: where the record does not tell them apart it can only be said."""
    created = {"type": "created", "num_blocks_per_cache_level": [80, 20]}
    with stand_in() as server:
        server.say("POST /kv_cache_events", [{"event_id": 0, "data": created, "window_size": 4096}])
        server.say("GET /metrics", [], [], [pytorch(1), pytorch(2, **window())])
        trace = record(server, out, asked(server, "GET /metrics", 6))
    rows = trace["iterations"]
    assert rows["used_blocks"].tolist() == [40, 30]
    assert rows["free_blocks"].tolist() == [60, 50]
    assert [note.count for note in trace.quality.notes if "include those in host memory" in note.text] == [1]
    pools = trace["pools"]
    assert (pools["blocks"][-1], pools["host_blocks"][-1]) == (80, 20)


def test_each_rank_has_its_own_numbers_and_losses(out: Path) -> None:
    def rows(rank: int, *numbers: int) -> list[dict[str, Any]]:
        return [{**pytorch(number), "attentionDpRank": rank} for number in numbers]

    with stand_in() as server:
        server.say("GET /metrics", [*rows(0, 1, 2), *rows(1, 1, 2)], [*rows(1, 5), *rows(0, 3), *rows(300, 1)])
        trace = record(server, out, asked(server, "GET /metrics", 4))
    table = trace["iterations"]
    found = {trace.process_name(process): [] for process in table["process"].tolist()}
    for process, number in zip(table["process"].tolist(), table["iteration"].tolist(), strict=True):
        found[trace.process_name(process)].append(number)
    assert sorted(map(sorted, found.values())) == [[1, 2, 3], [1, 2, 5]]
    assert trace.quality.count("profiler-loss") == 2
    assert trace.quality.count("ignored") == 1
    # A step of 1 for one, and the difference of sums is that of the same rank.
    assert sorted(table["reused_blocks"].tolist()) == [-1, -1, 10, 10, 10, 30]


def timing(arrival: float, *, last: float | None = None, **more: float) -> dict[str, Any]:
    whole = {"arrival_time": arrival, "first_scheduled_time": arrival + 0.1, "first_token_time": arrival + 0.2}
    return {"perf_metrics": {"timing_metrics": {**whole, "last_token_time": last or arrival + 0.5, **more}}}


def test_requests_that_two_workers_served_are_one(out: Path) -> None:
    now = time.monotonic()
    item = {
        "ctx_server": "a:1",
        "gen_server": "b:2",
        "ctx_perf_metrics": {"request_id": 5, **timing(now - 9, last=now - 8.7)},
        "gen_perf_metrics": {"request_id": 5, **timing(now - 8, last=now - 1)},
    }
    with stand_in() as server:
        server.say("GET /metrics")
        server.say("GET /perf_metrics", [item])
        trace = record(server, out, asked(server, "GET /perf_metrics", 3))
    rows = trace["requests"]
    assert rows["request"].tolist() == [5]
    assert int(rows["first_token"][0] - rows["arrival"][0]) == pytest.approx(0.2e9, abs=10)
    assert int(rows["last_token"][0] - rows["arrival"][0]) == pytest.approx(8e9, abs=10)


def test_a_number_that_comes_again_is_another_request(out: Path) -> None:
    now = time.monotonic()
    first, again = {"request_id": 1, **timing(now - 9)}, {"request_id": 1, **timing(now - 2)}
    other = {"request_id": 2, **timing(now - 1)}
    with stand_in() as server:
        server.say("GET /metrics")
        server.say("GET /perf_metrics", [first], [first], [again, other])
        trace = record(server, out, asked(server, "GET /perf_metrics", 5))
    rows = trace["requests"]
    assert sorted(rows["request"].tolist()) == [1, 1, 2]
    assert len(set(rows["process"].tolist())) == 2
    assert trace.quality.count("profiler") == 1
    assert NEVER not in rows["finished"].tolist()


def test_a_server_that_seems_to_start_again_and_again_keeps_few_files_open(out: Path) -> None:
    now = time.monotonic()
    odd = [{"request_id": 1, **timing(now - 2 * at)} for at in range(100, 0, -1)]
    with stand_in() as server:
        server.say("GET /metrics")
        server.say("GET /perf_metrics", odd)
        trace = record(server, out, asked(server, "GET /perf_metrics", 3))
    assert len(trace["processes"]) == 17
    # From then on the same number is the same request, of which the last that is told holds.
    assert (len(trace["requests"]), trace.quality.count("duplicate")) == (17, 83)


def test_blocks_without_end_are_bounded(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_BLOCKS", 5)
    data = {"type": "stored", "blocks": [{"block_hash": digest, "cache_level": 0} for digest in range(1, 10)]}
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        server.say("POST /kv_cache_events", [{"event_id": 0, "data": data, "window_size": 4096}])
        trace = record(server, out, asked(server, "POST /kv_cache_events", 3))
    assert len(trace["page_events"]) == 5
    assert trace.quality.count("ignored") == 4


def test_the_clock_of_another_machine_is_compared(out: Path) -> None:
    ahead = 5000.0

    def tell(handler: Any) -> None:
        now = time.monotonic() + ahead
        body = json.dumps({"receive_ts": now, "transmit_ts": time.monotonic() + ahead}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    came = time.monotonic() - 50

    def finished(handler: Any) -> None:
        assert server.count("GET /steady_clock_offset") >= 2
        body = json.dumps([{"request_id": 1, **timing(came + ahead)}]).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with stand_in() as server:
        server.say("GET /steady_clock_offset", then=tell)
        server.say("GET /metrics")
        server.say("GET /perf_metrics", *[[]] * 30, finished)
        trace = record(server, out, lambda: server.count("GET /perf_metrics") > 32)
    # Not by its arrival: that would have put its end at now.
    arrival = int(trace["requests"]["arrival"][0]) + trace.info.origin_ns
    assert arrival == pytest.approx(came * SECOND, abs=SECOND)
    assert trace.quality.count("unaligned") == 0
    assert any("was compared" in note.text for note in trace.quality.notes)


@given(
    st.integers(-(10**15), 10**15),
    st.lists(st.tuples(st.integers(0, SECOND), st.integers(0, SECOND), st.integers(0, SECOND)), min_size=1),
)
def test_clocks_are_compared_to_half_of_what_the_way_takes(ahead: int, ways: list[tuple[int, int, int]]) -> None:
    clock = SteadyClock(Quality(), False)
    now = 10**16
    for there, stay, back in ways:
        clock.compare(now, now + there + stay + back, (now + there + ahead) / 1e9, (now + there + stay + ahead) / 1e9)
    best = min(there + back for there, _, back in ways)
    found = clock.monotonic((now + ahead) / 1e9)
    assert abs(found - now) <= best / 2 + 2_002_000


def test_a_clock_that_begins_anew_is_noticed_without_being_compared() -> None:
    quality = Quality()
    clock = SteadyClock(quality, False)
    clock.settle(1000.0, 50 * SECOND)
    clock.settle(1100.0, 150 * SECOND)
    assert clock.monotonic(1100.0) == 150 * SECOND
    clock.settle(20.0, 250 * SECOND)
    assert clock.monotonic(20.0) == 250 * SECOND
    assert quality.count("clock") == 1


def test_impossible_answers_about_the_clock_change_nothing() -> None:
    quality = Quality()
    clock = SteadyClock(quality, True)
    clock.compare(10 * SECOND, 11 * SECOND, 5.0, 4.0)
    clock.compare(10 * SECOND, 11 * SECOND, 5.0, 7.0)
    assert clock.monotonic(5.0) == 5 * SECOND
    assert quality.count("clock") == 2


def test_events_of_the_second_manager(out: Path) -> None:
    def stored(number: int, *hashes: object, group: int = 0, level: object = 0) -> dict[str, Any]:
        blocks = [{"block_hash": digest, "tokens": [{"token_id": 1}] * 64, "cache_level": level} for digest in hashes]
        data = {"type": "stored", "parent_hash": None, "blocks": blocks}
        more = {"hash_algo": "v2_sha256", "layer_group_id": group}
        return {"event_id": number, "data": data, "window_size": 4096, **more}

    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        answer = [stored(0, "ab" * 32, 2**200), stored(1, "ab" * 32, group=1), stored(2, "cd", level=2)]
        server.say("POST /kv_cache_events", [*answer, stored(3, "ef", level=None), None, 7])
        trace = record(server, out, asked(server, "POST /kv_cache_events", 3))
    rows = trace["page_events"]
    assert [PAGE_EVENTS[kind] for kind in rows["kind"]] == ["cached"] * 4
    assert rows["tier"].tolist() == [0, 0, 1, 0]
    assert len(set(rows["hash"].tolist())) == 4
    assert trace.quality.count("duplicate") == 0
    assert any("on disk" in note.text for note in trace.quality.notes)
    assert any("place is not told" in note.text for note in trace.quality.notes)
    assert trace.quality.count("invalid") == 2


def test_a_wider_window_replaces_what_a_narrower_one_told(out: Path) -> None:
    def stored(number: int, digest: int, size: int) -> dict[str, Any]:
        data = {"type": "stored", "parent_hash": None, "blocks": [{"block_hash": digest, "cache_level": 0}]}
        return {"event_id": number, "data": data, "window_size": size}

    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        server.say("POST /kv_cache_events", [stored(0, 11, 128), stored(1, 11, 4096), stored(2, 12, 128)])
        trace = record(server, out, asked(server, "POST /kv_cache_events", 3))
    kinds = [PAGE_EVENTS[kind] for kind in trace["page_events"]["kind"]]
    assert kinds == ["cached", "evicted", "cached"]
    assert trace.quality.count("duplicate") == 0
    assert trace.quality.count("profiler") == 0


def test_lists_of_requests_become_counts_and_tokens_are_left_out() -> None:
    stages = ["QUEUED", "GENERATION_IN_PROGRESS", "GENERATION_IN_PROGRESS", "new", None, ["x"]]
    told = {**pytorch(1), "requestStats": [*({"stage": stage} for stage in stages), None]}
    found, whole = items(json.dumps([told]).encode(), figures.kept)
    assert whole
    assert found[0]["requestStats"] == {
        "QUEUED": 1,
        "CONTEXT_IN_PROGRESS": 0,
        "GENERATION_IN_PROGRESS": 2,
        "GENERATION_COMPLETE": 0,
    }
    event = {"data": {"blocks": [{"block_hash": 1, "tokens": [1, 2]}, None]}}
    assert pages.kept(event) == {"data": {"blocks": [{"block_hash": 1}, None]}}
    for odd in (None, 3, [], {"data": None}, {"data": {"blocks": 4}}):
        assert pages.kept(odd) == figures.kept(odd) == odd


def test_of_an_answer_full_of_requests_little_is_held() -> None:
    """Thousands of requests in each of hundreds of records: what is kept is as small as without them."""
    stats = [{"id": number, "stage": "QUEUED", "numGeneratedTokens": number} for number in range(2000)]
    body = json.dumps([{**later(number), "requestStats": stats} for number in range(200)]).encode()
    found, whole = items(body, figures.kept)
    assert whole
    assert len(body) > 20 << 20
    assert len(json.dumps(found)) < 1 << 20


def test_an_item_that_is_endless_ends_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.server_http.reading.MOST_ITEM", 1 << 16)
    body = json.dumps([{"iter": 1}, {"a": [[]] * (1 << 20)}, {"iter": 2}]).encode()
    assert items(body) == ([{"iter": 1}], False)


@given(st.text(alphabet=" \n\t[]", max_size=40))
def test_space_and_brackets(text: str) -> None:
    try:
        expected: object = json.loads(text)
    except ValueError:
        expected = None
    found, whole = items(text.encode())
    assert whole == isinstance(expected, list)
    if whole:
        assert found == expected


def test_while_much_waits_to_be_written_no_more_is_taken(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the server still has is not lost by being asked for too early."""
    monkeypatch.setattr(poller, "MOST_HELD", 0)
    held = Held()
    assert not held.has_room()
    monkeypatch.setattr(poller, "MOST_HELD", 10)
    held.add(10)
    assert not held.has_room()
    held.add(-1)
    assert held.has_room()
    with stand_in() as server:
        now = time.time()
        server.say("GET /metrics", *([pytorch(at, timestamp=stamp(now + at / 1000))] for at in range(20)))
        trace = record(server, out, asked(server, "GET /metrics", 22))
    assert trace["iterations"]["iteration"].tolist() == list(range(20))


def test_a_redirect_and_a_refusal_on_the_way_are_told_and_outlived(out: Path) -> None:
    def elsewhere(handler: Any) -> None:
        handler.send_response(307)
        handler.send_header("Location", "http://evil.example/\x1b]0;x")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with stand_in() as server:
        server.say("GET /perf_metrics")
        server.say("GET /metrics", [pytorch(1)], elsewhere, [pytorch(2)])
        server.answers["GET /metrics"].insert(2, (401, b""))
        server.answers["GET /metrics"].insert(3, (404, b""))
        trace = record(server, out, asked(server, "GET /metrics", 7), Access("the-token"))
    assert trace["iterations"]["iteration"].tolist() == [1, 2]
    for path in out.rglob("*"):
        if path.is_file():
            assert b"the-token" not in path.read_bytes()
            assert b"\x1b]0" not in path.read_bytes()


def test_figures_of_a_server_are_kept_harmless(out: Path) -> None:
    text = b'# TYPE g gauge\ng{a="\x1b]0;owned\x07\xe2\x80\xae"} 1\n# TYPE a_info gauge\na_info{x="\x1b[2J"} 1\n'
    with stand_in() as server:
        server.say("GET /metrics")
        server.say("GET /prometheus/metrics", then=text)
        trace = record(server, out, asked(server, "GET /prometheus/metrics", 3))
    assert {trace.names[name] for name in trace["series"]["name"]} == {"g (a=\\x1b]0;owned\\x07\\u202e)"}
    assert trace.info.details["a_info"] == "x=\\x1b[2J"


def test_a_page_that_is_no_figures_is_noted(out: Path) -> None:
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)], then=b"<html>welcome</html>")
        trace = record(server, out, asked(server, "GET /metrics", 4))
    assert trace["iterations"]["iteration"].tolist() == [1]
    assert any("no figures for Prometheus" in note.text for note in trace.quality.notes)


def test_figures_that_are_sums_are_differenced_and_restarts_forget_them() -> None:
    told = figures.Figures()

    def latency(value: float) -> list[float]:
        record = {"newActiveRequestsQueueLatencyMS": value}
        return [value for name, _, value in told.of(record) if name == "queue latency of new requests"]

    assert [latency(5), latency(7), latency(7)] == [[], [2], [0]]
    told.forget()
    assert [latency(3), latency(4)] == [[], [1]]
    # One that falls was never a sum.
    assert [latency(2), latency(9)] == [[2], [9]]


def test_answers_about_the_clock_that_are_none(out: Path) -> None:
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)])
        server.say("GET /steady_clock_offset", b"nonsense", [1], {"receive_ts": "x"}, {"receive_ts": 1e300})
        trace = record(server, out, asked(server, "GET /metrics", 3))
    assert trace.quality.count("clock") == 0


def test_pages_in_use_are_those_of_the_engines_record(out: Path) -> None:
    """Events tell hashes of what is cached: by them alone nothing would ever be in use."""
    data = {"type": "stored", "parent_hash": None, "blocks": [{"block_hash": 11, "cache_level": 0}]}
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)], [], [], [pytorch(2)])
        server.say("POST /kv_cache_events", [{"event_id": 0, "data": data, "window_size": 4096}])
        trace = record(server, out, asked(server, "GET /metrics", 7))
    found = pages_at(trace, trace.end_ns)
    # The one with contents may be one of those in use.
    assert (found.counts.used, found.counts.kept, found.counts.unknown, found.counts.free) == (40, 0, 1, 59)
    before = pages_at(trace, -(10**12)).counts
    assert (before.used, before.unknown) == (0, 100)


def test_pages_in_use_are_told_without_page_events_too(out: Path) -> None:
    cached = {"4096": {"primaryEvictableNumBlocks": 20}}
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1, kvCacheIterationStats=cached)], [pytorch(2)])
        trace = record(server, out, asked(server, "GET /metrics", 5))
    assert not len(trace["page_events"])
    start = trace["iterations"]["start"].tolist()
    counts = [pages_at(trace, time).counts for time in start]
    assert [(each.used, each.kept, each.unknown, each.free) for each in counts] == [(40, 20, 0, 40), (40, 0, 60, 0)]


def test_figures_of_finished_requests_and_of_flat_records(out: Path) -> None:
    item = {"request_id": 1, **timing(time.monotonic() - 9, kv_cache_size=4096)}
    item["perf_metrics"] |= {
        "kv_cache_metrics": {"num_reused_blocks": 3, "num_missed_blocks": None},
        "speculative_decoding": {"acceptance_rate": 0.5},
    }
    flat = pytorch(1, inflightBatchingStats=None, scheduledNumPrefillRequests=2, scheduledNumDecodeRequests=5)
    flat |= {"scheduledSumPrefillTokens": 77, "queuedSumPrefillTokens": 9}
    with stand_in() as server:
        server.say("GET /metrics", [flat])
        server.say("GET /perf_metrics", [item])
        trace = record(server, out, asked(server, "GET /perf_metrics", 3))
    rows = trace["iterations"]
    columns = ("context_requests", "generation_requests", "context_tokens", "tokens")
    assert [rows[name].tolist() for name in columns] == [[2], [5], [77], [82]]
    series, counters = trace["series"], trace["counters"]
    names = [trace.names[name] for name in series["name"]]
    told = {names[row]: value for row, value in zip(counters["series"].tolist(), counters["value"], strict=True)}
    assert told["queued context tokens"] == 9
    assert {name: value for name, value in told.items() if name.endswith("finished request")} == {
        "KV blocks reused of a finished request": 3,
        "drafts accepted of a finished request": 50,
        "KV moved of a finished request": 4096,
    }
