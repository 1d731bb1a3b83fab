from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from probes.workloads.engine.model import SHAPES, WEIGHTS, Decoder, Shape, load

SMALL = Shape(width=24, layers=2, heads=4, kv_heads=2, per_head=6, inner=20, entries=50, positions=40)


def _made(shape: Shape = SMALL) -> Decoder:
    torch.manual_seed(3)
    model = Decoder(shape)
    for parameter in model.parameters():
        # Small random weights would hide a wrong term behind the residual.
        torch.nn.init.normal_(parameter, std=0.4)
    return model.double().requires_grad_(False)


def _normed(x: list[float], weight: Tensor) -> list[float]:
    scale = 1 / math.sqrt(sum(value * value for value in x) / len(x) + 1e-5)
    return [value * scale * float(factor) for value, factor in zip(x, weight, strict=True)]


def _times(matrix: Tensor, x: list[float]) -> list[float]:
    return [sum(float(weight) * value for weight, value in zip(row, x, strict=True)) for row in matrix]


def _turned(head: list[float], position: int, base: float) -> list[float]:
    half = len(head) // 2
    turned = [0.0] * len(head)
    for at in range(half):
        angle = position * base ** (-2 * at / len(head))
        first, second = head[at], head[at + half]
        turned[at] = first * math.cos(angle) - second * math.sin(angle)
        turned[at + half] = second * math.cos(angle) + first * math.sin(angle)
    return turned


def _naive(model: Decoder, ids: list[int]) -> list[list[float]]:
    """The same model in plain Python, one number at a time, in the words of the papers."""
    shape, size = model.shape, model.shape.per_head
    rows = [[float(value) for value in model.embedding.weight[token]] for token in ids]
    for number in range(shape.layers):
        layer = model.layer(number)
        keys: list[list[list[float]]] = []
        values: list[list[list[float]]] = []
        for position, x in enumerate(rows):
            flat = _times(layer.qkv_weights.weight, _normed(x, layer.norm.weight))
            heads = [flat[at : at + size] for at in range(0, len(flat), size)]
            queries = [_turned(head, position, shape.base) for head in heads[: shape.heads]]
            keys.append(
                [_turned(head, position, shape.base) for head in heads[shape.heads : shape.heads + shape.kv_heads]]
            )
            values.append(heads[shape.heads + shape.kv_heads :])
            attended: list[float] = []
            for at, query in enumerate(queries):
                group = at // (shape.heads // shape.kv_heads)
                scores = [sum(a * b for a, b in zip(query, key[group], strict=True)) / math.sqrt(size) for key in keys]
                weights = [math.exp(score - max(scores)) for score in scores]
                attended += [
                    sum(weight * value[group][e] for weight, value in zip(weights, values, strict=True)) / sum(weights)
                    for e in range(size)
                ]
            added = _times(layer.out_weights.weight, attended)
            x = [value + more for value, more in zip(x, added, strict=True)]
            both = _times(layer.gate_up.weight, _normed(x, layer.mlp_norm.weight))
            gates, ups = both[: shape.inner], both[shape.inner :]
            inner = [gate / (1 + math.exp(-gate)) * up for gate, up in zip(gates, ups, strict=True)]
            rows[position] = [value + more for value, more in zip(x, _times(layer.down.weight, inner), strict=True)]
    return [_times(model.embedding.weight, _normed(x, model.norm.weight)) for x in rows]


def test_it_is_the_architecture_it_says() -> None:
    model = _made()
    ids = [7, 0, 49, 7, 3]
    expected = torch.tensor(_naive(model, ids), dtype=torch.float64)
    torch.testing.assert_close(model(torch.tensor([ids]))[0], expected, rtol=1e-6, atol=1e-8)


def test_the_parts_over_packed_tokens_are_the_dense_pass() -> None:
    model = _made()
    requests = [torch.randint(0, 50, (count,)) for count in (5, 1, 9)]
    positions = torch.cat([torch.arange(len(ids)) for ids in requests])
    x = model.embed(torch.cat(requests))
    cos, sin = model.rotations(positions)
    starts = [0, 5, 6, 15]
    for number in range(SMALL.layers):
        layer = model.layer(number)
        queries, keys, values = layer.qkv(x, cos, sin)
        assert queries.shape == (15, 4, 6)
        assert keys.shape == values.shape == (15, 2, 6)
        attended = []
        for first, last in pairwise(starts):
            q, k, v = (part[first:last].transpose(0, 1) for part in (queries, keys, values))
            k, v = k.repeat_interleave(2, 0), v.repeat_interleave(2, 0)
            scores = q @ k.transpose(1, 2) / math.sqrt(6)
            later = torch.ones(last - first, last - first, dtype=torch.bool).triu(1)
            attended.append((scores.masked_fill(later, -math.inf).softmax(-1) @ v).transpose(0, 1).flatten(1))
        x = layer.mlp(layer.out(x, torch.cat(attended)))
    logits = model.unembed(x)
    for ids, (first, last) in zip(requests, pairwise(starts), strict=True):
        torch.testing.assert_close(logits[first:last], model(ids[None])[0])


def test_nothing_depends_on_what_comes_later() -> None:
    model = _made()
    ids = torch.randint(0, 50, (1, 12))
    changed = ids.clone()
    changed[0, 8:] = (changed[0, 8:] + 1) % 50
    before, after = model(ids)[0], model(changed)[0]
    torch.testing.assert_close(before[:8], after[:8])
    assert not torch.allclose(before[8], after[8])


def test_the_cache_is_as_large_as_the_shape_says() -> None:
    model = _made()
    _, keys, values = model.layer(0).qkv(model.embed(torch.tensor([1])), *model.rotations(torch.tensor([0])))
    assert SMALL.kv_bytes_per_token == SMALL.layers * (keys.numel() + values.numel()) * 4


@pytest.mark.parametrize("which", SHAPES)
def test_the_committed_weights_load_and_are_halves(which: str) -> None:
    model = load(which)
    assert next(model.parameters()).dtype == torch.float32
    assert not any(parameter.requires_grad for parameter in model.parameters())
    stored = load_file(WEIGHTS / f"{which}.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    made = json.loads((WEIGHTS / f"{which}.json").read_text())
    assert made["model"] == which
    assert made["tokens"] > 1_000_000


def test_all_weights_together_are_at_most_six_megabytes() -> None:
    assert sum(path.stat().st_size for path in Path(WEIGHTS).iterdir()) <= 6_000_000


def test_a_model_that_nobody_trained_is_refused() -> None:
    with pytest.raises(KeyError):
        load("oracle")
