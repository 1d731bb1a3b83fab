"""The probe for TensorRT-LLM's PyTorch executor: its methods are wrapped before one is made, and only copied from.

    _fetch_and_activate_new_requests    requests that came
    prepare_resources                   the page table as the coming step finds it
    _forward_step                       the batch, when it was launched
    _update_requests                    tokens and accepted drafts of the oldest batch that is not settled yet
    update_resources                    pages given back for rejected drafts
    _append_iter_stats                  the engine's own record, copied, not taken
    _do_terminate_request               requests that left

In the executor's thread things are copied into a queue of tuples; a thread of ours turns them into rows. With the
overlap scheduler a batch is settled one loop later, with pipeline stages some loops later: first in, first out. Tried
against stand-ins of the known layouts; it has never met a real TensorRT-LLM.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .producer import Producer, from_environment
from .trtllm_attributes import (
    BATCH,
    PAGES,
    PARTS,
    REQUESTS,
    STATISTICS,
    TOKENS,
    AbsentError,
    check,
    is_dummy,
    read,
    spelling,
)
from .trtllm_rows import Encoder
from .trtllm_slices import fallback

BUDGET = 0.01
"""The share of the time of a step that this probe may take, its own thread's CPU time included. Beyond it, page tables
are read in one step of several; where that is not enough, batches too."""
_RAREST = 64
_MOST_WAITING = 1 << 14
_ENCODE_S = 0.02
_MOST_UNSETTLED = 64
"""More batches than any pipeline has under way."""
logger = logging.getLogger(__name__)


_probes: list[Probe] = []


def attach(module: ModuleType, late: bool = False) -> None:
    """Wrap the executor of `module` (py_executor). Does nothing when nobody records. `late`: it may be at work."""
    producer = from_environment("trtllm")
    if producer is not None:
        _probes.append(Probe(producer, late))
        _probes[-1].wrap(module)


def detach() -> None:
    """End, and leave the executor as it was found."""
    while _probes:
        _probes.pop().close()


class Probe:
    """One process's probe. `off` says of each part that is switched off, why.

    `late`: it came to an executor that may be at work; what was launched before is not told.
    """

    def __init__(self, producer: Producer, late: bool = False) -> None:
        self.off: dict[str, str] = {}
        self.pages_every = self.steps_every = 1
        self._producer = producer
        self._queue: deque[tuple[Any, ...]] = deque()
        self._lost = 0
        self._tables: dict[int, list[int]] = {}
        self._checked: set[str] = set()
        self._pool: tuple[int, int] | None = None
        self._unsettled: deque[tuple[int, Any, list[tuple[Any, int, int, int]]]] = deque()
        self._is_aligned = not late
        self._wrapped: list[tuple[Any, str, Any, Any]] = []
        self._cost_ns = self._step_ns = self._steps = 0
        self._begun_ns = 0
        self._has_passed_over = False
        self._encoder = Encoder(producer)
        self._slices = fallback(producer)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def wrap(self, module: ModuleType) -> None:
        """Put ourselves around the methods of PyExecutor and ResourceManager that are there."""
        executor, resources = getattr(module, "PyExecutor", None), getattr(module, "ResourceManager", None)
        after: dict[str, Callable[..., None]] = {
            "_fetch_and_activate_new_requests": self._came,
            "_update_requests": self._settled,
            "_append_iter_stats": self._counted,
            "_do_terminate_request": self._left,
        }
        self._around(executor, "executor", "_forward_step", before=self._launching)
        for name, call in after.items():
            self._around(executor, "executor", name, after=call)
        for name in ("prepare_resources", "update_resources"):
            self._around(resources, "resources", name, after=self._paged)
        self._tell()
        atexit.register(self.close)

    def close(self) -> None:
        """Encode what waits, and end; the executor is as it was, but for what others have put around ours."""
        if self._ended.is_set():
            return
        self._ended.set()
        atexit.unregister(self.close)
        for owner, name, before, now in self._wrapped:
            if getattr(owner, name, None) is now:
                setattr(owner, name, before)
        if self._thread is not None:
            self._thread.join(5)
        if self._slices is not None:
            self._slices.close()
        self._put("ended", time.monotonic_ns())
        self._encode()
        self._producer.close()

    def _around(
        self,
        owner: Any,
        kind: str,
        name: str,
        before: Callable[..., None] | None = None,
        after: Callable[..., None] | None = None,
    ) -> None:
        try:
            found = spelling(kind, owner, name)
        except AbsentError as error:
            self._switch_off(error)
            return
        method = getattr(owner, found)

        def call(this: Any, *args: Any, **kwargs: Any) -> Any:
            if before is not None and not self._ended.is_set():
                self._guarded(before, this, None, args, kwargs)
            result = method(this, *args, **kwargs)
            if after is not None and not self._ended.is_set():
                self._guarded(after, this, result, args, kwargs)
            return result

        call.__name__, call.__doc__, call.__wrapped__ = found, method.__doc__, method  # type: ignore[attr-defined]
        setattr(owner, found, call)
        self._wrapped.append((owner, found, method, call))

    def _guarded(self, part: Callable[..., None], this: Any, result: Any, args: Any, kwargs: Any) -> None:
        begun = time.monotonic_ns()
        if getattr(this, "is_warmup", False) is True:
            return
        try:
            part(this, result, begun, *args, **kwargs)
        except AbsentError as error:
            self._switch_off(error)
        except Exception as error:
            logger.debug("%s", part.__name__, exc_info=True)
            self._fail(part.__name__, error)
        finally:
            self._cost_ns += time.monotonic_ns() - begun

    # ---- what happens in the executor's thread ----

    def _came(self, executor: Any, new: Any, now: int, *args: Any, **kwargs: Any) -> None:
        if REQUESTS in self.off:
            return
        for request in new or ():
            self._check("request", request)
            if REQUESTS not in self.off and not is_dummy(request):
                number = read("request", request, "py_request_id")
                prompt = read("request", request, "py_prompt_len")
                self._put("came", number, now, int(prompt), int(read("request", request, "py_max_new_tokens")))

    def _launching(self, executor: Any, result: Any, now: int, batch: Any, *args: Any, **kwargs: Any) -> None:
        self._pace(now)
        if self._slices is not None:
            self._slices.step(now, BUDGET)
        if self._steps % self.steps_every:
            # It is settled in its turn like any other.
            self._unsettled.append((-1, batch, []))
            return
        self._check("batch", batch)
        self._check("executor", executor)
        for request in getattr(batch, "generation_requests", ()) or getattr(batch, "context_requests", ()):
            self._check("request", request)
            break
        if BATCH in self.off:
            return
        iteration = int(read("executor", executor, "iter_counter"))
        rows, unsettled = [], []
        for phase, name in ((1, "context_requests"), (2, "generation_requests")):
            for request in read("batch", batch, name):
                if is_dummy(request):
                    continue
                number = read("request", request, "py_request_id")
                tokens = int(read("request", request, "get_num_tokens")(0))
                drafted = len(read("request", request, "py_draft_tokens") or ()) if TOKENS not in self.off else -1
                if phase == 1:
                    chunk, at = (
                        read("request", request, key) for key in ("context_chunk_size", "context_current_position")
                    )
                    rows.append((number, phase, int(chunk), int(at)))
                else:
                    rows.append((number, phase, 1 + max(drafted, 0), tokens - 1))
                unsettled.append((request, number, tokens, drafted if phase == 2 else 0))
        paused = [read("request", request, "py_request_id") for request in read("batch", batch, "paused_requests")]
        queued = len(getattr(executor, "waiting_queue", ()) or ())
        self._put("batch", iteration, now, rows, paused, queued, TOKENS not in self.off)
        if TOKENS not in self.off:
            self._unsettled.append((iteration, batch, unsettled))

    def _settled(self, executor: Any, result: Any, now: int, sample: Any = None, *args: Any, **kwargs: Any) -> None:
        if TOKENS in self.off or not self._unsettled:
            return
        if not self._is_aligned:
            # Batches that were launched before we came are settled first.
            self._check("sample", sample)
            if TOKENS in self.off:
                return
            if read("sample", sample, "scheduled_requests") is not self._unsettled[0][1]:
                if len(self._unsettled) >= _MOST_UNSETTLED:
                    self.off[TOKENS] = "it came late, and no result is of a batch that it has seen"
                    self._unsettled.clear()
                    self._tell()
                return
            self._is_aligned = True
        iteration, _, requests = self._unsettled.popleft()
        if iteration < 0:
            return
        rows = []
        for request, number, before, drafted in requests:
            emitted = int(read("request", request, "get_num_tokens")(0)) - before
            accepted = int(read("request", request, "py_num_accepted_draft_tokens") or 0) if drafted else 0
            rows.append((number, max(emitted, 0), drafted, min(accepted, drafted)))
        self._put("settled", iteration, now, rows)

    def _left(self, executor: Any, result: Any, now: int, request: Any, *args: Any, **kwargs: Any) -> None:
        if is_dummy(request):
            return
        number = read("request", request, "py_request_id")
        if REQUESTS not in self.off:
            # Of tokens that came in steps that were passed over only the sum is known.
            tokens = -1
            if self._has_passed_over and TOKENS not in self.off:
                prompt = int(read("request", request, "py_prompt_len"))
                tokens = int(read("request", request, "get_num_tokens")(0)) - prompt
            self._put("left", number, now, tokens)
        blocks = self._tables.pop(number, None)
        if blocks:
            self._put("pages", now, [(number, at, block, 0) for at, block in reversed(list(enumerate(blocks)))])

    def _counted(self, executor: Any, result: Any, now: int, statistics: Any, *args: Any, **kwargs: Any) -> None:
        self._check("statistics", statistics)
        if STATISTICS not in self.off:
            self._put("statistics", now, read("statistics", statistics, "to_json_str")())

    def _paged(self, resources: Any, result: Any, now: int, batch: Any, *args: Any, **kwargs: Any) -> None:
        if PAGES in self.off or self._steps % self.pages_every:
            return
        manager = self._manager(resources)
        self._check("batch", batch)
        self._check("pages", manager)
        for request in getattr(batch, "generation_requests", ()) or getattr(batch, "context_requests", ()):
            self._check("request", request)
            break
        if PAGES in self.off:
            return
        pool = (int(read("pages", manager, "blocks_in_primary_pool")), int(read("pages", manager, "tokens_per_block")))
        if pool != self._pool:
            self._pool = pool
            self._put("pool", now, *pool)
        changes = []
        for name in ("context_requests", "generation_requests"):
            for request in read("batch", batch, name):
                if not is_dummy(request):
                    changes += self._changes(request, manager)
        if changes:
            self._put("pages", now, changes)

    def _changes(self, request: Any, manager: Any) -> list[tuple[int, int, int, int]]:
        """(request, place, block, 1 taken or 0 given back) since the table was read last."""
        number = read("request", request, "py_request_id")
        if spelling("pages", manager, "get_cache_indices") == "get_cache_indices":
            now = manager.get_cache_indices(request)
        else:
            now = manager.get_batch_cache_indices([number])[0]
        now = [int(block) for block in now if int(block) >= 0]
        before = self._tables.get(number, [])
        same = 0
        most = min(len(before), len(now))
        # A table grows and shrinks at its end.
        if before[:most] == now[:most]:
            same = most
        else:
            while before[same] == now[same]:
                same += 1
        self._tables[number] = now
        gone = [(number, at, before[at], 0) for at in range(len(before) - 1, same - 1, -1)]
        return gone + [(number, at, now[at], 1) for at in range(same, len(now))]

    def _manager(self, resources: Any) -> Any:
        managers = getattr(resources, "resource_managers", None) or {}
        for key, manager in managers.items():
            if getattr(key, "name", str(key)).endswith("KV_CACHE_MANAGER") and "DRAFT" not in getattr(key, "name", ""):
                return manager
        return read("executor", resources, "kv_cache_manager")

    # ---- cost, queue, state ----

    def _check(self, owner: str, thing: Any) -> None:
        """Once for each kind of thing: what it lacks, before anything is half told."""
        if owner not in self._checked:
            self._checked.add(owner)
            for error in check(owner, thing):
                if owner != "executor" or error.parts != (PAGES,):
                    self._switch_off(error)

    def _pace(self, now: int) -> None:
        """Once in 64 steps: what this costs, and whether page tables can be read in every step."""
        self._steps += 1
        if not self._begun_ns:
            self._begun_ns = now
        if self._steps % 64:
            return
        share = self._cost_ns / max(now - self._begun_ns, 1)
        self._cost_ns, self._begun_ns = 0, now
        before = (self.pages_every, self.steps_every)
        if share > BUDGET:
            if self.pages_every < _RAREST and PAGES not in self.off:
                self.pages_every *= 2
            elif self.steps_every < _RAREST:
                self.steps_every *= 2
                self._has_passed_over = True
        elif share < BUDGET / 4:
            if self.steps_every > 1:
                self.steps_every //= 2
            elif self.pages_every > 1:
                self.pages_every //= 2
        if before != (self.pages_every, self.steps_every):
            self._tell()

    def _put(self, *what: Any) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._encoding, name="inflight probe", daemon=True)
            self._thread.start()
        if len(self._queue) >= _MOST_WAITING:
            self._lost += 1
            return
        self._queue.append(what)

    def _encoding(self) -> None:
        while not self._ended.wait(_ENCODE_S):
            self._encode()

    def _encode(self) -> None:
        begun = time.thread_time_ns()
        try:
            while self._queue:
                self._encoder.take(self._queue.popleft())
            if self._lost:
                lost, self._lost = self._lost, 0
                self._encoder.lost(lost)
        except Exception as error:
            logger.debug("encoding", exc_info=True)
            self._fail("encoding", error)
        self._cost_ns += time.thread_time_ns() - begun

    def _switch_off(self, error: AbsentError) -> None:
        fresh = [part for part in error.parts if part not in self.off]
        for part in fresh:
            self.off[part] = str(error)
        if fresh:
            self._tell()

    def _fail(self, what: str, error: Exception) -> None:
        """Something unforeseen: better no probe than a wrong one."""
        for part in PARTS:
            self.off.setdefault(part, f"{what}: {type(error).__name__}: {error}")
        self._tell()

    def _tell(self) -> None:
        parts = [f"no {part}: {why}" for part, why in self.off.items()]
        sampled = [("page tables", self.pages_every), ("batches", self.steps_every)]
        sampled = [(what, every) for what, every in sampled if every > 1]
        parts += [f"{what} in one step of {every}, to stay within {BUDGET:.0%} of the time" for what, every in sampled]
        state = "failed" if len(self.off) == len(PARTS) else "sampling" if sampled else "running"
        self._producer.status(state, "; ".join(parts))
