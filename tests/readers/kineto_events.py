"""Events of PyTorch profiler traces for tests, and files made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspector.readers import open_trace
from inspector.trace.trace import Trace

Json = dict[str, Any]


def opened(folder: Path, events: list[Json] | str | bytes, **head: object) -> Trace:
    path = folder / "trace.json"
    if isinstance(events, list):
        events = json.dumps({**head, "traceEvents": events} if head else events)
    path.write_bytes(events.encode() if isinstance(events, str) else events)
    return open_trace(path)


def call(
    pid: int | str, ts: float, correlation: int | None, name: str = "cudaLaunchKernel", tid: int | str = 1
) -> Json:
    args = {} if correlation is None else {"correlation": correlation}
    common = {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": pid, "tid": tid}
    return {**common, "ts": ts, "dur": 1, "args": args}


def kernel(device: int, ts: float, correlation: int | None, stream: int | None = 7, **args: object) -> Json:
    known = {"device": device, "stream": stream, "correlation": correlation, **args}
    kept = {key: value for key, value in known.items() if value is not None}
    common = {"ph": "X", "cat": "kernel", "name": f"k{correlation}", "pid": device, "tid": f"stream {stream}"}
    return {**common, "ts": ts, "dur": 2, "args": kept}
