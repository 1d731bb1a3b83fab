"""What Triton's metrics endpoint tells of the tensorrtllm backend: queue, batch and KV cache, by names of people.

Its gauges hold the figures of the last iteration when they were asked for: samples, not a record of each iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from probes.server_http.exposition import Labels, Sample

_BACKEND = "nv_trt_llm_"
_SERVER = "nv_inference_"
# By family and the value of the label that names the figure: what it is called, and its unit.
_FIGURES: dict[tuple[str, str], tuple[str, str]] = {
    ("request_metrics", "active"): ("active requests", "requests"),
    ("request_metrics", "scheduled"): ("scheduled requests", "requests"),
    ("request_metrics", "context"): ("requests in the context phase", "requests"),
    ("request_metrics", "waiting"): ("requests queued", "requests"),
    ("request_metrics", "max"): ("most active requests", "requests"),
    ("runtime_memory_metrics", "gpu"): ("engine GPU memory", "bytes"),
    ("runtime_memory_metrics", "cpu"): ("engine host memory", "bytes"),
    ("runtime_memory_metrics", "pinned"): ("engine pinned memory", "bytes"),
    ("kv_cache_block_metrics", "used"): ("KV blocks used", "blocks"),
    ("kv_cache_block_metrics", "free"): ("KV blocks free", "blocks"),
    ("kv_cache_block_metrics", "max"): ("KV blocks", "blocks"),
    ("kv_cache_block_metrics", "tokens_per"): ("tokens per KV block", "tokens"),
    ("kv_cache_block_metrics", "fraction"): ("share of KV blocks used", "%"),
    ("inflight_batcher_metrics", "generation_requests"): ("requests in the generation phase", "requests"),
    ("inflight_batcher_metrics", "paused_requests"): ("requests paused", "requests"),
    ("inflight_batcher_metrics", "total_context_tokens"): ("context tokens", "tokens"),
    ("inflight_batcher_metrics", "micro_batch_id"): ("micro-batch", ""),
    ("v1_metrics", "total_generation_tokens"): ("generation tokens", "tokens"),
    ("v1_metrics", "total_context_tokens"): ("context tokens", "tokens"),
    ("v1_metrics", "empty_generation_slots"): ("empty generation slots", "requests"),
    ("general_metrics", "iteration_counter"): ("iteration", ""),
}
_UNTOLD = ("runtime_memory_metrics", "kv_cache_block_metrics")
"""Families in which all is 0 before the first iteration."""
_KIND_LABELS = ("_type", "_metric")
_DURATIONS = {
    "nv_inference_request_duration_us": "time per request",
    "nv_inference_queue_duration_us": "queue time per request",
    "nv_inference_compute_input_duration_us": "input time per request",
    "nv_inference_compute_infer_duration_us": "inference time per request",
    "nv_inference_compute_output_duration_us": "output time per request",
}
_DONE = "nv_inference_request_success"


class Told(NamedTuple):
    """Figures (name, unit, value), names of samples that are told by them, and the KV pool; -1 where it is not told."""

    figures: list[tuple[str, str, float]]
    taken: set[str]
    blocks: int
    tokens_per_block: int


def is_triton(samples: Iterable[Sample]) -> bool:
    """Whether samples are of a Triton server."""
    return any(sample.name.startswith((_BACKEND, _SERVER)) for sample in samples)


def take(gauges: Iterable[Sample], counters: Iterable[Sample], grown: Mapping[tuple[str, Labels], float]) -> Told:
    """Of the gauges and counters of an answer what is Triton's; `grown`: what sums grew by since the last one."""
    figures: list[tuple[str, str, float]] = []
    taken: set[str] = set()
    pool = {"max": -1, "tokens_per": -1}
    mine = [(sample, _kind(sample)) for sample in gauges if sample.name.startswith(_BACKEND)]
    models = {_model(sample.labels) for sample, _ in mine}
    for sample, kind in mine:
        family = sample.name.removeprefix(_BACKEND)
        taken.add(sample.name)
        known = _FIGURES.get((family, kind))
        if (family, kind) == ("general_metrics", "timestamp"):
            # Of another clock, and in a unit that was changed once; the answer's own time is used.
            continue
        name, unit = known or (f"{family.removesuffix('_metrics')} {kind}".replace("_", " ").strip(), "")
        if not math.isfinite(sample.value) or (not sample.value and family in _UNTOLD and _is_empty(mine, sample)):
            continue
        scale = 100.0 if unit == "%" else 1.0
        suffix = f" ({_model(sample.labels)})" if len(models) > 1 else ""
        figures.append((name + suffix, unit, sample.value * scale))
        if family == "kv_cache_block_metrics" and kind in pool and len(models) == 1 and sample.value.is_integer():
            pool[kind] = int(sample.value)
    for counter in counters:
        if counter.name in _DURATIONS:
            taken.add(counter.name)
            spent, done = grown.get((counter.name, counter.labels)), grown.get((_DONE, counter.labels), 0.0)
            if spent is not None and done > 0:
                name = f"{_DURATIONS[counter.name]} ({_model(counter.labels)})"
                figures.append((name, "µs", spent / done))
    return Told(figures, taken, min(pool["max"], 2**62), min(pool["tokens_per"], 2**31 - 1))


def _is_empty(mine: list[tuple[Sample, str]], sample: Sample) -> bool:
    """Whether all of its family and model is 0: nobody has filled it."""
    model = _model(sample.labels)
    return not any(other.value for other, _ in mine if other.name == sample.name and _model(other.labels) == model)


def _kind(sample: Sample) -> str:
    return next((value for key, value in sample.labels if key.endswith(_KIND_LABELS)), "")


def _model(labels: Labels) -> str:
    told = dict(labels)
    return " ".join(filter(None, (told.get("model", ""), told.get("version", ""))))
