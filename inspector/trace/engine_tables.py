"""The tables of an inference engine: its batch, its requests, its KV pages, its drafts, its stages, and our probes."""

from __future__ import annotations

from inspector.trace.column import NEVER, Column, TableSchema

PHASES: tuple[str, ...] = ("queued", "context", "generation", "paused", "finished")
PAGE_EVENTS: tuple[str, ...] = ("freed", "allocated", "cached", "reused", "evicted", "offloaded", "restored")
TOKEN_KINDS: tuple[str, ...] = ("target", "accepted", "rejected", "corrected")
PROBE_STATES: tuple[str, ...] = ("off", "running", "sampling", "paused", "failed")

_START = Column("start", "int64", "ns", "when it began")
_END = Column("end", "int64", "ns", "when it ended (exclusive)")
_NAME = Column("name", "int32", "", "name id", refers="names")


def _some(name: str, meaning: str) -> Column:
    """A count that some producers give."""
    return Column(name, "int32", "", meaning, optional=True, unknown=-1)


ENGINE_TABLES: tuple[TableSchema, ...] = (
    TableSchema(
        "iterations",
        "engine iterations as the engine recorded them",
        (
            _START,
            _END,
            Column("process", "int32", "", "row of processes; -1 unknown", refers="processes"),
            Column("iteration", "int64", "", "the engine's own number"),
            Column("context_requests", "int32", "", "requests in the context phase; -1 unknown"),
            Column("generation_requests", "int32", "", "requests in the generation phase; -1 unknown"),
            Column("paused_requests", "int32", "", "requests paused; -1 unknown"),
            Column("queued_requests", "int32", "", "requests waiting; -1 unknown"),
            Column("tokens", "int32", "", "tokens computed; -1 unknown"),
            Column("used_blocks", "int32", "", "KV blocks in use; -1 unknown"),
            Column("free_blocks", "int32", "", "KV blocks free; -1 unknown"),
            Column("reused_blocks", "int32", "", "KV blocks reused; -1 unknown"),
            Column("missed_blocks", "int32", "", "KV blocks that could not be reused; -1 unknown"),
            _some("context_tokens", "tokens computed in the context phase; -1 unknown"),
            _some("drafted", "draft tokens that the target checked; -1 unknown"),
            _some("accepted", "draft tokens accepted; -1 unknown"),
            _some("emitted", "tokens given out; -1 unknown"),
            _some("completed_requests", "requests that finished in it; -1 unknown"),
            _some("cached_blocks", "free KV blocks whose contents could be reused; -1 unknown"),
            _some("host_blocks", "KV blocks in host memory; -1 unknown"),
            _some("max_batch_size", "most requests that one iteration may hold; -1 unknown"),
            _some("max_num_tokens", "most tokens that one iteration may compute; -1 unknown"),
            _some("micro_batches", "micro-batches that the stages handed over; -1 unknown"),
        ),
        "start",
    ),
    TableSchema(
        "requests",
        "inference requests",
        (
            Column("request", "int64", "", "the engine's own id"),
            Column("arrival", "int64", "ns", "when it came"),
            Column("first_token", "int64", "ns", "when its first token was ready", may_be_never=True),
            Column("last_token", "int64", "ns", "when its last token was ready", may_be_never=True),
            Column("prompt_tokens", "int32", "", "tokens of the prompt; -1 unknown"),
            Column("output_tokens", "int32", "", "tokens made; -1 unknown"),
            Column(
                "process", "int32", "", "row of processes; -1 unknown", optional=True, refers="processes", unknown=-1
            ),
            Column("scheduled", "int64", "ns", "when it first took part in an iteration", True, "", True, 0, NEVER),
            Column("finished", "int64", "ns", "when it left the engine", True, "", True, 0, NEVER),
            _some("reused_tokens", "prompt tokens whose KV was there already; -1 unknown"),
            _some("max_tokens", "most tokens that it may make; -1 unknown"),
            Column("group", "int32", "", "name id of its kind of prompt; -1 none", True, "names", unknown=-1),
        ),
        "arrival",
    ),
    TableSchema(
        "steps",
        "what one request did in one iteration; no row while it waits, queued before its first or since a pause",
        (
            Column("iteration", "int32", "", "row of iterations", refers="iterations"),
            Column("request", "int32", "", "row of requests", refers="requests"),
            Column("phase", "int8", "", "index into PHASES", below=len(PHASES)),
            Column("tokens", "int32", "", "tokens computed"),
            Column("drafted", "int32", "", "draft tokens that the target checked; -1 unknown"),
            Column("accepted", "int32", "", "draft tokens accepted; -1 unknown"),
            Column("blocks", "int32", "", "KV blocks held; -1 unknown"),
            _some("emitted", "tokens given out (an end token cuts what was accepted); -1 unknown"),
            _some("position", "tokens whose KV was there before; -1 unknown"),
            _some("micro_batch", "micro-batch that it was in; -1 unknown"),
        ),
    ),
    TableSchema(
        "page_events",
        "KV pages changing hands",
        (
            Column("time", "int64", "ns", "when"),
            Column("sequence", "int64", "", "order as the engine numbered it"),
            Column("block", "int64", "", "block number"),
            Column("request", "int32", "", "row of requests; -1 none", refers="requests"),
            Column("kind", "int8", "", "index into PAGE_EVENTS", below=len(PAGE_EVENTS)),
            _some("index", "place of the page in the request's block table; -1 unknown"),
            Column("other", "int64", "", "host page that it went to or came from; -1 none", True, unknown=-1),
            Column("tier", "int8", "", "where the block is: 0 device, 1 host", True),
            Column("hash", "uint64", "", "of the tokens up to its end, where cached; 0 none", True),
            Column("parent", "uint64", "", "hash of the page before it; 0 none", True),
        ),
        "time",
    ),
    TableSchema(
        "pools",
        "KV page pools, one row each time that one is made or changed",
        (
            Column("time", "int64", "ns", "since when"),
            Column("process", "int32", "", "row of processes; -1 unknown", refers="processes"),
            Column("blocks", "int64", "", "device pages"),
            Column("host_blocks", "int64", "", "host pages"),
            Column("tokens_per_block", "int32", "", "tokens of one page"),
            Column("block_bytes", "int64", "bytes", "size of one page; -1 unknown"),
        ),
        "time",
    ),
    TableSchema(
        "tokens",
        "token texts of some requests: what was drafted and what came of it",
        (
            Column("iteration", "int32", "", "row of iterations", refers="iterations"),
            Column("request", "int32", "", "row of requests", refers="requests"),
            Column(
                "position", "int32", "", "place in the output, from 0; of a rejected one the place it was offered for"
            ),
            _NAME,
            Column("kind", "int8", "", "index into TOKEN_KINDS", below=len(TOKEN_KINDS)),
        ),
    ),
    TableSchema(
        "stage_work",
        "micro-batches on pipeline stages",
        (
            _START,
            _END,
            Column("process", "int32", "", "row of processes; -1 unknown", refers="processes"),
            Column("stage", "int32", "", "number of the stage, from 0"),
            Column("iteration", "int64", "", "the engine's own number of the iteration"),
            Column("micro_batch", "int32", "", "number within the iteration, from 0"),
            Column("cpu", "int64", "ns", "processor time of the thread within it; -1 unknown", is_duration=True),
        ),
        "start",
    ),
    TableSchema(
        "probes",
        "what the probes said of themselves, about once a second",
        (
            Column("time", "int64", "ns", "when"),
            Column("process", "int32", "", "row of processes; -1 unknown", refers="processes"),
            _NAME,
            Column("state", "int8", "", "index into PROBE_STATES", below=len(PROBE_STATES)),
            Column("records", "int64", "", "records given so far"),
            Column("lost", "int64", "", "records lost so far"),
            Column("cost", "int64", "ns", "time that it took so far; -1 unknown", is_duration=True),
            Column("message", "int32", "", "name id of what it says; -1 nothing", refers="names"),
        ),
        "time",
    ),
)
