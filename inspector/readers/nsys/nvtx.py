"""NVTX: ranges and marks, and the names of domains and categories, which stand among the events."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from inspector.readers.nsys.chunk import Chunk, Mapping
from inspector.readers.nsys.context import Context, Int32, combined
from inspector.readers.nsys.source import PROCESS_BITS, Batch, Source
from inspector.trace.table import Array

TABLE = "NVTX_EVENTS"
_CATEGORY, _MARK, _THREAD, _PUSH_POP, _START_END, _DOMAIN, _DOMAIN_END = 33, 34, 39, 59, 60, 75, 76
_KNOWN = (_CATEGORY, _MARK, _THREAD, _PUSH_POP, _START_END, _DOMAIN, _DOMAIN_END)
_PAYLOADS = ("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue")
_COLUMNS = (
    *("start", "end", "eventType", "category", "text", "textId", "globalTid", "domainId"),
    *_PAYLOADS,
)
_EXACT = 1 << 53


class NvtxNames:
    """Names of domains and categories, by process."""

    def __init__(self, source: Source, context: Context) -> None:
        self._domains: dict[tuple[int, int], str] = {}
        self._categories: dict[tuple[int, int, int], str] = {}
        columns = ("eventType", "globalTid", "domainId", "category", "text", "textId")
        for batch in source.batches(TABLE, columns, where=("eventType", (_CATEGORY, _DOMAIN))):
            for kind, tid, domain, category, text, id_ in zip(*(batch.values(c) for c in columns), strict=True):
                name = text or context.string(id_)
                process, domain = (tid or 0) & PROCESS_BITS, domain or 0
                if kind == _DOMAIN:
                    self._domains[process, domain] = name
                elif category is not None:
                    self._categories[process, domain, category] = name

    def of(self, tid: int | None, domain: int | None, category: int | None) -> str:
        """The name of a domain, or of the category in the default one; '' for none."""
        process = (tid or 0) & PROCESS_BITS
        if domain:
            # Exports of 2020 can lack the record that names a domain.
            return self._domains.get((process, domain)) or f"domain {domain}"
        return self._categories.get((process, 0, category), "") if category else ""


def mapping(source: Source, context: Context) -> Mapping:
    """The mapping of NVTX_EVENTS, with the names of its domains."""
    names = NvtxNames(source, context)

    def chunks(batch: Batch, context: Context) -> Sequence[Chunk]:
        return _chunks(batch, context, names)

    return Mapping(TABLE, _COLUMNS, chunks)


def _chunks(batch: Batch, context: Context, names: NvtxNames) -> Sequence[Chunk]:
    kind = batch.ints("eventType")
    other = kind[~np.isin(kind, _KNOWN)]
    if len(other):
        batch.skipped(f"events of type {', '.join(map(str, np.unique(other).tolist()))}", len(other))
    # Of most files, nearly all rows are ranges.
    thread = context.threads(batch)
    name = context.text_names(batch, "text", "textId")
    domain = _domains(batch, context, names)
    start, end = batch.ints("start"), batch.ints("end")
    unstamped = batch.null("start")
    found = []
    ranges = (kind == _PUSH_POP) | (kind == _START_END)
    if ranges.any():
        columns: dict[str, Array] = {
            "start": start,
            "end": end,
            "thread": thread,
            "name": name,
            "kind": (kind == _START_END).astype(np.int8),
            "domain": domain,
        }
        payload = _payload(batch)
        if not np.isnan(payload).all():
            columns["payload"] = payload
        unclosed = batch.null("end") & ~unstamped
        taken = Chunk("ranges", columns).take(ranges)
        found.append(Chunk("ranges", taken.columns, unstamped[ranges], unclosed[ranges]))
    marks = kind == _MARK
    if marks.any():
        columns = {"time": start, "thread": thread, "name": name, "domain": domain}
        if (marks & unstamped).any():
            batch.skipped("marks without a time", int(np.count_nonzero(marks & unstamped)))
        found.append(Chunk("marks", columns).take(marks & ~unstamped))
    return found


def _domains(batch: Batch, context: Context, names: NvtxNames) -> Int32:
    def domain(key: tuple[int | None, ...]) -> int:
        name = names.of(*key)
        return context.add_name(name) if name else -1

    return combined([batch.codes(column) for column in ("globalTid", "domainId", "category")], domain)


def _payload(batch: Batch) -> npt.NDArray[np.float64]:
    payload = np.full(len(batch), np.nan)
    for column in _PAYLOADS:
        if column not in batch:
            continue
        here = ~batch.null(column) & np.isnan(payload)
        if not here.any():
            continue
        if column in ("uint64Value", "int64Value"):
            whole = batch.ints(column)
            values = whole.view(np.uint64) if column == "uint64Value" else whole
            low = 0 if column == "uint64Value" else -_EXACT
            far = int(np.count_nonzero(here & ((whole > _EXACT) | (whole < low))))
            if far:
                batch.repaired(f"{column}: values over 2^53, rounded to a float", far)
            payload[here] = values[here]
        else:
            payload[here] = batch.floats(column)[here]
    return payload
