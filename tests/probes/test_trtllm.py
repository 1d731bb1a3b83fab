"""The TensorRT-LLM probe on stand-ins of the known layouts: it tells what they did; a missing name costs its part."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from inspector.trace.ring import Ring
from inspector.trace.ring_rows import RingRows
from inspector.trace.schema import NEVER
from probes.inprocess.producer import Producer
from probes.inprocess.trtllm import Probe
from probes.inprocess.trtllm_attributes import BATCH, NEEDS, PAGES, PARTS, REQUESTS, STATISTICS, TOKENS
from tests.probes.trtllm_stand_in import (
    LAYOUTS,
    ListBatch,
    Pages,
    PropertyBatch,
    Request,
    Sample,
    Statistics,
    executor_module,
)


def ran(folder: Path, module: Any, late: int = 0) -> tuple[Any, Probe, dict[str, Any], list[str]]:
    """The executor after its run, its probe, and what came out of the ring. The probe comes after `late` loops."""
    probe = Probe(Producer(str(folder), "trtllm"), late > 0)
    executor_class, loops = module.PyExecutor, 0
    if late:
        fetch, name = getattr(executor_class, executor_class.fetching), executor_class.fetching

        def fetching(self: Any) -> Any:
            nonlocal loops
            loops += 1
            if loops == late:
                probe.wrap(module)
            return fetch(self)

        setattr(executor_class, name, fetching)
    else:
        probe.wrap(module)
    executor = executor_class()
    executor.run()
    probe.close()
    (path,) = folder.glob("*.ring")
    ring = Ring(path)
    rows = RingRows(ring.pid)
    taken = ring.take()
    texts, tables = rows.resolve(taken)
    ring.close()
    path.unlink()
    assert rows.quality.notes == []
    return executor, probe, tables, texts


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_it_tells_is_what_happened(tmp_path: Path, layout: str, overlap: bool) -> None:
    executor, probe, tables, texts = ran(tmp_path, executor_module(layout, overlap, seed=3, num_requests=20))
    assert probe.off == {}
    truth = executor.truth
    iterations, steps = tables["iterations"], tables["steps"]
    told = list(
        zip(
            *(iterations[key].tolist() for key in ("iteration", "context_requests", "generation_requests")), strict=True
        )
    )
    assert told == truth["iterations"]
    assert (iterations["end"] >= iterations["start"]).all()
    ids = tables["requests"]["request"].tolist()
    # A row of steps names the first row of its request.
    for key in ("emitted", "drafted", "accepted"):
        sums: Counter[int] = Counter()
        for row, value, phase in zip(
            steps["request"].tolist(), steps[key].tolist(), steps["phase"].tolist(), strict=True
        ):
            sums[ids[row]] += value if phase in (1, 2) else 0
        assert +sums == +Counter(truth[key]), key
    assert (steps["accepted"] <= steps["drafted"]).all()
    last = {number: at for at, number in enumerate(ids)}
    assert set(last) == set(truth["emitted"])
    for number, at in last.items():
        assert tables["requests"]["output_tokens"][at] == truth["emitted"][number]
        assert tables["requests"]["finished"][at] != NEVER
    assert sum(steps["phase"] == 4) == len(last)
    assert "KV blocks used (engine)" in texts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_page_events_replay_to_what_is_held(tmp_path: Path, layout: str) -> None:
    executor, _, tables, _ = ran(tmp_path, executor_module(layout, overlap=False, seed=5, num_requests=15))
    events = tables["page_events"]
    assert events["sequence"].tolist() == list(range(len(events["sequence"])))
    held: Counter[int] = Counter()
    launches = tables["iterations"]["start"].tolist()
    used = []
    rows = list(zip(events["time"].tolist(), events["block"].tolist(), events["kind"].tolist(), strict=True))
    at = 0
    for start in launches:
        while at < len(rows) and rows[at][0] <= start:
            held[rows[at][1]] += -1 if rows[at][2] == 0 else 1
            at += 1
        used.append(sum(count > 0 for count in held.values()))
    # The table is read after the pages of a step were taken, before it is launched.
    assert used == executor.truth["used"]
    assert tables["iterations"]["used_blocks"].tolist() == executor.truth["used"]
    for _, block, kind in rows[at:]:
        held[block] += -1 if kind == 0 else 1
    assert not +held
    assert tables["pools"]["blocks"].tolist() == [512]


def test_warm_up_and_requests_that_only_fill_are_left_out(tmp_path: Path) -> None:
    _, _, tables, _ = ran(tmp_path, executor_module("1.2", overlap=True, seed=1, num_requests=10))
    assert set(tables["requests"]["request"].tolist()) == set(range(7, 17))


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_probe_that_comes_late_gives_results_to_the_batch_that_they_are_of(
    tmp_path: Path, layout: str, overlap: bool
) -> None:
    module = executor_module(layout, overlap, seed=4, num_requests=30)
    executor, probe, tables, _ = ran(tmp_path, module, late=9)
    assert probe.off == {}
    ids = tables["requests"]["request"].tolist()
    numbers = tables["iterations"]["iteration"].tolist()
    assert numbers == [number for number, *_ in executor.truth["iterations"] if number >= numbers[0] > 0]
    steps, told = tables["steps"], {}
    for at in range(len(steps["phase"])):
        if steps["phase"][at] in (1, 2):
            key = numbers[steps["iteration"][at]], ids[steps["request"][at]]
            told[key] = tuple(int(steps[column][at]) for column in ("emitted", "drafted", "accepted"))
    assert told == {key: value for key, value in executor.truth["settled"].items() if key[0] >= numbers[0]}


def test_a_probe_that_goes_leaves_the_classes_as_they_were(tmp_path: Path) -> None:
    module: Any = executor_module("1.2", overlap=False, seed=2, num_requests=8)
    before = {kind: dict(vars(kind)) for kind in (module.PyExecutor, module.ResourceManager)}
    probe = Probe(Producer(str(tmp_path), "trtllm"))
    probe.wrap(module)
    assert vars(module.PyExecutor) != before[module.PyExecutor]
    # Somebody wraps what we have wrapped: that stays, and ours within it does nothing any more.
    ours = module.PyExecutor._forward_step
    module.PyExecutor._forward_step = lambda *args: ours(*args)
    theirs = module.PyExecutor._forward_step
    probe.close()
    records = probe._producer.records
    assert module.PyExecutor._forward_step is theirs
    assert vars(module.ResourceManager) == before[module.ResourceManager]
    module.PyExecutor().run()
    assert probe._producer.records == records


class Clock:
    """Time that passes only where the test says so."""

    def __init__(self) -> None:
        self.now = 10**15

    def monotonic_ns(self) -> int:
        return self.now

    def thread_time_ns(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("pages_us", "tokens_us", "pages_every", "steps_every"),
    [(0, 0, {1}, {1}), (25, 0, {2, 4, 8, 16}, {1}), (0, 40, {64}, {2, 4, 8, 16, 32})],
)
def test_beyond_its_budget_it_samples_and_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pages_us: int,
    tokens_us: int,
    pages_every: set[int],
    steps_every: set[int],
) -> None:
    import probes.inprocess.trtllm as probe_module

    clock = Clock()
    monkeypatch.setattr(probe_module, "time", clock)
    module: Any = executor_module("1.2", overlap=True, seed=6, num_requests=1500)
    # A step takes 4 ms; to read a table or a number of tokens takes as long as the test says.
    step, tokens = module.PyExecutor._forward_step, Request.get_num_tokens
    engine_reads = True

    def forward(self: Any, batch: Any) -> Any:
        clock.now += 4_000_000
        return step(self, batch)

    def num_tokens(self: Request, beam: int) -> int:
        clock.now += tokens_us * 1000 * (not engine_reads)
        return tokens(self, beam)

    guarded = Probe._guarded

    def reading(self: Probe, *args: Any) -> None:
        nonlocal engine_reads
        engine_reads = False
        guarded(self, *args)
        engine_reads = True

    changes = Probe._changes

    def table(self: Probe, *args: Any) -> Any:
        clock.now += pages_us * 1000
        return changes(self, *args)

    monkeypatch.setattr(module.PyExecutor, "_forward_step", forward)
    monkeypatch.setattr(Request, "get_num_tokens", num_tokens)
    monkeypatch.setattr(Probe, "_guarded", reading)
    monkeypatch.setattr(Probe, "_changes", table)
    executor, probe, tables, texts = ran(tmp_path, module)
    assert probe.off == {}
    assert probe.pages_every in pages_every
    assert probe.steps_every in steps_every
    state = "sampling" if max(probe.pages_every, probe.steps_every) > 1 else "running"
    told = [("off", "running", "sampling", "paused", "failed")[at] for at in tables["probes"]["state"].tolist()]
    assert (told[-2], "sampling" in told) == (state, state == "sampling")
    assert any("batches in one step of" in text for text in texts) == (max(steps_every) > 1)
    assert any("page tables in one step of" in text for text in texts) == (max(pages_every) > 1)
    # In the end it keeps to its budget, and where steps were passed over sums of requests are right all the same.
    launches = [number for number, *_ in executor.truth["iterations"]]
    seen = tables["iterations"]["iteration"].tolist()
    if max(steps_every) == 1:
        assert seen == launches
    else:
        assert len(set(seen) & set(launches[-64:])) <= 32
    ids = tables["requests"]["request"].tolist()
    outputs = dict(zip(ids, tables["requests"]["output_tokens"].tolist(), strict=True))
    assert outputs == executor.truth["emitted"]
    steps = tables["steps"]
    for at in range(len(steps["phase"])):
        if steps["phase"][at] in (1, 2):
            key = seen[steps["iteration"][at]], ids[steps["request"][at]]
            assert int(steps["emitted"][at]) == executor.truth["settled"][key][0]


OWNERS: dict[str, Any] = {
    "sample": [Sample],
    "request": [Request],
    "batch": [ListBatch, PropertyBatch],
    "pages": [Pages],
    "statistics": [Statistics],
}


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: f"{need.owner}.{need.names[0]}")
def test_a_missing_name_costs_only_what_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, need: Any) -> None:
    module: Any = executor_module("1.2", overlap=False, seed=2, num_requests=8)
    hidden = set(need.names)
    if need.owner in ("executor", "resources"):
        kind = module.PyExecutor if need.owner == "executor" else module.ResourceManager
        owners = [kind]
    else:
        owners = OWNERS[need.owner]
    # As the probe sees it the name is not there; the engine itself goes on.
    import probes.inprocess.trtllm_attributes as attributes

    def blind(thing: Any, name: str, *default: Any) -> bool:
        of_owner = thing in owners or isinstance(thing, tuple(owners))
        return False if of_owner and name in hidden else hasattr(thing, name)

    monkeypatch.setattr(attributes, "hasattr", blind, raising=False)
    executor, probe, tables, texts = ran(tmp_path, module, late=3 if need.owner == "sample" else 0)
    expected = set(need.parts)
    # The pool's manager can also be found by its key; nobody misses the attribute.
    if need.names == ("kv_cache_manager",):
        expected = set()
    assert set(probe.off) == expected
    there = {
        BATCH: "iterations" in tables,
        REQUESTS: any(tables["requests"]["output_tokens"] >= 0) if "requests" in tables else False,
        PAGES: "page_events" in tables,
        STATISTICS: "counters" in tables,
        TOKENS: "steps" in tables and any(tables["steps"]["emitted"] > 0),
    }
    assert {part for part in PARTS if not there[part]} >= expected
    if expected:
        assert any(need.names[0] in text for text in texts)
    assert sum(executor.truth["emitted"].values()) > 0


def test_a_probe_that_fails_leaves_the_engine_alone(tmp_path: Path) -> None:
    module: Any = executor_module("1.2", overlap=False, seed=2, num_requests=8)
    plain: Any = executor_module("1.2", overlap=False, seed=2, num_requests=8)
    wrong = plain.PyExecutor()
    wrong.run()
    module.PyExecutor.iter_counter = property(lambda self: object(), lambda self, value: None)
    probe = Probe(Producer(str(tmp_path), "trtllm"))
    probe.wrap(module)
    executor = module.PyExecutor()
    module.PyExecutor.iter_counter = property(lambda self: None, lambda self, value: None)
    with pytest.raises(TypeError):
        executor.run()  # the stand-in itself counts iterations, and cannot any more
    assert set(probe.off) == set(PARTS)
    probe.close()
