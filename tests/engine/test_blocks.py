from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from probes.workloads.engine.blocks import (
    ALLOCATED,
    CACHED,
    EVICTED,
    FREED,
    HOST,
    OFFLOADED,
    RESTORED,
    REUSED,
    BlockPool,
    Content,
    PageEvent,
    chain,
)


class Replayed:
    """What the events alone tell of the pages; asserts that each event fits."""

    def __init__(self) -> None:
        self.holders: dict[int, Counter[int]] = {}
        self.content: dict[int, int] = {}
        self.host: dict[int, int] = {}
        self.last = (-1, -1)

    def __call__(self, event: PageEvent, content: Content | None) -> None:
        assert event.sequence == self.last[1] + 1
        assert event.time >= self.last[0]
        self.last = event.time, event.sequence
        block, holders = event.block, self.holders.setdefault(event.block, Counter())
        if event.kind == ALLOCATED:
            assert not holders
            assert block not in self.content
            holders[event.request] += 1
        elif event.kind == CACHED:
            assert list(holders) == [event.request]
            assert block not in self.content
            assert event.hash not in self.content.values()
            self.content[block] = event.hash
        elif event.kind == REUSED:
            assert self.content[block] == event.hash
            holders[event.request] += 1
        elif event.kind == FREED:
            assert holders[event.request] == 1
            del holders[event.request]
        elif event.kind == EVICTED and event.tier == HOST:
            assert self.host.pop(block) == event.hash
        elif event.kind == EVICTED:
            assert not holders
            assert self.content.pop(block) == event.hash
        elif event.kind == OFFLOADED:
            assert not holders
            assert event.other not in self.host
            self.host[event.other] = self.content.pop(block)
        else:
            assert event.kind == RESTORED
            assert not holders
            assert block not in self.content
            self.content[block] = self.host.pop(event.other)
        assert (content.hash if content else 0) == event.hash

    @property
    def used(self) -> int:
        return sum(1 for holders in self.holders.values() if holders)

    @property
    def cached(self) -> int:
        return sum(1 for block in self.content if not self.holders[block])


class Pool(RuleBasedStateMachine):
    """Requests take, fill, share and drop blocks; the memory of both tiers is played along."""

    def __init__(self) -> None:
        super().__init__()
        self.replayed = Replayed()
        self.pool = BlockPool(6, 3, observe=self.replayed)
        self.device: dict[int, int] = {}
        self.host: dict[int, int] = {}
        self.held: list[tuple[int, int]] = []
        self.request = 0

    def _copy(self) -> None:
        for block, page, back in self.pool.take_transfers():
            if back:
                self.device[block] = self.host[page]
            else:
                self.host[page] = self.device[block]

    @precondition(lambda self: self.pool.available)
    @rule()
    def allocate(self) -> None:
        self.request += 1
        block = self.pool.allocate(self.request, 0)
        self._copy()
        assert 0 <= block < self.pool.blocks
        assert block not in [held for held, _ in self.held]
        self.device[block] = 0
        self.held.append((block, self.request))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), number=st.integers(1, 9))
    def fill(self, data: st.DataObject, number: int) -> None:
        block, request = data.draw(st.sampled_from(self.held))
        if self.pool.references(block) == 1 and not self.device[block]:
            self.device[block] = number
            known = self.pool.find(number) is not None
            assert self.pool.publish(block, request, Content(number, 0, (number,))) is not known

    @rule(number=st.integers(1, 9))
    def reuse(self, number: int) -> None:
        self.request += 1
        could, available = self.pool.can_reuse(number), self.pool.available
        there = self.pool.find(number) is not None
        block = self.pool.reuse(number, self.request, 0)
        self._copy()
        if not could:
            assert block is None
        elif block is None:
            assert not there
            assert not available
        else:
            assert self.device[block] == number
            self.held.append((block, self.request))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        self.held.remove(held)
        self.pool.release(*held)

    @rule(blocks=st.integers(1, 10))
    def resize(self, blocks: int) -> None:
        if any(block >= blocks for block, _ in self.held):
            with pytest.raises(ValueError, match="held"):
                self.pool.resize(blocks)
        else:
            self.pool.resize(blocks)
            self._copy()

    @invariant()
    def counts_are_those_of_the_events(self) -> None:
        held = Counter(block for block, _ in self.held)
        assert [self.pool.references(block) for block in range(self.pool.blocks)] == [
            held[block] for block in range(self.pool.blocks)
        ]
        assert self.pool.used == self.replayed.used == len(held)
        assert self.pool.cached == self.replayed.cached
        assert self.pool.host_used == len(self.replayed.host)
        assert self.pool.available == self.pool.blocks - self.pool.used

    def teardown(self) -> None:
        for held in self.held:
            self.pool.release(*held)
        assert self.pool.available == self.pool.blocks


Pool.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
TestPool = Pool.TestCase


def _filled(pool: BlockPool, count: int) -> list[int]:
    blocks = [pool.allocate(1, at) for at in range(count)]
    for at, block in enumerate(blocks):
        pool.publish(block, 1, Content(at + 1, at, (at,)))
    return blocks


def test_the_block_let_go_longest_ago_is_evicted_first() -> None:
    pool = BlockPool(3)
    first, second, third = _filled(pool, 3)
    for block in (second, first, third):
        pool.release(block, 1)
    assert pool.reuse(2, 2, 0) == second
    pool.release(second, 2)
    assert [pool.allocate(3, at) for at in range(3)] == [first, third, second]
    assert pool.evictions == 3


def test_evicted_blocks_go_to_the_host_and_come_back_on_a_hit() -> None:
    events: list[PageEvent] = []
    pool = BlockPool(2, 1, observe=lambda event, _: events.append(event))
    for block in _filled(pool, 2):
        pool.release(block, 1)
    pool.allocate(2, 0)
    assert pool.take_transfers() == [(0, 0, False)]
    assert pool.can_reuse(1)
    assert pool.find(1) is None
    # To make room for it the other one leaves: by then the host page is promised, so there is none for it.
    assert pool.reuse(1, 3, 0) == 1
    assert not pool.can_reuse(2)
    assert pool.take_transfers() == [(1, 0, True)]
    assert [event.kind for event in events[-5:]] == [OFFLOADED, ALLOCATED, EVICTED, RESTORED, REUSED]
    assert (pool.offloads, pool.restores, pool.evictions) == (1, 1, 1)


def test_a_content_that_is_there_twice_is_registered_once() -> None:
    pool = BlockPool(3)
    _filled(pool, 1)
    twin = pool.allocate(2, 0)
    assert not pool.publish(twin, 2, Content(1, 0, (0,)))
    pool.release(twin, 2)
    assert (pool.used, pool.cached) == (1, 0)


def test_nothing_is_registered_without_reuse() -> None:
    pool = BlockPool(3, reuse=False)
    _filled(pool, 2)
    assert not pool.can_reuse(1)


def test_hashes_tell_content_parent_and_salt_apart() -> None:
    hashes = {
        chain(0, (1, 2)),
        chain(0, (2, 1)),
        chain(0, (12,)),
        chain(1, (1, 2)),
        chain(0, (1, 2), "drafted"),
    }
    assert len(hashes) == 5
    assert all(0 < hash < 2**64 for hash in hashes)
    assert chain(0, (1, 2)) == chain(0, [1, 2])
