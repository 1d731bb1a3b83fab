"""Device events to rows. They are gathered to the end of the file, when the process that launched each is known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inspector.readers.kineto.event import Event, known_args
from inspector.readers.kineto.host import Chunk, Host
from inspector.readers.kineto.launchers import Launchers
from inspector.readers.kineto.numbers import Int, integer, row_number
from inspector.trace.builder import Builder
from inspector.trace.table import Array

_SYNC_KINDS = {"event sync": 1, "stream wait event": 2, "stream sync": 3, "context sync": 4}
_INT32 = 2**31


class Device:
    """Rows of work and of waits in chunks, by table."""

    def __init__(self, builder: Builder, host: Host) -> None:
        self._builder = builder
        self._host = host
        self.chunks: dict[str, list[Chunk]] = defaultdict(list)
        self.unlinked = False

    def add(self, table: str, events: Sequence[Event], start: Int) -> None:
        """Events of one table."""
        numbers = self._host.numbers
        known = known_args(events)
        ids = [args.correlation for args in known]
        self.unlinked |= None in ids
        chunk: Chunk = {
            "start": start,
            "end": self._host.ends(events, start),
            "name": np.array(self._host.names(events), np.int32),
            "correlation": numbers(ids),
            "device": self._places([args.device for args in known], [event.pid for event in events], _INT32),
            "number": self._places([args.stream for args in known], [event.tid for event in events], 2**62),
        }
        if table == "syncs":
            kinds = [str(a.sync_kind or e.name).lower() for a, e in zip(known, events, strict=True)]
            chunk["kind"] = np.array([_SYNC_KINDS.get(kind, 0) for kind in kinds], np.int8)
            chunk["event"] = np.maximum(numbers([args.waits_for_event for args in known]), 0)
            chunk["event_sync"] = np.maximum(numbers([args.waits_for_record for args in known]), 0)
            chunk["source"] = numbers([args.waits_for_stream for args in known], -1)
        else:
            chunk["context"] = numbers([args.context for args in known], 0, _INT32).astype(np.int32)
            chunk["graph_node"] = numbers([args.graph_node for args in known])
        if table in ("memcpys", "memsets"):
            chunk["bytes"] = numbers([args.bytes for args in known], -1)
        if table == "memcpys":
            chunk["pageable"] = np.array(["Pageable" in str(event.name) for event in events], np.int8)
        self.chunks[table].append(chunk)

    def _places(self, arguments: Sequence[object], rows: Sequence[object], most: int) -> Int:
        if None in arguments:
            arguments = [row_number(argument, row) for argument, row in zip(arguments, rows, strict=True)]
        return self._host.numbers(arguments, -1, most)

    def work(self) -> list[Chunk]:
        """The chunks of all tables of work."""
        return [chunk for table, chunks in self.chunks.items() if table != "syncs" for chunk in chunks]

    def finish(self, launchers: Launchers) -> None:
        """Add the rows: their streams now that the processes are known, and numbers for nodes of graphs."""
        self._find_processes(launchers)
        self._number_nodes(launchers)
        for table, chunks in self.chunks.items():
            for chunk in chunks:
                chunk["stream"] = self._streams(chunk, table == "syncs")
                if table == "syncs":
                    self._add_syncs(chunk)
                else:
                    self._builder.add(
                        table, **{k: v for k, v in chunk.items() if k not in ("device", "number", "process")}
                    )
        self._add_event_records()

    def _find_processes(self, launchers: Launchers) -> None:
        # All at once: the rest of a device tells of what is not sure.
        chunks = [chunk for each in self.chunks.values() for chunk in each]
        if not chunks:
            return
        ids, starts, devices = (np.concatenate([c[key] for c in chunks]) for key in ("correlation", "start", "device"))
        found, guessed = launchers.process_of(ids, starts, devices)
        ends = np.cumsum([len(chunk["start"]) for chunk in chunks])
        for chunk, part in zip(chunks, np.split(found, ends[:-1]), strict=True):
            chunk["process"] = part
        if guessed:
            text = (
                "work of several processes with one correlation id or none: its process is told by its device or time"
            )
            self._builder.quality.add("assumed", text, guessed)

    def name_devices(self, properties: Mapping[int, Mapping[str, Any]]) -> None:
        """Names and sizes of those devices that the trace has rows of."""
        for number in self._builder.keys("devices"):
            known = properties.get(number, {})
            self._builder.device(
                number,
                str(known.get("name", "")),
                integer(known.get("totalGlobalMem"), -1),
                sm_count=integer(known.get("numSms"), -1, _INT32),
            )

    def _device(self, number: int) -> int:
        return self._builder.device(number) if number >= 0 else -1

    def _streams(self, chunk: Chunk, waits: bool) -> Array:
        # One number for each of the few combinations; the columns themselves are too far apart to be multiplied.
        places = [np.unique(chunk[key], return_inverse=True) for key in ("process", "device", "number")]
        (owners, owner), (devices, device), (numbers, number) = places
        combined = (owner * len(devices) + device) * len(numbers) + number
        unique, row = np.unique(combined, return_inverse=True)
        streams = []
        for code in unique.tolist():
            code, stream = divmod(code, len(numbers))
            process, place = divmod(code, len(devices))
            on = self._device(int(devices[place]))
            whole = waits and int(numbers[stream]) < 0  # a wait for the whole device stands in no stream
            streams.append(-1 if whole else self._builder.stream(int(owners[process]), on, int(numbers[stream])))
        return np.array(streams, np.int32)[row]

    def _add_syncs(self, chunk: Chunk) -> None:
        columns = ("start", "end", "stream", "kind", "correlation", "process", "event", "event_sync")
        self._builder.add("syncs", **{column: chunk[column] for column in columns})

    def _add_event_records(self) -> None:
        """The records that waits name: the file has them as calls only, the wait tells their stream."""
        found = {}
        for chunk in self.chunks["syncs"]:
            named = np.flatnonzero((chunk["source"] >= 0) & (chunk["event_sync"] > 0))
            columns = ("process", "device", "source", "event_sync", "event")
            found.update({row[:4]: row for row in zip(*(chunk[c][named].tolist() for c in columns), strict=True)})
        rows = list(found.values())
        if rows:
            self._builder.add(
                "event_records",
                stream=[self._builder.stream(row[0], self._device(row[1]), row[2]) for row in rows],
                correlation=[row[3] for row in rows],
                event=[row[4] for row in rows],
                event_sync=[row[3] for row in rows],
            )

    def _number_nodes(self, launchers: Launchers) -> None:
        """Number the nodes of each graph launch where the file does not: all that one such call started, in order."""
        chunks = self.work()
        nameless = [
            np.flatnonzero((chunk["graph_node"] == 0) & launchers.is_graph(chunk["process"], chunk["correlation"]))
            for chunk in chunks
        ]
        counts = [len(rows) for rows in nameless]
        if not sum(counts):
            return
        process, ids, start = (
            np.concatenate([chunk[key][rows] for chunk, rows in zip(chunks, nameless, strict=True)])
            for key in ("process", "correlation", "start")
        )
        order = np.lexsort((start, ids, process))
        new = np.r_[True, (np.diff(ids[order]) != 0) | (np.diff(process[order]) != 0)]
        first = np.flatnonzero(new)
        numbers = np.empty(len(order), np.int64)
        # Above the numbers that the file gives, so that none stands for two nodes.
        above = max(int(chunk["graph_node"].max(initial=0)) for chunk in chunks)
        numbers[order] = above + 1 + np.arange(len(order)) - first[np.cumsum(new) - 1]
        for chunk, rows, mine in zip(chunks, nameless, np.split(numbers, np.cumsum(counts)[:-1]), strict=True):
            chunk["graph_node"][rows] = mine
        text = "graph nodes without a number: all that a graph launch started was taken for its nodes, in order"
        self._builder.quality.add("assumed", text, len(order))
