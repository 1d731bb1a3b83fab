"""Command lines: what they and the files that they name say, the strongest first."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.configuration.settings import Configuration, shown
from inspector.configuration.sizes import kv_bytes_per_token
from probes.workloads.configuration import of_command, of_launch
from probes.workloads.engine import configuration as built_in
from probes.workloads.engine import options
from tests.configuration.shapes import LLAMA_3_8B


def _model(folder: Path, tree: object = LLAMA_3_8B) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(tree))
    return folder


def _values(found: Configuration) -> dict[str, object]:
    return {each.name: each.value for each in found}


def test_a_served_model_its_options_and_its_file(tmp_path: Path) -> None:
    model = _model(tmp_path / "llama")
    (tmp_path / "more.yaml").write_text(
        "max_batch_size: 16\nkv_cache_config: {free_gpu_memory_fraction: 0.8, dtype: fp8, tokens_per_block: 64}\n"
        "scheduler_config: {capacity_scheduler_policy: MAX_UTILIZATION}\nenable_chunked_prefill: true\n"
        "speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}\ndisable_overlap_scheduler: true\n"
    )
    words = ["trtllm-serve", "--trust_remote_code", "llama", "--tp_size=2", "--max_batch_size", "8", "--max_num_tokens"]
    words += ["4096", "--extra_llm_api_options", "more.yaml", "--set", "kv_cache_config.enable_block_reuse=false"]
    found = of_command(words, {}, tmp_path)
    assert (
        _values(found).items()
        >= {
            "model": "llama",
            "layers": 32,
            "kv_heads": 8,
            "tensor_parallel": 2,
            "max_batch_size": 16,
            "max_num_tokens": 4096,
            "kv_fraction": 0.8,
            "kv_dtype": "fp8",
            "tokens_per_block": 64,
            "scheduler_policy": "MAX_UTILIZATION",
            "chunked_context": True,
            "speculation": "MTP",
            "draft_length": 3,
            "overlap": False,
            "reuse": False,
        }.items()
    )
    batch = found.settings["max_batch_size"]
    assert batch.file == str(tmp_path / "more.yaml")
    assert batch.over == "over 8 requests by --max_batch_size"
    assert found.settings["reuse"].key == "--set kv_cache_config.enable_block_reuse"
    assert found.settings["layers"].file == str(model / "config.json")
    assert "max_seq_len" not in found
    assert found.notes == ()
    assert kv_bytes_per_token(found).value == 2 * 32 * 8 * 128


@pytest.mark.parametrize("prefix", [[], ["mpirun", "-n", "2"], ["python", "-m"]])
def test_a_benchmark_of_an_engine(tmp_path: Path, prefix: list[str]) -> None:
    engine = {"pretrained_config": {"architecture": "LlamaForCausalLM", "num_hidden_layers": 4}}
    _model(tmp_path / "engine", engine | {"build_config": {"max_batch_size": 64, "max_seq_len": 2048}})
    program = "tensorrt_llm.commands.bench" if prefix[:1] == ["python"] else "trtllm-bench"
    words = [*prefix, program, "--model", "some/model", "throughput", "--engine_dir", "engine", "--tp", "4"]
    words += ["--scheduler_policy", "max_utilization", "--enable_chunked_context", "--max_batch_size", "32"]
    found = of_command(words, {"HOME": str(tmp_path)}, tmp_path)
    assert _values(found) == {
        "model": "some/model",
        "family": "llama",
        "layers": 4,
        "tensor_parallel": 4,
        "max_batch_size": 32,
        "max_seq_len": 2048,
        "chunked_context": True,
        "scheduler_policy": "max_utilization",
    }
    assert found.settings["max_batch_size"].over == "over 64 requests by build_config.max_batch_size"


@pytest.mark.parametrize("home", ["HF_HUB_CACHE", "HF_HOME", "HOME"])
def test_a_model_of_the_hub_is_looked_for_in_its_cache(tmp_path: Path, home: str) -> None:
    hub = {"HF_HUB_CACHE": tmp_path, "HF_HOME": tmp_path / "hub", "HOME": tmp_path / ".cache/huggingface/hub"}[home]
    kept = hub / "models--org--small"
    _model(kept / "snapshots" / "abc123")
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("abc123")
    environment = {home: str(tmp_path)}
    assert of_command(["trtllm-serve", "serve", "org/small"], environment, tmp_path).integer("layers") == 32
    assert of_command(["trtllm-serve", "org/small", "--revision", "abc123"], environment, tmp_path).integer("layers")
    (kept / "refs" / "main").write_text("../../../elsewhere")
    assert "layers" not in of_command(["trtllm-serve", "org/small"], environment, tmp_path)
    assert "layers" not in of_command(["trtllm-serve", "org/small", "--revision", "../x"], environment, tmp_path)


def test_what_is_no_server_says_nothing(tmp_path: Path) -> None:
    for words in ([], ["ls"], ["python", "serve.py", "--max_batch_size", "3"], ["sh", "-c", "trtllm-serve x"]):
        assert len(of_command(words, {}, tmp_path)) == 0


def test_a_file_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    found = of_command(["trtllm-serve", "m", "--config", "gone.yaml", "--max_num_tokens", "many"], {}, tmp_path)
    assert _values(found) == {"model": "m"}
    assert len(found.notes) == 2
    assert any("gone.yaml" in note for note in found.notes)
    assert any("--max_num_tokens" in note for note in found.notes)


def test_options_of_ours_fill_what_was_left_open(tmp_path: Path) -> None:
    ours = tmp_path / "ours.yaml"
    ours.write_text("max_batch_size: 4\nkv_cache_config: {enable_block_reuse: true}\n")
    given = ["trtllm-serve", "m", "--max_batch_size", "8"]
    found = of_launch(given, [*given, "--extra_llm_api_options", str(ours)], {})
    assert found.integer("max_batch_size") == 8
    assert found.settings["reuse"].file == str(ours)


def test_the_built_in_engine_is_what_its_files_say() -> None:
    torch = pytest.importorskip("torch")
    assert torch
    from probes.workloads.engine.model import TARGET

    words = ["python", "-I", "-m", built_in.MODULE, "--max-batch-size", "5", "--draft", "none", "--control"]
    found = of_command(words, {}, Path("/"))
    shape = asdict(TARGET)
    named = ("hidden_size", "layers", "heads", "kv_heads", "head_dim", "intermediate_size", "vocabulary", "positions")
    keys = ("width", "layers", "heads", "kv_heads", "per_head", "inner", "entries", "positions")
    assert [found.integer(name) for name in named] == [shape[key] for key in keys]
    assert kv_bytes_per_token(found).value == TARGET.kv_bytes_per_token
    assert found.integer("max_batch_size") == 5
    assert found.settings["max_batch_size"].origin == "--max-batch-size in command line"
    assert found.integer("max_num_tokens") == options.DEFAULTS["max_num_tokens"]
    assert found.settings["max_num_tokens"].origin == "default in built-in engine"
    assert found.text("speculation") == "none"
    assert shown(found.settings["tokens_per_block"]) == "16 tokens"


@pytest.mark.parametrize("arguments", [["--max-batch-size", "0"], ["--draft"], ["--stages", "x"]])
def test_options_that_the_engine_refuses_say_nothing(arguments: list[str]) -> None:
    assert len(built_in.configuration(arguments)) == 0


WORDS = st.one_of(
    st.sampled_from(
        [
            "trtllm-serve",
            "trtllm-bench",
            "serve",
            "--set",
            "--set=a.b=[",
            "--set",
            "kv_cache_config.max_attention_window=[&a [1], *a]",
            "--model",
            "--tp_size",
            "--config",
            "/dev/null",
            ".",
            "org/name",
            "--revision",
            "..",
            "--max_batch_size=" + "9" * 5000,
            "--kv_cache_free_gpu_memory_fraction=nan",
        ]
    ),
    st.text(st.characters(exclude_characters="\0"), max_size=6),
)


@given(st.lists(WORDS, max_size=10))
def test_no_command_line_is_too_strange(words: list[str]) -> None:
    for before in ([], ["trtllm-serve"], ["trtllm-serve", "serve"], ["trtllm-bench"], ["python", "-m"]):
        found = of_command([*before, *words], {"HOME": "/nowhere"}, Path("/nowhere"))
        assert all(str(each.value).isprintable() and each.origin.isprintable() for each in found)
