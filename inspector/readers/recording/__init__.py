"""Recordings: folders NAME.inflight as CONTRACT.md describes them, finished or broken off, and zips of one."""

from __future__ import annotations

from pathlib import Path

from inspector.errors import Unreadable
from inspector.readers.reader import Report
from inspector.readers.recording import archive
from inspector.readers.recording.opening import NAME, compacted, uncompacted
from inspector.trace import header, lock
from inspector.trace.header import Header
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
    if head.state != "complete":
        # A recorder that ends between these two has closed the recording by then.
        is_live = lock.is_held(folder)
        head = header.read(folder)
    if head.state != "complete":
        trace = _uncompacted(path, folder, head, is_live, report)
        # What is closed meanwhile loses its streams, maybe before they were read to the end.
        head = header.read(folder)
        if trace is not None and head.state != "complete":
            return trace
    return compacted(path, folder, head, report)


def _uncompacted(path: Path, folder: Path, head: Header, is_live: bool, report: Report) -> Trace | None:
    """As `uncompacted`; None when it failed because the recording was closed meanwhile."""
    try:
        return uncompacted(path, folder, head, is_live, report)
    except Unreadable:
        if header.read(folder).state != "complete":
            raise
        return None
