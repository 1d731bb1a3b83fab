"""Counts and unions straight from the files, in plain Python: shares no code with the program."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

Spans = dict[int, list[tuple[int, int]]]
SQLITE_TABLES = {
    "kernels": "CUPTI_ACTIVITY_KIND_KERNEL",
    "memcpys": "CUPTI_ACTIVITY_KIND_MEMCPY",
    "memsets": "CUPTI_ACTIVITY_KIND_MEMSET",
    "graphs": "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "host_calls": "CUPTI_ACTIVITY_KIND_RUNTIME",
}
KINETO_CATEGORIES = {
    "kernels": ("kernel", "Kernel"),
    "memcpys": ("gpu_memcpy", "Memcpy"),
    "memsets": ("gpu_memset", "Memset"),
    "host_calls": ("cuda_runtime", "cuda_driver", "Runtime"),
}


def figures(path: Path) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
    """(records by table, {device: span_ns, busy_ns, idle_ns, gaps, work})."""
    counts, spans = _sqlite(path) if path.suffix == ".sqlite" else _kineto(path)
    return counts, {device: _device(mine) for device, mine in spans.items()}


def _device(spans: list[tuple[int, int]]) -> dict[str, int]:
    spans = sorted(spans)
    first, last = spans[0][0], max(end for _, end in spans)
    busy, gaps, reach = 0, 0, first
    for start, end in spans:
        if start > reach:
            gaps += 1
        busy += max(end - max(start, reach), 0)
        reach = max(reach, end)
    span = last - first
    return {"span_ns": span, "busy_ns": busy, "idle_ns": span - busy, "gaps": gaps, "work": len(spans)}


def _sqlite(path: Path) -> tuple[dict[str, int], Spans]:
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    there = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
    counts: dict[str, int] = {}
    spans: Spans = defaultdict(list)
    for ours, theirs in SQLITE_TABLES.items():
        if theirs not in there:
            counts[ours] = 0
            continue
        (counts[ours],) = connection.execute(f"select count(*) from {theirs}").fetchone()
        if ours != "host_calls":
            for device, start, end in connection.execute(f"select deviceId, start, end from {theirs}"):
                spans[device].append((start, end))
    counts["ranges"] = 0
    if "NVTX_EVENTS" in there:
        (counts["ranges"],) = connection.execute(
            "select count(*) from NVTX_EVENTS where eventType in (59, 60)"
        ).fetchone()
    connection.close()
    return counts, spans


def _kineto(path: Path) -> tuple[dict[str, int], Spans]:
    with gzip.open(path) as file:
        whole: Any = json.load(file, parse_float=Decimal)
    events = whole["traceEvents"] if isinstance(whole, dict) else whole
    counts = dict.fromkeys(KINETO_CATEGORIES, 0)
    spans: Spans = defaultdict(list)
    for event in events:
        for ours, theirs in KINETO_CATEGORIES.items():
            if event.get("ph") == "X" and event.get("cat") in theirs:
                counts[ours] += 1
                if ours != "host_calls":
                    start, length = int(Decimal(event["ts"]) * 1000), int(Decimal(event["dur"]) * 1000)
                    spans[event["args"]["device"]].append((start, start + length))
    return counts, spans
