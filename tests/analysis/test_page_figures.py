"""Figures of KV pages and the tree of prefixes, on pools small enough to count by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.page_figures import page_figures, pressure
from inspector.analysis.pages import pages_at
from inspector.analysis.prefix_tree import PrefixTree, prefix_tree
from inspector.trace.builder import Builder
from inspector.trace.schema import NEVER, PHASES
from inspector.trace.trace import Trace, TraceInfo
from tests.analysis.test_pages import Event, add_events

MS = 1_000_000


def built(builder: Builder) -> Trace:
    return builder.build(TraceInfo((), "recording"))


def pool(builder: Builder, blocks: int, host: int = 0, tokens: int = 4) -> None:
    builder.add("pools", time=0, process=-1, blocks=blocks, host_blocks=host, tokens_per_block=tokens, block_bytes=1024)


def iterations(builder: Builder, num: int, **columns: Any) -> None:
    known: dict[str, Any] = {
        "start": np.arange(num) * MS,
        "end": np.arange(num) * MS + MS // 2,
        "iteration": np.arange(num),
        "process": -1,
    }
    counts = ("context_requests", "generation_requests", "paused_requests", "queued_requests", "tokens")
    blocks = ("used_blocks", "free_blocks", "reused_blocks", "missed_blocks")
    builder.add("iterations", **known, **dict.fromkeys((*counts, *blocks), 0) | columns)


def requests(builder: Builder, prompts: list[int], most: list[int], **columns: Any) -> None:
    number = np.arange(len(prompts))
    known: dict[str, Any] = {"first_token": NEVER, "last_token": NEVER, "output_tokens": 0} | columns
    builder.add("requests", request=number, arrival=number, prompt_tokens=prompts, max_tokens=most, **known)


def test_shared_pages_count_once_and_contiguous_memory_counts_the_worst_case() -> None:
    builder = Builder()
    pool(builder, 16)
    requests(builder, [6, 6, 3], [10, 30, -1])
    iterations(builder, 1, reused_blocks=1, missed_blocks=3)
    builder.add(
        "steps", iteration=0, request=[0, 1], phase=PHASES.index("context"), tokens=[6, 2], drafted=-1, accepted=-1,
        blocks=2, position=[0, 4],
    )  # fmt: skip
    add_events(
        builder,
        [
            (0, 1, Event("allocated", 1, 0, index=0)),
            (1, 2, Event("allocated", 2, 0, index=1)),
            (2, 3, Event("cached", 1, 0, hash=11)),
            (3, 4, Event("reused", 1, 1, index=0)),
            (4, 5, Event("allocated", 3, 1, index=1)),
            (5, 6, Event("allocated", 4, 2, index=0)),
        ],
    )
    trace = built(builder)
    figures = page_figures(trace, pages_at(trace, MS))
    # Four pages of four tokens; 4 + 2 tokens of the first, 2 more of the second, the third has computed nothing yet.
    assert (figures.slots, figures.filled) == (16, 8)
    assert (figures.live, figures.told, figures.worst_tokens, figures.worst_pages) == (3, 2, 16 + 36, 4 + 9)
    assert (figures.shared, figures.saved) == (1, 1)
    assert (figures.reused, figures.missed, figures.reuse_from) == (1, 3, "engine records")


def test_reuse_is_counted_from_events_where_iterations_say_nothing() -> None:
    builder = Builder()
    pool(builder, 16)
    requests(builder, [6, 6], [10, 10])
    add_events(
        builder,
        [
            (0, 1, Event("allocated", 1, 0, index=0)),
            (1, 2, Event("allocated", 2, 0, index=1)),
            (2, 3, Event("allocated", 5, 0, index=2)),  # for what it makes, no miss
            (3, 4, Event("reused", 1, 1, index=0)),
        ],
    )
    trace = built(builder)
    figures = page_figures(trace, pages_at(trace, 9))
    assert (figures.reused, figures.missed, figures.reuse_from) == (1, 2, "page events")
    assert (figures.slots, figures.filled) == (12, -1)
    early = page_figures(trace, pages_at(trace, 2))
    assert (early.reused, early.missed) == (0, 2)


def test_growth_says_how_long_the_pages_last() -> None:
    builder = Builder()
    pool(builder, 100)
    add_events(builder, [(at, at * 100 * MS, Event("allocated", at, -1, index=at)) for at in range(41)])
    trace = built(builder)
    figures = page_figures(trace, pages_at(trace, 4000 * MS))
    assert figures.growth == 10.0
    # 59 pages are left at ten a second.
    assert figures.exhausted_ns == 5_900 * MS
    assert not figures.pressure


def test_pressure_is_no_page_to_be_had_while_requests_wait() -> None:
    builder = Builder()
    pool(builder, 2)
    free, waiting = [1, 0, 0, 0, 1, 0], [1, 0, 2, 1, 1, 1]
    iterations(builder, 6, free_blocks=free, queued_requests=waiting)
    add_events(builder, [(0, 0, Event("allocated", 0, -1)), (1, 1, Event("allocated", 1, -1))])
    trace = built(builder)
    found = pressure(trace)
    spans = list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))
    assert spans == [(2 * MS, 4 * MS), (5 * MS, 5 * MS + MS // 2)]
    assert found.total_ns == 2 * MS + MS // 2
    assert page_figures(trace, pages_at(trace, 3 * MS)).pressure
    assert not page_figures(trace, pages_at(trace, MS)).pressure
    assert found.stalls == ()


def stalled(**columns: Any) -> Trace:
    builder = Builder()
    requests(builder, [4], [4], finished=columns.pop("finished", NEVER))
    iterations(builder, 20, free_blocks=[3] * 5 + [0] * 15, queued_requests=1, emitted=1, **columns)
    return built(builder)


def test_a_stall_is_pages_taken_and_nothing_that_moves() -> None:
    (stall,) = pressure(stalled(), least=15).stalls
    assert (stall.window.start, stall.iterations, stall.emitted) == (5 * MS, 15, 15)
    assert pressure(stalled(), least=16).stalls == ()
    assert pressure(stalled(finished=10 * MS), least=10).stalls == ()
    (after,) = pressure(stalled(finished=10 * MS), least=9).stalls
    assert after.window.start == 11 * MS
    assert pressure(stalled(completed_requests=[0] * 12 + [1] + [0] * 7), least=8).stalls == ()


@st.composite
def caches(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """(hash, parent, sharers) of pages."""
    hashes = draw(st.lists(st.integers(1, 12), max_size=12, unique=True))
    return [(each, draw(st.sampled_from([0, *hashes, 99])), draw(st.integers(0, 3))) for each in hashes]


def tree_of(cached: list[tuple[int, int, int]]) -> tuple[Trace, PrefixTree]:
    builder = Builder()
    pool(builder, 16)
    requests(builder, [1] * 4, [1] * 4)
    events = [Event("allocated", 15, 3)]
    for block, (name, parent, sharers) in enumerate(cached):
        events += [Event("allocated", block, 3), Event("cached", block, 3, hash=name, parent=parent)]
        events += [Event("reused", block, request) for request in range(sharers)]
        events.append(Event("freed", block, 3))
    add_events(builder, [(at, at, event) for at, event in enumerate(events)])
    trace = built(builder)
    return trace, prefix_tree(trace, pages_at(trace, len(events)))


@settings(max_examples=80, deadline=None)
@given(caches())
def test_prefix_tree_is_what_the_hashes_say(cached: list[tuple[int, int, int]]) -> None:
    _, tree = tree_of(cached)
    above = {name: parent for name, parent, _ in cached}

    def path(name: int) -> list[int]:
        """From the page up; [] where it walks in a circle."""
        way = [name]
        while above.get(way[-1], 0) in above:
            if above[way[-1]] in way:
                return []
            way.append(above[way[-1]])
        return way

    assert sorted(tree.hash.tolist()) == sorted(above)
    children = dict.fromkeys(above, 0)
    for row in range(len(tree)):
        name, parent = int(tree.hash[row]), int(tree.parent[row])
        way = path(name)
        assert parent < row
        expected = way[1] if len(way) > 1 else None
        assert (int(tree.hash[parent]) if parent >= 0 else None) == expected
        assert tree.depth[row] == max(len(way) - 1, 0)
        assert tree.cut[row] == (parent < 0 and above[name] != 0)
        if parent >= 0:
            children[int(tree.hash[parent])] += 1
    sharing = {name: sharers for name, _, sharers in cached}
    assert tree.sharing.tolist() == [sharing[int(name)] for name in tree.hash]
    ends = [name for name, count in children.items() if not count]
    for row in range(len(tree)):
        name = int(tree.hash[row])
        below = sum(name in path(end) or name == end for end in ends)
        assert tree.leaves[row] == below
    assert (tree.blocks == 1).all()
    assert tree.unnamed == 0


def test_contents_in_host_memory_stand_in_the_tree_too() -> None:
    builder = Builder()
    pool(builder, 4, host=2)
    events = [
        Event("allocated", 0, -1),
        Event("cached", 0, -1, hash=5),
        Event("allocated", 1, -1),
        Event("cached", 1, -1, hash=6, parent=5),
        Event("freed", 1, -1),
        Event("freed", 0, -1),
        Event("offloaded", 0, other=1),
        Event("restored", 2, other=1),
        Event("offloaded", 2, other=0),
    ]
    add_events(builder, [(at, at, event) for at, event in enumerate(events)])
    trace = built(builder)
    tree = prefix_tree(trace, pages_at(trace, 6))
    assert (tree.hash.tolist(), tree.blocks.tolist(), tree.host.tolist()) == ([5, 6], [0, 1], [1, 0])
    back = prefix_tree(trace, pages_at(trace, 7))
    assert (back.hash.tolist(), back.block.tolist(), back.host.tolist()) == ([5, 6], [2, 1], [0, 0])
    again = prefix_tree(trace, pages_at(trace, 8))
    assert (again.hash.tolist(), again.host.tolist(), again.parent.tolist()) == ([5, 6], [1, 0], [-1, 0])
