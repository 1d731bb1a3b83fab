"""KV pages at any moment against a replay that goes through the events one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.page_log import PageLog
from inspector.analysis.page_replay import FREE, KEPT, UNKNOWN, USED, Checkpoint, Replay
from inspector.analysis.page_steps import CERTAIN, STATUS
from inspector.analysis.pages import counts_at, page_table, pages_at
from inspector.trace.builder import Builder
from inspector.trace.schema import NEVER, PAGE_EVENTS, PHASES
from inspector.trace.trace import Trace, TraceInfo
from tests.engine_traces import Setup, engine_trace

BLOCKS, HOST, REQUESTS = 5, 3, 3


@dataclass(frozen=True)
class Event:
    kind: str
    block: int
    request: int = -1
    other: int = -1
    tier: int = 0
    index: int = -1
    hash: int = 0
    parent: int = 0


@dataclass
class Block:
    """What is known of a page."""

    certain: bool = True
    seen: bool = False
    refs: int = 0
    hashed: bool = False
    owners: dict[int, int] = field(default_factory=dict)  # request -> the event that took the reference
    content: int = -1
    since: int | None = None

    @property
    def status(self) -> int:
        if self.refs:
            return USED
        if not self.certain:
            return UNKNOWN
        return KEPT if self.hashed else FREE


class Naive:
    """One event at a time, as the definitions say it."""

    def __init__(self) -> None:
        self.blocks = [Block() for _ in range(BLOCKS)]
        self.host: list[int | None] = [0] * HOST  # 0 free, 1 full, None unknown
        self.host_content = [-1] * HOST

    def hole(self) -> None:
        self.blocks = [Block(certain=False) for _ in range(BLOCKS)]
        self.host, self.host_content = [None] * HOST, [-1] * HOST

    def step(self, number: int, time: int, event: Event) -> None:
        if event.tier == 1:
            if event.kind == "evicted":
                self.host[event.block], self.host_content[event.block] = 0, -1
            return
        block = self.blocks[event.block]
        first, block.seen, block.since = not block.seen, True, time
        if event.kind in ("allocated", "evicted", "offloaded", "restored"):
            if event.kind == "offloaded" and event.other >= 0:
                self.host[event.other] = 1
                self.host_content[event.other] = block.content if block.hashed else -1
            content = -1
            if event.kind == "restored" and event.other >= 0:
                content = self.host_content[event.other]
                self.host[event.other], self.host_content[event.other] = 0, -1
            kept = event.kind == "restored"
            fresh = Block(certain=True, seen=True, hashed=kept, content=content, since=time)
            if event.kind == "allocated":
                fresh.refs, fresh.owners = 1, {event.request: number}
            self.blocks[event.block] = fresh
        elif event.kind == "cached":
            if first and not block.certain and event.request >= 0:
                block.certain, block.refs, block.owners = True, 1, {event.request: number}
            block.hashed, block.content = True, number
        elif event.kind == "reused":
            block.refs, block.hashed = block.refs + 1, True
            block.owners[event.request] = number
        else:
            block.refs = max(block.refs - 1, 0)
            block.owners.pop(event.request, None)


def table_of(events: list[tuple[int, int, Event]]) -> Trace:
    """(sequence, time, event) rows in any order, over a pool that is there from the start."""
    builder = Builder()
    builder.add("pools", time=0, process=-1, blocks=BLOCKS, host_blocks=HOST, tokens_per_block=4, block_bytes=64)
    builder.add(
        "requests",
        request=np.arange(REQUESTS) + 10,
        arrival=np.arange(REQUESTS),
        first_token=NEVER,
        last_token=NEVER,
        prompt_tokens=-1,
        output_tokens=-1,
    )
    add_events(builder, events)
    return builder.build(TraceInfo((), "recording"))


def add_events(builder: Builder, events: list[tuple[int, int, Event]]) -> None:
    if not events:
        return
    names = ("block", "request", "other", "tier", "index", "hash", "parent")
    builder.add(
        "page_events",
        sequence=[sequence for sequence, _, _ in events],
        time=[time for _, time, _ in events],
        kind=[PAGE_EVENTS.index(event.kind) for _, _, event in events],
        **{name: np.array([getattr(event, name) for _, _, event in events]) for name in names},
    )


EVENTS = st.builds(
    Event,
    kind=st.sampled_from(PAGE_EVENTS),
    block=st.integers(0, HOST - 1) | st.integers(0, BLOCKS - 1),
    request=st.integers(-1, REQUESTS - 1),
    other=st.integers(-1, HOST - 1),
    tier=st.just(0),
    index=st.integers(0, 3),
    hash=st.integers(1, 9),
)
DROPS = st.builds(Event, kind=st.just("evicted"), block=st.integers(0, HOST - 1), tier=st.just(1))


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[int, int, Event]]:
    """Events by sequence, which may begin late and have holes, at times that never fall."""
    events = draw(st.lists(EVENTS | EVENTS | EVENTS | DROPS, max_size=40))
    sequence, time, rows = draw(st.sampled_from([0, 1, 7])), 0, []
    for event in events:
        rows.append((sequence, time, event))
        sequence += draw(st.sampled_from([1, 1, 1, 1, 1, 2, 5]))
        time += draw(st.integers(0, 3))
    return rows


def naive_states(rows: list[tuple[int, int, Event]]) -> list[Naive]:
    """The state after 0, 1, 2, ... events."""
    import copy

    state, states = Naive(), []
    if rows and rows[0][0] > 1:
        state.hole()
    states.append(copy.deepcopy(state))
    for number, (sequence, time, event) in enumerate(rows):
        if number and sequence > rows[number - 1][0] + 1:
            state.hole()
        state.step(number, time, event)
        states.append(copy.deepcopy(state))
    return states


def check(trace: Trace, rows: list[tuple[int, int, Event]]) -> None:
    states = naive_states(rows)
    log = trace.index(PageLog)
    for time in range(-1, (rows[-1][1] if rows else 0) + 2):
        after = sum(at <= time for _, at, _ in rows)
        assert log.at(time) == after
        state, pages = states[after], pages_at(trace, time)
        if after == 0 and rows and rows[0][0] > 1:
            assert (pages.status == UNKNOWN).all()
        known = state.blocks
        assert pages.status.tolist() == [block.status for block in known]
        assert pages.refs.tolist() == [block.refs for block in known]
        assert pages.certain.tolist() == [block.certain for block in known]
        holds = [block.status in (USED, KEPT) for block in known]
        assert pages.content.tolist() == [b.content if held else -1 for b, held in zip(known, holds, strict=True)]
        owners = {(at, request) for at, block in enumerate(known) for request in block.owners}
        assert {(int(log.block[row]), int(log.request[row])) for row in pages.held} == owners
        newest = [max(block.owners, key=lambda r: block.owners[r], default=-1) for block in known]
        assert pages.owner.tolist() == newest
        host = [{0: FREE, 1: KEPT, None: UNKNOWN}[full] for full in state.host]
        assert pages.host_status.tolist() == host
        assert pages.host_content.tolist() == state.host_content
        counts = counts_at(trace, time)
        every = [block.status for block in known]
        assert [counts.used, counts.kept, counts.free, counts.unknown] == [
            every.count(status) for status in (USED, KEPT, FREE, UNKNOWN)
        ]
        assert [counts.host, counts.host_unknown] == [host.count(KEPT), host.count(UNKNOWN)]
        since = [NEVER if block.since is None else block.since for block in known]
        assert pages.since.tolist() == since


@settings(max_examples=150, deadline=None)
@given(logs())
def test_pages_are_those_of_a_replay_event_by_event(rows: list[tuple[int, int, Event]]) -> None:
    check(table_of(rows), rows)


@settings(max_examples=60, deadline=None)
@given(logs(), st.randoms(use_true_random=False))
def test_late_and_repeated_events_are_put_in_their_place(rows: list[tuple[int, int, Event]], random: Any) -> None:
    mixed = rows + random.sample(rows, min(len(rows), 3))
    random.shuffle(mixed)
    trace = table_of(mixed)
    log = trace.index(PageLog)
    assert log.repeated == len(mixed) - len(rows)
    assert log.missing == (rows[-1][0] - rows[0][0] + 1 - len(rows) if rows else 0)
    check(trace, rows)


@settings(max_examples=100, deadline=None)
@given(logs(), st.lists(st.integers(0, 40), max_size=4))
def test_a_log_that_grows_is_what_it_would_be_from_the_start(
    rows: list[tuple[int, int, Event]], cuts: list[int]
) -> None:
    grown = table_of([]).index(Replay)
    for cut in (*sorted(min(cut, len(rows)) for cut in cuts), len(rows)):
        grown = Replay.extend(grown, table_of(rows[:cut]))
    whole = table_of(rows).index(Replay)
    for name in ("refs", "flags", "content", "closed", "counts"):
        assert getattr(grown, name).tolist() == getattr(whole, name).tolist(), name
    for after in range(len(rows) + 1):
        assert same(grown.checkpoint(after), whole.checkpoint(after))


def same(one: Checkpoint, other: Checkpoint) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("last", "host_last", "held"))


def many(num: int, blocks: int, holes: bool) -> list[tuple[int, int, Event]]:
    """A long log as an engine would write it, with a hole now and then."""
    random = np.random.default_rng(4)
    free, held, rows, sequence = list(range(blocks)), [], [], 0
    for at in range(num):
        sequence += 1 + (holes and at % 5000 == 4999) * 3
        if held and (not free or random.random() < 0.45):
            block, request = held.pop(int(random.integers(len(held))))
            free.append(block)
            rows.append((sequence, at, Event("freed", block, request)))
        else:
            block, request = free.pop(), int(random.integers(REQUESTS))
            held.append((block, request))
            rows.append((sequence, at, Event("allocated", block, request)))
    return rows


@pytest.mark.parametrize("holes", [False, True])
def test_checkpoints_of_a_long_log_lead_to_the_state_of_every_moment(holes: bool) -> None:
    rows = many(70_000, 40, holes)
    builder = Builder()
    builder.add("pools", time=0, process=-1, blocks=40, host_blocks=0, tokens_per_block=4, block_bytes=-1)
    add_events(builder, rows)
    trace = builder.build(TraceInfo((), "recording"))
    replay = trace.index(Replay)
    assert len(replay.checkpoints) > 3
    assert replay.contradictions == 0
    for time in (0, 1, 16_383, 16_384, 16_385, 40_000, 65_536, 69_999):
        held: dict[int, int] = {}
        known = set(range(40))
        for sequence, at, event in rows[: time + 1]:
            if at and sequence > rows[at - 1][0] + 1:
                held, known = {}, set()
            if event.kind == "allocated":
                held[event.block] = event.request
                known.add(event.block)
            elif event.block in known:
                held.pop(event.block)
        pages = pages_at(trace, time)
        assert {at for at in range(40) if pages.status[at] == USED} == set(held)
        assert {at for at in range(40) if pages.status[at] == UNKNOWN} == set(range(40)) - known
        assert all(pages.owner[block] == request for block, request in held.items())


def test_what_fits_not_is_counted_and_what_can_be_no_page_left_out() -> None:
    rows = [
        (0, 0, Event("allocated", 1, 0)),
        (1, 1, Event("allocated", 1, 1)),
        (2, 2, Event("freed", 2, 0)),
        (3, 3, Event("evicted", 3)),
        (4, 4, Event("reused", 4, 0)),
        (5, 5, Event("allocated", 2**40, 0)),
        (6, 6, Event("allocated", -5, 0)),
    ]
    trace = table_of(rows)
    assert trace.index(PageLog).strange == 2
    replay = trace.index(Replay)
    assert replay.contradictions == 4
    pages = pages_at(trace, 9)
    assert (pages.status[1], pages.owner[1], pages.refs[1]) == (USED, 1, 1)
    assert (replay.flags & CERTAIN).all()
    assert (replay.flags[2] & STATUS) == FREE


def test_page_table_and_fill_of_a_request() -> None:
    builder = Builder()
    builder.add("pools", time=0, process=-1, blocks=8, host_blocks=0, tokens_per_block=4, block_bytes=64)
    builder.add(
        "iterations", start=[0, 20], end=[10, 30], process=-1, iteration=[0, 1], context_requests=[1, 0],
        generation_requests=[0, 1], paused_requests=0, queued_requests=0, tokens=[6, 4], used_blocks=2, free_blocks=6,
        reused_blocks=0, missed_blocks=2,
    )  # fmt: skip
    builder.add("requests", request=7, arrival=0, first_token=10, last_token=30, prompt_tokens=6, output_tokens=3)
    builder.add(
        "steps", iteration=[0, 1], request=0, phase=[PHASES.index("context"), PHASES.index("generation")],
        tokens=[6, 4], drafted=[0, 3], accepted=[0, 1], blocks=[2, 3], position=[0, 6],
    )  # fmt: skip
    rows = [
        (0, 1, Event("allocated", 5, 0, index=0)),
        (1, 1, Event("allocated", 3, 0, index=1)),
        (2, 21, Event("allocated", 6, 0, index=2)),
    ]
    add_events(builder, rows)
    trace = builder.build(TraceInfo((), "recording"))
    before, first, last = (page_table(trace, pages_at(trace, time), 0) for time in (9, 10, 30))
    assert (before.block.tolist(), before.tokens, before.filled.tolist()) == ([5, 3], -1, [-1, -1])
    assert (first.block.tolist(), first.tokens, first.filled.tolist()) == ([5, 3], 6, [4, 2])
    # Four tokens were computed, three of them drafts of which one was right.
    assert (last.block.tolist(), last.tokens, last.filled.tolist()) == ([5, 3, 6], 8, [4, 4, 0])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pages_of_an_engine_are_those_that_its_iterations_tell(seed: int) -> None:
    trace = engine_trace(Setup(seed=seed, blocks=30, host_blocks=4))
    iterations = trace["iterations"]
    assert trace.index(Replay).contradictions == 0
    for row, time in enumerate(iterations["end"].tolist()):
        counts = counts_at(trace, time)
        told = [int(iterations[name][row]) for name in ("used_blocks", "free_blocks", "cached_blocks", "host_blocks")]
        assert [counts.used, counts.available, counts.kept, counts.host] == told
    steps, log = trace["steps"], trace.index(PageLog)
    for row in range(0, len(iterations), 7):
        # An iteration's last allocations are done when it ends; pages of who finished in it are gone by then.
        pages = pages_at(trace, int(iterations["end"][row]))
        held = np.bincount(log.request[pages.held], minlength=len(trace["requests"]))
        gone = steps["request"][(steps["iteration"] == row) & (steps["phase"] >= PHASES.index("paused"))]
        for step in np.flatnonzero(steps["iteration"] == row).tolist():
            request = int(steps["request"][step])
            assert held[request] == (0 if request in gone else steps["blocks"][step])
