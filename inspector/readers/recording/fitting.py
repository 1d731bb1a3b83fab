"""Columns from a file held against the schema: names, types and lengths, whatever else they hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from inspector.errors import Unreadable
from inspector.trace.quality import Quality
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Array


def fitting(path: Path, name: str, columns: Mapping[str, Array], quality: Quality) -> dict[str, Array]:
    """Those of `columns` that the schema of table `name` knows; others are noted.

    Raises Unreadable when one that must be there is not, has another type, or another length.
    """
    known = {column.name: column for column in SCHEMAS[name].columns}
    found: dict[str, Array] = {}
    for key, values in columns.items():
        if key not in known:
            quality.add("ignored", f"column {name}.{key}, which this program does not know")
            continue
        if values.dtype != known[key].dtype:
            raise unreadable(path, f"column {key} is {values.dtype}, not {known[key].dtype}")
        found[key] = values
    for key, column in known.items():
        if key not in found and not column.optional:
            raise unreadable(path, f"column {key} is not there")
    if len({len(values) for values in found.values()}) > 1:
        raise unreadable(path, "its columns differ in length")
    return found


def unreadable(path: Path, why: str) -> Unreadable:
    """The error for a file of a recording that is not as it should be."""
    return Unreadable(f"cannot read {path.name} of {path.parent}", why, "record or convert the trace again")
