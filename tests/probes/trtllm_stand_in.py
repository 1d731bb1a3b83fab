"""Stand-ins for the classes of TensorRT-LLM's PyTorch executor that its probe wraps, in the layouts that are known.

They schedule, draft, pause, allocate pages and end requests by a seeded plan, and keep their own books (`truth`).
"""

from __future__ import annotations

import json
import random
import types
from typing import Any

LAYOUTS = ("1.2", "later")


class Request:
    """One request: `LlmRequest` as far as the probe looks."""

    def __init__(self, number: int, prompt: int, output: int, dummy: bool = False) -> None:
        self.py_request_id = self.request_id = number
        self.py_prompt_len = self.prompt_len = prompt
        self.py_max_new_tokens = output
        self.py_draft_tokens: list[int] = []
        self.py_num_accepted_draft_tokens = 0
        self.context_current_position = 0
        self.context_chunk_size = 0
        self.is_dummy = dummy
        self._tokens = prompt

    def get_num_tokens(self, beam: int) -> int:
        return self._tokens


class ListBatch:
    """`ScheduledRequests` of 1.2: plain lists."""

    def __init__(self, context: list[Request], generation: list[Request], paused: list[Request]) -> None:
        self.context_requests, self.generation_requests, self.paused_requests = context, generation, paused


class PropertyBatch:
    """`ScheduledRequests` of later releases: a property builds a new list each time."""

    def __init__(self, context: list[Request], generation: list[Request], paused: list[Request]) -> None:
        self.context_requests_chunking: list[Request] = []
        self.context_requests_last_chunk = context
        self.generation_requests, self.paused_requests = generation, paused

    @property
    def context_requests(self) -> list[Request]:
        return self.context_requests_chunking + self.context_requests_last_chunk


