"""Prometheus text, OpenMetrics and Triton's endpoint: what is read, what becomes of it, in which units."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.quality import Quality
from probes.server_http.client import Answer
from probes.server_http.exposed import Exposed, unit_of
from probes.server_http.exposition import MOST_LINE, Sample, is_exposition, read
from probes.server_http.loops import Loop
from probes.server_http.pool import Pool
from tests.probes.attached import asked, hurry, record
from tests.probes.stand_in_server import stand_in

SECOND = 10**9
TRITON = """# HELP nv_inference_request_success Number of successful inference requests, all batch sizes
# TYPE nv_inference_request_success counter
nv_inference_request_success{{model="tensorrt_llm",version="1"}} {done}
# TYPE nv_inference_queue_duration_us counter
nv_inference_queue_duration_us{{model="tensorrt_llm",version="1"}} {queue}
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{{model="tensorrt_llm",version="1"}} 3
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{{gpu_uuid="GPU-1"}} 0.5
# TYPE nv_gpu_power_usage gauge
nv_gpu_power_usage{{gpu_uuid="GPU-1"}} 200.5
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{{model="tensorrt_llm",request_type="context",version="1"}} 1
nv_trt_llm_request_metrics{{model="tensorrt_llm",request_type="scheduled",version="1"}} 5
nv_trt_llm_request_metrics{{model="tensorrt_llm",request_type="max",version="1"}} 512
nv_trt_llm_request_metrics{{model="tensorrt_llm",request_type="active",version="1"}} 7
# TYPE nv_trt_llm_runtime_memory_metrics gauge
nv_trt_llm_runtime_memory_metrics{{memory_type="pinned",model="tensorrt_llm",version="1"}} 0
nv_trt_llm_runtime_memory_metrics{{memory_type="gpu",model="tensorrt_llm",version="1"}} {memory}
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"}} 0.25
nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="tokens_per",model="tensorrt_llm",version="1"}} 64
nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="used",model="tensorrt_llm",version="1"}} 25
nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="free",model="tensorrt_llm",version="1"}} 75
nv_trt_llm_kv_cache_block_metrics{{kv_cache_block_type="max",model="tensorrt_llm",version="1"}} 100
# TYPE nv_trt_llm_inflight_batcher_metrics gauge
nv_trt_llm_inflight_batcher_metrics{{inflight_batcher_specific_metric="generation_requests",{model}}} 4
nv_trt_llm_inflight_batcher_metrics{{inflight_batcher_specific_metric="total_context_tokens",{model}}} 128
# TYPE nv_trt_llm_general_metrics gauge
nv_trt_llm_general_metrics{{general_type="iteration_counter",model="tensorrt_llm",version="1"}} {iteration}
nv_trt_llm_general_metrics{{general_type="timestamp",model="tensorrt_llm",version="1"}} 1700074049
# TYPE nv_trt_llm_disaggregated_serving_metrics counter
nv_trt_llm_disaggregated_serving_metrics{{disaggregated_serving_type="request_count",{model}}} 0
"""


def triton(**values: float) -> str:
    return TRITON.format(model='model="tensorrt_llm",version="1"', **values)


class Told:
    """In place of a feed: what is handed over."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.pools: list[Any] = []

    def counter(self, time_ns: int, name: str, unit: str, value: float) -> None:
        self.values[name, unit].append(value)

    def add(self, table: str, rows: list[Any]) -> None:
        assert table == "pools"
        self.pools += rows


def told(*texts: str | bytes, seconds: float = 1.0) -> tuple[Told, Quality]:
    """What becomes of answers that came so many seconds apart."""
    into, quality = Told(), Quality()
    feed: Any = into
    exposed = Exposed(feed, quality, Pool(feed), Loop(quality))
    for at, text in enumerate(texts):
        body = text if isinstance(text, bytes) else text.encode()
        exposed.take(Answer(200, body, False, round((at + 1) * seconds * SECOND), 0))
    assert exposed.records == sum(map(len, into.values.values()))
    return into, quality


