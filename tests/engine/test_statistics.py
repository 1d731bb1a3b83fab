"""What can be read over HTTP says what the engine did: sums, page contents, times."""

from __future__ import annotations

import datetime
import json
import re
import time
from random import Random
from typing import Any

import pytest
import torch

from probes.workloads.engine.blocks import CACHED, EVICTED, OFFLOADED, RESTORED, Content, PageEvent
from probes.workloads.engine.engine import Engine, Request, Settings
from probes.workloads.engine.model import Decoder, Shape
from probes.workloads.engine.prometheus import Histogram
from probes.workloads.engine.records import GENERATION, Iteration
from probes.workloads.engine.runner import LocalRunner
from probes.workloads.engine.statistics import MOST_ITERATIONS, Statistics

TINY = Shape(width=16, layers=2, heads=2, kv_heads=1, per_head=8, inner=16, entries=64, positions=256)
SETTINGS = Settings(
    max_batch_size=5,
    max_num_tokens=24,
    blocks=24,
    tokens_per_block=4,
    host_blocks=5,
    draft="ngram",
    draft_len=3,
)


class Witness:
    """Keeps all that an engine tells."""

    def __init__(self) -> None:
        self.iterations: list[Iteration] = []
        self.events: list[PageEvent] = []

    def pool(self, time: int, blocks: int, host_blocks: int, tokens_per_block: int, block_bytes: int) -> None:
        self.blocks = blocks

    def page(self, event: PageEvent, content: Content | None) -> None:
        self.events.append(event)

    def request(self, request: Request) -> None:
        pass

    def iteration(self, iteration: Iteration) -> None:
        self.iterations.append(iteration)

    def rest(self) -> None:
        pass


class Served:
    """A load of requests that share prefixes, served to the end but for one that is cancelled."""

    def __init__(self) -> None:
        self.began = time.monotonic_ns()
        torch.manual_seed(1)
        model = Decoder(TINY).eval().requires_grad_(False)
        self.statistics, self.witness = Statistics(TINY.positions, True), Witness()
        runner = LocalRunner(model, SETTINGS.blocks, SETTINGS.tokens_per_block, SETTINGS.host_blocks)
        self.engine = Engine(SETTINGS, runner, observers=[self.statistics, self.witness])
        random = Random(4)
        prefix = tuple(random.randrange(64) for _ in range(9))
        self.requests = []
        for number in range(20):
            own = tuple(random.randrange(64) for _ in range(random.randrange(1, 12)))
            self.requests.append(Request((*prefix, *own), random.randrange(1, 30), seed=number, end=None))
            self.engine.add(self.requests[-1])
        for _ in range(4):
            self.engine.step()
        self.engine.cancel(self.requests[-1])
        while self.engine.step() is not None:
            pass
        self.ended = time.monotonic_ns()


@pytest.fixture(scope="module")
def served() -> Served:
    return Served()


@pytest.fixture(scope="module")
def records(served: Served) -> list[Any]:
    return list(json.loads(json.dumps(served.statistics.iterations())))


def test_iterations_sum_to_the_engines_counters(served: Served, records: list[Any]) -> None:
    counters = served.engine.counters
    assert [record["iter"] for record in records] == list(range(counters.iterations))
    batching = [record["inflightBatchingStats"] for record in records]
    assert sum(record["numCompletedRequests"] for record in records) == counters.finished == 20
    assert sum(record["numNewActiveRequests"] for record in records) == 19
    assert sum(stats["numCtxTokens"] for stats in batching) == counters.context_tokens
    drafting = [record["specDecodingStats"] for record in records if record["specDecodingStats"] is not None]
    assert sum(stats["numDraftTokens"] for stats in drafting) == counters.drafted > 0
    assert sum(stats["numAcceptedTokens"] for stats in drafting) == counters.accepted
    last = records[-1]["kvCacheStats"]
    assert (last["reusedBlocks"], last["missedBlocks"]) == (counters.reused_blocks, counters.missed_blocks)
    assert last["cacheHitRate"] == counters.reused_blocks / (counters.reused_blocks + counters.missed_blocks)
    assert records[-1]["numActiveRequests"] == len({step.request for step in served.witness.iterations[-1].steps})


def test_each_iteration_says_what_the_engine_said(served: Served, records: list[Any]) -> None:
    for record, told in zip(records, served.witness.iterations, strict=True):
        pages, batching = record["kvCacheStats"], record["inflightBatchingStats"]
        assert record["iterLatencyMS"] == (told.end - told.start) / 1e6
        assert pages["usedNumBlocks"] + pages["freeNumBlocks"] == pages["maxNumBlocks"] == SETTINGS.blocks
        assert pages["usedNumBlocks"] == told.used_blocks
        assert batching["numGenRequests"] == told.generation_requests
        assert batching["numScheduledRequests"] == told.context_requests + told.generation_requests
        assert record["numQueuedRequests"] == told.queued_requests
        given = [len(step.emitted) for step in told.steps if step.phase == GENERATION]
        assert batching["avgNumDecodedTokensPerIter"] == (sum(given) / len(given) if given else 0)
        assert record["cpuMemUsage"] > 1_000_000
    queued = [record["newActiveRequestsQueueLatencyMS"] for record in records]
    assert queued == sorted(queued)
    waits = [r.scheduled - r.arrival for r in served.requests if r.scheduled is not None and r.arrival is not None]
    assert queued[-1] == sum(waits) / 1e6


