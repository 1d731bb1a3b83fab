"""Files that lie, explode, never end or are no files: an error that is said, or settings that stay unknown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.configuration import documents, engine, huggingface, options
from inspector.configuration.folder import is_configuration, of_folder, of_paths
from inspector.configuration.settings import MOST_TEXT, Setting, of
from inspector.errors import InspectorError
from inspector.readers import open_trace
from tests.configuration import shapes
from tests.configuration.test_files import ENGINE, OLD_ENGINE

LAUGHS = "\n".join(["a0: &a0 [1, 1]", *(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, 30))])
HUGE = "0x" + "f" * 20_000
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([2**63, -1, 10**400, "auto", "8", "torch.float16", "\x1b[2J", [8, 8], ["LlamaForCausalLM"]]),
)


def names_of(*trees: object) -> list[str]:
    found: set[str] = set()
    for tree in trees:
        if isinstance(tree, dict):
            found |= {*tree, *names_of(*tree.values())}
    return sorted(found)


TREES = st.recursive(
    LEAVES,
    lambda inner: st.dictionaries(
        st.sampled_from(
            [
                *names_of(ENGINE, OLD_ENGINE, shapes.LLAMA_3_8B, shapes.DEEPSEEK_V3, shapes.GEMMA_3_27B),
                "kv_cache_config",
                "max_attention_window",
                "speculative_config",
                "decoding_type",
                "kv_cache_scheme",
                "num_bits",
            ]
        ),
        inner,
        max_size=8,
    ),
    max_leaves=30,
)


@given(TREES)
def test_no_tree_is_too_strange(tree: object) -> None:
    if not isinstance(tree, dict):
        return
    for found in (
        huggingface.read_config(tree, "f"),
        huggingface.read_quantization(tree, "f"),
        huggingface.read_index(tree, "f"),
        engine.read_engine(tree, "f"),
        options.read_options(tree, "f"),
        options.read_server_info(tree, "f"),
    ):
        again = of(found)
        assert again.notes == ()
        assert {each.name: each.value for each in again} == {each.name: each.value for each in found}
        for text in (*found.notes, *(str(each.value) for each in found)):
            assert text.isprintable()
            assert len(text) < 2 * MOST_TEXT


@pytest.mark.parametrize(
    "text",
    [
        f"{LAUGHS}\nmax_batch_size: *a29",
        f"{LAUGHS}\nkv_cache_config: {{max_attention_window: [*a29, *a28]}}",
        f"{LAUGHS}\nkv_cache_config: {{max_attention_window: *a29}}",
        f"max_batch_size: {HUGE}",
        f"kv_cache_config: {{free_gpu_memory_fraction: {HUGE}, max_attention_window: [{HUGE}, {HUGE}]}}",
        "max_batch_size: .nan\nmax_num_tokens: -.inf\nmax_seq_len: !!binary aGFsbG8=",
        "max_batch_size: 2001-12-14\nmax_num_tokens: !!set {a, b}",
        'max_batch_size: "\\e[2J\\a"',
    ],
    ids=lambda text: text[-24:],
)
def test_values_of_yaml_that_cannot_be_stay_unknown(tmp_path: Path, text: str) -> None:
    (tmp_path / "o.yaml").write_text(f"{text}\nenable_chunked_prefill: true\n")
    found = of_paths([tmp_path / "o.yaml"])
    assert [each.name for each in found] == ["chunked_context"]
    assert all(note.isprintable() and len(note) < 2 * MOST_TEXT for note in found.notes)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "a: " * 3,
        "? " * 50_000,
        f"a: {'9' * 6000}",
        "- &a [*a]",
        "x: !!python/object/apply:os.system [ls]",
        "a: 1\n" * 60_000,
        "\x00",
    ],
    ids=lambda text: text[:6],
)
def test_yaml_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "o.yaml").write_text(text)
    with pytest.raises(InspectorError):
        of_paths([tmp_path / "o.yaml"])


@pytest.mark.parametrize("text", ["{" * 100_000, '{"a":' * 100_000, "[]", "null", "", "\ud83d", '{"a": "\\ud800"}'])
def test_json_that_is_none_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(InspectorError):
        of_paths([tmp_path / "config.json"])
    found = of_folder(tmp_path)
    assert len(found) == 0


def test_numbers_beyond_all_bounds(tmp_path: Path) -> None:
    text = json.dumps({**shapes.LLAMA_3_8B, "num_hidden_layers": "L", "hidden_size": 10**30, "vocab_size": -5})
    (tmp_path / "config.json").write_text(text.replace('"L"', "9" * 4000))
    found = of_folder(tmp_path)
    assert not {"layers", "hidden_size", "vocabulary", "head_dim"} & set(found.settings)
    assert found.integer("kv_heads") == 8 or found.notes


def test_what_is_no_file_or_too_large(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "hf_quant_config.json").mkdir()
    assert len(of_folder(tmp_path)) == 0
    assert not is_configuration(tmp_path)
    for name in ("pipe.yaml", "config.json"):
        with pytest.raises(InspectorError):
            of_paths([tmp_path / name])
        with pytest.raises(InspectorError):
            open_trace(tmp_path / name)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (documents.MOST_YAML + 1))
    with pytest.raises(InspectorError, match="larger than"):
        of_paths([large])
    link = tmp_path / "loop.yaml"
    link.symlink_to(link)
    with pytest.raises(InspectorError):
        open_trace(link)


def test_settings_of_a_strange_recording_are_not_all_told() -> None:
    strange = [Setting(f"s{at}\x1b[2J", "x" * 5000, "f" * 5000, "k") for at in range(3000)]
    found = of([*strange, Setting("layers", 3, "f" * 5000 + "\n", "k\x07")])
    assert found.integer("layers") == 3
    assert len(found.notes) < 40
    assert "2,980 more settings" in found.notes[-1]
    assert all(note.isprintable() for note in found.notes)
    assert found.settings["layers"].origin.isprintable()
