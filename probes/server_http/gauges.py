"""GET /prometheus/metrics: gauges into counters. Reading it takes nothing away from anybody."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from inspector.trace.quality import Quality
from probes.server_http.client import Answer
from probes.server_http.feed import Feed

MOST_SERIES = 64
_LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+(\S+)(?:\s+-?\d+)?\s*')
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
# Which process of the server it is, and what is the same everywhere, names nothing.
_SILENT = ("pid", "engine_type", "model_name")
_UNITS = {"bytes": "bytes", "seconds": "s", "blocks": "blocks", "requests": "requests", "tokens": "tokens"}


class Gauges:
    """Takes the gauges of each answer; no more than MOST_SERIES different ones."""

    def __init__(self, feed: Feed, quality: Quality) -> None:
        self._feed, self._quality = feed, quality
        self._known: set[str] = set()
        self.records = 0

    def take(self, answer: Answer) -> None:
        """A sample of each gauge."""
        for name, value in parse(answer.body.decode("utf-8", "replace")):
            if name not in self._known:
                if len(self._known) == MOST_SERIES:
                    self._quality.add("ignored", f"samples of gauges beyond the first {MOST_SERIES}")
                    continue
                self._known.add(name)
            unit = next((unit for word, unit in _UNITS.items() if word in name.partition("{")[0]), "")
            self._feed.counter(answer.received_ns, name, unit, value)
            self.records += 1


def parse(text: str) -> Iterator[tuple[str, float]]:
    """Name, with the labels that tell it apart, and value of each gauge in Prometheus' text format."""
    gauges: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            words = line.split()
            if len(words) == 4 and words[3] == "gauge":
                gauges.add(words[2])
            continue
        match = None if line.startswith("#") else _LINE.fullmatch(line)
        if match is None or match[1] not in gauges:
            continue
        try:
            value = float(match[3])
        except ValueError:
            continue
        if math.isfinite(value):
            labels = [f'{key}="{label}"' for key, label in _LABEL.findall(match[2] or "") if key not in _SILENT]
            yield match[1] + (f"{{{','.join(labels)}}}" if labels else ""), value
