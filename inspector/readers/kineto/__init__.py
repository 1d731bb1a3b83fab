"""Traces of the PyTorch profiler (Kineto) and other Chrome trace JSON: plain, gzip or zip, whole or broken off."""

from __future__ import annotations

import re
from pathlib import Path

from inspector.readers.kineto.blocks import first_bytes
from inspector.readers.kineto.read import read

__all__ = ["NAME", "SUFFIXES", "read", "sniff"]

NAME = "kineto"
SUFFIXES = (".json", ".json.gz", ".zip")

_PHASE = re.compile(rb'"ph"\s*:\s*"')


def sniff(head: bytes, path: Path) -> float:
    """Certainty that `path` is an event list: JSON that begins like one, packed or not."""
    text = first_bytes(head, path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        if b'"traceEvents"' in text:
            return 0.9
        # The list can stand behind a long head of device properties and process groups.
        return 0.6 if b'"schemaVersion"' in text or b'"deviceProperties"' in text else 0.0
    if text.startswith(b"["):
        return 0.9 if _PHASE.search(text) else 0.0
    return 0.0
