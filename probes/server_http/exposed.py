"""Figures that a server exposes to Prometheus, as counters of the recording. Reading them takes nothing from anybody.

A gauge stays as it is. What only grows becomes a rate, per second since the answer before. Of a histogram or a summary
comes the mean of what was added since then, and how many were added per second.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable

from inspector.trace.quality import Quality
from probes.server_http import triton
from probes.server_http.client import Answer
from probes.server_http.exposition import Labels, Read, Sample, read
from probes.server_http.feed import Feed
from probes.server_http.loops import Loop
from probes.server_http.pool import Pool
from probes.server_http.words import shown

MOST_SERIES = 512
_MOST_DETAILS, _MOST_DETAIL = 16, 2000
# Which process of the server it is, and what is the same everywhere, names nothing.
_SILENT = ("pid", "engine_type", "model_name")
_UNITS = {
    "seconds": "s",
    "milliseconds": "ms",
    "ms": "ms",
    "microseconds": "µs",
    "us": "µs",
    "bytes": "bytes",
    "watts": "W",
    "joules": "J",
    "celsius": "°C",
    "percent": "%",
    "hertz": "Hz",
    "blocks": "blocks",
    "requests": "requests",
    "tokens": "tokens",
}
_SINGULAR = {"second": "s", "block": "block", "request": "request", "token": "token", "step": "step"}
_WITHOUT_WORDS = {"nv_gpu_power_usage": "W", "nv_gpu_power_limit": "W", "nv_energy_consumption": "J"}
Key = tuple[str, Labels]


class Exposed:
    """Takes each answer; no more than MOST_SERIES different series. `clean` takes secrets out of its texts."""

    def __init__(self, feed: Feed, quality: Quality, pool: Pool, loop: Loop, clean: Callable[[str], str] = str) -> None:
        self._feed, self._quality, self._pool, self._loop = feed, quality, pool, loop
        self._clean = clean
        self._known: set[tuple[str, str]] = set()
        self._before: dict[Key, float] = {}
        self._before_ns = 0
        self.records = 0
        self.is_triton = False
        self.details: dict[str, str] = {}
        """What the server says of its settings here, by name."""

    def take(self, answer: Answer) -> None:
        """Samples of one answer."""
        found = read(answer.body.decode("utf-8", "replace"), self._clean)
        if found.wrong:
            self._quality.add("invalid", "lines of Prometheus text that could not be read", found.wrong)
        at = answer.received_ns
        grown = self._grown(found, at)
        seconds = (at - self._before_ns) / 1e9 if self._before_ns else math.nan
        self._before_ns = at
        gauges = [sample for sample in found.samples if sample.kind in ("gauge", "unknown")]
        counters = [sample for sample in found.samples if sample.kind == "counter"]
        told = triton.take(gauges, counters, grown)
        self.is_triton = self.is_triton or triton.is_triton(found.samples)
        for name, unit, value in told.figures:
            self._give(at, name, unit, value)
        if told.blocks > 0 and told.tokens_per_block > 0:
            self._pool.whole(at, told.blocks, told.tokens_per_block)
        self._gauges(at, [sample for sample in gauges if sample.name not in told.taken], found.units)
        self._rates(at, [sample for sample in counters if sample.name not in told.taken], grown, seconds, found.units)
        self._means(at, found, grown, seconds)

    def _gauges(self, at: int, samples: list[Sample], units: dict[str, str]) -> None:
        labels = _telling(samples)
        for sample in samples:
            self._learn(sample)
            # Says that something is there, with all it has to say in its labels.
            if not sample.name.endswith("_info"):
                unit = units.get(sample.family) or unit_of(sample.family)
                self._give(at, sample.name + labels[sample.name, sample.labels], unit, sample.value)

    def _rates(
        self, at: int, samples: list[Sample], grown: dict[Key, float], seconds: float, units: dict[str, str]
    ) -> None:
        labels = _telling(samples)
        for sample in samples:
            key = sample.name, sample.labels
            if key in grown and seconds > 0 and not sample.name.endswith("_created"):
                base = sample.name.removesuffix("_total")
                unit = units.get(sample.family) or unit_of(base)
                self._give(at, f"{base}{labels[key]} per second", f"{unit}/s" if unit else "1/s", grown[key] / seconds)

    def _means(self, at: int, found: Read, grown: dict[Key, float], seconds: float) -> None:
        samples = [
            sample
            for sample in found.samples
            if sample.kind in ("histogram", "summary") and sample.name == f"{sample.family}_count"
        ]
        labels = _telling(samples)
        for sample in samples:
            count = grown.get((sample.name, sample.labels))
            total = grown.get((f"{sample.family}_sum", sample.labels))
            if count is None or not seconds > 0:
                continue
            name = sample.family + labels[sample.name, sample.labels]
            self._give(at, f"{name} count per second", "1/s", count / seconds)
            if count > 0 and total is not None and total >= 0:
                unit = found.units.get(sample.family) or unit_of(sample.family)
                self._give(at, f"{name} mean", unit, total / count)

    def _grown(self, found: Read, at: int) -> dict[Key, float]:
        """By how much each sum grew since the answer before. One that fell began anew: it grew by all that it is."""
        growing = ("counter", "histogram", "summary")
        sums: dict[Key, float] = {}
        for sample in found.samples:
            if sample.kind in growing and math.isfinite(sample.value):
                key = sample.name, sample.labels
                sums[key] = sums.get(key, 0.0) + sample.value
        grown = {}
        fell = False
        for key, value in sums.items():
            before = self._before.get(key)
            if before is not None:
                # The sum of a summary may fall by itself, as no other.
                anew = value < before
                fell = fell or (anew and not key[0].endswith("_sum"))
                grown[key] = value if anew else value - before
        if fell:
            self._quality.add("profiler", "the server's sums for Prometheus began anew: it was restarted")
        self._before = sums
        return grown

    def _learn(self, sample: Sample) -> None:
        if sample.name.endswith("_info"):
            self._loop.learn(dict(sample.labels))
            if len(self.details) < _MOST_DETAILS:
                self.details[shown(sample.name)] = shown(_text(sample.labels, ()).strip(" ()"), _MOST_DETAIL)

    def _give(self, at: int, name: str, unit: str, value: float) -> None:
        if not math.isfinite(value):
            if math.isinf(value):
                self._quality.add("ignored", "figures for Prometheus that are infinite")
            return
        key = shown(name), unit
        if key not in self._known:
            if len(self._known) >= MOST_SERIES:
                self._quality.add("ignored", f"figures for Prometheus beyond the first {MOST_SERIES} series")
                return
            self._known.add(key)
        self._feed.counter(at, *key, value)
        self.records += 1


def unit_of(name: str) -> str:
    """The unit that the words of a name tell; '' where they do not."""
    if name in _WITHOUT_WORDS:
        return _WITHOUT_WORDS[name]
    words = name.removesuffix("_total").replace(":", "_").split("_")
    if "per" in words:
        at = words.index("per")
        above = next((_UNITS[word] for word in reversed(words[:at]) if word in _UNITS), "")
        below = _SINGULAR.get(words[at + 1]) if at + 1 < len(words) else None
        if below and above:
            # Time per something is a time.
            return above if above in ("s", "ms", "µs") else f"{above}/{below}"
    return next((_UNITS[word] for word in reversed(words) if word in _UNITS), "")


def _telling(samples: Iterable[Sample]) -> dict[Key, str]:
    """The labels that tell the samples of a name apart, as text; others only where these would be the same."""
    samples = list(samples)
    short = {(sample.name, sample.labels): _text(sample.labels, _SILENT) for sample in samples}
    seen = Counter((name, text) for (name, _), text in short.items())
    return {key: text if seen[key[0], text] == 1 else _text(key[1], ()) for key, text in short.items()}


def _text(labels: Labels, silent: tuple[str, ...]) -> str:
    told = ", ".join(f"{key}={value}" for key, value in labels if key not in silent)
    return f" ({told})" if told else ""
