"""THE list of tables and columns. Readers fill it, everything else reads it; docs and checks are made from it.

Times are int64 nanoseconds since `Trace.info.origin_ns`; intervals are half-open [start, end). A column that refers to
another table holds its row numbers (`kernels.stream` is a row of `streams`), one that refers to names holds ids of
`Trace.names`; -1 means none.
"""

from __future__ import annotations

import math

from inspector.trace.column import NEVER, Column, TableSchema
from inspector.trace.engine_tables import ENGINE_TABLES, PAGE_EVENTS, PHASES, PROBE_STATES, TOKEN_KINDS

__all__ = [
    "NEVER",
    "PAGE_EVENTS",
    "PHASES",
    "PROBE_STATES",
    "RANGE_KINDS",
    "REJECTIONS",
    "SCHEMAS",
    "TABLES",
    "TOKEN_KINDS",
    "WORK_TABLES",
    "Column",
    "TableSchema",
]


RANGE_KINDS: tuple[str, ...] = ("nvtx", "nvtx start/end", "annotation", "operator", "python", "other")
REJECTIONS: tuple[str, ...] = ("ends before it starts", "outside the session", "no time stamp", "end contradicted")

_START = Column("start", "int64", "ns", "when it began")
_END = Column("end", "int64", "ns", "when it ended (exclusive)")
_NAME = Column("name", "int32", "", "name id", refers="names")
_STREAM = Column("stream", "int32", "", "row of streams; -1 unknown", refers="streams")
_THREAD = Column("thread", "int32", "", "row of threads; -1 unknown", refers="threads")
_CORRELATION = Column("correlation", "int64", "", "links work to its launch call within a process; 0 none")
_NODE = Column("graph_node", "int64", "", "CUDA graph node that ran; 0 not from a graph", optional=True)
_CONTEXT = Column("context", "int32", "", "CUDA context number", optional=True)
_BYTES = Column("bytes", "int64", "bytes", "bytes moved or set; -1 unknown")


