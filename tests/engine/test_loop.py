"""The run: what arrives when, what changes, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from inspector.errors import Usage
from probes.workloads.engine.arrivals import Arrivals, Prompts
from probes.workloads.engine.blocks import BlockPool
from probes.workloads.engine.control import Change
from probes.workloads.engine.engine import Request, Settings
from probes.workloads.engine.figures import Figures, Ticker
from probes.workloads.engine.loop import Limits, Load, Loop
from probes.workloads.engine.records import FINISHED, Iteration
from tests.engine import tiny

SETTINGS = Settings(max_batch_size=4, max_num_tokens=64, blocks=40, tokens_per_block=16)
SMALL = Settings(max_batch_size=4, max_num_tokens=64, blocks=2, tokens_per_block=4)


class Short(Prompts):
    """Prompts of ids that the tiny model has, said to have `reach` tokens."""

    reach = 3

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> tuple[str, tuple[int, ...]]:
        self.count += 1
        return "faq", (self.count % 30, 1, 2)


class Desk:
    """Calls `then` with every iteration."""

    def __init__(self, then: Callable[[Iteration], None]) -> None:
        self.deliver = then
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def _loop(
    rate: float = 1e6, seconds: float = 0, requests: int = 0, settings: Settings = SETTINGS, output: str = "3"
) -> tuple[Loop, list[Iteration], list[str]]:
    iterations: list[Iteration] = []
    complaints: list[str] = []
    engine = tiny.engine(settings, entries=tiny.SHAPE.entries)
    load = Load(Arrivals("poisson", rate, Short(), {output: 1.0}, 1), 0.0, 7)
    loop = Loop(engine, load, Limits(seconds, requests), complaints.append)
    loop.desk = Desk(iterations.append)
    return loop, iterations, complaints


def _add(loop: Loop) -> None:
    loop.engine.add(Request((1, 2, 3), 2))


def _leavers(iterations: list[Iteration]) -> list[Request]:
    return [step.request for iteration in iterations for step in iteration.steps if step.phase == FINISHED]


def test_so_many_requests_arrive_and_all_are_done() -> None:
    loop, iterations, complaints = _loop(requests=9)
    loop.run()
    left = _leavers(iterations)
    assert len(left) == loop.arrived == 9
    assert {request.reason for request in left} <= {"stop", "length"}
    assert (loop.cancelled, loop.refused, complaints) == (0, 0, [])
    assert len({request.seed for request in left}) == 9
    assert loop.told.members == sum(it.context_requests + it.generation_requests for it in iterations)


def test_requests_arrive_when_they_are_due_however_late_they_are_taken() -> None:
    begun = time.monotonic_ns()
    loop, iterations, _ = _loop(rate=200, requests=12)
    loop.run()
    same = Arrivals("poisson", 200, Short(), {"3": 1.0}, 1)
    offsets = [arrival.offset for arrival in same.due(10**12, 12)]
    arrivals = sorted(request.arrival for request in _leavers(iterations) if request.arrival is not None)
    assert [arrival - arrivals[0] for arrival in arrivals] == [offset - offsets[0] for offset in offsets]
    assert arrivals[0] - offsets[0] >= begun
    assert all(request.scheduled is not None for request in _leavers(iterations))


def test_after_so_many_seconds_what_runs_is_cancelled_and_told() -> None:
    loop, iterations, _ = _loop(rate=2000, seconds=0.3, output="200")
    began = time.monotonic()
    loop.run()
    assert time.monotonic() - began >= 0.3
    left = _leavers(iterations)
    assert loop.cancelled == sum(request.reason == "cancelled" for request in left) > 0
    assert len(left) == loop.engine.counters.finished == loop.engine.counters.requests
    assert iterations[-1].used_blocks == 0


def test_a_stop_ends_a_run_that_waits_for_nothing() -> None:
    loop, _, _ = _loop(rate=0)
    runs = threading.Thread(target=loop.run)
    runs.start()
    loop.stop()
    runs.join(10)
    assert not runs.is_alive()


def test_changes_hold_from_the_next_iteration_on() -> None:
    loop, iterations, complaints = _loop(requests=60)

    def change(iteration: Iteration) -> None:
        iterations.append(iteration)
        if iteration.number == 5:
            loop.change(Change({"max_batch_size": 2, "draft": "ngram", "draft_len": 2, "blocks": 20}))

    loop.desk = Desk(change)
    told: list[str] = []
    loop.changed = told.append
    loop.run()
    assert told == ["max_batch_size = 2", "draft = ngram", "draft_len = 2", "blocks = 20"]
    assert {iteration.max_batch_size for iteration in iterations[:6]} == {4}
    assert {iteration.max_batch_size for iteration in iterations[6:]} == {2}
    assert {it.used_blocks + it.free_blocks for it in iterations[6:]} == {20}
    assert complaints == []


def test_a_change_that_cannot_be_is_complained_of() -> None:
    loop, _, complaints = _loop(rate=0)
    loop.engine.add(Request((1, 2, 3), 100))
    loop.change(Change({"blocks": 2}))
    loop.change(Change({"max_batch_size": 3}, stop=True))
    told: list[str] = []
    loop.changed = told.append
    loop.run()
    assert told == ["max_batch_size = 3"]
    assert len(complaints) == 1
    assert "blocks 2" in complaints[0]
    assert loop.engine.settings.max_batch_size == 3
    assert loop.engine.settings.blocks == SETTINGS.blocks


def test_a_pool_that_there_is_no_memory_for_is_complained_of() -> None:
    loop, _, complaints = _loop(rate=0)
    loop.change(Change({"blocks": 10**13, "max_batch_size": 2}))
    loop.change(Change({"max_num_tokens": 9}, stop=True))
    loop.run()
    assert len(complaints) == 1
    assert complaints[0].startswith("10000000000000 pages of the KV cache need ")
    assert loop.engine.settings == replace(SETTINGS, max_num_tokens=9)


def test_a_stop_that_comes_together_with_a_pause_ends_the_run() -> None:
    loop, _, _ = _loop()
    loop.change(Change(pause=True))
    loop.stop()
    run = threading.Thread(target=loop.run, daemon=True)
    run.start()
    run.join(30)
    assert not run.is_alive()


def test_a_stop_that_comes_before_the_run_ends_it_though_nothing_ever_arrives() -> None:
    loop, iterations, _ = _loop(rate=0)
    loop.stop()
    loop.run()
    assert iterations == []


def test_the_rate_changes() -> None:
    loop, iterations, _ = _loop(rate=0, requests=5)
    loop.change(Change({"rate": 1e5}))
    told: list[str] = []
    loop.changed = told.append
    loop.run()
    assert told == ["rate = 100000.0"]
    assert len(_leavers(iterations)) == 5


def test_a_pause_holds_arrivals_and_iterations() -> None:
    loop, iterations, _ = _loop(requests=40)
    paused_at = threading.Event()

    def pause(iteration: Iteration) -> None:
        iterations.append(iteration)
        if iteration.number == 3:
            loop.change(Change(pause=True))
            loop.post(paused_at.set)

    loop.desk = Desk(pause)
    runs = threading.Thread(target=loop.run)
    runs.start()
    assert paused_at.wait(10)
    seen = threading.Event()
    held: list[tuple[int, int]] = []
    loop.post(lambda: held.append((loop.engine.counters.iterations, loop.arrived)))
    loop.post(seen.set)
    assert seen.wait(10)
    assert loop.paused
    # Arrives meanwhile from elsewhere.
    loop.post(partial(_add, loop))
    assert held[0][0] == 4
    resumed = time.monotonic_ns()
    loop.change(Change(pause=False))
    runs.join(10)
    assert not runs.is_alive()
    assert len(_leavers(iterations)) == 41
    spans = [span for iteration in iterations for span in iteration.spans]
    (pause,) = [span for span in spans if span.name == "paused by the user"]
    assert iterations[3].end <= pause.start < resumed <= pause.end <= iterations[4].start
    waits = [span for span in spans if span.name == "wait_for_requests"]
    assert all(span.end <= pause.start or span.start >= pause.end for span in waits)
    later = [request for request in _leavers(iterations) if request.id >= held[0][1]]
    assert all(request.arrival is not None and request.arrival >= resumed for request in later)


def test_a_pause_of_an_engine_without_requests_ends_its_wait() -> None:
    engine = tiny.engine(SETTINGS)
    engine.add(Request((1, 2), 1))
    first = tiny.run(engine)
    begun = time.monotonic_ns()
    engine.pause(begun)
    engine.add(Request((1, 2), 1))
    ended = time.monotonic_ns()
    engine.resume(ended)
    spans = [span for iteration in tiny.run(engine) for span in iteration.spans]
    assert [tuple(span) for span in spans if span.name in ("wait_for_requests", "paused by the user")] == [
        (first[-1].end, begun, "wait_for_requests"),
        (begun, ended, "paused by the user"),
    ]


def test_figures_read_inside_an_iteration_are_of_whole_ones() -> None:
    loop, _, _ = _loop(requests=30)
    lines: list[str] = []
    before = Figures.of(loop)
    count = loop.engine.counters.count

    def counted(iteration: Iteration, pool: BlockPool) -> None:
        """Read when the engine has counted the iteration and the loop has not, as another thread may."""
        count(iteration, pool)
        now = Figures.of(loop)
        lines.append(now.line(before, before.at))
        assert now.batch <= now.iterations * SETTINGS.max_batch_size
        assert now.iterations == len(lines) - 1

    loop.engine.counters.count = counted  # type: ignore[method-assign]
    loop.run()
    assert len(lines) > 1


def test_a_load_that_never_fits_is_refused() -> None:
    _loop(settings=SMALL, output="6")
    _loop(settings=SMALL, output="7", rate=0)
    with pytest.raises(Usage, match=r"10 tokens or more, .* never fit: the pool has 2 blocks of 4 tokens\. Have more"):
        _loop(settings=SMALL, output="7")
    with pytest.raises(Usage, match=r"257 tokens or more, .*: the model has 256 positions"):
        _loop(output="254")


def test_a_change_after_which_the_load_never_fits_is_refused() -> None:
    loop, _, complaints = _loop(rate=2e-6, settings=SMALL, output="6")
    loop.change(Change({"blocks": 1, "max_batch_size": 2}))
    loop.change(Change({"rate": 0}))
    loop.change(Change({"blocks": 1}))
    loop.change(Change({"rate": 5, "max_num_tokens": 9}))
    loop.change(Change({"rate": 2e-6, "blocks": 3}, stop=True))
    loop.run()
    assert len(complaints) == 2
    assert all("never fit: the pool has 1 blocks of 4 tokens" in complaint for complaint in complaints)
    assert loop.engine.settings == replace(SMALL, blocks=3)


def test_what_is_longer_than_its_kind_and_never_fits_is_left_out_and_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Short, "reach", 2)
    loop, iterations, complaints = _loop(requests=6, settings=SMALL, output="7")
    loop.run()
    assert iterations == []
    assert (loop.refused, loop.arrived) == (6, 6)
    assert len(complaints) == 1
    assert "left out" in complaints[0]


def test_every_iteration_is_captured_and_none_that_is_not() -> None:
    loop, iterations, _ = _loop(requests=5)
    calls: list[str] = []

    class Capture:
        def iteration_begin(self) -> None:
            calls.append("begin")

        def iteration_end(self) -> None:
            calls.append("end")

    loop.capture = Capture()
    loop.run()
    assert calls == ["begin", "end"] * len(iterations)


def test_the_desk_is_closed_at_the_end() -> None:
    loop, _, _ = _loop(requests=1)
    desk = loop.desk = Desk(lambda iteration: None)
    loop.run()
    assert desk.closed == 1


def test_figures_of_a_second_and_of_the_whole() -> None:
    loop, _, _ = _loop(requests=7)
    said: list[str] = []
    ticker = Ticker(loop, said.append, 1000.0)
    before = Figures.of(loop)
    loop.run()
    line = Figures.of(loop).line(before, before.at)
    counters = loop.engine.counters
    batch = loop.told.members / counters.iterations
    assert f"batch {batch:4.1f}" in line
    assert line.endswith("0 in flight  7 done")
    assert before.line(before, before.at).endswith("0 in flight  0 done")
    assert f"{counters.iterations} iterations, {counters.emitted} tokens; 7 requests done, 0 cancelled" in ticker.stop()