def test_gauges_of_all_spellings() -> None:
    text = (
        "# HELP trtllm_kv_cache_utilization share\n# TYPE trtllm_kv_cache_utilization gauge\n"
        'trtllm_kv_cache_utilization{model_name="undefined",engine_type="undefined",pid="12"} 0.25\n'
        '# TYPE held_bytes gauge\nheld_bytes{kind="a\\"}\\\\b\\nc",} 1e9 1700000000\nheld_bytes NaN\nheld_bytes +Inf\n'
        '  # TYPE spaced gauge\r\nspaced { x = "1" }\t7 # {trace_id="z"} 1.0\r\n'
        'untyped 3\n{"quo.ted",x="2"} 4\nnonsense\nodd 1_0\nodd \u0663\n# EOF\n'
    )
    into, quality = told(text)
    assert into.values == {
        ("trtllm_kv_cache_utilization", ""): [0.25],
        ('held_bytes (kind=a"}\\b\\x0ac)', "bytes"): [1e9],
        ("spaced (x=1)", ""): [7],
        ("untyped", ""): [3],
        ("quo.ted (x=2)", ""): [4],
    }
    assert quality.count("invalid") == 3
    assert quality.count("ignored") == 1


def test_processes_of_one_server_are_told_apart_only_where_they_have_to_be() -> None:
    into, _ = told('# TYPE g gauge\ng{pid="1",x="a"} 1\ng{pid="2",x="a"} 2\ng{pid="3",x="b"} 3\n')
    assert into.values == {
        ("g (pid=1, x=a)", ""): [1],
        ("g (pid=2, x=a)", ""): [2],
        ("g (x=b)", ""): [3],
    }


def test_what_grows_becomes_a_rate_and_begins_anew_after_a_restart() -> None:
    text = '# TYPE trtllm_request_success_total counter\ntrtllm_request_success_total{{finished_reason="stop"}} {}\n'
    into, quality = told(*(text.format(value) for value in (10, 14, 14, 3)), seconds=2.0)
    assert into.values == {("trtllm_request_success (finished_reason=stop) per second", "1/s"): [2, 0, 1.5]}
    assert quality.count("profiler") == 1


def test_histograms_become_the_mean_of_what_came_since() -> None:
    text = (
        "# TYPE time_to_first_token_seconds histogram\n"
        'time_to_first_token_seconds_bucket{{le="0.5"}} {0}\ntime_to_first_token_seconds_bucket{{le="+Inf"}} {0}\n'
        "time_to_first_token_seconds_sum {1}\ntime_to_first_token_seconds_count {0}\n"
        "time_to_first_token_seconds_created 1.7e9\n"
    )
    into, _ = told(text.format(4, 2.0), text.format(4, 2.0), text.format(8, 3.0))
    assert into.values == {
        ("time_to_first_token_seconds count per second", "1/s"): [0, 4],
        ("time_to_first_token_seconds mean", "s"): [0.25],
    }


def test_openmetrics() -> None:
    text = (
        "# TYPE kv counter\n# UNIT kv blocks\nkv_total{{}} {0}\nkv_created 5\n"
        '# TYPE about info\nabout_info{{a="b"}} 1\n'
        '# TYPE lag summary\nlag{{quantile="0.5"}} 2\nlag_sum {1}\nlag_count {0}\n# EOF\n'
    )
    into, _ = told(text.format(1, 5), text.format(3, 9))
    assert into.values == {
        ("kv per second", "blocks/s"): [2],
        ("lag count per second", "1/s"): [2],
        ("lag mean", ""): [2],
    }


def test_info_tells_of_the_loop() -> None:
    quality, into = Quality(), Told()
    feed: Any = into
    loop = Loop(quality)
    text = b'# TYPE trtllm_parallel_config_info gauge\ntrtllm_parallel_config_info{pp_size="4",tp_size="2"} 1\n'
    exposed = Exposed(feed, quality, Pool(feed), loop)
    exposed.take(Answer(200, text, False, 1, 1))
    assert loop.lag == 3
    assert exposed.details == {"trtllm_parallel_config_info": "pp_size=4, tp_size=2"}
    assert not into.values


