"""A simulated run as an SQLite file in the shape of an Nsight Systems export."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from sample_traces.device import Work
from sample_traces.host import Run
from sample_traces.metrics import METRICS
from sample_traces.nsys_schema import ENUMS, Column, tables_of, version_of
from sample_traces.nsys_target import VM, Row, Rows, Shape, Strings, global_pid, is_written, metadata, target
from sample_traces.truth import records

_NONE = 0xFFFFFFFF
_DOMAIN = "TensorRT-LLM"

_BATCH = 5_000


def counts(run: Run, shape: Shape) -> dict[str, int]:
    """How many records of each kind the file holds, by the names of `summary --format json`."""
    shown = _shown(run, shape)
    found = {"kernels": 0, "memcpys": 0, "memsets": 0, "graphs": 0}
    for work, whole in shown:
        found["graphs" if whole else _kind(work)] += 1
    found["host_calls"] = sum(call.recorded and is_written(shape, call.process) for call in run.calls)
    found["ranges"] = sum(is_written(shape, item.process) for item in run.ranges)
    found["counters"] = len(shape.samples) * len(METRICS)
    return found


def write(path: Path, run: Run, shape: Shape) -> None:
    """Write the file anew. Rows of a table are in the order of the simulation, which is not time order."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA page_size = {shape.page_size}")
    database.execute("PRAGMA journal_mode = OFF")
    tables = tables_of(version_of(shape.family))
    waiting: dict[str, list[Row]] = {}
    for table, row in _shifted(_rows(run, shape), shape.shift_ns):
        if table not in tables:
            continue
        if table not in waiting:
            # As in a lazy export, a table without rows is not there.
            kinds = (f"{c.name} {c.type}{' NOT NULL' if c.required else ''}" for c in tables[table])
            database.execute(f"CREATE TABLE {table} ({', '.join(kinds)})")
            waiting[table] = []
        waiting[table].append(row)
        if len(waiting[table]) == _BATCH:
            _insert(database, table, tables[table], waiting[table])
            waiting[table] = []
    for table, rows in waiting.items():
        _insert(database, table, tables[table], rows)
    database.commit()
    database.execute("VACUUM")
    database.close()


def _insert(database: sqlite3.Connection, table: str, columns: Sequence[Column], rows: Sequence[Row]) -> None:
    names = [column.name for column in columns]
    values = (tuple(map(row.get, names)) for row in rows)
    database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", values)


def _shifted(rows: Rows, shift_ns: int) -> Rows:
    for table, row in rows:
        for time in ("timestamp",) if table == "GPU_METRICS" else ("start", "end"):
            if time in row:
                row[time] -= shift_ns
        yield table, row


def _kind(work: Work) -> str:
    return "memsets" if work.copy_kind < 0 else "memcpys" if work.copy_kind else "kernels"


def _shown(run: Run, shape: Shape) -> list[tuple[Work, bool]]:
    shown = []
    for device in run.devices.values():
        for busy in records(device.work, shape.whole_graphs):
            if is_written(shape, busy.work.stream.process):
                shown.append((busy.work, shape.whole_graphs and busy.work.graph is not None))
    return shown


def _rows(run: Run, shape: Shape) -> Rows:
    strings = Strings()
    yield from metadata(run, shape)
    yield from target(run, shape, strings)
    yield from _calls(run, shape, strings)
    yield from _work(run, shape, strings)
    yield from _waits(run, shape)
    yield from _ranges(run, shape, strings)
    yield from _metrics(shape)
    for name, entries in ENUMS.items():
        for number, key, label in entries:
            yield name, {"id": number, "name": key, "label": label}
    for text, number in strings.ids.items():
        yield "StringIds", {"id": number, "value": text}


def _calls(run: Run, shape: Shape, strings: Strings) -> Rows:
    for call in run.calls:
        if call.recorded and is_written(shape, call.process):
            yield (
                "CUPTI_ACTIVITY_KIND_RUNTIME",
                {
                    "start": call.start,
                    "end": call.end,
                    "eventClass": int(call.driver),
                    "globalTid": global_pid(call.process) | call.thread,
                    "correlationId": call.correlation,
                    "nameId": strings[call.name],
                    "returnValue": 0,
                },
            )
    for item in run.os_calls:
        if is_written(shape, item.process):
            row = {"start": item.start, "end": item.end, "eventClass": 27, "returnValue": 0, "nestingLevel": 0}
            row |= {"globalTid": global_pid(item.process) | item.thread, "callchainId": 0, "argumentsId": 0}
            yield "OSRT_API", row | {"nameId": strings[item.name]}


def _place(work: Work) -> Row:
    stream = work.stream
    return {
        "deviceId": stream.ordinal,
        "contextId": stream.context,
        "greenContextId": 0,
        "streamId": stream.number,
        "correlationId": work.call.correlation,
        "globalPid": global_pid(stream.process),
    }


