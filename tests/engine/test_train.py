from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from probes.workloads.engine import train
from probes.workloads.engine.model import load
from probes.workloads.engine.tokens import Tokenizer

STEPS = 20


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    Tokenizer.load().save(folder / "tokens.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "BATCH_TOKENS", 1024)
        train.main(["draft", "--steps", str(STEPS), "--seed", "4", "--out", str(folder)])
    return folder


def test_twenty_steps_learn_something(made: Path) -> None:
    told = json.loads((made / "draft.json").read_text())
    assert (told["model"], told["seed"], told["steps"], told["tokens"]) == ("draft", 4, STEPS, STEPS * 1024)
    # A model that knows nothing needs ln 1024 = 6.93 nats for a token.
    assert set(told["validation"]) == {"faq", "prose", "copy"}
    assert all(1.0 < value < math.log(1024) - 0.2 for value in told["validation"].values())


def test_how_it_was_made_stands_beside_it(made: Path) -> None:
    told = json.loads((made / "draft.json").read_text())
    row = next(line for line in (made / "README.md").read_text().splitlines() if line.startswith("| draft"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:5] == ["draft", told["recipe"], "4", str(STEPS), f"{STEPS * 1024:,}"]
    assert [float(cell) for cell in cells[6:]] == [
        round(told["validation"][group], 3) for group in ("faq", "prose", "copy")
    ]


def test_the_committed_readme_tells_of_the_committed_weights() -> None:
    assert (train.WEIGHTS / "README.md").read_text() == train.describe(train.WEIGHTS)


def test_the_saved_weights_are_what_was_validated(made: Path) -> None:
    told = json.loads((made / "draft.json").read_text())
    training = train.Training("draft", Tokenizer.load(made / "tokens.json"), seed=9)
    training.averaged = load("draft", folder=made)
    # Half precision on disk costs next to nothing.
    assert training.validate() == pytest.approx(told["validation"], rel=2e-3)


def test_the_same_seed_and_steps_make_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "BATCH_TOKENS", 1024)
    first, again, other = (train.Training("draft", Tokenizer.load(), seed) for seed in (2, 2, 3))
    losses = [[training.step(0.5) for _ in range(3)] for training in (first, again, other)]
    assert losses[0] == losses[1] != losses[2]
    for one, two in zip(first.averaged.parameters(), again.averaged.parameters(), strict=True):
        assert torch.equal(one, two)


def test_a_stopped_run_is_gone_on_from(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "BATCH_TOKENS", 1024)
    told = json.loads((made / "draft.json").read_text())
    more = train.train_model("draft", Tokenizer.load(), tmp_path, seed=5, steps=10, after=made)
    assert more.recipe.startswith(told["recipe"] + ", ")
    assert (more.steps, more.tokens) == (STEPS + 10, (STEPS + 10) * 1024)
    assert all(more.validation[group] < told["validation"][group] for group in ("faq", "prose", "copy"))


def test_minutes_become_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "BATCH_TOKENS", 1024)
    monkeypatch.setattr(train, "_TIMED", 4)
    made = train.train_model("draft", Tokenizer.load(), tmp_path, seed=1, minutes=0.01)
    assert 4 <= made.steps < 400
    assert (tmp_path / "draft.safetensors").stat().st_size > 500_000