def test_the_time_of_an_iteration_is_the_wall_clocks(served: Served, records: list[Any]) -> None:
    now, monotonic = time.time(), time.monotonic_ns()
    for record, told in zip(records, served.witness.iterations, strict=True):
        stamp = datetime.datetime.strptime(record["timestamp"], "%m-%d-%Y %H:%M:%S.%f").timestamp()
        assert abs(stamp - (now - (monotonic - told.start) / 1e9)) < 0.5


def test_page_events_rebuild_what_can_be_reused(served: Served) -> None:
    events = json.loads(json.dumps(served.statistics.page_events()))
    assert [event["event_id"] for event in events] == list(range(len(events)))
    assert events[0]["data"] == {"type": "created", "num_blocks_per_cache_level": [24, 5]}
    levels: dict[int, int] = {}
    tokens: dict[int, list[int]] = {}
    for event in events[1:]:
        data = event["data"]
        if data["type"] == "stored":
            for block in data["blocks"]:
                assert block["block_hash"] not in levels
                before = tokens[data["parent_hash"]] if data["parent_hash"] is not None else []
                levels[block["block_hash"]] = block["cache_level"]
                tokens[block["block_hash"]] = before + [token["token_id"] for token in block["tokens"]]
        elif data["type"] == "removed":
            for found in data["block_hashes"]:
                del levels[found]
        else:
            assert levels[data["block_hash"]] == data["cache_level"]["old_value"]
            levels[data["block_hash"]] = data["cache_level"]["new_value"]
    assert {event["data"]["type"] for event in events} == {"created", "stored", "removed", "updated"}
    assert levels == _levels(served.witness.events)
    sequences = [[*request.prompt, *request.output] for request in served.requests]
    for known in tokens.values():
        assert any(sequence[: len(known)] == known for sequence in sequences)


def _levels(events: list[PageEvent]) -> dict[int, int]:
    """The level of each content at the end, by the pages themselves."""
    device: dict[int, int] = {}
    host: dict[int, int] = {}
    for event in events:
        if event.kind == CACHED:
            device[event.block] = event.hash
        elif event.kind == RESTORED:
            device[event.block] = host.pop(event.other)
        elif event.kind == OFFLOADED:
            host[event.other] = device.pop(event.block)
        elif event.kind == EVICTED:
            (host if event.tier else device).pop(event.block)
    return {**dict.fromkeys(host.values(), 1), **dict.fromkeys(device.values(), 0)}


def test_requests_tell_their_times_blocks_and_drafts(served: Served) -> None:
    rows = {row["request_id"]: row["perf_metrics"] for row in served.statistics.finished()}
    assert sorted(rows) == list(range(20))
    steps = [(it.number, step) for it in served.witness.iterations for step in it.steps]
    for request in served.requests:
        row, own = rows[request.id], [(number, step) for number, step in steps if step.request is request]
        times = row["timing_metrics"]
        order = [times[f"{name}_time"] for name in ("arrival", "first_scheduled", "first_token", "last_token")]
        gave = [number for number, step in own if step.emitted]
        if request.reason == "cancelled":
            assert order[1:] == [None] * 3
            assert row["first_iter"] is None
        else:
            assert served.began / 1e9 <= order[0] <= order[1] <= order[2] <= order[3] <= served.ended / 1e9
            assert (row["first_iter"], row["last_iter"]) == (gave[0], gave[-1])
        pages = row["kv_cache_metrics"]
        kinds = [event.kind for event in served.witness.events if event.request == request.id]
        assert pages["num_new_allocated_blocks"] == kinds.count(1)
        assert pages["num_reused_blocks"] == kinds.count(3)
        assert pages["num_total_allocated_blocks"] == kinds.count(1) + kinds.count(3)
        drafted = sum(len(step.drafts) for _, step in own)
        assert ("speculative_decoding" in row) == (drafted > 0)
        if drafted:
            assert row["speculative_decoding"]["total_draft_tokens"] == drafted
            assert row["speculative_decoding"]["total_accepted_draft_tokens"] == sum(s.accepted for _, s in own)


def test_prometheus_counts_what_finished(served: Served) -> None:
    text = served.statistics.prometheus()
    values = dict(re.findall(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE))
    labels = 'model_name="undefined",engine_type="undefined"'
    assert values[f'trtllm_request_success_total{{{labels},finished_reason="length"}}'] == "19"
    assert values[f"trtllm_e2e_request_latency_seconds_count{{{labels}}}"] == "19"
    longer = sum(len(request.output) > 1 for request in served.requests)
    assert values[f"trtllm_time_per_output_token_seconds_count{{{labels}}}"] == str(longer)
    counters = served.engine.counters
    rate = counters.reused_blocks / (counters.reused_blocks + counters.missed_blocks)
    assert float(values[f"trtllm_kv_cache_hit_rate{{{labels}}}"]) == rate
    assert float(values[f"trtllm_kv_cache_utilization{{{labels}}}"]) == 0


def test_a_histogram_counts_up_to_each_bound() -> None:
    histogram = Histogram("h", "text", (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.5, 9.0):
        histogram.observe(value)
    counts = [line.rpartition(" ")[2] for line in histogram.lines() if not line.startswith("#")]
    assert counts == ["2", "3", "5", "14.5", "5"]


def test_what_is_not_read_goes_oldest_first(served: Served) -> None:
    statistics = Statistics(TINY.positions, True)
    statistics.pool(0, 24, 5, 4, 100)
    told = served.witness.iterations[0]
    for _ in range(MOST_ITERATIONS + 7):
        statistics.iteration(told)
    assert len(statistics.iterations()) == MOST_ITERATIONS
    assert statistics.iterations() == []
