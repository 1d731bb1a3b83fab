"""config.json of a Hugging Face model, with hf_quant_config.json and the index of the weights beside it."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.configuration.families import FAMILIES, Family, family_of_class
from inspector.configuration.settings import Configuration
from inspector.configuration.taking import Taking, Tree, at, group

# Where a model of several parts keeps the one that reads and writes text.
_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "hidden_dim"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "attn_config.kv_n_heads"),
    "head_dim": ("head_dim", "attention_head_dim"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"),
    "experts": (
        "n_routed_experts",
        "num_local_experts",
        "num_experts",
        "moe_num_experts",
        "ffn_config.moe_num_experts",
    ),
    "experts_per_token": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "ffn_config.moe_top_k"),
    "expert_size": ("moe_intermediate_size", "expert_ffn_hidden_size", "ffn_config.ffn_hidden_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts"),
    "shared_expert_size": ("shared_expert_intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "latent_kv": ("kv_lora_rank",),
    "latent_q": ("q_lora_rank",),
    "rope_dim": ("qk_rope_head_dim",),
    "nope_dim": ("qk_nope_head_dim",),
    "value_dim": ("v_head_dim",),
    "tied": ("tie_word_embeddings",),
    "dtype": ("dtype", "torch_dtype"),
}
# What the outer part says of all of the model.
_OUTER = ("tied", "dtype", "vocabulary")
_FLOATS = {(8, "float"): "fp8", (4, "float"): "nvfp4", (8, "int"): "int8", (4, "int"): "int4"}


def is_config(tree: Tree) -> bool:
    """Whether it looks like config.json of a language model, of any age."""
    part, _ = _language_part(tree)
    says_what = any(isinstance(at(tree, key), str | list) for key in ("model_type", "architectures"))
    return says_what and any(at(part, key) is not None for key in (*_NAMES["layers"], *_NAMES["hidden_size"]))


def read_config(tree: Tree, file: str) -> Configuration:
    """What a config.json says; `file` names it."""
    part, path = _language_part(tree)
    taking = Taking(file, path)
    kind = at(part, "model_type") or at(tree, "model_type")
    classes = at(tree, "architectures")
    if isinstance(kind, str):
        taking.put("family", kind, "model_type")
    elif isinstance(classes, list) and classes and isinstance(classes[0], str):
        taking.put("family", family_of_class(classes[0]), "architectures")
    # A model that is not of our table but says what it is built as is what it says.
    family = FAMILIES.get(str(taking.value("family")), Family(head_of_hidden=False))
    _take_shape(taking, part, family)
    outer = Taking(file)
    for name in _OUTER:
        _take(outer, tree, name, _NAMES[name])
    _take_quantization(taking, tree, part)
    found, more = taking.done(), outer.done()
    settings = {**more.settings, **found.settings}
    if "tied" not in settings and str(taking.value("family")) in FAMILIES:
        taking.put("tied", family.tied, "model_type, since it is not said otherwise")
        settings |= taking.done().settings
    return Configuration(settings, found.notes + more.notes)


def read_quantization(tree: Tree, file: str) -> Configuration:
    """What an hf_quant_config.json says."""
    taking = Taking(file)
    taking.take("quantization", tree, "quantization.quant_algo")
    taking.take("kv_dtype", tree, "quantization.kv_cache_quant_algo")
    taking.take("quantization_group", tree, "quantization.group_size")
    return taking.done()


def read_index(tree: Tree, file: str) -> Configuration:
    """What the index of the weights (model.safetensors.index.json) says."""
    taking = Taking(file)
    taking.take("checkpoint_bytes", tree, "metadata.total_size")
    return taking.done()


def _language_part(tree: Tree) -> tuple[Tree, str]:
    path = ""
    # thinker_config holds a text_config of its own; deeper is none.
    for _ in range(2):
        inner = next((name for name in _PARTS if isinstance(tree.get(name), Mapping) and tree[name]), None)
        if inner is None:
            break
        tree, path = tree[inner], f"{path}{inner}."
    return tree, path


def _take(taking: Taking, tree: Tree, name: str, keys: tuple[str, ...]) -> None:
    if name != "dtype":
        taking.take(name, tree, *keys)
        return
    for key in keys:
        value = at(tree, key)
        if value is not None:
            taking.put(name, value.removeprefix("torch.") if isinstance(value, str) else value, key)
            return


def _take_shape(taking: Taking, part: Tree, family: Family) -> None:
    for name, keys in _NAMES.items():
        if name in ("latent_kv", "rope_dim", "nope_dim", "value_dim", "latent_q") and not at(part, "kv_lora_rank"):
            continue
        _take(taking, part, name, keys)
    if at(part, "use_sliding_window") is not False:
        taking.take("sliding_window", part, "sliding_window", "sliding_window_size", "attention_window_size")
    if at(part, "multi_query") is True and at(part, "new_decoder_architecture") is not True:
        taking.put("kv_heads", 1, "multi_query")
    hidden, heads = taking.number("hidden_size"), taking.number("heads")
    if family.full_kv and heads:
        taking.put("kv_heads", heads, "num_attention_heads, without a number for keys")
    if family.head_of_hidden and hidden and heads and hidden % heads == 0:
        taking.put("head_dim", hidden // heads, "hidden_size by num_attention_heads")
    if family.mlp_factor and hidden:
        taking.put("intermediate_size", family.mlp_factor * hidden, f"{family.mlp_factor} times hidden_size")


def _take_quantization(taking: Taking, tree: Tree, part: Tree) -> None:
    for holder in (part, tree):
        for name in ("quantization_config", "compression_config"):
            found = group(holder, name)
            if found:
                _take_method(taking, found, name)
                return


def _take_method(taking: Taking, found: Tree, name: str) -> None:
    """Several tools write it, each in its own words."""
    algorithm, method = at(found, "quant_algo"), at(found, "quant_method")
    bits, form = at(found, "bits"), at(found, "format")
    if isinstance(algorithm, str):
        taking.put("quantization", algorithm, f"{name}.quant_algo")
    elif method == "compressed-tensors" and isinstance(form, str):
        scheme = group(found, "config_groups.group_0.weights")
        word = _FLOATS.get((_number(scheme, "num_bits"), str(at(scheme, "type"))), "")
        taking.put("quantization", f"{word} ({form})" if word else form, f"{name}.format")
        taking.take("quantization_group", scheme, "group_size")
    elif method == "fp8" and isinstance(at(found, "weight_block_size"), list):
        taking.put("quantization", "fp8_block_scales", f"{name}.weight_block_size")
    elif isinstance(method, str):
        if at(found, "load_in_4bit") is True:
            bits = 4
        elif at(found, "load_in_8bit") is True:
            bits = 8
        known = isinstance(bits, int) and not isinstance(bits, bool)
        taking.put("quantization", f"{method} int{bits}" if known else method, f"{name}.quant_method")
        taking.take("quantization_group", found, "group_size", "q_group_size")
    scheme = group(found, "kv_cache_scheme")
    word = _FLOATS.get((_number(scheme, "num_bits"), str(at(scheme, "type"))), "")
    if word:
        taking.put("kv_dtype", word, f"{name}.kv_cache_scheme")
    taking.take("kv_dtype", found, "kv_cache_quant_algo")


def _number(tree: Tree, key: str) -> int:
    value = at(tree, key)
    return value if isinstance(value, int) else -1
