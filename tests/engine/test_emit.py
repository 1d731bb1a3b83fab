from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from inspector.trace.ring import Ring
from inspector.trace.schema import NEVER, PHASES, TOKEN_KINDS
from probes.inprocess.producer import Producer
from probes.workloads.engine import emit
from probes.workloads.engine.blocks import ALLOCATED, FREED, OFFLOADED, RESTORED, REUSED
from probes.workloads.engine.emit import TEXTS_OF_ONE_IN, Emitter, token_rows
from probes.workloads.engine.engine import Engine, Request, Settings
from probes.workloads.engine.records import FINISHED, GENERATION, PAUSED, Step
from probes.workloads.engine.runner import LocalRunner
from probes.workloads.engine.stages import StagesRunner
from probes.workloads.engine.tokens import Tokenizer
from tests.engine import tiny

SETTINGS = Settings(
    max_batch_size=8,
    max_num_tokens=40,
    blocks=24,
    tokens_per_block=4,
    host_blocks=8,
    draft="model",
    draft_len=4,
)


@dataclass
class Told:
    """A run and what its ring holds: rows as dicts, in the order in which they were written."""

    engine: Engine
    asked: list[Request]
    rows: dict[str, list[dict[str, Any]]]
    names: dict[int, str]

    def of(self, table: str, **equal: object) -> list[dict[str, Any]]:
        return [row for row in self.rows[table] if all(row[key] == value for key, value in equal.items())]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Drafts, pauses, host pages, a change of the pool, and an end that cuts some requests off."""
    folder: Path = tmp_path_factory.mktemp("rings")
    producer = Producer(str(folder), "engine", 1 << 22)
    emitter = Emitter(producer, Tokenizer(()))
    engine = tiny.engine(SETTINGS, emitter)
    asked = [engine.add(request) for request in tiny.requests(60)]
    for request in asked:
        request.group = ("even", "odd")[request.id % 2]
    for _ in range(30):
        engine.step()
    engine.change(blocks=30)
    emitter.changed("blocks = 30")
    for _ in range(120):
        engine.step()
    engine.change(blocks=22)
    for _ in range(20):
        engine.step()
    assert engine.cancel(engine.requests[0])
    engine.stop()
    producer.close()
    assert producer.lost == 0
    (path,) = folder.glob("*.ring")
    ring = Ring(path)
    taken = ring.take()
    ring.close()
    tables = {
        table: [dict(zip(rows.dtype.names or (), row, strict=True)) for row in rows.tolist()]
        for table, rows in taken.tables.items()
    }
    return Told(engine, asked, tables, dict(taken.names))


def test_the_run_has_what_the_tests_are_about(told: Told) -> None:
    counters = told.engine.counters
    assert min(counters.pauses, counters.offloads, counters.restores, counters.accepted) > 0
    assert told.of("page_events", tier=1)
    assert {request.reason for request in told.asked} == {"stop", "length", "cancelled"}


def test_a_replay_of_the_page_events_gives_the_used_blocks_of_every_iteration(told: Told) -> None:
    events = told.rows["page_events"]
    assert [event["sequence"] for event in events] == list(range(len(events)))
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    pools = iter([*told.rows["pools"], {"time": 2**62, "blocks": 0}])
    pool, following = next(pools), next(pools)
    holders: defaultdict[int, set[int]] = defaultdict(set)
    host, at = 0, 0
    for iteration in told.rows["iterations"]:
        while at < len(events) and events[at]["time"] <= iteration["end"]:
            event = events[at]
            at += 1
            if event["kind"] in (ALLOCATED, REUSED):
                holders[event["block"]].add(event["request"])
            elif event["kind"] == FREED:
                holders[event["block"]].remove(event["request"])
            host += {OFFLOADED: 1, RESTORED: -1}.get(event["kind"], 0) - event["tier"]
        while following["time"] <= iteration["end"]:
            pool, following = following, next(pools)
        used = sum(1 for held in holders.values() if held)
        assert iteration["used_blocks"] == used
        assert iteration["free_blocks"] == pool["blocks"] - used
        assert iteration["host_blocks"] == host
    assert at == len(events)
    assert [row["blocks"] for row in told.rows["pools"]] == [24, 30, 22]


def test_tables_of_a_page_are_told_by_its_events(told: Told) -> None:
    tables: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for event in told.rows["page_events"]:
        if event["kind"] in (ALLOCATED, REUSED):
            assert event["index"] == len(tables[event["request"]])
            tables[event["request"]][event["block"]] = event["index"]
        elif event["kind"] == FREED:
            assert tables[event["request"]].pop(event["block"]) == len(tables[event["request"]])
    assert not any(tables.values())


def test_steps_sum_to_requests_and_iterations_and_these_to_the_counters(told: Told) -> None:
    last = {row["request"]: row for row in told.rows["requests"]}
    for request in told.asked:
        mine = told.of("steps", request=request.id)
        assert sum(step["emitted"] for step in mine) == last[request.id]["output_tokens"] == len(request.output)
        assert [PHASES[step["phase"]] for step in mine].count("paused") == request.pauses
        assert mine[-1]["phase"] == FINISHED
        assert mine[-1]["tokens"] == mine[-1]["emitted"] == mine[-1]["blocks"] == 0
    sums = ("tokens", "drafted", "accepted", "emitted")
    for iteration in told.rows["iterations"]:
        mine = told.of("steps", iteration=iteration["iteration"])
        for name in sums:
            assert sum(step[name] for step in mine) == iteration[name]
        phases = Counter(PHASES[step["phase"]] for step in mine)
        assert phases["context"] == iteration["context_requests"]
        assert phases["generation"] == iteration["generation_requests"]
        assert phases["finished"] == iteration["completed_requests"]
        assert (iteration["max_batch_size"], iteration["max_num_tokens"]) == (8, 40)
    assert all(0 <= step["accepted"] <= step["drafted"] for step in told.rows["steps"])
    for name in (*sums, "context_tokens", "reused_blocks", "missed_blocks"):
        assert sum(iteration[name] for iteration in told.rows["iterations"]) == getattr(told.engine.counters, name)
    assert len(told.rows["iterations"]) == told.engine.counters.iterations
    assert len(told.of("steps", phase=PAUSED)) == told.engine.counters.pauses


def test_requests_become_known_bit_by_bit(told: Told) -> None:
    rows = told.of("requests", request=0)
    assert [row["first_token"] == NEVER for row in rows] == [True, False, False]
    assert [row["finished"] == NEVER for row in rows] == [True, True, False]
    assert [row["output_tokens"] for row in rows] == [-1, -1, len(told.asked[0].output)]
    assert rows[0]["scheduled"] == NEVER
    assert rows[0]["reused_tokens"] == -1
    first = told.asked[0]
    assert rows[-1]["arrival"] == first.arrival
    assert rows[-1]["last_token"] == first.last_token
    assert rows[-1]["max_tokens"] == first.max_tokens
    assert rows[-1]["prompt_tokens"] == len(first.prompt)
    assert told.names[rows[-1]["group"]] == "even"


def test_texts_are_those_of_the_output_for_one_request_in_four(told: Told) -> None:
    kinds = {kind: number for number, kind in enumerate(TOKEN_KINDS)}
    assert {row["request"] for row in told.rows["tokens"]} <= set(range(0, 60, TEXTS_OF_ONE_IN))
    pieces = Tokenizer(())
    for request in told.asked[::TEXTS_OF_ONE_IN]:
        given = [row for row in told.of("tokens", request=request.id) if row["kind"] != kinds["rejected"]]
        assert [row["position"] for row in given] == list(range(len(request.output)))
        assert [told.names[row["name"]] for row in given] == [pieces.piece(token) for token in request.output]
    for step in told.rows["steps"]:
        if step["request"] % TEXTS_OF_ONE_IN or step["phase"] != GENERATION:
            continue
        mine = Counter(row["kind"] for row in told.of("tokens", request=step["request"], iteration=step["iteration"]))
        assert mine[kinds["rejected"]] == step["drafted"] - step["accepted"]
        assert mine[kinds["accepted"]] == min(step["accepted"], step["emitted"])
        own = step["emitted"] - mine[kinds["accepted"]]
        assert mine[kinds["corrected"]] == (own if step["accepted"] < step["drafted"] else 0)


def test_every_forward_pass_has_the_call_that_launched_it(told: Told) -> None:
    calls = {call["correlation"]: call for call in told.rows["host_calls"]}
    names = Counter(told.names[work["name"]] for work in told.rows["kernels"])
    computing = [iteration for iteration in told.rows["iterations"] if iteration["tokens"]]
    assert names["target forward"] == len(computing)
    assert names["draft forward"] > 0
    assert len(calls) == len(told.rows["kernels"])
    for work in told.rows["kernels"]:
        call = calls[work["correlation"]]
        assert call["start"] <= work["start"] <= work["end"]
        assert call["thread"] == threading.get_native_id()
    assert told.names[told.rows["devices"][0]["name"]] == "CPU stage 0 (no GPU)"


def test_passes_of_the_target_are_a_pipeline_of_one_stage_and_tell_their_processor_time(told: Told) -> None:
    work = told.rows["stage_work"]
    passes = [row for row in told.rows["kernels"] if told.names[row["name"]] == "target forward"]
    assert [(row["start"], row["end"]) for row in work] == [(row["start"], row["end"]) for row in passes]
    assert [row["iteration"] for row in work] == [row["iteration"] for row in told.rows["iterations"] if row["tokens"]]
    assert {(row["stage"], row["micro_batch"]) for row in work} == {(0, 0)}
    # Two clocks that tick in steps of their own.
    assert all(0 <= row["cpu"] <= row["end"] - row["start"] + 1_000_000 for row in work)
    assert sum(row["cpu"] for row in work) > 0


def test_with_stages_what_the_engine_computes_itself_is_not_the_work_of_one(tmp_path: Path) -> None:
    producer = Producer(str(tmp_path), "engine", 1 << 20)
    target = StagesRunner(tiny.target(), 2, 2, 24, 4)
    draft = LocalRunner(tiny.draft(), 24, 4)
    settings = Settings(max_batch_size=2, max_num_tokens=40, blocks=24, tokens_per_block=4, draft="model", draft_len=2)
    engine = Engine(settings, target, draft, [Emitter(producer, Tokenizer(()), 2)])
    engine.add(Request((1, 2, 3), 4, end=None))
    tiny.run(engine)
    engine.close()
    producer.close()
    ring = Ring(next(tmp_path.glob("engine*.ring")))
    taken = ring.take()
    ring.close()
    names, ranges = dict(taken.names), taken.tables["ranges"]
    assert set(taken.tables["kernels"]["device"].tolist()) == {2}
    assert {names[name] for name in taken.tables["kernels"]["name"].tolist()} == {"draft forward"}
    assert [names[name] for name in taken.tables["devices"]["name"].tolist()] == ["CPU draft model (no GPU)"]
    assert "stage_work" not in taken.tables, "its stages tell that"
    texts = [names[name] for name in ranges["name"].tolist()]
    assert texts.count("wait for stages") == texts.count("target forward") > 0


def test_a_change_is_marked_between_two_iterations(told: Told) -> None:
    (mark,) = told.rows["marks"]
    assert told.names[mark["name"]] == "blocks = 30"
    assert told.names[mark["domain"]] == "engine"
    iterations = told.rows["iterations"]
    assert iterations[29]["end"] <= mark["time"] <= iterations[30]["start"]


def test_ranges_nest_in_their_iteration(told: Told) -> None:
    whole = told.of("ranges", name=next(at for at, text in told.names.items() if text == "iteration"))
    assert [(row["start"], row["end"]) for row in whole] == [
        (iteration["start"], iteration["end"]) for iteration in told.rows["iterations"]
    ]
    names = {told.names[row["name"]] for row in told.rows["ranges"]}
    assert names == {"iteration", "schedule", "draft", "draft context", "target forward", "sample", "update"}


def test_an_engine_without_requests_is_said_to_wait_for_them(told: Told) -> None:
    assert "wait_for_requests" not in told.names.values()
    engine = tiny.engine(SETTINGS)
    engine.add(Request((1, 2), 1))
    first = tiny.run(engine)
    late = engine.add(Request((1, 2), 2, end=None))
    engine.add(Request((1, 2), 2, end=None))
    second, third = tiny.run(engine)
    waits = [span for span in second.spans if span.name == "wait_for_requests"]
    assert [(span.start, span.end) for span in waits] == [(first[-1].end, late.arrival)]
    assert not [span for span in (*first[0].spans, *third.spans) if span.name == "wait_for_requests"]


def test_what_others_refer_to_comes_first(told: Told) -> None:
    first = {row["request"]: number for number, row in reversed(list(enumerate(told.rows["requests"])))}
    assert set(first) >= {row["request"] for row in told.rows["steps"]}
    assert {row["iteration"] for row in told.rows["steps"]} <= {row["iteration"] for row in told.rows["iterations"]}


@pytest.mark.parametrize("rest", ["nothing to do", "paused", "closed"])
def test_what_waits_for_more_is_told_when_no_more_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rest: str
) -> None:
    monkeypatch.setattr(emit, "HELD_NS", 10**15)
    producer = Producer(str(tmp_path), "engine", 1 << 20)
    ring = Ring(next(tmp_path.glob("*.ring")))
    engine = tiny.engine(SETTINGS, Emitter(producer, Tokenizer(())))
    for request in tiny.requests(3):
        engine.add(request)
    done = [engine.step() for _ in range(2)]
    assert engine.requests
    assert set(ring.take().tables) <= {"threads", "pools", "requests"}, "it waits"
    if rest == "nothing to do":
        done += tiny.run(engine)
    elif rest == "paused":
        engine.pause(time.monotonic_ns())
    else:
        engine.close()
    tables = ring.take().tables
    ring.close()
    assert tables["iterations"]["iteration"].tolist() == [iteration.number for iteration in done if iteration]
    assert len(tables["steps"]) == sum(len(iteration.steps) for iteration in done if iteration)


def test_iterations_wait_no_longer_than_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = Producer(str(tmp_path), "engine", 1 << 20)
    ring = Ring(next(tmp_path.glob("*.ring")))
    now = 10**12
    monkeypatch.setattr(emit, "monotonic_ns", lambda: now)
    emitter = Emitter(producer, Tokenizer(()))
    (iteration,) = tiny.run(_one_token(tiny.engine(SETTINGS)))
    told = []
    for number in range(40):
        now += 7_000_000
        emitter.iteration(replace(iteration, number=number, end=now))
        told.append(len(ring.take().tables.get("iterations", ())))
    ring.close()
    assert told == [(number + 1) // 8 * 8 for number in range(40)], "7 of 7 ms are not yet 50 ms, 8 are more"


def _one_token(engine: Engine) -> Engine:
    engine.add(Request((1, 2), 1, end=None))
    return engine


@pytest.mark.parametrize(
    ("drafts", "accepted", "emitted", "kinds"),
    [
        ((), 0, (9,), "t9"),
        ((5, 6), 2, (5, 6, 7), "a5 a6 t7"),
        ((5, 6, 8), 1, (5, 7), "a5 c7 r6 r8"),
        ((5, 6), 0, (7,), "c7 r5 r6"),
        ((5, 6, 8), 3, (5, 6), "a5 a6"),
        ((5, 6, 8), 2, (5,), "a5 r8"),
    ],
)
def test_kinds_of_tokens(drafts: tuple[int, ...], accepted: int, emitted: tuple[int, ...], kinds: str) -> None:
    step = Step(
        Request((1,), 9, id=4), GENERATION, drafts=drafts, accepted=accepted, emitted=emitted, output_position=3
    )
    rows = token_rows(step)
    assert " ".join(f"{TOKEN_KINDS[kind][0]}{token}" for _, _, token, kind in rows) == kinds
    assert all(request == 4 and place >= 3 for request, place, _, _ in rows)


def test_nothing_is_told_when_nobody_listens() -> None:
    engine = tiny.engine(SETTINGS)
    for request in tiny.requests(5):
        engine.add(request)
    assert tiny.run(engine)
    assert engine._pool._observe is None
