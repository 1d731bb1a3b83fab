"""The few figures of requests that trtllm-serve gives to Prometheus, in its text format."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from probes.workloads.engine.request import Request

_LABELS = 'model_name="undefined",engine_type="undefined"'
_SECOND = 1e9
_LONG = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_FIRST = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_EACH = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)


class Histogram:
    """Counts of values, in buckets with these upper bounds (inclusive)."""

    def __init__(self, name: str, text: str, bounds: tuple[float, ...]) -> None:
        self._name, self._text, self._bounds = name, text, bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[str]:
        """As Prometheus reads it: counts up to each bound."""
        yield f"# HELP {self._name} {self._text}"
        yield f"# TYPE {self._name} histogram"
        total = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            written = "+Inf" if bound == float("inf") else str(bound)
            yield f'{self._name}_bucket{{{_LABELS},le="{written}"}} {total}'
        yield f"{self._name}_sum{{{_LABELS}}} {self._sum}"
        yield f"{self._name}_count{{{_LABELS}}} {total}"


class RequestFigures:
    """Figures of finished requests. May be read by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: Counter[str] = Counter()
        self._whole = Histogram("trtllm_e2e_request_latency_seconds", "From arrival to the last token.", _LONG)
        self._first = Histogram("trtllm_time_to_first_token_seconds", "From arrival to the first token.", _FIRST)
        self._each = Histogram("trtllm_time_per_output_token_seconds", "Between tokens after the first.", _EACH)
        self._queue = Histogram("trtllm_request_queue_time_seconds", "From arrival to the first iteration.", _LONG)

    def finished(self, request: Request) -> None:
        """Count a request that has finished; a cancelled one is no success."""
        arrival, first, last = request.arrival, request.first_token, request.last_token
        if request.reason not in ("stop", "length") or arrival is None or first is None or last is None:
            return
        with self._lock:
            self._reasons[request.reason] += 1
            self._whole.observe((last - arrival) / _SECOND)
            self._first.observe((first - arrival) / _SECOND)
            if len(request.output) > 1:
                self._each.observe((last - first) / _SECOND / (len(request.output) - 1))
            if request.scheduled is not None:
                self._queue.observe((request.scheduled - arrival) / _SECOND)

    def text(self, gauges: Mapping[str, float]) -> str:
        """All of it, with `gauges` (name to value)."""
        with self._lock:
            lines = [
                "# HELP trtllm_request_success_total Requests that finished.",
                "# TYPE trtllm_request_success_total counter",
            ]
            for reason, count in sorted(self._reasons.items()):
                lines.append(f'trtllm_request_success_total{{{_LABELS},finished_reason="{reason}"}} {count}')
            for histogram in (self._whole, self._first, self._each, self._queue):
                lines += histogram.lines()
        for name, value in gauges.items():
            lines += [f"# TYPE trtllm_{name} gauge", f"trtllm_{name}{{{_LABELS}}} {value}"]
        return "\n".join(lines) + "\n"