_RECORDS: tuple[TableSchema, ...] = (
    TableSchema(
        "devices",
        "GPUs, one row each",
        (
            Column("number", "int32", "", "the number that the file uses, unique in the trace"),
            _NAME,
            Column("memory", "int64", "bytes", "total device memory; -1 unknown", optional=True, unknown=-1),
            Column("bandwidth", "int64", "bytes/s", "peak DRAM bandwidth; -1 unknown", optional=True, unknown=-1),
            Column("sm_count", "int32", "", "streaming multiprocessors; -1 unknown", optional=True, unknown=-1),
            Column("source", "int32", "", "which of the opened files", optional=True),
        ),
        "number",
    ),
    TableSchema(
        "processes",
        "operating system processes",
        (
            Column("pid", "int64", "", "process id as the file gives it"),
            _NAME,
            Column("rank", "int32", "", "rank in the job; -1 unknown"),
            Column("source", "int32", "", "which of the opened files", optional=True),
        ),
    ),
    TableSchema(
        "threads",
        "host threads",
        (
            Column("process", "int32", "", "row of processes", refers="processes"),
            Column("tid", "int64", "", "thread id as the file gives it; a hash where it is text"),
            _NAME,
        ),
    ),
    TableSchema(
        "streams",
        "GPU streams, keyed by process, device and number",
        (
            Column("process", "int32", "", "row of processes", refers="processes"),
            Column("device", "int32", "", "row of devices", refers="devices"),
            Column("number", "int64", "", "stream number as the file gives it"),
            _NAME,
        ),
    ),
    TableSchema(
        "kernels",
        "kernels that ran, one row per execution",
        (_START, _END, _STREAM, _NAME, _CORRELATION, _NODE, _CONTEXT),
        "start",
    ),
    TableSchema(
        "memcpys",
        "copies to, from and between devices, unified-memory migrations among them",
        (
            _START,
            _END,
            _STREAM,
            _NAME,
            _CORRELATION,
            _BYTES,
            Column("pageable", "int8", "", "1 when a side is pageable host memory", optional=True),
            _NODE,
            _CONTEXT,
        ),
        "start",
    ),
    TableSchema(
        "memsets",
        "memory sets",
        (_START, _END, _STREAM, _NAME, _CORRELATION, _BYTES, _NODE, _CONTEXT),
        "start",
    ),
    TableSchema(
        "graphs",
        "CUDA graph executions recorded as a whole: their kernels are not in the file",
        (
            _START,
            _END,
            _STREAM,
            _NAME,
            _CORRELATION,
            Column("graph", "int64", "", "graph id; 0 unknown"),
            _CONTEXT,
        ),
        "start",
    ),
    TableSchema(
        "syncs",
        "synchronisation records: waits, never device work",
        (
            _START,
            _END,
            Column(
                "stream",
                "int32",
                "",
                "row of streams that waited or was waited for; -1 the whole device",
                refers="streams",
            ),
            Column("kind", "int8", "", "1 event, 2 stream waits for event, 3 stream, 4 context, 0 unknown"),
            _CORRELATION,
            Column("process", "int32", "", "row of processes", refers="processes"),
            Column("event", "int64", "", "CUDA event waited for; 0 none"),
            Column("event_sync", "int64", "", "pairs the wait with the record of that event; 0 none", optional=True),
        ),
        "start",
    ),
    TableSchema(
        "event_records",
        "CUDA events recorded into a stream",
        (
            Column("stream", "int32", "", "row of streams that recorded the event", refers="streams"),
            _CORRELATION,
            Column("event", "int64", "", "CUDA event"),
            Column("event_sync", "int64", "", "pairs the record with waits for it; 0 none", optional=True),
            Column("time", "int64", "ns", "completion on the device", optional=True, may_be_never=True, unknown=NEVER),
        ),
    ),
    TableSchema(
        "host_calls",
        "CUDA (HIP) runtime and driver calls on host threads",
        (
            _START,
            _END,
            _THREAD,
            _NAME,
            _CORRELATION,
            Column("result", "int32", "", "error code; 0 success", optional=True),
        ),
        "start",
    ),
    TableSchema(
        "os_calls",
        "blocking operating system calls on host threads",
        (_START, _END, _THREAD, _NAME),
        "start",
    ),
    TableSchema(
        "overheads",
        "time that the profiler itself took",
        (_START, _END, _THREAD, _NAME),
        "start",
    ),
    TableSchema(
        "schedulings",
        "threads switched onto and off processors",
        (
            Column("time", "int64", "ns", "when"),
            _THREAD,
            Column("cpu", "int32", "", "processor; -1 unknown"),
            Column("on", "int8", "", "1 switched on, 0 off"),
        ),
        "time",
    ),
    TableSchema(
        "ranges",
        "named host ranges: NVTX, record_function, operators, Python frames",
        (
            _START,
            _END,
            _THREAD,
            _NAME,
            Column("kind", "int8", "", "index into RANGE_KINDS", below=len(RANGE_KINDS)),
            Column("domain", "int32", "", "name id of the NVTX domain or the category; -1 default", refers="names"),
            Column("payload", "float64", "", "numeric payload; NaN none", optional=True, unknown=math.nan),
            Column("correlation", "int64", "", "external id that links operators to work; 0 none", optional=True),
        ),
        "start",
    ),
    TableSchema(
        "marks",
        "instants on a host thread",
        (
            Column("time", "int64", "ns", "when"),
            _THREAD,
            _NAME,
            Column("domain", "int32", "", "name id of the domain; -1 default", refers="names"),
        ),
        "time",
    ),
    TableSchema(
        "flows",
        "arrows that the file itself gives, start to finish",
        (
            Column("start", "int64", "ns", "where it leaves"),
            Column("start_thread", "int32", "", "row of threads; -1 none", refers="threads"),
            Column("end", "int64", "ns", "where it arrives (may be before start)"),
            Column("end_thread", "int32", "", "row of threads; -1 none", refers="threads"),
            Column("kind", "int32", "", "name id of the category", refers="names"),
        ),
        "start",
    ),
    TableSchema(
        "series",
        "counters, one row each",
        (
            _NAME,
            Column("unit", "int32", "", "name id of the unit; -1 none", refers="names"),
            Column("device", "int32", "", "row of devices; -1 not of a device", refers="devices"),
            Column("process", "int32", "", "row of processes; -1 not of a process", refers="processes"),
        ),
    ),
    TableSchema(
        "counters",
        "samples of the counters",
        (
            Column("time", "int64", "ns", "when"),
            Column("series", "int32", "", "row of series", refers="series"),
            Column("value", "float64", "as series.unit", "the sample"),
        ),
        "time",
    ),
    TableSchema(
        "allocations",
        "device and host memory taken and given back",
        (
            Column("time", "int64", "ns", "when"),
            Column("process", "int32", "", "row of processes", refers="processes"),
            Column("device", "int32", "", "row of devices; -1 host", refers="devices"),
            Column("address", "uint64", "", "address of the block"),
            Column("bytes", "int64", "bytes", "size, negative when given back"),
            Column("kind", "int8", "", "1 pageable, 2 pinned, 3 device, 4 array, 5 managed, 0 unknown"),
        ),
        "time",
    ),
    *ENGINE_TABLES,
)

TABLES: tuple[TableSchema, ...] = (
    *_RECORDS,
    TableSchema(
        "rejected",
        "records found wrong, kept out of every sum",
        (
            _START,
            _END,
            Column("table", "int8", "", "index into TABLES of the table that it was for", below=len(_RECORDS)),
            Column("reason", "int8", "", "index into REJECTIONS", below=len(REJECTIONS)),
            _NAME,
            _STREAM,
            _THREAD,
        ),
    ),
)

SCHEMAS: dict[str, TableSchema] = {table.name: table for table in TABLES}
WORK_TABLES: tuple[str, ...] = ("kernels", "memcpys", "memsets", "graphs")
