"""Device events to rows. They are gathered to the end of the file, when the process that launched each is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.readers.kineto.events import Event
from inspector.readers.kineto.host import Host
from inspector.readers.kineto.numbers import integer
from inspector.trace.builder import Builder

WORK = {
    "kernel": "kernels",
    "concurrent_kernel": "kernels",
    "gpu_memcpy": "memcpys",
    "memcpy": "memcpys",
    "gpu_memset": "memsets",
    "memset": "memsets",
    "cuda_sync": "syncs",
}
_SYNC_KINDS = {"event sync": 1, "stream wait event": 2, "stream sync": 3, "context sync": 4}
_CHUNK = dict[str, npt.NDArray[Any]]


@dataclass
class Device:
    """Rows of each table in chunks; `arrows` are the file's own (correlation of what starts at a place)."""

    builder: Builder
    host: Host
    chunks: dict[str, list[_CHUNK]] = field(default_factory=lambda: defaultdict(list))
    unlinked: bool = False

    def add(self, table: str, events: Sequence[Event]) -> None:
        """Events of one table."""
        start, end = self.host.times(events)
        args = [event.args for event in events]
        names = self.builder.names.add
        chunk: _CHUNK = {
            "start": start,
            "end": end,
            "name": np.array([names(str(event.name)) for event in events], np.int32),
            "correlation": _column([integer(a.correlation) if a else 0 for a in args]),
            "device": _column([_first(a.device if a else None, e.pid) for a, e in zip(args, events, strict=True)]),
            "number": _column([_first(a.stream if a else None, e.tid) for a, e in zip(args, events, strict=True)]),
        }
        if table == "syncs":
            chunk["kind"] = _column([_SYNC_KINDS.get(str(event.name).lower(), 0) for event in events])
            chunk["event"] = _column([integer(a.waits_for_event) if a else 0 for a in args])
            chunk["event_sync"] = _column([integer(a.waits_for_record) if a else 0 for a in args])
            chunk["source"] = _column([integer(a.waits_for_stream, -1) if a else -1 for a in args])
        else:
            chunk["context"] = _column([integer(a.context) if a else 0 for a in args])
            chunk["graph_node"] = _column([integer(a.graph_node) if a else 0 for a in args])
        if table in ("memcpys", "memsets"):
            chunk["bytes"] = _column([integer(a.bytes, -1) if a else -1 for a in args])
        if table == "memcpys":
            chunk["pageable"] = _column(["pageable" in str(event.name).lower() for event in events])
        self.chunks[table].append(chunk)

    def finish(self, launchers: Launchers, properties: dict[int, dict[str, Any]]) -> dict[str, _CHUNK]:
        """The rows of each table with their streams, as columns for the builder."""
        tables = {
            table: {key: np.concatenate([chunk[key] for chunk in chunks]) for key in chunks[0]}
            for table, chunks in self.chunks.items()
        }
        self._graph_nodes(tables, launchers)
        records: _CHUNK = {"stream": np.empty(0, np.int32)}
        for table, columns in tables.items():
            process = launchers.process_of(columns["correlation"])
            key = np.stack([process, columns.pop("device"), columns.pop("number")], axis=1)
            unique, row = np.unique(key, axis=0, return_inverse=True)
            streams = []
            for owner, number, stream in unique.tolist():
                known = properties.get(number, {})
                device = self.builder.device(
                    number,
                    str(known.get("name", "")),
                    integer(known.get("totalGlobalMem"), -1),
                    sm_count=integer(known.get("numSms"), -1),
                )
                # A wait for the whole device stands in no stream.
                whole = table == "syncs" and stream < 0
                streams.append(-1 if whole else self.builder.stream(owner, device, stream))
            columns["stream"] = np.array(streams, np.int32)[row.reshape(-1)]
            if table == "syncs":
                columns["process"] = process
                del columns["name"]
                records = self._event_records(columns, columns.pop("source"))
        if len(records["stream"]):
            tables["event_records"] = records
        return tables

    def _event_records(self, syncs: _CHUNK, source: npt.NDArray[np.int64]) -> _CHUNK:
        """The record that each wait names: the file has them as calls only, the wait tells their stream."""
        rows = np.flatnonzero((source >= 0) & (syncs["event_sync"] > 0) & (syncs["stream"] >= 0))
        _, first = np.unique(syncs["event_sync"][rows], return_index=True)
        rows = rows[first]
        owners, devices = self.builder.owners("streams", "process"), self.builder.owners("streams", "device")
        waiting = syncs["stream"][rows]
        streams = [
            self.builder.stream(int(owners[row]), int(devices[row]), int(number))
            for row, number in zip(waiting.tolist(), source[rows].tolist(), strict=True)
        ]
        return {
            "stream": np.array(streams, np.int32),
            "correlation": syncs["event_sync"][rows],
            "event": syncs["event"][rows],
            "event_sync": syncs["event_sync"][rows],
        }

    def _graph_nodes(self, tables: dict[str, _CHUNK], launchers: Launchers) -> None:
        """Number the nodes of each graph launch where the file does not: all that one such call started."""
        guessed = 0
        for columns in (columns for table, columns in tables.items() if table != "syncs"):
            unnamed = launchers.is_graph(columns["correlation"]) & (columns["graph_node"] == 0)
            if unnamed.any():
                guessed += int(np.count_nonzero(unnamed))
                rows = np.flatnonzero(unnamed)
                rows = rows[np.lexsort((columns["start"][rows], columns["correlation"][rows]))]
                ids = columns["correlation"][rows]
                first = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
                counts = np.diff(np.r_[first, len(rows)])
                columns["graph_node"][rows] = np.arange(len(rows)) - np.repeat(first, counts) + 1
        if guessed:
            text = "graph nodes without a number: all that a graph launch started was taken for its nodes, in order"
            self.builder.quality.add("assumed", text, guessed)


class Launchers:
    """Which process made the call of a correlation id, and whether it launched a graph."""

    def __init__(
        self, ids: npt.NDArray[np.int64], processes: npt.NDArray[np.int32], graphs: npt.NDArray[np.bool_], default: int
    ) -> None:
        order = np.argsort(ids, kind="stable")
        self._ids, self._processes, self._graphs = ids[order], processes[order], graphs[order]
        self._default = default

    def process_of(self, correlations: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Row of processes of each; the default where no call is known."""
        at, known = self._find(correlations)
        return np.where(known, self._processes[at] if len(self._ids) else self._default, self._default).astype(np.int32)

    def is_graph(self, correlations: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether a graph launch started it."""
        at, known = self._find(correlations)
        return known & (self._graphs[at] if len(self._ids) else False)

    def _find(self, correlations: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        at = np.minimum(np.searchsorted(self._ids, correlations), max(len(self._ids) - 1, 0))
        if not len(self._ids):
            return at, np.zeros(len(correlations), bool)
        return at, (self._ids[at] == correlations) & (correlations > 0)


def _column(values: list[int] | list[bool]) -> npt.NDArray[np.int64]:
    return np.array(values, np.int64)


def _first(value: object, other: object) -> int:
    """A device or stream number: the argument, else the row that the event was drawn in ('stream 7' -> 7)."""
    number = integer(value, -1)
    if number >= 0 or value is not None:
        return number
    if isinstance(other, str):
        other = other.rsplit(" ", 1)[-1]
    return integer(other, -1)
