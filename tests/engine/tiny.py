"""Tiny models with random weights, in double precision so that no two logits tie, and a dense reference."""

from __future__ import annotations

import copy
import functools
import random

import torch

from probes.workloads.engine.engine import Engine, Request, Settings
from probes.workloads.engine.model import Decoder, Shape
from probes.workloads.engine.records import Iteration
from probes.workloads.engine.runner import LocalRunner

SHAPE = Shape(width=24, layers=2, heads=4, kv_heads=2, per_head=6, inner=20, entries=40, positions=256)
END = 17
"""A token that the target gives now and then."""


@functools.cache
def target(entries: int = SHAPE.entries) -> Decoder:
    torch.manual_seed(3)
    model = Decoder(Shape(**{**vars(SHAPE), "entries": entries}))
    for parameter in model.parameters():
        # Larger than a model starts with: each token is to depend on those before it.
        torch.nn.init.normal_(parameter, std=0.5)
    return model.double().requires_grad_(False)


@functools.cache
def draft(entries: int = SHAPE.entries, noise: float = 0.05) -> Decoder:
    """The target, a little off, so that some of what it drafts is right."""
    torch.manual_seed(4)
    model = copy.deepcopy(target(entries))
    for parameter in model.parameters():
        parameter += noise * torch.randn_like(parameter)
    return model


def engine(settings: Settings, *observers: object, entries: int = SHAPE.entries, noise: float = 0.05) -> Engine:
    sizes = settings.blocks, settings.tokens_per_block, settings.host_blocks
    runners = LocalRunner(target(entries), *sizes), LocalRunner(draft(entries, noise), *sizes)
    return Engine(settings, *runners, observers=observers)  # type: ignore[arg-type]


def prompts(count: int, seed: int = 1, shortest: int = 1, longest: int = 30) -> list[tuple[int, ...]]:
    """Random ones; three in four begin with one of two prefixes."""
    rng = random.Random(seed)
    prefixes = [[], *([rng.randrange(SHAPE.entries) for _ in range(size)] for size in (9, 18, 18))]
    return [
        (*rng.choice(prefixes), *(rng.randrange(SHAPE.entries) for _ in range(rng.randint(shortest, longest))))
        for _ in range(count)
    ]


def requests(count: int, seed: int = 1, most: int = 32) -> list[Request]:
    rng = random.Random(seed)
    return [Request(prompt, rng.randint(1, most), seed=at, end=END) for at, prompt in enumerate(prompts(count, seed))]


def dense(asked: list[Request]) -> list[list[int]]:
    """What greedy decoding gives, by the whole model over the whole text for each token."""
    texts = [list(request.prompt) for request in asked]
    outputs: list[list[int]] = [[] for _ in asked]
    going = list(range(len(asked)))
    while going:
        longest = max(len(texts[at]) for at in going)
        ids = torch.tensor([texts[at] + [0] * (longest - len(texts[at])) for at in going])
        logits = target()(ids)
        for row, at in enumerate(going):
            token = int(logits[row, len(texts[at]) - 1].argmax())
            texts[at].append(token)
            outputs[at].append(token)
        going = [at for at in going if outputs[at][-1] != asked[at].end and len(outputs[at]) < asked[at].max_tokens]
    return outputs


def run(engine: Engine, most: int = 20_000) -> list[Iteration]:
    """All iterations until there is nothing to do."""
    done = []
    while (iteration := engine.step()) is not None:
        done.append(iteration)
        assert len(done) < most, "it does not end"
    return done
