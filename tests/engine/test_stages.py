"""Pipeline stages: the engine over several processes does what it does in one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from inspector.errors import Usage
from probes.workloads.engine import chain
from probes.workloads.engine.blocks import Transfer
from probes.workloads.engine.chain import LinkEnded
from probes.workloads.engine.engine import Counters, Engine, Settings
from probes.workloads.engine.packing import Piece
from probes.workloads.engine.records import Iteration
from probes.workloads.engine.runner import LocalRunner, Runner
from probes.workloads.engine.stages import StagesRunner, deal, split
from tests.engine import tiny
from tests.waiting import is_alive

MODEL = tiny.target()
SIZE = 4
BLOCKS = 24
HOST = 6


@pytest.fixture
def stages() -> Iterator[StagesRunner]:
    made = StagesRunner(MODEL, 2, 2, BLOCKS, SIZE, HOST)
    yield made
    made.close()


def _serve(target: Runner, drafts: str, iterations: list[Iteration]) -> tuple[list[list[int]], Counters]:
    """Outputs of a load that shares prefixes and needs more pages than there are."""
    settings = Settings(
        max_batch_size=6,
        max_num_tokens=24,
        blocks=BLOCKS,
        tokens_per_block=SIZE,
        host_blocks=HOST,
        draft=drafts,
        draft_len=3,
    )
    engine = Engine(settings, target, LocalRunner(tiny.draft(), BLOCKS, SIZE, HOST))
    asked = tiny.requests(24)
    for request in asked:
        request.temperature = 0.7 * (request.seed % 4 == 3)
        engine.add(request)
    iterations += tiny.run(engine)
    return [request.output for request in asked], engine.counters


@pytest.mark.parametrize("drafts", ["none", "model"])
def test_outputs_and_schedule_are_those_of_one_process(stages: StagesRunner, drafts: str) -> None:
    over_stages: list[Iteration] = []
    alone: list[Iteration] = []
    outputs, counters = _serve(stages, drafts, over_stages)
    expected, alike = _serve(LocalRunner(MODEL, BLOCKS, SIZE, HOST), drafts, alone)
    assert outputs == expected
    assert counters == alike
    assert counters.pauses > 0
    assert counters.offloads > 0
    assert counters.restores > 0
    assert counters.reused_blocks > 0
    assert all(iteration.micro_batches in (-1, 1, 2) for iteration in over_stages)
    for iteration in over_stages:
        working = [step for step in iteration.steps if step.tokens]
        assert {step.micro_batch for step in working} == set(range(min(2, len(working))))


def test_pages_move_and_the_pool_changes_as_in_one_process(stages: StagesRunner) -> None:
    local = LocalRunner(MODEL, BLOCKS, SIZE, HOST)
    assert stages.block_bytes == local.block_bytes
    assert stages.positions == local.positions
    logits = []
    for runner in (stages, local):
        runner.forward([Piece(range(8), 0, [0, 1], 1), Piece(range(20, 28), 0, [2, 3], 1)], 0)
        runner.move([Transfer(0, 5, back=False), Transfer(1, 2, back=False)])
        runner.forward([Piece(range(30, 38), 0, [0, 1], 0)], 1)
        runner.resize(BLOCKS + 8)
        runner.move([Transfer(BLOCKS + 7, 5, back=True), Transfer(BLOCKS + 1, 2, back=True)])
        pieces = [Piece([3, 4], 8, [BLOCKS + 7, BLOCKS + 1, 9], 2), Piece([5], 8, [2, 3, 4], 1)]
        result = runner.forward(pieces, 2)
        logits.append(result.logits)
    torch.testing.assert_close(logits[0], logits[1])


def test_a_stage_that_is_killed_ends_the_others_and_is_named() -> None:
    stages = StagesRunner(MODEL, 2, 2, BLOCKS, SIZE)
    stages.ready()
    os.kill(stages.pids[1], signal.SIGKILL)
    with pytest.raises(LinkEnded, match="stage 1 ended: signal SIGKILL"):
        _forward_until_it_fails(stages)
    assert not any(Path(f"/proc/{pid}").exists() for pid in stages.pids)


def test_stages_that_start_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "_PATIENCE", 600.0)
    stages = StagesRunner(MODEL, 2, 2, BLOCKS, SIZE)
    for pid in stages.pids:
        os.kill(pid, signal.SIGSTOP)
    closes = threading.Thread(target=stages.close, daemon=True)
    closes.start()
    closes.join(20)
    ended = not closes.is_alive()
    for pid in stages.pids if not ended else ():
        os.kill(pid, signal.SIGKILL)
    assert ended
    assert not any(is_alive(pid) for pid in stages.pids)


def test_an_interrupt_while_stages_are_told_what_they_hold_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[chain.Chain] = []

    class Interrupted(BaseException):
        pass

    def send(self: chain.Chain, message: object) -> None:
        made.append(self)
        raise Interrupted

    monkeypatch.setattr(chain.Chain, "send", send)
    with pytest.raises(Interrupted):
        StagesRunner(MODEL, 2, 2, BLOCKS, SIZE)
    assert len(made[0].pids) == 2
    assert not any(is_alive(pid) for pid in made[0].pids)


def _forward_until_it_fails(stages: StagesRunner) -> None:
    for iteration in range(1000):
        stages.forward([Piece([1], 0, [0], 1)], iteration)


def test_more_stages_than_layers() -> None:
    with pytest.raises(Usage, match="--stages 3: the model has 2 layers"):
        StagesRunner(MODEL, 3, 1, 4, SIZE)


@given(st.integers(1, 12), st.data())
def test_layers_are_split_evenly_and_all_of_them(layers: int, data: st.DataObject) -> None:
    stages = data.draw(st.integers(1, layers))
    parts = split(layers, stages)
    assert [layer for part in parts for layer in part] == list(range(layers))
    sizes = [len(part) for part in parts]
    assert len(sizes) == stages
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 9))
def test_every_piece_is_dealt_once_and_no_hand_is_much_fuller(tokens: list[int], parts: int) -> None:
    hands = deal(tokens, parts)
    assert sorted(at for hand in hands for at in hand) == list(range(len(tokens)))
    assert len(hands) == min(parts, len(tokens))
    assert all(hands)
    assert all(hand == sorted(hand) for hand in hands)
    sums = [sum(tokens[at] for at in hand) for hand in hands]
    assert max(sums) - min(sums) <= max(tokens)
