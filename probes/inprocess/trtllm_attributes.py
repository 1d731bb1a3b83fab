"""What the probe for TensorRT-LLM reads of its PyTorch executor: each name, where it is, since when, and what needs it.

None of this is a public interface. Whatever is not there, in this release or the next, switches off the parts that need
it and nothing else. Written from public sources of 1.0 to 1.4; never run against a real installation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

BATCH, TOKENS, REQUESTS, PAGES, STATISTICS = "batch", "tokens", "requests", "pages", "statistics"
PARTS: tuple[str, ...] = (BATCH, TOKENS, REQUESTS, PAGES, STATISTICS)
"""What the probe gives: the scheduled batch of each step; tokens and drafts of each request; when requests come and go;
the page table; and copies of the engine's own iteration statistics. Tokens belong to a batch: without that there are
none."""


class Need(NamedTuple):
    """One name (or several spellings of it, the first that is there is used) of one kind of object."""

    owner: str
    names: tuple[str, ...]
    since: str
    parts: tuple[str, ...]


NEEDS: tuple[Need, ...] = (
    Need("executor", ("_forward_step",), "1.0", (BATCH, TOKENS)),
    Need("executor", ("iter_counter",), "1.0", (BATCH, TOKENS)),
    Need("executor", ("_update_requests",), "1.0", (TOKENS,)),
    Need("executor", ("_fetch_and_activate_new_requests", "_fetch_new_requests"), "1.0", (REQUESTS,)),
    Need("executor", ("_do_terminate_request", "_terminate_request"), "1.0", (REQUESTS, PAGES)),
    Need("executor", ("_append_iter_stats",), "1.0", (STATISTICS,)),
    Need("executor", ("kv_cache_manager",), "1.0", (PAGES,)),
    Need("resources", ("prepare_resources",), "1.0", (PAGES,)),
    Need("resources", ("update_resources",), "1.0", (PAGES,)),
    Need("batch", ("context_requests",), "1.0", (BATCH, TOKENS, PAGES)),
    Need("batch", ("generation_requests",), "1.0", (BATCH, TOKENS, PAGES)),
    Need("batch", ("paused_requests",), "1.0", (BATCH, TOKENS)),
    Need("request", ("py_request_id", "request_id"), "1.0", (BATCH, TOKENS, REQUESTS, PAGES)),
    Need("request", ("context_chunk_size",), "1.0", (BATCH, TOKENS)),
    Need("request", ("context_current_position",), "1.0", (BATCH, TOKENS)),
    Need("request", ("get_num_tokens",), "1.0", (BATCH, TOKENS)),
    Need("request", ("py_draft_tokens",), "1.0", (TOKENS,)),
    Need("request", ("py_num_accepted_draft_tokens",), "1.0", (TOKENS,)),
    Need("request", ("py_prompt_len", "prompt_len", "orig_prompt_len"), "1.0", (REQUESTS,)),
    Need("request", ("py_max_new_tokens", "max_new_tokens"), "1.0", (REQUESTS,)),
    Need("pages", ("get_cache_indices", "get_batch_cache_indices"), "1.0", (PAGES,)),
    Need("pages", ("tokens_per_block",), "1.0", (PAGES,)),
    Need("pages", ("blocks_in_primary_pool", "max_num_blocks", "num_blocks"), "1.0", (PAGES,)),
    # Only of an executor that was at work before the probe came.
    Need("sample", ("scheduled_requests",), "1.0", (TOKENS,)),
    Need("statistics", ("to_json_str",), "1.0", (STATISTICS,)),
)
DUMMIES: tuple[str, ...] = ("is_dummy", "is_dummy_request", "is_attention_dp_dummy", "is_cuda_graph_dummy")
"""Requests that only fill a batch up; where none of these is there, none is taken for one."""
_SPELLINGS = {(need.owner, need.names[0]): need for need in NEEDS}


class AbsentError(Exception):
    """A name that is not there; `parts` cannot be given without it."""

    def __init__(self, need: Need, kind: str) -> None:
        super().__init__(f"{kind} has no {' or '.join(need.names)} (there since {need.since})")
        self.parts = need.parts


def read(owner: str, thing: Any, name: str) -> Any:
    """`thing.name`, or what it is called elsewhere. Raises AbsentError."""
    return getattr(thing, spelling(owner, thing, name))


def spelling(owner: str, thing: Any, name: str) -> str:
    """What `name` is called here. Raises AbsentError."""
    need = _SPELLINGS[owner, name]
    for each in need.names:
        if hasattr(thing, each):
            return each
    raise AbsentError(need, thing.__name__ if isinstance(thing, type) else type(thing).__name__)


def check(owner: str, thing: Any) -> Iterator[AbsentError]:
    """Everything that a thing of that kind lacks."""
    for need in NEEDS:
        if need.owner == owner:
            try:
                spelling(owner, thing, need.names[0])
            except AbsentError as error:
                yield error


def is_dummy(request: Any) -> bool:
    """Whether a request only fills a batch up."""
    return any(getattr(request, name, False) is True for name in DUMMIES)
