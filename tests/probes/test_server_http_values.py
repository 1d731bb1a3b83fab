"""What servers may say, however odd: rows that the schema allows, nothing raised, nothing uncounted."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import inspector
from inspector.errors import Usage
from inspector.trace.quality import Quality
from probes.recording import Recording
from probes.server_http import pages
from probes.server_http.address import address
from probes.server_http.client import Answer
from probes.server_http.clocks import SteadyClock, WallClock, parse_stamp
from probes.server_http.exposed import MOST_SERIES, Exposed
from probes.server_http.exposition import read
from probes.server_http.feed import Feed
from probes.server_http.figures import kept
from probes.server_http.loops import Loop
from probes.server_http.pages import Numbers
from probes.server_http.pool import Pool
from probes.server_http.ranks import Ranks
from probes.server_http.reading import items, key64, whole
from probes.server_http.requests import Requests
from tests.probes.stand_in_server import later, pytorch

ODD = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_KEYS = sorted(
    {*pytorch(0), *later(0), *pytorch(0)["kvCacheStats"], *pytorch(0)["inflightBatchingStats"], "timing_metrics"}
    | {"request_id", "perf_metrics", "arrival_time", "last_token_time", "event_id", "data", "type", "blocks"}
    | {"block_hash", "block_hashes", "parent_hash", "cache_level", "new_value", "window_size", "attention_dp_rank"}
)
VALUES = st.recursive(
    ODD | st.sampled_from(["created", "stored", "removed", "updated", "12-02-2026 10:00:00.5", 2**63, 2**64, -1, 0.0]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=12,
)


def mutated(make: Any) -> st.SearchStrategy[dict[str, Any]]:
    """A record as it should be, with some values that should not."""
    changes = st.dictionaries(st.sampled_from(_KEYS), VALUES, max_size=4)
    return st.builds(lambda number, change: {**make(number), **change}, st.integers(0, 2**62), changes)


def answer(body: bytes = b"") -> Answer:
    return Answer(200, body, False, time.monotonic_ns(), time.time_ns())


@settings(max_examples=40)
@given(st.lists(st.lists(VALUES | mutated(pytorch) | mutated(later), max_size=4), max_size=4))
def test_whatever_is_said_becomes_a_recording_that_opens(answers: list[list[Any]]) -> None:
    with TemporaryDirectory() as folder:
        recording = Recording(Path(folder) / "a.inflight", [], {})
        feeds: list[Feed] = []

        def feed_of(number: int) -> Feed:
            feeds.append(Feed(recording.add_streams(f"server-{len(feeds)}"), -1 - len(feeds), "server"))
            return feeds[-1]

        ranks = Ranks(feed_of, recording.quality, Loop(recording.quality))
        requests = Requests(feed_of, recording.quality, True)
        for said in answers:
            for take in (ranks.take_iterations, ranks.take_pages, requests.take):
                take(answer(), [kept(pages.kept(copy.deepcopy(one))) for one in said])
            for feed in feeds:
                feed.flush()
        recording.finish()
        recording.leave()
        assert not any(feed.quality.notes for feed in feeds)
        trace = inspector.open(recording.path)
        told = sum(isinstance(one, dict) and whole(one, "iter", 2**62) >= 0 for said in answers for one in said)
        beyond = sum(note.count for note in trace.quality.notes if "ranks beyond" in note.text)
        # Equal ones with one number are one that was told twice.
        twice = sum(note.count for note in trace.quality.notes if "iterations that the server told twice" in note.text)
        assert told - beyond - twice <= len(trace["iterations"]) <= told - twice
        assert (trace["iterations"]["end"] >= trace["iterations"]["start"]).all()
        assert all(rank.iterations.lost >= 0 and rank.pages.lost >= 0 for rank in ranks.all)


@given(st.lists(VALUES, max_size=6), st.integers(0, 400))
def test_of_a_broken_array_the_whole_items_are_taken(said: list[Any], cut: int) -> None:
    body = json.dumps(said).encode()
    found, is_whole = items(body)
    assert is_whole
    assert repr(found) == repr(json.loads(body))
    part = body[: min(cut, len(body) - 1)]
    found, is_whole = items(part)
    assert not is_whole
    kept = repr(json.loads(body)[: len(found)])
    # A number at the break may have lost its end.
    assert repr(found[:-1]) == repr(json.loads(body)[: max(len(found) - 1, 0)])
    assert repr(found) == kept or isinstance(found[-1], int | float)


@given(ODD)
def test_counts_are_counts_or_unknown(value: Any) -> None:
    found = whole({"n": value}, "n", 1000)
    is_count = not isinstance(value, bool) and isinstance(value, int | float) and value in range(1001)
    assert found == (int(value) if is_count else -1)


@given(st.integers(0, 2**64 - 1), st.text(min_size=1))
def test_hashes_keep_all_their_bits(number: int, text: str) -> None:
    assert key64(number) == number
    assert 0 < key64(text) < 2**64
    assert key64(text) == key64(text)
    assert key64(None) == key64(True) == 0
    assert key64(2**70) not in (0, key64(2**71))


@given(
    st.integers(-50, 56),
    st.lists(st.integers(0, 10**10), min_size=1, max_size=5).map(sorted),
    st.integers(0, 400 * 10**9),
)
def test_the_zone_of_stamps_is_found(quarters: int, ages: list[int], lag: int) -> None:
    epoch, received = 1_800_000_000 * 10**9, 5_000 * 10**9
    moments = [epoch - lag - age // 1000 * 1000 for age in reversed(ages)]
    stamps = [_stamp(moment + quarters * 15 * 60 * 10**9) for moment in moments]
    clock = WallClock(Quality())
    for found, moment in zip(clock.times(stamps, received, epoch), moments, strict=True):
        assert found is not None
        assert abs(found - (received - (epoch - moment))) < 1000


@given(st.data(), st.integers(-50, 56), st.integers(0, 3).map(lambda k: k * 70 * 10**9))
def test_a_wild_stamp_costs_the_time_of_its_record_only(data: st.DataObject, quarters: int, ahead: int) -> None:
    epoch, received = 1_800_000_000 * 10**9, 5_000 * 10**9
    shift = quarters * 15 * 60 * 10**9 + ahead
    clock, number = WallClock(Quality()), 0
    for at in range(data.draw(st.integers(2, 6))):
        now = at * 10**10
        ages = sorted(data.draw(st.lists(st.integers(0, 9 * 10**6), min_size=3, max_size=7, unique=True)), reverse=True)
        # That a clock is ahead is known from a stamp as fresh as can be.
        moments = [epoch + now - 1000 * (0 if age == ages[-1] else age) for age in ages]
        stamps: list[object] = [_stamp(moment + shift) for moment in moments]
        wild = data.draw(st.sets(st.integers(0, len(stamps) - 1), max_size=1)) if at else set()
        for row in wild:
            number += 1
            # Far from what it was, and from every other wild one.
            far = data.draw(st.sampled_from([-1, 1])) * number * data.draw(st.sampled_from([11, 400, 90_000])) * 10**9
            stamps[row] = _stamp(moments[row] + shift + far)
        found = clock.times(stamps, received + now, epoch + now)
        for row, moment in enumerate(moments):
            time = found[row]
            if row not in wild:
                assert time is not None
                assert abs(time - (received + moment - epoch)) < 1_000_000
            elif far > 0 and row + 1 < len(moments):
                assert time is None


def test_another_clock_is_believed_when_two_answers_say_so() -> None:
    epoch, hour = 1_800_000_000 * 10**9, 3600 * 10**9
    quality = Quality()
    clock = WallClock(quality)

    def at(seconds: int, shift: int) -> int | None:
        now = epoch + seconds * 10**9
        (found,) = clock.times([_stamp(now + shift)], now, now)
        return None if found is None else found - now

    assert [at(0, 0), at(1, 0)] == [0, 0]
    # The end of summer time, and a clock that was set.
    assert [at(2, hour), at(3, hour), at(4, hour)] == [None, 0, 0]
    assert [at(5, hour + 10**11), at(6, hour + 10**11)] == [None, 0]
    # One stamp alone is not believed.
    assert [at(7, hour + 10**12), at(8, hour + 10**11)] == [None, 0]
    assert [at(9, hour), at(10, hour), at(11, hour)] == [-(10**11), 0, 0]
    assert quality.count("clock") > 0


def _stamp(epoch_ns: int) -> str:
    seconds, rest = divmod(epoch_ns, 10**9)
    return time.strftime("%m-%d-%Y %H:%M:%S", time.gmtime(seconds)) + f".{rest // 1000:06}"


@pytest.mark.parametrize("stamp", [None, 5, "", "02-30-2026 00:00:00.1", "2026-02-03 00:00:00", "01-01-9999 00:00:00"])
def test_what_is_no_stamp(stamp: object) -> None:
    assert parse_stamp(stamp) is None


def test_steady_times_of_this_machine_stay_as_they_are() -> None:
    quality = Quality()
    here, elsewhere = SteadyClock(quality, True), SteadyClock(quality, False)
    here.settle(100.0, 105 * 10**9)
    assert here.monotonic(99.5) == 99_500_000_000
    assert not quality.notes
    elsewhere.settle(7.0, 105 * 10**9)
    assert elsewhere.monotonic(6.0) == 104 * 10**9
    assert [note.code for note in quality.notes] == ["unaligned"]


@given(st.lists(st.booleans(), max_size=60))
def test_numbers_are_the_least_that_are_free(takes: list[bool]) -> None:
    numbers, held = Numbers(), set()
    for take in takes:
        if take or not held:
            number = numbers.take()
            assert number == min(set(range(len(held) + 1)) - held)
            held.add(number)
        else:
            number = max(held)
            held.discard(number)
            numbers.give_back(number)


@given(st.text(max_size=300))
def test_prometheus_text_of_any_kind(text: str) -> None:
    found = read("# TYPE a gauge\n" + text)
    assert all(sample.name for sample in found.samples)
    assert len(found.samples) + found.wrong <= text.count("\n") + 1


def test_gauges_are_bounded() -> None:
    with TemporaryDirectory() as folder:
        recording = Recording(Path(folder) / "a.inflight", [], {})
        feed = Feed(recording.add_streams("server"), -1, "server")
        exposed = Exposed(feed, recording.quality, Pool(feed), Loop(recording.quality))
        text = "# TYPE g gauge\n" + "\n".join(f'g{{k="{number}"}} {number}' for number in range(MOST_SERIES + 36))
        exposed.take(answer(text.encode()))
        assert exposed.records == MOST_SERIES
        assert recording.quality.count("ignored") == 36
        recording.finish()
        recording.leave()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("localhost:8000", "http://localhost:8000"),
        ("http://[::1]:80/base/", "http://[::1]:80/base"),
        ("https://host", "https://host:443"),
    ],
)
def test_addresses(text: str, shown: str) -> None:
    assert str(address(text)) == shown


@pytest.mark.parametrize("text", ["", "http://", "http://a:b@c", "file:///etc/passwd", "http://h:99999"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(Usage):
        address(text)
