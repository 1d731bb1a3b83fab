"""Files of configuration, read alone and together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inspector.configuration.folder import is_configuration, of_config, of_folder, of_paths
from inspector.configuration.settings import Configuration
from inspector.errors import InspectorError, Unreadable
from tests.configuration import shapes

ENGINE: dict[str, Any] = {
    "version": "0.17.0",
    "pretrained_config": {
        "architecture": "LlamaForCausalLM",
        "dtype": "float16",
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_size": 128,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "moe": {"num_experts": 0, "top_k": 0},
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
        "mapping": {"world_size": 4, "tp_size": 2, "pp_size": 2, "moe_ep_size": 1},
    },
    "build_config": {
        "max_batch_size": 64,
        "max_num_tokens": 8192,
        "max_seq_len": 4096,
        "speculative_decoding_mode": 1,
        "plugin_config": {"tokens_per_block": 64, "use_paged_context_fmha": False},
    },
}
OLD_ENGINE: dict[str, Any] = {
    "builder_config": {
        "name": "llama",
        "num_layers": 2,
        "num_heads": 4,
        "hidden_size": 64,
        "precision": "float16",
        "tensor_parallel": 2,
        "max_batch_size": 8,
        "max_input_len": 100,
        "max_output_len": 28,
    },
    "plugin_config": {"tokens_per_block": 128},
}


def values(found: Configuration) -> dict[str, object]:
    return {each.name: each.value for each in found}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (shapes.LLAMA_3_8B, {"family": "llama", "layers": 32, "kv_heads": 8, "head_dim": 128, "tied": False}),
        (shapes.MIXTRAL_8X7B, {"experts": 8, "experts_per_token": 2, "kv_heads": 8, "dtype": "bfloat16"}),
        (shapes.DEEPSEEK_V3, {"latent_kv": 512, "rope_dim": 64, "experts": 256, "quantization": "fp8_block_scales"}),
        (shapes.QWEN_3_8B, {"head_dim": 128, "layers": 36}),
        (shapes.GEMMA_3_27B, {"family": "gemma3_text", "kv_heads": 16, "sliding_window": 1024, "tied": True}),
        (shapes.GPT_2, {"kv_heads": 12, "head_dim": 64, "intermediate_size": 3072, "tied": True}),
        (
            ENGINE,
            {
                "layers": 32,
                "quantization": "FP8",
                "kv_dtype": "FP8",
                "tensor_parallel": 2,
                "pipeline_parallel": 2,
                "max_batch_size": 64,
                "max_num_tokens": 8192,
                "tokens_per_block": 64,
                "chunked_context": False,
            },
        ),
        (OLD_ENGINE, {"layers": 2, "head_dim": 16, "tensor_parallel": 2, "max_seq_len": 128, "tokens_per_block": 128}),
    ],
)
def test_what_a_config_says(tree: dict[str, Any], expected: dict[str, object]) -> None:
    found = of_config(tree, "config.json")
    assert values(found).items() >= expected.items()
    assert found.notes == ()
    assert {each.file for each in found} == {"config.json"}


def test_what_a_config_does_not_say_is_not_known() -> None:
    assert "sliding_window" not in of_config(shapes.QWEN_2_5_7B, "c")
    assert "kv_heads" not in of_config({**shapes.QWEN_3_8B, "num_key_value_heads": None}, "c")
    engine = of_config(ENGINE, "c")
    assert not {"experts", "speculation", "kv_fraction", "max_input_len"} & set(values(engine))
    assert len(of_config({"architectures": "LlamaForCausalLM", "hidden_size": 8}, "c").settings) == 1
    assert len(of_config({"model_type": "llama"}, "c")) == 0


def write(folder: Path, **files: object) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_companions_of_a_model(tmp_path: Path) -> None:
    write(
        tmp_path,
        config__json=shapes.LLAMA_3_8B,
        hf_quant_config__json={"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}},
    )
    (tmp_path / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 4711}}')
    found = of_folder(tmp_path)
    assert values(found).items() >= {"quantization": "NVFP4", "kv_dtype": "FP8", "checkpoint_bytes": 4711}.items()
    assert found.settings["kv_dtype"].origin == (
        f"quantization.kv_cache_quant_algo in {tmp_path / 'hf_quant_config.json'}"
    )


@pytest.mark.parametrize("turned", [False, True])
def test_options_are_stronger_than_the_model_however_they_are_named(tmp_path: Path, turned: bool) -> None:
    write(tmp_path, config__json=ENGINE, mine__yml="max_batch_size: 16\nkv_cache_config: {tokens_per_block: 32}")
    paths = [tmp_path / "config.json", tmp_path / "mine.yml"]
    found = of_paths(reversed(paths) if turned else paths)
    assert found.integer("max_batch_size") == 16
    assert found.integer("tokens_per_block") == 32
    assert found.settings["max_batch_size"].over == "over 64 requests by build_config.max_batch_size"
    assert found.integer("layers") == 32


def test_a_folder_of_an_engine(tmp_path: Path) -> None:
    write(tmp_path, config__json=ENGINE, extra_llm_api_options__yaml="max_num_tokens: 100")
    assert is_configuration(tmp_path)
    found = of_paths([tmp_path])
    assert found.integer("max_num_tokens") == 100
    assert found.integer("max_batch_size") == 64


def test_options_as_json(tmp_path: Path) -> None:
    write(tmp_path, serve__json={"max_batch_size": 3, "kv_cache_config": {"free_gpu_memory_fraction": 0.5}})
    assert is_configuration(tmp_path / "serve.json")
    assert values(of_paths([tmp_path / "serve.json"])) == {"max_batch_size": 3, "kv_fraction": 0.5}


def test_what_is_no_configuration(tmp_path: Path) -> None:
    write(tmp_path, trace__json={"traceEvents": []}, notes__txt="max_batch_size: 3", empty__yaml="", other__yml="a: 1")
    assert not is_configuration(tmp_path / "trace.json")
    assert not is_configuration(tmp_path / "notes.txt")
    assert not is_configuration(tmp_path)
    for name in ("empty.yaml", "other.yml"):
        with pytest.raises(Unreadable, match="no setting that this program knows"):
            of_paths([tmp_path / name])


def test_a_wrong_file_says_why(tmp_path: Path) -> None:
    write(tmp_path, config__json="{", wrong__yaml="a: [")
    for path in (tmp_path / "config.json", tmp_path / "wrong.yaml", tmp_path):
        with pytest.raises(InspectorError, match=r"cannot read|tells no configuration"):
            of_paths([path])
