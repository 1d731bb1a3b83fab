"""Traces as an inference engine would record them, made by a small engine that computes nothing.

It queues, chunks contexts, pauses, drafts, reuses pages, moves them to the host and hands micro-batches through stages;
everything follows from the seed. Written for the tests: no code is shared with the engine that the program brings.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, field

from inspector.trace.builder import Builder
from inspector.trace.schema import NEVER, PAGE_EVENTS, PHASES, TOKEN_KINDS
from inspector.trace.trace import Trace, TraceInfo

WORDS = ("the", "a", "of", "to", "is", "it", "page", "batch", "token", "draft", "model", "step", "cache", "queue")
GROUPS = {"faq": 0.85, "prose": 0.45}
"""Kinds of prompt, with the chance that a drafted token is right."""
MS = 1_000_000


@dataclass(frozen=True)
class Setup:
    """What the engine is like. Times in ns; `gap` is the mean time between arrivals, `work` how many requests come."""

    seed: int = 1
    work: int = 24
    gap: int = 4 * MS
    max_batch_size: int = 6
    max_num_tokens: int = 48
    blocks: int = 40
    host_blocks: int = 8
    tokens_per_block: int = 8
    draft: int = 4
    stages: int = 1
    micro_batches: int = 1
    longest_prompt: int = 60
    longest_output: int = 40
    token_texts: int = 2
    """Texts of one request in that many; 0 of none."""


@dataclass(eq=False)
class Ask:
    """One request and where it stands. `done` counts tokens whose KV is there, `output` those given out."""

    number: int
    arrival: int
    prompt: tuple[int, ...]
    wanted: int
    group: str
    scheduled: int = NEVER
    first: int = NEVER
    last: int = NEVER
    finished: int = NEVER
    done: int = 0
    output: list[int] = field(default_factory=list)
    reused: int = 0
    blocks: list[int] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)

    @property
    def text(self) -> tuple[int, ...]:
        return self.prompt + tuple(self.output)


class Engine:
    """One run. Rows are collected as they come and handed to a Builder at the end."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.random = setup, random.Random(setup.seed)
        self.rows: dict[str, list[dict[str, int]]] = {
            name: [] for name in ("iterations", "steps", "page_events", "tokens", "stage_work", "kernels", "host_calls")
        }
        self.now, self.number, self.correlation = 0, 0, 0
        self.free, self.refs = list(range(setup.blocks - 1, -1, -1)), [0] * setup.blocks
        self.cached: OrderedDict[int, int] = OrderedDict()  # hash -> block, the unowned ones first to go at the front
        self.hash_of: dict[int, int] = {}
        self.host: OrderedDict[int, int] = OrderedDict()  # hash -> host page
        self.host_free = list(range(setup.host_blocks - 1, -1, -1))
        self.sequence = self.reused = self.missed = 0
        self.asks = self._arrivals()
        self.waiting: list[Ask] = []
        self.running: list[Ask] = []
        self.paused: set[int] = set()

    def _arrivals(self) -> list[Ask]:
        at, asks, setup = 0, [], self.setup
        system = tuple(self.random.randrange(1000) for _ in range(2 * setup.tokens_per_block))
        for number in range(setup.work):
            at += round(self.random.expovariate(1 / setup.gap))
            own = tuple(
                self.random.randrange(1000) for _ in range(self.random.randint(1, max(setup.longest_prompt, 1)))
            )
            group = self.random.choice(list(GROUPS))
            prompt = (system + own if group == "faq" else own)[: max(setup.longest_prompt, 1)]
            asks.append(Ask(100 + number, at, prompt, self.random.randint(1, setup.longest_output), group))
        return asks

    # Pages.

    def event(self, kind: str, block: int, ask: Ask | None = None, **more: int) -> None:
        row = {"time": self.now, "sequence": self.sequence, "block": block, "kind": PAGE_EVENTS.index(kind)}
        row |= {"request": -1 if ask is None else ask.number - 100, "index": -1, "other": -1, "tier": 0}
        self.rows["page_events"].append(row | {"hash": 0, "parent": 0} | more)
        self.sequence += 1

    def _take(self) -> int | None:
        """A free page; an unowned cached one goes to the host, or loses its contents, where there is none."""
        if not self.free:
            found = next(((key, block) for key, block in self.cached.items() if not self.refs[block]), None)
            if found is None:
                return None
            key, block = found
            del self.cached[key]
            del self.hash_of[block]
            if self.setup.host_blocks:
                if not self.host_free:
                    _, page = self.host.popitem(last=False)
                    self.event("evicted", page, tier=1)
                    self.host_free.append(page)
                page = self.host_free.pop()
                self.host[key] = page
                self.event("offloaded", block, other=page)
            else:
                self.event("evicted", block)
            self.free.append(block)
        return self.free.pop()

    def _grow(self, ask: Ask, length: int) -> bool:
        while len(ask.blocks) * self.setup.tokens_per_block < length:
            block = self._take()
            if block is None:
                return False
            self.refs[block] = 1
            self.event("allocated", block, ask, index=len(ask.blocks))
            ask.blocks.append(block)
        return True

    def _reuse(self, ask: Ask) -> None:
        size, text = self.setup.tokens_per_block, ask.text
        # The last token is computed anew, since its output is what comes next.
        for index in range((len(text) - 1) // size):
            key = hash(text[: (index + 1) * size]) & (2**63 - 1) | 1
            block = self.cached.get(key)
            if block is None and key in self.host:
                block = self._take()
                if block is None:
                    break
                page = self.host.pop(key, -1)
                if page < 0:  # making room has just thrown it out
                    self.free.append(block)
                    break
                self.host_free.append(page)
                self.cached[key] = block
                self.hash_of[block] = key
                self.event("restored", block, other=page)
            if block is None:
                break
            self.cached.move_to_end(key)
            self.refs[block] += 1
            self.event("reused", block, ask, index=index)
            ask.blocks.append(block)
            ask.hashes.append(key)
            ask.done += size
            self.reused += 1
        self.missed += -(-len(text) // size) - len(ask.blocks)

    def _register(self, ask: Ask) -> None:
        """Full pages can be reused from now on."""
        size = self.setup.tokens_per_block
        for index in range(len(ask.hashes), ask.done // size):
            key = hash(ask.text[: (index + 1) * size]) & (2**63 - 1) | 1
            parent = ask.hashes[-1] if ask.hashes else 0
            ask.hashes.append(key)
            if key not in self.cached:
                self.cached[key] = ask.blocks[index]
                self.hash_of[ask.blocks[index]] = key
                self.event("cached", ask.blocks[index], ask, hash=key, parent=parent)

    def _release(self, ask: Ask) -> None:
        for block in reversed(ask.blocks):
            self.refs[block] -= 1
            self.event("freed", block, ask)
            if not self.refs[block] and block not in self.hash_of:
                self.free.append(block)
        ask.blocks, ask.hashes, ask.done = [], [], 0

    # Scheduling.

    def run(self) -> None:
        coming = list(self.asks)
        while coming or self.waiting or self.running:
            if not self.waiting and not self.running:
                self.now = max(self.now, coming[0].arrival)
            while coming and coming[0].arrival <= self.now:
                self.waiting.append(coming.pop(0))
            self._iterate()
            self.now += 20_000

    def _step(self, ask: Ask, phase: str, tokens: int = 0, **more: int) -> dict[str, int]:
        row = {"iteration": self.number, "request": ask.number - 100, "phase": PHASES.index(phase), "tokens": tokens}
        row |= {"drafted": 0, "accepted": 0, "emitted": 0, "blocks": len(ask.blocks), "position": ask.done} | more
        row["micro_batch"] = (ask.number % self.setup.micro_batches) if phase in ("context", "generation") else -1
        self.rows["steps"].append(row)
        return row

    def _pause(self, ask: Ask) -> None:
        self._step(ask, "paused")
        self.running.remove(ask)
        self._release(ask)
        self.paused.add(ask.number)
        self.waiting.insert(0, ask)

    def _iterate(self) -> None:
        setup, start = self.setup, self.now
        reused, missed, first = self.reused, self.missed, len(self.rows["steps"])
        budget, batch, k = setup.max_num_tokens, [], setup.draft
        for ask in list(self.running):
            left = len(ask.text) - ask.done
            if ask not in self.running or left > 1 or budget < 1:
                continue
            drafted = min(k, ask.wanted - len(ask.output) - 1, budget - 1)
            while not self._grow(ask, len(ask.text) + drafted):
                last = self.running[-1]
                self._pause(last)
                batch = [each for each in batch if each[0] is not last]
                if last is ask:
                    break
            else:
                batch.append((ask, "generation", 1 + drafted, drafted))
                budget -= 1 + drafted
        while self.waiting and len(self.running) < setup.max_batch_size:
            ask = self.waiting[0]
            self._reuse(ask)
            if not self._grow(ask, len(ask.text) + 1):
                self._release(ask)
                if not self.running and not batch:
                    raise ValueError("the pool is too small for a single request")
                break
            self.waiting.pop(0)
            self.running.append(ask)
            self.paused.discard(ask.number)
            ask.reused += ask.done if ask.scheduled == NEVER else 0
        for ask in self.running:
            left = len(ask.text) - ask.done
            taken = any(each[0] is ask for each in batch)
            if not taken and budget > 0 and (left > 1 or not ask.output):
                batch.append((ask, "context", min(left, budget), 0))
                budget -= min(left, budget)
                ask.scheduled = start if ask.scheduled == NEVER else ask.scheduled
        drafts = max((each[3] for each in batch), default=0)
        tokens = sum(each[2] for each in batch)
        self._passes(drafts, tokens)
        self._stages(start)
        for ask, phase, count, drafted in batch:
            self._advance(ask, phase, count, drafted)
        self._close(start, first, reused, missed)

    def _advance(self, ask: Ask, phase: str, count: int, drafted: int) -> None:
        whole = ask.done + count >= len(ask.text)
        accepted = 0
        while accepted < drafted and self.random.random() < GROUPS[ask.group]:
            accepted += 1
        row = self._step(ask, phase, count, drafted=drafted, accepted=accepted)
        ask.done = min(ask.done + count, len(ask.text)) + accepted
        if not whole:
            self._register(ask)
            return
        emitted = min(accepted + 1, ask.wanted - len(ask.output))
        row["emitted"] = emitted
        self._texts(ask, drafted, accepted, emitted)
        ask.output += [self.random.randrange(1000) for _ in range(emitted)]
        ask.first = self.now if ask.first == NEVER else ask.first
        ask.last = self.now
        ask.done = min(ask.done, len(ask.text) - 1)
        self._register(ask)
        if len(ask.output) == ask.wanted:
            self._release(ask)
            self.running.remove(ask)
            self._step(ask, "finished")
            ask.finished = self.now

    def _texts(self, ask: Ask, drafted: int, accepted: int, emitted: int) -> None:
        if not self.setup.token_texts or ask.number % self.setup.token_texts:
            return
        at = len(ask.output)
        kinds = ["accepted"] * min(accepted, emitted)
        if len(kinds) < emitted:
            kinds.append("corrected" if accepted < drafted else "target")
        told = [(at + index, kind) for index, kind in enumerate(kinds)]
        told += [(at + index, "rejected") for index in range(accepted, drafted)]
        for position, kind in told:
            name = self.random.randrange(len(WORDS))
            row = {"iteration": self.number, "request": ask.number - 100, "position": position, "name": name}
            self.rows["tokens"].append(row | {"kind": TOKEN_KINDS.index(kind)})

    def _passes(self, drafts: int, tokens: int) -> None:
        """Time goes by: passes of the draft, one per position, then the target's."""
        self.now += 100_000
        for name, count, cost in (("draft forward", drafts, 150_000), ("target forward", 1, 900_000 + 20_000 * tokens)):
            for _ in range(count if tokens else 0):
                self.correlation += 1
                call = {"start": self.now, "end": self.now + 10_000, "name": name, "correlation": self.correlation}
                self.rows["host_calls"].append(dict(call))  # type: ignore[arg-type]
                call |= {"start": self.now + 5_000, "end": self.now + cost}
                self.rows["kernels"].append(call)  # type: ignore[arg-type]
                self.now += cost
        self.now += 50_000

    def _stages(self, start: int) -> None:
        setup = self.setup
        span = (self.now - start) // (setup.stages + setup.micro_batches - 1)
        for stage in range(setup.stages if setup.stages > 1 else 0):
            for micro in range(setup.micro_batches):
                begin = start + (stage + micro) * span
                row = {"start": begin, "end": begin + span - 1000, "stage": stage, "iteration": self.number}
                self.rows["stage_work"].append(row | {"micro_batch": micro, "cpu": span - 2000})

    def _close(self, start: int, first: int, reused: int, missed: int) -> None:
        steps = self.rows["steps"][first:]
        context, generation, finished = (
            [row for row in steps if row["phase"] == PHASES.index(phase)]
            for phase in ("context", "generation", "finished")
        )
        used = sum(1 for refs in self.refs if refs)
        cached = sum(1 for block in self.cached.values() if not self.refs[block])
        row = {"start": start, "end": self.now, "iteration": self.number, "paused_requests": len(self.paused)}
        row |= {"context_requests": len(context), "generation_requests": len(generation)}
        row |= {
            "queued_requests": len(self.waiting) - len(self.paused),
            "tokens": sum(step["tokens"] for step in steps),
        }
        row |= {"used_blocks": used, "free_blocks": self.setup.blocks - used, "cached_blocks": cached}
        row |= {"reused_blocks": self.reused - reused, "missed_blocks": self.missed - missed}
        row |= {key: sum(step[key] for step in steps) for key in ("drafted", "accepted", "emitted")}
        row |= {"context_tokens": sum(step["tokens"] for step in context), "completed_requests": len(finished)}
        row |= {"host_blocks": len(self.host), "max_batch_size": self.setup.max_batch_size}
        row |= {"max_num_tokens": self.setup.max_num_tokens, "micro_batches": self.setup.micro_batches}
        self.rows["iterations"].append(row)
        self.number += 1


def engine_trace(setup: Setup | None = None, leave_out: tuple[str, ...] = ()) -> Trace:
    """The trace of one run; tables in `leave_out` stay empty."""
    engine = Engine(setup or Setup())
    engine.run()
    builder = Builder()
    process = builder.process(4000, "engine")
    thread = builder.thread(process, 4001, "engine loop")
    names = {name: builder.names.add(name) for name in (*WORDS, *GROUPS, "draft forward", "target forward")}
    device = builder.device(0, "CPU stage 0 (no GPU)")
    stream = builder.stream(process, device, 0)
    same: dict[str, dict[str, int]] = {
        "iterations": {"process": process},
        "stage_work": {"process": process},
        "kernels": {"stream": stream},
        "host_calls": {"thread": thread},
    }
    for table, rows in engine.rows.items():
        if table in leave_out or not rows:
            continue
        columns: dict[str, list[int]] = {key: [row[key] for row in rows] for key in rows[0]}
        if table == "tokens":
            columns["name"] = [names[WORDS[number]] for number in columns["name"]]
        elif table in ("kernels", "host_calls"):
            columns["name"] = [names[str(name)] for name in columns["name"]]
        builder.add(table, **columns, **same.get(table, {}))
    if "requests" not in leave_out:
        asks = engine.asks
        builder.add(
            "requests",
            request=[ask.number for ask in asks],
            arrival=[ask.arrival for ask in asks],
            first_token=[ask.first for ask in asks],
            last_token=[ask.last for ask in asks],
            prompt_tokens=[len(ask.prompt) for ask in asks],
            output_tokens=[len(ask.output) for ask in asks],
            process=process,
            scheduled=[ask.scheduled for ask in asks],
            finished=[ask.finished for ask in asks],
            reused_tokens=[ask.reused for ask in asks],
            max_tokens=[ask.wanted for ask in asks],
            group=[names[ask.group] for ask in asks],
        )
    if "pools" not in leave_out:
        pool = {"blocks": engine.setup.blocks, "host_blocks": engine.setup.host_blocks, "block_bytes": 4096}
        builder.add("pools", time=[0], process=process, tokens_per_block=engine.setup.tokens_per_block, **pool)
    return builder.build(TraceInfo(("engine",), "recording"))