class Pages:
    """A KV cache manager: block lists by request."""

    def __init__(self, blocks: int, tokens: int, later: bool) -> None:
        self.tokens_per_block = tokens
        self.held: dict[int, list[int]] = {}
        self.free = list(range(blocks))
        if later:
            self.num_blocks = blocks
            self.get_batch_cache_indices = self._batch_indices
        else:
            self.blocks_in_primary_pool = blocks
            self.get_cache_indices = lambda request, window_size=None: list(self.held[request.py_request_id])

    def _batch_indices(self, numbers: list[int], layer_idx: Any = None) -> list[list[int]]:
        return [[*self.held[number], -1] for number in numbers]

    def hold(self, request: Request, tokens: int) -> None:
        held = self.held.setdefault(request.py_request_id, [])
        wanted = -(-tokens // self.tokens_per_block)
        while len(held) < wanted:
            held.append(self.free.pop())
        while len(held) > wanted:
            self.free.append(held.pop())

    def drop(self, request: Request) -> None:
        self.free += reversed(self.held.pop(request.py_request_id, []))


class Key:
    name = "KV_CACHE_MANAGER"


class DraftKey:
    name = "DRAFT_KV_CACHE_MANAGER"


class Sample(list[Request]):
    """`SampleState`: what a batch gave."""

    def __init__(self, batch: Any, requests: list[Request]) -> None:
        super().__init__(requests)
        self.scheduled_requests = batch


class Statistics:
    def __init__(self, text: str) -> None:
        self.text = text

    def to_json_str(self) -> str:
        return self.text


def executor_module(layout: str, overlap: bool, seed: int, num_requests: int) -> types.ModuleType:
    """A module like py_executor, freshly made, so that what wraps its classes wraps nothing else."""
    later = layout == "later"
    batch_class: Any = PropertyBatch if later else ListBatch

    class ResourceManager:
        def __init__(self, pages: Pages) -> None:
            self.resource_managers = {DraftKey(): object(), Key(): pages}
            self.kv_cache_manager = pages

        def prepare_resources(self, scheduled_batch: Any) -> None:
            pages = self.kv_cache_manager
            for request in [*scheduled_batch.context_requests, *scheduled_batch.generation_requests]:
                pages.hold(request, request.get_num_tokens(0) + len(request.py_draft_tokens) + 1)

        def update_resources(self, scheduled_batch: Any) -> None:
            for request in [*scheduled_batch.context_requests, *scheduled_batch.generation_requests]:
                if request.py_request_id in self.kv_cache_manager.held:
                    self.kv_cache_manager.hold(request, request.get_num_tokens(0) + 1)

    class PyExecutor:
        def __init__(self) -> None:
            self.random = random.Random(seed)
            self.iter_counter = 0
            self.is_warmup = True
            self.kv_cache_manager = Pages(512, 8, later)
            self.resource_manager = ResourceManager(self.kv_cache_manager)
            self.waiting_queue = [
                Request(7 + n, self.random.randint(1, 30), self.random.randint(1, 12)) for n in range(num_requests)
            ]
            self.active: list[Request] = []
            self.truth: dict[str, Any] = {
                "emitted": {},
                "drafted": {},
                "accepted": {},
                "used": [],
                "iterations": [],
                "settled": {},
            }
            warm = Request(1, 4, 4, dummy=True)
            self._forward_step(batch_class([warm], [], []))
            self.is_warmup = False

        def _forward_step(self, scheduled_requests: Any, *more: Any) -> dict[str, int]:
            return {"logits": len(scheduled_requests.generation_requests)}

        def _update_requests(self, sample_state: Any, resource_manager: Any = None) -> None:
            for request in sample_state:
                left = request.py_prompt_len + request.py_max_new_tokens - request._tokens
                drafted = len(request.py_draft_tokens)
                accepted = self.random.randint(0, drafted)
                request.py_num_accepted_draft_tokens = accepted
                emitted = min(1 + accepted, left)
                number = sample_state.scheduled_requests.number
                self.truth["settled"][number, request.py_request_id] = (emitted, drafted, accepted)
                request._tokens += emitted
                request.context_current_position = request.py_prompt_len
                for key, value in (("emitted", emitted), ("drafted", drafted), ("accepted", accepted)):
                    self.truth[key][request.py_request_id] = self.truth[key].get(request.py_request_id, 0) + value

        def _append_iter_stats(self, stats: Any, req_stats: Any = None) -> None:
            self.latest = stats

        def fetch(self) -> list[Request]:
            new, self.waiting_queue = self.waiting_queue[:2], self.waiting_queue[2:]
            self.active += new
            return new

        def end(self, request: Request) -> None:
            self.kv_cache_manager.drop(request)
            self.active.remove(request)

        def run(self) -> None:
            before: tuple[Any, list[Request]] | None = None
            while self.active or self.waiting_queue or before:
                getattr(self, fetching)()
                done = [r for r in self.active if r._tokens >= r.py_prompt_len + r.py_max_new_tokens]
                busy = before[1] if before else []
                live = [r for r in self.active if r not in done and r not in busy]
                context = [r for r in live if r.context_current_position == 0]
                generation = [r for r in live if r.context_current_position > 0]
                dummy = [Request(0, 1, 1, dummy=True)] if self.random.random() < 0.3 else []
                for request in context:
                    request.context_chunk_size, request.py_draft_tokens = request.py_prompt_len, []
                for request in generation:
                    request.py_draft_tokens = [5] * self.random.randint(0, 3)
                batch = batch_class(context, generation + dummy, [])
                if context or generation:
                    self.resource_manager.prepare_resources(batch)
                    batch.number = self.iter_counter
                    self._forward_step(batch)
                    self.truth["iterations"].append((self.iter_counter, len(context), len(generation)))
                    self.truth["used"].append(
                        sum(len(held) for number, held in self.kv_cache_manager.held.items() if number)
                    )
                    self.iter_counter += 1
                    now = (batch, context + generation)
                else:
                    now = None
                settle, before = (before, now) if overlap else (now, None)
                if settle is not None:
                    self._update_requests(Sample(*settle), self.resource_manager)
                    self.resource_manager.update_resources(settle[0])
                    self._append_iter_stats(
                        Statistics(
                            json.dumps(
                                {
                                    "iter": self.iter_counter,
                                    "kvCacheStats": {"usedNumBlocks": 3},
                                    "gpuMemUsage": 10,
                                    "specDecodingStats": None,
                                }
                            )
                        )
                    )
                for request in [r for r in self.active if r._tokens >= r.py_prompt_len + r.py_max_new_tokens]:
                    if before is None or request not in before[1]:
                        getattr(self, ending)(request)

    fetching = "_fetch_new_requests" if later else "_fetch_and_activate_new_requests"
    ending = "_terminate_request" if later else "_do_terminate_request"
    PyExecutor.fetching = fetching  # type: ignore[attr-defined]
    setattr(PyExecutor, fetching, PyExecutor.fetch)
    setattr(PyExecutor, ending, PyExecutor.end)
    module = types.ModuleType("py_executor")
    module.PyExecutor, module.ResourceManager = PyExecutor, ResourceManager  # type: ignore[attr-defined]
    return module
