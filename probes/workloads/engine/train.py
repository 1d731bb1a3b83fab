"""Makes the weights: `python -m probes.workloads.engine.train tokens|target|draft|all --minutes N --out DIR`.

The text is generated while it trains, so no row comes twice. The first steps are timed, and `--minutes` of CPU time
become a number of steps; from there on the run depends on seed and steps alone, and `--steps` repeats it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional

from .corpus import SHARES, Row, conversations, drill, rows, texts, tokenise
from .model import SHAPES, WEIGHTS, Decoder, load
from .tokens import Tokenizer, train

BATCH_TOKENS = 2048
LENGTHS = (512, 512, 512, 1024)
"""Row lengths in turn: most conversations are short, and long contexts must be known too."""
RATES = {"target": 3e-3, "draft": 5e-3}
_WARM_UP = 60
DRILLS = {"target": 700, "draft": 0}
"""Steps at the start that are drills: the target has to learn to copy, the draft model has no room for it."""
_DRILL_LENGTH = 128
_DRILLED_WORDS = (12, 60)
"""The longest group of words in most of the drills, and at the end of the last third, where it grows."""
_DECAY = 0.6
"""The last part of the steps over which the rate falls, in a straight line, to `_FLOOR` of itself."""
_FLOOR = 0.02
_AFTER = 0.6
"""Where the rate begins when another run's weights are gone on from, falling from the first step on."""
_TIMED = 30
_AVERAGED = 0.99
_TEXT_FOR_TOKENS = 3_000_000
_EVERY_SECONDS = 150.0


@dataclass(frozen=True)
class Made:
    """How weights were made. `recipe` is the commit of this folder; `validation` is nats per answer token, by group,
    over requests kept out of training.
    """

    recipe: str
    model: str
    seed: int
    steps: int
    tokens: int
    cpu_minutes: float
    validation: dict[str, float]


def train_tokens(out: Path, seed: int) -> Tokenizer:
    """Learn the merges and save them as tokens.json in `out`."""
    tokenizer = train(texts(Random(f"tokens {seed}"), _TEXT_FOR_TOKENS))
    tokenizer.save(out / "tokens.json", _recipe())
    return tokenizer


