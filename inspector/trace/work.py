"""All work of each device in one sorted list: what the device did, whatever the table it stands in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.links import Links, process_of
from inspector.trace.schema import WORK_TABLES
from inspector.trace.table import Array

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
LONG_AGO = np.iinfo(np.int64).min


@dataclass(frozen=True)
class DeviceWork:
    """Work of one device sorted by start: `table` indexes WORK_TABLES, `row` is the row there, `stream` of streams."""

    device: int
    start: Int
    end: Int
    table: npt.NDArray[np.int8]
    row: npt.NDArray[np.int32]
    stream: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.start)

    def pick(self, of_table: Callable[[str], Array | None], at: Array | None = None, missing: int = -1) -> Array:
        """A value of each record (at the positions `at`; all by default): `of_table` gives the column of a work table.

        `missing` stands where the table has no such column and for position -1. The dtype is that of the columns.
        """
        at = np.arange(len(self)) if at is None else at
        tables, rows = self.table[at], self.row[at]
        columns = [of_table(name) for name in WORK_TABLES]
        found = np.full(len(at), missing, next((c.dtype for c in columns if c is not None), np.int64))
        for code, column in enumerate(columns):
            mine = np.flatnonzero((tables == code) & (at >= 0))
            if column is not None and len(mine):
                found[mine] = column[rows[mine]]
        return found


@dataclass(frozen=True)
class Work:
    """`devices[d]` is the work of row d of devices; `counted[t]` marks the rows of table t that count as work.

    A whole-graph row is left out where the file also holds the nodes of that launch, so nothing is counted twice.
    """

    devices: tuple[DeviceWork, ...]
    counted: dict[str, npt.NDArray[np.bool_]]

    @classmethod
    def build(cls, trace: Trace) -> Work:
        """Gather the work tables; memory 17 bytes a row beside the tables where there is more than one to merge."""
        counted = {name: np.ones(len(trace[name]), bool) for name in WORK_TABLES}
        if len(trace["graphs"]):
            counted["graphs"] = ~_has_nodes(trace)
        devices = tuple(_of_device(trace, device, counted) for device in range(len(trace["devices"])))
        return cls(devices, counted)


def _has_nodes(trace: Trace) -> npt.NDArray[np.bool_]:
    launches: list[Array] = []
    for name in ("kernels", "memcpys", "memsets"):
        if "graph_node" in trace[name]:
            nodes = np.flatnonzero(trace[name]["graph_node"] != 0)
            owner = process_of(trace, name)[nodes].astype(np.int64)
            launches.append(owner << 40 | trace[name]["correlation"][nodes])
    graphs = process_of(trace, "graphs").astype(np.int64) << 40 | trace["graphs"]["correlation"]
    return np.isin(graphs, np.concatenate(launches)) if launches else np.zeros(len(graphs), bool)


def _of_device(trace: Trace, device: int, counted: dict[str, npt.NDArray[np.bool_]]) -> DeviceWork:
    parts: list[tuple[Array, ...]] = []
    for code, name in enumerate(WORK_TABLES):
        table = trace[name]
        mine = (trace.device_of(table["stream"]) == device) & counted[name]
        if not mine.any():
            continue
        if mine.all():
            rows: Array = np.arange(len(table), dtype=np.int32)
            start, end, stream = table["start"], table["end"], table["stream"]
        else:
            rows = np.flatnonzero(mine).astype(np.int32)
            start, end, stream = table["start"][rows], table["end"][rows], table["stream"][rows]
        parts.append((start, end, np.full(len(rows), code, np.int8), rows, stream))
    if not parts:
        none = np.empty(0, np.int64)
        return DeviceWork(device, none, none, none.astype(np.int8), none.astype(np.int32), none.astype(np.int32))
    columns = [np.concatenate(column) if len(parts) > 1 else column[0] for column in zip(*parts, strict=True)]
    if len(parts) > 1:
        order = np.argsort(columns[0], kind="stable")
        columns = [column[order] for column in columns]
    return DeviceWork(device, *columns)


def launch_calls(trace: Trace, work: DeviceWork, at: Array | None = None) -> npt.NDArray[np.int32]:
    """Row of host_calls that launched each record (at the positions `at`); -1 none."""
    return work.pick(trace.index(Links).launch.get, at).astype(np.int32)


def launch_times(trace: Trace, call: Array) -> Int:
    """When each launch call (row of host_calls) began, ns; LONG_AGO for -1."""
    starts = trace["host_calls"]["start"]
    return np.where(call >= 0, starts[call] if len(starts) else LONG_AGO, LONG_AGO)


def node_launches(trace: Trace, work: DeviceWork, at: Array | None = None) -> Int:
    """The graph launch that each node belongs to, as one number for (process, correlation); -1 for what is no node."""
    nodes = work.pick(lambda table: trace[table].columns.get("graph_node"), at, missing=0)
    owner = work.pick(lambda table: process_of(trace, table), at).astype(np.int64)
    correlation = work.pick(lambda table: trace[table]["correlation"], at)
    return np.where(nodes != 0, owner << 40 | correlation, -1)