def test_triton() -> None:
    first = triton(done=10, queue=1000, memory=0, iteration=100)
    second = triton(done=14, queue=9000, memory=8e9, iteration=140)
    into, quality = told(first, second)
    values = into.values
    assert values["active requests", "requests"] == [7, 7]
    assert values["scheduled requests", "requests"] == [5, 5]
    assert values["requests in the context phase", "requests"] == [1, 1]
    assert values["requests in the generation phase", "requests"] == [4, 4]
    assert values["context tokens", "tokens"] == [128, 128]
    assert values["KV blocks used", "blocks"] == [25, 25]
    assert values["share of KV blocks used", "%"] == [25, 25]
    assert values["iteration", ""] == [100, 140]
    # All zeros are memory that nobody measured; a zero beside others is one.
    assert values["engine GPU memory", "bytes"] == [8e9]
    assert values["engine pinned memory", "bytes"] == [0]
    assert values["queue time per request (tensorrt_llm 1)", "µs"] == [2000]
    assert values["nv_inference_request_success (model=tensorrt_llm, version=1) per second", "1/s"] == [4]
    assert values["nv_inference_pending_request_count (model=tensorrt_llm, version=1)", ""] == [3, 3]
    assert values["nv_gpu_power_usage (gpu_uuid=GPU-1)", "W"] == [200.5, 200.5]
    assert not [name for name, _ in values if "timestamp" in name]
    assert [row[1:4] for row in into.pools] == [(100, 100 - 100, 64)]
    assert not quality.notes


def test_several_models_are_told_apart() -> None:
    text = "# TYPE nv_trt_llm_request_metrics gauge\n" + "".join(
        f'nv_trt_llm_request_metrics{{model="{model}",request_type="active",version="1"}} {value}\n'
        for model, value in (("a", 1), ("b", 2))
    )
    into, _ = told(text)
    assert into.values == {("active requests (a 1)", "requests"): [1], ("active requests (b 1)", "requests"): [2]}


def test_triton_is_known_by_what_it_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    out = tmp_path / "a.inflight"
    first = triton(done=10, queue=1000, memory=0, iteration=100).encode()
    second = triton(done=14, queue=9000, memory=8e9, iteration=140).encode()
    with stand_in() as server:
        server.say("GET /metrics", first, then=second)
        trace = record(server, out, asked(server, "GET /metrics", 4))
    names = {trace.names[name] for name in trace["series"]["name"]}
    assert {"active requests", "KV blocks used", "iteration", "queue time per request (tensorrt_llm 1)"} <= names
    assert trace["pools"]["blocks"].tolist() == [100]
    assert "Triton" in trace.info.missing["iterations"]
    assert trace.quality.count("invalid") == 0
    table = trace["probes"]
    records = {trace.names[name]: int(count) for name, count in zip(table["name"], table["records"], strict=True)}
    assert records["/metrics"] == len(trace["counters"])


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("e2e_request_latency_seconds", "s"),
        ("trtllm_time_per_output_token_seconds", "s"),
        ("trtllm_kv_cache_tokens_per_block", "tokens/block"),
        ("trtllm_generation_tokens_per_second", "tokens/s"),
        ("trtllm_kv_cache_max_blocks", "blocks"),
        ("trtllm_kv_cache_hit_rate", ""),
        ("nv_inference_queue_duration_us", "µs"),
        ("nv_gpu_memory_used_bytes", "bytes"),
        ("trtllm_num_requests_running", "requests"),
        ("dynamo:kv_transfer_ms", "ms"),
    ],
)
def test_units(name: str, unit: str) -> None:
    assert unit_of(name) == unit


NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,8}", fullmatch=True)
LABELS = st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,5}", fullmatch=True), st.text(max_size=8), max_size=3)


@given(st.lists(st.tuples(NAMES, LABELS, st.floats(allow_nan=False)), max_size=6))
def test_what_is_written_is_read(written: list[tuple[str, dict[str, str], float]]) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

    lines = [
        name + "{" + ",".join(f'{key}="{escaped(value)}"' for key, value in labels.items()) + "} " + repr(value)
        for name, labels, value in written
    ]
    found = read("\n".join(lines))
    assert found.wrong == 0
    expected = [Sample(name, name, "unknown", tuple(sorted(labels.items())), value) for name, labels, value in written]
    assert found.samples == expected


def test_endless_lines_and_endless_text_are_bounded() -> None:
    assert read("a" * (MOST_LINE + 1)).wrong == 1
    assert read('a{x="' + "\\" * (MOST_LINE - 10) + "\n").wrong == 1
    assert read("\n".join(f"a{n} 1" for n in range(200_000))).wrong == 1


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("# HELP a b", True),
        ("\n# TYPE a gauge\n", True),
        ("up 1\n", True),
        ("<html>", False),
        ("[]", False),
        ("", False),
    ],
)
def test_what_is_such_a_text(text: str, is_one: bool) -> None:
    assert is_exposition(text) == is_one
