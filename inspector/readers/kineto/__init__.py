"""Traces of the PyTorch profiler (Kineto) and other Chrome trace JSON: plain, gzip or zip, whole or broken off."""

from __future__ import annotations

import re
from pathlib import Path

from inspector.readers.kineto.blocks import first_block, first_bytes
from inspector.readers.kineto.read import read

__all__ = ["NAME", "SUFFIXES", "read", "sniff"]

NAME = "kineto"
SUFFIXES = (".json", ".json.gz", ".zip")

_LIST = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEAD = re.compile(rb'\{\s*"(?:schemaVersion|traceEvents|deviceProperties|distributedInfo)"')
_PHASE = re.compile(rb'"ph"\s*:\s*"')


def sniff(head: bytes, path: Path) -> float:
    """Certainty that `path` is an event list: JSON that begins like one, packed or not."""
    text = _start(first_bytes(head, path))
    if text.startswith(b"{"):
        # The list can stand behind a long head of device properties and process groups.
        if _LIST.search(text) or _LIST.search(first_block(path)):
            return 0.9
        # Broken off in its head: `read` says so better than "no trace that this program knows".
        return 0.1 if _HEAD.match(text) else 0.0
    if text.startswith(b"["):
        return 0.9 if _PHASE.search(text) else 0.0
    return 0.0


def _start(text: bytes) -> bytes:
    return text.removeprefix(b"\xef\xbb\xbf").lstrip()
