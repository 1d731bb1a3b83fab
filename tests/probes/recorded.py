"""What stands in the folder of a recording, by a way of its own: Arrow's reader, and the rings after the streams.

Rows come as tuples of texts and numbers, so that two recordings of the same can be compared whatever their row numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from inspector.trace.column import Column
from inspector.trace.ring import Ring
from inspector.trace.ring_rows import OWN_TABLES, RingRows
from inspector.trace.schema import SCHEMAS

KNOWN_BY = {
    "processes": ("pid",),
    "devices": ("number",),
    "threads": ("tid",),
    "streams": ("device", "number"),
    "series": ("name", "unit", "device"),
    "iterations": ("iteration",),
    "requests": ("request",),
}
Rows = dict[str, list[tuple[Any, ...]]]


def stream(path: Path) -> tuple[dict[str, list[Any]], int]:
    """The columns of all whole batches, and the `to` of the last."""
    columns: dict[str, list[Any]] = {}
    to = 0
    if not path.stat().st_size:
        return columns, to
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        while True:
            try:
                batch, metadata = reader.read_next_batch_with_custom_metadata()
            except (StopIteration, pa.ArrowInvalid, OSError):
                return columns, to
            to = int(metadata["to"])
            for name in batch.schema.names:
                columns.setdefault(name, []).extend(batch.column(name).to_pylist())


def producers(folder: Path) -> list[str]:
    stems = {path.name.split(".")[0] for path in folder.iterdir() if path.suffix in (".ring", ".arrows")}
    return sorted(stems)


def contents(folder: Path, producer: str) -> Rows:
    """All rows of a producer: what its streams hold, then what is left in its ring."""
    held: dict[str, dict[str, list[Any]]] = {}
    to: dict[str, int] = {}
    for path in folder.glob(f"{producer}.*.arrows"):
        table = path.name.split(".")[1]
        columns, to[table] = stream(path)
        if columns:
            held[table] = columns
    texts = [data.decode("utf-8", "surrogatepass") for data in held.pop("names", {}).get("text", [])]
    if (folder / f"{producer}.ring").exists():
        ring = Ring(folder / f"{producer}.ring")
        rows = RingRows(ring.pid)
        arrays = {
            table: {key: np.array(values, SCHEMAS[table].column(key).dtype) for key, values in columns.items()}
            for table, columns in held.items()
        }
        rows.resume({table: arrays[table] for table in OWN_TABLES if table in arrays}, len(texts))
        taken = ring.take(to)
        assert taken.damage == ""
        more_texts, more = rows.resolve(taken)
        ring.close()
        texts += more_texts
        for table, added in more.items():
            for key, values in added.items():
                held.setdefault(table, {}).setdefault(key, []).extend(values.tolist())
    return {table: readable(table, held, texts) for table in held}


def readable(table: str, held: dict[str, dict[str, list[Any]]], texts: list[str]) -> list[tuple[Any, ...]]:
    """Rows with texts for name ids, and for rows of other tables what they are known by."""
    count = len(next(iter(held[table].values())))
    found = [
        tuple(
            value(column, held[table][column.name][row], held, texts)
            for column in SCHEMAS[table].columns
            if column.name in held[table]
        )
        for row in range(count)
    ]
    if table in KNOWN_BY:
        # Of one that has several rows, what each of them knows.
        merged: dict[Any, dict[int, Any]] = {}
        for row, values in enumerate(found):
            about = merged.setdefault(known_by(table, row, held, texts), {})
            about.update({place: each for place, each in enumerate(values) if each not in ("", -1)})
        found = sorted((key, *sorted(about.items())) for key, about in merged.items())
    return found


def value(column: Column, number: Any, held: dict[str, dict[str, list[Any]]], texts: list[str]) -> Any:
    if not column.refers or number < 0:
        return "" if column.refers == "names" else number
    return texts[number] if column.refers == "names" else known_by(column.refers, number, held, texts)


def known_by(table: str, row: int, held: dict[str, dict[str, list[Any]]], texts: list[str]) -> Any:
    columns = {column.name: column for column in SCHEMAS[table].columns}
    return tuple(str(value(columns[key], held[table][key][row], held, texts)) for key in KNOWN_BY[table])
