"""Nsight Systems parquetdir and arrowdir exports: a folder with one file per table."""

from __future__ import annotations

from pathlib import Path

from inspector.readers.nsys import FolderSource, is_export, read_tables, table_files
from inspector.readers.reader import Report
from inspector.trace.trace import Trace

NAME = "nsys-parquet"
SUFFIXES = ("_pqtdir", "_arwdir")


def sniff(head: bytes, path: Path) -> float:
    """Certainty that `path` is such a folder, by the names of its files."""
    return 1.0 if not head and is_export(table_files(path)) else 0.0


def read(path: Path, report: Report) -> Trace:
    """The whole export; its kind is 'nsys-parquet' or 'nsys-arrow'. Raises Unreadable, Cancelled."""
    source = FolderSource(path)
    return read_tables(source, path, source.kind, source.size, report)
