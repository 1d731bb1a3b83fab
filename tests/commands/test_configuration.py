"""A configuration beside a trace on the command line: joined, told, and nothing guessed where none is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.cli import main
from inspector.readers import open_trace
from inspector.trace.save import save
from tests.configuration.shapes import LLAMA_3_8B
from tests.engine_traces import Setup, engine_trace


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    save(engine_trace(Setup()), tmp_path / "run.inflight")
    return tmp_path / "run.inflight"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_8B))
    return tmp_path / "config.json"


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    assert main(["summary", *map(str, words), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["configuration"]


def test_nothing_is_guessed_from_what_lies_beside(
    recording: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (recording.parent / "extra_llm_api_options.yaml").write_text("max_batch_size: 3\n")
    (recording / "config.json").write_text(model.read_text())
    found = printed(capsys, recording)
    assert found == {"settings": {}, "modelled": {}, "contradictions": {}, "unknown": [], "notes": []}
    assert main(["summary", str(recording)]) == 0
    assert "Configuration" not in capsys.readouterr().out


def test_a_configuration_joins_the_trace(recording: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = model.with_name("mine.yaml")
    options.write_text("max_batch_size: 16\nkv_cache_config: {tokens_per_block: 8}\n")
    found = printed(capsys, options, recording, model)
    assert found["settings"]["layers"] == {
        "value": 32,
        "unit": "",
        "group": "Model",
        "file": str(model),
        "key": "num_hidden_layers",
        "over": "",
    }
    assert found["settings"]["max_batch_size"]["file"] == str(options)
    assert found["modelled"]["kv_bytes_per_token"]["value"] == 131_072
    assert found["modelled"]["page_bytes"]["value"] == 8 * 131_072
    assert found["contradictions"]["max_batch_size"] == "recorded: 6"
    assert "tensor_parallel" in found["unknown"]
    assert "tensor_parallel" not in found["settings"]
    assert main(["summary", str(recording), str(model)]) == 0
    text = capsys.readouterr().out
    assert "num_hidden_layers in config.json" in text
    assert "not said: " in text
    assert "which nothing says" in text


def test_a_folder_of_a_model_joins_and_is_kept(recording: Path, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "engine"
    folder.mkdir()
    model.rename(folder / "config.json")
    assert main(["convert", str(recording), str(folder), str(tmp_path / "out.inflight")]) == 0
    kept = open_trace(tmp_path / "out.inflight").info.configuration
    assert kept.settings["kv_heads"].origin == f"num_key_value_heads in {folder / 'config.json'}"


def test_a_configuration_alone_is_no_trace(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", str(model)]) == 2
    assert "config.json is no trace" in capsys.readouterr().err
    model.write_text("{")
    assert main(["summary", str(model)]) == 3
    assert capsys.readouterr().err.count("\n") == 1
