"""What a trace says of itself beside its events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from inspector.readers.kineto.numbers import integer

# "WARNING:2024-02-08 10:38:45 948300:948300 CuptiActivityProfiler.cpp:835] " before what was said.
_LOGGED_BY = re.compile(r"^[A-Z]+:\S+ \S+ \d+:\d+ (?:\S+\] )?")
_LOSS = re.compile(r"drop|lost|overflow|out of memory", re.IGNORECASE)


def properties(header: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """What it says of each device, by number."""
    found = header.get("deviceProperties")
    if not isinstance(found, list):
        return {}
    return {integer(each.get("id"), -1): each for each in found if isinstance(each, dict)}


def distributed(header: dict[str, Any]) -> dict[str, Any]:
    """Its rank, the number of ranks, process groups; {} where it says nothing of a job."""
    found = header.get("distributedInfo")
    return found if isinstance(found, dict) else {}


def producer(header: dict[str, Any], is_kineto: bool) -> str:
    """Who wrote it, with the version where it tells."""
    if not is_kineto and "schemaVersion" not in header:
        return "Chrome trace"
    backends = (("CUPTI", "cupti_version"), ("roctracer", "roctracer_version"))
    known = [f"{name} {header[key]}" for name, key in backends if key in header]
    return "PyTorch profiler" + (f" ({', '.join(known)})" if known else "")


def messages(header: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(code of a quality note, words) of each warning and error that the profiler logged."""
    for level in ("WARNING", "ERROR"):
        lines = header.get(level)
        for line in lines if isinstance(lines, list) else ():
            text = _LOGGED_BY.sub("", str(line))
            yield "profiler-loss" if _LOSS.search(text) else "profiler", f"the profiler said: {text}"


def details(header: dict[str, Any]) -> dict[str, str]:
    """What the file says of its recording; never paths, host or user names."""
    wanted = {
        "CUDA runtime": header.get("cuda_runtime_version"),
        "CUDA driver": header.get("cuda_driver_version"),
        "HIP runtime": header.get("hip_runtime_version"),
        "stacks": header.get("with_stack"),
        "shapes": header.get("record_shapes"),
        "memory": header.get("profile_memory"),
        "display unit": header.get("displayTimeUnit"),
        "backend": distributed(header).get("backend"),
        "rank": distributed(header).get("rank"),
        "world size": distributed(header).get("world_size"),
    }
    details = {key: str(value) for key, value in wanted.items() if value is not None}
    groups = distributed(header).get("pg_config")
    if isinstance(groups, list):
        names = [str(group.get("pg_desc") or group.get("pg_name", "")) for group in groups if isinstance(group, dict)]
        details["process groups"] = ", ".join(dict.fromkeys(names))
    return details