def _work(run: Run, shape: Shape, strings: Strings) -> Rows:
    grid = 0
    for device in run.devices.values():
        for busy in records(device.work, shape.whole_graphs):
            work = busy.work
            if not is_written(shape, work.stream.process):
                continue
            row = {"start": busy.start, "end": busy.end} | _place(work)
            if shape.whole_graphs and work.graph is not None:
                number = work.graph.number
                yield "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", row | {"graphId": number, "graphExecId": number + 1_000}
            elif _kind(work) == "kernels":
                grid += 1
                yield "CUPTI_ACTIVITY_KIND_KERNEL", row | _kernel(work, grid, strings)
            elif _kind(work) == "memcpys":
                yield "CUPTI_ACTIVITY_KIND_MEMCPY", row | _copy(work)
            else:
                yield "CUPTI_ACTIVITY_KIND_MEMSET", row | {"value": 0, "bytes": work.size, "memKind": 2}


def _kernel(work: Work, grid: int, strings: Strings) -> Row:
    kernel = work.kernel
    sizes = {"gridX": kernel.grid, "gridY": 1, "gridZ": 1, "blockX": kernel.block, "blockY": 1, "blockZ": 1}
    memory = dict.fromkeys(("staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread", "localMemoryTotal"), 0)
    return {
        "demangledName": strings[kernel.name],
        "shortName": strings[short_name(kernel.name)],
        "launchType": 1,
        "cacheConfig": 0,
        "registersPerThread": 96,
        **sizes,
        **memory,
        "gridId": grid,
        "sharedMemoryExecuted": 8_192,
        "graphNodeId": work.node or None,
        "sharedMemoryLimitConfig": 0,
        "graphId": work.graph.number if work.graph else None,
        "tensorSizeMinusOneElements": "",
    }


def short_name(name: str) -> str:
    """The bare function name of a demangled kernel name."""
    head = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", head)[0].rsplit("::", 1)[-1]


def _copy(work: Work) -> Row:
    host = 0 if work.pageable else 1
    source, target = {1: (host, 2), 2: (2, host), 10: (2, 2)}[work.copy_kind]
    row: Row = {"bytes": work.size, "copyKind": work.copy_kind, "srcKind": source, "dstKind": target, "copyCount": 1}
    if work.copy_kind == 10:
        row |= {"srcDeviceId": 0, "srcContextId": 1, "dstDeviceId": work.stream.ordinal}
        row |= {"dstContextId": work.stream.context}
    return row


def _waits(run: Run, shape: Shape) -> Rows:
    for sync in run.syncs:
        if is_written(shape, sync.call.process):
            yield (
                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                {
                    "start": sync.start,
                    "end": sync.end,
                    "deviceId": sync.ordinal,
                    "contextId": sync.context,
                    "greenContextId": 0,
                    "streamId": sync.stream.number if sync.stream else _NONE,
                    "correlationId": sync.call.correlation,
                    "globalPid": global_pid(sync.call.process),
                    "syncType": sync.kind,
                    "eventId": sync.event or _NONE,
                    "eventSyncId": sync.event,
                },
            )
    for record in run.event_records:
        if is_written(shape, record.call.process):
            stream = record.stream
            row = {"timestamp": 0, "deviceId": stream.ordinal, "contextId": stream.context, "greenContextId": 0}
            row |= {"streamId": stream.number, "correlationId": record.call.correlation}
            row |= {"globalPid": global_pid(stream.process), "eventId": record.event, "eventSyncId": record.event}
            yield "CUPTI_ACTIVITY_KIND_CUDA_EVENT", row


def _ranges(run: Run, shape: Shape, strings: Strings) -> Rows:
    number = 0
    # The exports of 2020 have no rows for the creation of domains.
    for process in run.processes.values() if version_of(shape.family) >= (2, 9, 0) else ():
        if is_written(shape, process.pid) and any(item.process == process.pid for item in run.ranges):
            number += 1
            first = min(moments[0].start for tid, moments in run.moments.items() if tid in process.threads and moments)
            row = {"start": first, "eventType": 75, "text": _DOMAIN, "domainId": 1, "eventId": number}
            yield "NVTX_EVENTS", row | {"globalTid": global_pid(process.pid) | min(process.threads)}
    for item in run.ranges:
        if not is_written(shape, item.process):
            continue
        number += 1
        row = {"start": item.start, "end": item.end, "eventType": 59, "domainId": item.domain, "eventId": number}
        # The names of the executor's functions are registered strings, those with numbers in them are not.
        name = {"text": item.text} if " " in item.text else {"textId": strings[item.text]}
        yield "NVTX_EVENTS", row | name | {"globalTid": global_pid(item.process) | item.thread}


def _metrics(shape: Shape) -> Rows:
    if not shape.samples:
        return
    for gpu in sorted({sample.gpu for sample in shape.samples}):
        for number, name in enumerate(METRICS):
            row = {"typeId": VM | 16 << 32 | gpu, "sourceId": 16, "metricId": number, "metricName": name}
            row["typeName"] = "General Metrics for NVIDIA GH100 (any frequency)"
            yield "TARGET_INFO_GPU_METRICS", row
    for sample in shape.samples:
        for number, value in enumerate(sample.values):
            row = {"timestamp": sample.time, "typeId": VM | 16 << 32 | sample.gpu, "metricId": number, "value": value}
            yield "GPU_METRICS", row