class Training:
    """One model on its way, from nothing or from the weights in the folder `after`.

    `averaged` holds the running mean of its weights, which is what is saved.
    """

    def __init__(self, which: str, tokenizer: Tokenizer, seed: int, after: Path | None = None) -> None:
        torch.manual_seed(seed)
        self.which, self.seed, self.tokenizer = which, seed, tokenizer
        self.model = Decoder(SHAPES[which])
        self._drills = DRILLS[which]
        if after is not None:
            self.model.load_state_dict(load(which, folder=after).state_dict())
            self._drills = 0
        self.averaged = Decoder(SHAPES[which])
        self.averaged.load_state_dict(self.model.state_dict())
        parameters = list(self.model.parameters())
        matrices = [parameter for parameter in parameters if parameter.dim() > 1]
        vectors = [parameter for parameter in parameters if parameter.dim() == 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=RATES[which], betas=(0.9, 0.95), fused=True)
        self.done = 0
        self._batches = self._batch_source()

    def step(self, rate: float) -> float:
        """Learn from one batch at `rate` times the model's own rate; the loss of that batch."""
        for group in self.optimizer.param_groups:
            group["lr"] = RATES[self.which] * rate
        ids, weights = next(self._batches)
        with torch.autocast("cpu", torch.bfloat16):
            logits = self.model(ids[:, :-1])
        each = functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        wanted = weights[:, 1:].flatten()
        loss = (each * wanted).sum() / wanted.sum()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.done += 1
        with torch.no_grad():
            share = max(1 - _AVERAGED, 1 / self.done)
            for mean, now in zip(self.averaged.parameters(), self.model.parameters(), strict=True):
                mean.lerp_(now, share)
        return loss.item()

    def validate(self, count: int = 60) -> dict[str, float]:
        """Nats per answer token of the averaged weights, by group, over `count` conversations kept out of training."""
        losses: dict[str, float] = {}
        for group in SHARES[self.which]:
            total = tokens = 0.0
            source = conversations(Random(f"validation {group}"), unseen=True, shares={group: 1.0})
            for conversation in islice(source, count):
                ids, weights = (torch.tensor(part) for part in tokenise(self.tokenizer, conversation))
                answer = weights[1:] == 1.0
                with torch.no_grad():
                    logits = self.averaged(ids[None, :-1])[0]
                total += float(functional.cross_entropy(logits[answer], ids[1:][answer], reduction="sum"))
                tokens += int(answer.sum())
            losses[group] = round(total / tokens, 4)
        return losses

    def save(self, out: Path) -> None:
        """Write the averaged weights as half precision; a reader never sees half a file."""
        halves = {name: value.half().contiguous() for name, value in self.averaged.state_dict().items()}
        unfinished = out / f".{self.which}.safetensors"
        save_file(halves, unfinished)
        unfinished.replace(out / f"{self.which}.safetensors")

    def _batch_source(self) -> Iterator[tuple[Tensor, Tensor]]:
        random = Random(f"drill {self.which} {self.seed}")
        for at in range(self._drills):
            first, last = _DRILLED_WORDS
            grown = max(0.0, 3 * at / self._drills - 2)
            longest = round(first + (last - first) * grown)
            yield _tensors([drill(random, _DRILL_LENGTH + 1, longest) for _ in range(BATCH_TOKENS // _DRILL_LENGTH)])
        sources = [
            rows(self.tokenizer, Random(f"{self.which} {self.seed} {turn}"), length + 1, SHARES[self.which])
            for turn, length in enumerate(LENGTHS)
        ]
        while True:
            for length, source in zip(LENGTHS, sources, strict=True):
                yield _tensors(list(islice(source, BATCH_TOKENS // length)))


def _tensors(batch: list[Row]) -> tuple[Tensor, Tensor]:
    return torch.tensor([ids for ids, _ in batch]), torch.tensor([weights for _, weights in batch])


def train_model(
    which: str,
    tokenizer: Tokenizer,
    out: Path,
    seed: int,
    minutes: float = 0.0,
    steps: int = 0,
    after: Path | None = None,
) -> Made:
    """Train "target" or "draft" for `steps`, or for about `minutes` of CPU time, and save it in `out` now and then.

    `after` is the folder of a run that was stopped: it is gone on from there, and what was noted of it is added.
    """
    recipe = _recipe()
    training = Training(which, tokenizer, seed, after)
    started = saved = time.process_time()
    timed: list[float] = []
    planned = steps or sys.maxsize
    while training.done < planned:
        before = time.process_time()
        left = (planned - training.done) / planned
        falling = max(_FLOOR, left * _AFTER if after else left / _DECAY)
        loss = training.step(min(1.0, (training.done + 1) / _WARM_UP, falling))
        timed.append(time.process_time() - before)
        if not steps and training.done == _TIMED:
            planned = max(_TIMED, round(minutes * 60 / statistics.median(timed)))
            _say(f"{which}: {planned} steps")
        if training.done % 50 == 0:
            speed = training.done * BATCH_TOKENS / (time.process_time() - started)
            _say(f"{which} {training.done}/{planned} loss {loss:.3f}, {speed:.0f} tokens per CPU second")
        if time.process_time() - saved > _EVERY_SECONDS:
            training.save(out)
            saved = time.process_time()
            _say(f"{which} {training.done}/{planned} saved, validation {training.validate(20)}")
    training.save(out)
    cpu = (time.process_time() - started) / 60
    made = Made(recipe, which, seed, training.done, training.done * BATCH_TOKENS, round(cpu, 1), training.validate())
    if after is not None:
        earlier = _made(after, which)
        made = replace(
            made,
            recipe=f"{earlier.recipe}, {recipe}",
            steps=earlier.steps + made.steps,
            tokens=earlier.tokens + made.tokens,
            cpu_minutes=round(earlier.cpu_minutes + made.cpu_minutes, 1),
        )
    (out / f"{which}.json").write_text(json.dumps(asdict(made), indent=1) + "\n", encoding="utf-8")
    return made


def describe(folder: Path) -> str:
    """What README.md of the weights in `folder` says, from what was noted when they were made."""
    recipe = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))["recipe"]
    lines = [
        "# Weights of the built-in engine",
        "",
        f"`tokens.json` holds the merges of the tokenizer (recipe {recipe}), the others the models in half precision:",
        "",
        "    python -m probes.workloads.engine.train tokens|target|draft --minutes N --seed S --out DIR",
        "",
        "from text that the program generates itself (`facts.py`, `faq.py`, `scenes.py`, `prose.py`, `copying.py`), on",
        "one CPU thread with bfloat16 autocast. The exact run again: `train MODEL --seed S --steps N` at the recipe's",
        "commit; another processor or PyTorch may round differently. Several commits are a run that was gone on from",
        "with `--after`, each time with a new seed (the last is named). Validation is nats per answer token over",
        "requests whose combination of topic and form, role and thing, or text never occurs in training.",
        "",
        "| model | recipe | seed | steps | tokens | CPU minutes | faq | prose | copy |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for which in SHAPES:
        if (folder / f"{which}.json").exists():
            made = _made(folder, which)
            losses = [f"{made.validation[group]:.3f}" for group in ("faq", "prose", "copy")]
            cells = [which, made.recipe, made.seed, made.steps, f"{made.tokens:,}", made.cpu_minutes, *losses]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _made(folder: Path, which: str) -> Made:
    return Made(**json.loads((folder / f"{which}.json").read_text(encoding="utf-8")))


def _recipe() -> str:
    """The commit that last changed this folder, "unknown" outside of a repository."""
    folder = Path(__file__).parent
    command = ["git", "log", "-1", "--format=%h", "--", "."]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def main(arguments: list[str] | None = None) -> None:
    """Train what the command line names."""
    parser = argparse.ArgumentParser(prog="train", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["tokens", "target", "draft", "all"])
    parser.add_argument("--minutes", type=float, default=40.0, help="CPU time of the target; the draft gets a quarter")
    parser.add_argument("--steps", type=int, default=0, help="instead of --minutes: exactly so many steps")
    parser.add_argument("--after", type=Path, help="the folder of a run that was stopped, to go on from there")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(1)
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.what in ("tokens", "all"):
        tokenizer = train_tokens(chosen.out, chosen.seed)
    else:
        tokenizer = Tokenizer.load(chosen.out / "tokens.json")
    for which in SHAPES if chosen.what == "all" else set(SHAPES) & {chosen.what}:
        share = 0.25 if chosen.what == "all" and which == "draft" else 1.0
        minutes = chosen.minutes * share
        made = train_model(which, tokenizer, chosen.out, chosen.seed, minutes, chosen.steps, chosen.after)
        _say(str(made))
    (chosen.out / "README.md").write_text(describe(chosen.out), encoding="utf-8")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
