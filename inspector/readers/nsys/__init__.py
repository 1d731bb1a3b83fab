"""Nsight Systems exports: their tables become ours, whatever they are stored in.

A reader of one storage form gives a `Source`; the mapping of tables is the same for all.
"""

from inspector.readers.nsys.folder import FolderSource, table_files
from inspector.readers.nsys.read import is_export, read_tables
from inspector.readers.nsys.source import TEXT_COLUMNS, Batch, Faults, Part, Source

__all__ = [
    "TEXT_COLUMNS",
    "Batch",
    "Faults",
    "FolderSource",
    "Part",
    "Source",
    "is_export",
    "read_tables",
    "table_files",
]
