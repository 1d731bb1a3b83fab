"""Recordings: folders NAME.inflight as CONTRACT.md describes them, finished or broken off, and zips of one."""

from __future__ import annotations

from pathlib import Path

from inspector.readers.reader import Report
from inspector.readers.recording import archive
from inspector.readers.recording.opening import NAME, compacted, uncompacted
from inspector.trace import header, lock
from inspector.trace.trace import Trace

__all__ = ["NAME", "SUFFIXES", "read", "sniff"]

SUFFIXES = (".inflight", ".inflight.zip")


def sniff(head: bytes, path: Path) -> float:
    """Sure of a folder that holds recording.json, and of a zip of one."""
    if head.startswith(archive.MAGIC):
        return 0.9 if archive.holds_recording(path) else 0.0
    return 1.0 if not head and (path / header.NAME).is_file() else 0.0


def read(path: Path, report: Report) -> Trace:
    """Open the recording: nothing is read but the header and the names, the rest is mapped. Raises Unreadable."""
    folder = path
    if not path.is_dir():
        folder = archive.extract(path, report)
    head = header.read(folder)
    if head.state == "complete":
        return compacted(path, folder, head, report)
    # A recorder that ends between these two has closed the recording by then.
    is_live = lock.is_held(folder)
    head = header.read(folder)
    if head.state == "complete":
        return compacted(path, folder, head, report)
    return uncompacted(path, folder, head, is_live, report)
