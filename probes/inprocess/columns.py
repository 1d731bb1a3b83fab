"""The rows that a workload hands over: for each table its columns, each with the struct code of its values.

The names and meanings are those of the trace's tables, but what refers to other rows is a key, since a workload knows
no row numbers: `thread` is the operating system's thread id, `iteration` and `request` are the engine's own numbers,
(`device`, `stream`) are a device number and a stream number, and a counter's `series` is its name. Ids of names are
those that `Producer.name` gave. The process is that of the ring. Times are CLOCK_MONOTONIC, ns.

What others refer to comes first: an iteration before its steps and tokens, a request before both.
"""

from __future__ import annotations

Layout = tuple[tuple[str, str], ...]

NEVER = -(2**63)
"""In a time of `requests`: not yet."""
STATES: tuple[str, ...] = ("off", "running", "sampling", "paused", "failed")
"""What `probes.state` counts."""


def _columns(code: str, names: str) -> Layout:
    return tuple((name, code) for name in names.split())


_SPAN = _columns("q", "start end")
_WORK: Layout = (*_SPAN, ("device", "i"), ("stream", "q"), ("name", "i"), ("correlation", "q"))

LAYOUTS: dict[str, Layout] = {
    "threads": (("thread", "q"), ("name", "i")),
    "devices": (("number", "i"), ("name", "i"), ("memory", "q")),
    "ranges": (*_SPAN, ("thread", "q"), ("name", "i"), ("kind", "b"), ("domain", "i")),
    "iterations": (
        *_columns("q", "start end iteration"),
        *_columns("i", "context_requests generation_requests paused_requests queued_requests tokens"),
        *_columns("i", "used_blocks free_blocks reused_blocks missed_blocks context_tokens drafted accepted emitted"),
        *_columns("i", "completed_requests cached_blocks host_blocks max_batch_size max_num_tokens micro_batches"),
    ),
    "requests": (
        *_columns("q", "request arrival first_token last_token"),
        *_columns("i", "prompt_tokens output_tokens"),
        *_columns("q", "scheduled finished"),
        *_columns("i", "reused_tokens max_tokens group"),
    ),
    "steps": (
        *_columns("q", "iteration request"),
        ("phase", "b"),
        *_columns("i", "tokens drafted accepted blocks emitted position micro_batch"),
    ),
    "page_events": (
        *_columns("q", "time sequence block request"),
        ("kind", "b"),
        ("index", "i"),
        ("other", "q"),
        ("tier", "b"),
        *_columns("Q", "hash parent"),
    ),
    "tokens": (*_columns("q", "iteration request"), *_columns("i", "position name"), ("kind", "b")),
    "stage_work": (*_SPAN, ("stage", "i"), ("iteration", "q"), ("micro_batch", "i"), ("cpu", "q")),
    "pools": (*_columns("q", "time blocks host_blocks"), ("tokens_per_block", "i"), ("block_bytes", "q")),
    "kernels": _WORK,
    "memcpys": (*_WORK, ("bytes", "q")),
    "memsets": (*_WORK, ("bytes", "q")),
    "host_calls": (*_SPAN, ("thread", "q"), ("name", "i"), ("correlation", "q")),
    "counters": (("time", "q"), ("series", "i"), ("unit", "i"), ("device", "i"), ("value", "d")),
    "probes": (("time", "q"), ("name", "i"), ("state", "b"), *_columns("q", "records lost cost"), ("message", "i")),
    "marks": (("time", "q"), ("thread", "q"), ("name", "i"), ("domain", "i")),
}
