"""What stands in the rings of a recording whose recorder has gone, and not yet in its streams: each row once."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from inspector.errors import Unreadable
from inspector.readers.recording.producer import Columns, Producer
from inspector.trace.arrow_reader import read_columns
from inspector.trace.quality import Quality
from inspector.trace.ring import SUFFIX, Ring
from inspector.trace.ring_rows import OWN_TABLES, RingRows

# As the recorder says it in the header, which then knows less than the rings.
LOST = "{}: dropped by the workload, whose ring was full"


def ring_names(folder: Path) -> list[str]:
    """The producers that have a ring."""
    return sorted(name.removesuffix(SUFFIX) for name in os.listdir(folder) if name.endswith(SUFFIX))


def rest(folder: Path, producer: Producer, quality: Quality) -> tuple[list[str], dict[str, Columns]] | None:
    """Texts and rows of a ring behind those that its streams hold; None, and a note, for what is no ring."""
    try:
        ring = Ring(folder / f"{producer.name}{SUFFIX}")
    except Unreadable as error:
        quality.add("invalid", "rings that could not be read", first=f"{producer.name}: {error.why}")
        return None
    try:
        taken = ring.take(producer.positions())
        lost = ring.lost()
    except Unreadable as error:
        quality.add("invalid", "rings that could not be read", first=f"{producer.name}: {error.why}")
        return None
    finally:
        ring.close()
    rows = RingRows(ring.pid, ring.rank)
    held: dict[str, Columns] = {}
    for table in OWN_TABLES:
        path = folder / f"{producer.name}.{table}.arrows"
        if path.is_file():
            held[table] = _all(path)
    rows.resume({table: columns for table, columns in held.items() if columns}, producer.held()["names"])
    texts, tables = rows.resolve(taken)
    for note in rows.quality.notes:
        quality.add(note.code, note.text, note.count, note.first)
    if taken.damage:
        quality.add("invalid", "rings that were damaged from some place on", first=f"{producer.name}: {taken.damage}")
    for table, count in lost.items():
        quality.add("profiler-loss", LOST.format(table), count)
    return texts, tables


def with_losses(said: Quality, found: Quality) -> Quality:
    """The notes of the header, and behind them those that were found. What both count, the rings know better."""
    quality = Quality(list(said.notes))
    for note in found.notes:
        if note.text.endswith(LOST.format("")):
            quality.notes = [other for other in quality.notes if other.text != note.text]
        quality.add(note.code, note.text, note.count, note.first)
    return quality


def _all(path: Path) -> Columns:
    batches, _ = read_columns(path)
    return {key: np.concatenate([batch[key] for batch in batches]) for key in batches[0]} if batches else {}
