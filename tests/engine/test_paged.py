from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.workloads.engine.blocks import Transfer
from probes.workloads.engine.model import Decoder
from probes.workloads.engine.packing import Layout, Piece
from probes.workloads.engine.paged import PagedLayers
from probes.workloads.engine.runner import LocalRunner
from tests.engine import tiny

CPU = torch.device("cpu")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=5), st.data())
def test_packed_passes_give_the_logits_of_the_dense_model(cuts: list[list[int]], data: st.DataObject) -> None:
    # Each text comes in parts, and in any pass any of the texts may be absent.
    rng = random.Random(data.draw(st.integers(0, 1000)))
    texts = [[rng.randrange(40) for _ in range(sum(parts))] for parts in cuts]
    pages = rng.sample(range(80), 80)
    tables = [[pages.pop() for _ in range(-(-len(text) // 4))] for text in texts]
    runner = LocalRunner(tiny.target(), 80, 4)
    found: list[list[torch.Tensor]] = [[] for _ in texts]
    done, left = [0] * len(texts), [list(parts) for parts in cuts]
    while any(left):
        chosen = [at for at in range(len(texts)) if left[at] and data.draw(st.booleans())] or [
            at for at in range(len(texts)) if left[at]
        ]
        rng.shuffle(chosen)
        pieces = []
        for at in chosen:
            count = left[at].pop(0)
            pieces.append(Piece(texts[at][done[at] : done[at] + count], done[at], tables[at], count))
            done[at] += count
        rows = torch.split(runner.forward(pieces, 0).logits, [piece.logits for piece in pieces])
        for at, row in zip(chosen, rows, strict=True):
            found[at].append(row)
    for text, parts in zip(texts, found, strict=True):
        torch.testing.assert_close(torch.cat(parts), tiny.target()(torch.tensor([text]))[0])


def test_only_the_wanted_logits_come() -> None:
    runner = LocalRunner(tiny.target(), 4, 4)
    text = [5, 3, 8, 1]
    pieces = [Piece(text[:3], 0, [2], 0), Piece(text, 0, [1], 2)]
    logits = runner.forward(pieces, 0).logits
    torch.testing.assert_close(logits, tiny.target()(torch.tensor([text]))[0, 2:])
    assert runner.forward(pieces[:1], 0).logits.shape == (0, 40)


def test_pages_survive_the_host_and_a_change_of_size() -> None:
    runner = LocalRunner(tiny.target(), 6, 4, host_blocks=2)
    text = list(range(12))
    runner.forward([Piece(text[:8], 0, [4, 5], 1)], 0)
    runner.move([Transfer(4, 1, back=False), Transfer(5, 0, back=False)])
    runner.resize(3)
    runner.move([Transfer(1, 1, back=True), Transfer(0, 0, back=True)])
    runner.resize(20)
    logits = runner.forward([Piece(text[8:], 8, [1, 0, 19], 1)], 0).logits
    torch.testing.assert_close(logits[0], tiny.target()(torch.tensor([text]))[0, -1])


def test_copies_happen_in_the_order_given() -> None:
    runner = LocalRunner(tiny.target(), 3, 4, host_blocks=1)
    runner.forward([Piece([1, 2, 3, 4], 0, [0], 1), Piece([9, 8, 7, 6], 0, [1], 1)], 0)
    runner.move([Transfer(0, 0, back=False), Transfer(2, 0, back=True), Transfer(1, 0, back=False)])
    logits = runner.forward([Piece([5], 4, [2, 1], 1)], 0).logits
    torch.testing.assert_close(logits[0], tiny.target()(torch.tensor([[1, 2, 3, 4, 5]]))[0, -1])


def test_layers_can_be_split() -> None:
    model = tiny.target()
    first, second = PagedLayers(model, range(1), 8, 4), PagedLayers(model, range(1, 2), 8, 4)
    text = [7, 1, 3, 9, 9, 2]
    layout = Layout.of([Piece(text, 0, [3, 6], 6)], 4, CPU, torch.float64)
    x = second.run(first.run(model.embed(layout.ids), layout), layout)
    torch.testing.assert_close(model.unembed(x[layout.wanted]), model(torch.tensor([text]))[0])
    whole = PagedLayers(model, range(2), 8, 4)
    assert first.block_bytes + second.block_bytes == whole.block_bytes == 2 * model.shape.kv_bytes_per_token * 4


def test_pieces_of_equal_length_are_one_group() -> None:
    pieces = [Piece([1], 6, [4, 2], 1), Piece([1, 2, 3], 0, [7], 1), Piece([9], 1, [5], 1)]
    layout = Layout.of(pieces, 4, CPU)
    assert layout.ids.tolist() == [1, 9, 1, 2, 3]
    assert layout.positions.tolist() == [6, 1, 0, 1, 2]
    assert layout.slots.tolist() == [2 * 4 + 2, 5 * 4 + 1, 28, 29, 30]
    assert layout.wanted.tolist() == [0, 4, 1]
    ones, threes = layout.groups
    assert (ones.begin, ones.count, ones.length, ones.table.tolist()) == (0, 2, 1, [4, 2, 5, 0])
    assert (threes.begin, threes.count, threes.length, threes.table.tolist()) == (2, 1, 3, [7])
    seen = (ones.mask == 0).sum(-1).flatten().tolist()
    assert seen == [7, 2]
    assert (threes.mask == 0)[0, 0].tolist() == [[at <= row for at in range(4)] for row in range(3)]


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_any_grouping_of_heads(kv_heads: int) -> None:
    torch.manual_seed(1)
    model = Decoder(replace(tiny.SHAPE, kv_heads=kv_heads)).double().requires_grad_(False)
    text = [7, 1, 3, 9, 9, 2]
    logits = LocalRunner(model, 2, 4).forward([Piece(text, 0, [1, 0], 6)], 0).logits
    torch.testing.assert_close(logits, model(torch.tensor([text]))[0])
