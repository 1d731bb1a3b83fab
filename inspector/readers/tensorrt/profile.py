"""One line of a profile: how long a layer took, as trtexec writes it.

{ "name" : "conv1 + relu1", "timeMs" : 1160.78, "averageMs" : 0.0280382, "medianMs" : 0.027872, "percentage" : 100 }
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from inspector.readers.tensorrt.sources import sources_of_name
from inspector.trace.layers import Layer, Times
from inspector.trace.quality import Quality

_NS = 1_000_000
_MOST_MS = 1e9
_KEYS = ("timeMs", "averageMs", "medianMs")
# The name is written as it is, quotes and all: it ends where the times begin. Numbers may be 'nan' or '-nan'.
_LINE = re.compile(
    r"\{\s*\"name\"\s*:\s*\"(?P<name>.*)\"\s*,\s*\"timeMs\"\s*:\s*(?P<timeMs>[^,{}]*),\s*\"averageMs\"\s*:\s*"
    r"(?P<averageMs>[^,{}]*)(?:,\s*\"medianMs\"\s*:\s*(?P<medianMs>[^,{}]*))?(?:,\s*\"percentage\"\s*:[^,{}]*)?\}"
)


def is_time(value: object) -> bool:
    """Whether that is a line of a profile."""
    return isinstance(value, dict) and "name" in value and any(key in value for key in _KEYS)


def count_of(value: object) -> int | None:
    """Inferences that were timed, where `value` is the line that tells it."""
    count = value.get("count") if isinstance(value, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and 0 < count < 1 << 53 else None


def mended(text: str) -> dict[str, object] | None:
    """A line that is no JSON, read by its pattern; None where it does not have that."""
    found = _LINE.search(text)
    if found is None:
        return None
    line: dict[str, object] = {"name": found["name"]}
    for key in _KEYS:
        if found[key] is not None:
            try:
                line[key] = float(found[key])
            except ValueError:
                line[key] = None
    return line


def time_of(value: Mapping[str, object], count: int, quality: Quality) -> Layer:
    """A layer of which the name and the times are known; `count` inferences were timed, -1 not told."""
    total, average, median = (_ns(value, key, quality) for key in _KEYS)
    if average is None and total is not None and count > 0:
        average = total / count
    name = str(value["name"])
    sources, more = sources_of_name(name)
    times = Times(total, average, median)
    return Layer(name, "", sources, "name", more, is_listed=False, times=times)


def _ns(value: Mapping[str, object], key: str, quality: Quality) -> float | None:
    if key not in value:
        return None
    ms = value[key]
    if isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms <= _MOST_MS and math.isfinite(ms):
        return ms * _NS
    quality.add("invalid", f"{key} that is no time")
    return None
