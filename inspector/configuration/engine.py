"""config.json of a TensorRT-LLM engine or checkpoint: of releases up to 0.7 (builder_config), and of those since."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.configuration.families import family_of_class
from inspector.configuration.settings import Configuration
from inspector.configuration.taking import Taking, Tree, at, group

_MODEL: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "num_layers"),
    "hidden_size": ("hidden_size",),
    "intermediate_size": ("intermediate_size", "inter_size"),
    "heads": ("num_attention_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_dim": ("head_size",),
    "vocabulary": ("vocab_size",),
    "positions": ("max_position_embeddings",),
    "experts": ("moe.num_experts", "moe_num_experts"),
    "experts_per_token": ("moe.top_k", "moe_top_k"),
    "expert_size": ("moe_inter_size",),
    "latent_kv": ("kv_lora_rank",),
    "latent_q": ("q_lora_rank",),
    "rope_dim": ("qk_rope_head_dim",),
    "nope_dim": ("qk_nope_head_dim",),
    "value_dim": ("v_head_dim",),
    "dtype": ("dtype", "precision"),
    "quantization": ("quantization.quant_algo", "quant_algo"),
    "kv_dtype": ("quantization.kv_cache_quant_algo", "kv_dtype"),
    "quantization_group": ("quantization.group_size",),
    "tensor_parallel": ("mapping.tp_size", "tensor_parallel"),
    "pipeline_parallel": ("mapping.pp_size", "pipeline_parallel"),
    "expert_parallel": ("mapping.moe_ep_size",),
    "context_parallel": ("mapping.cp_size",),
}
_BUILD: Mapping[str, tuple[str, ...]] = {
    "max_batch_size": ("max_batch_size",),
    "max_num_tokens": ("max_num_tokens",),
    "max_seq_len": ("max_seq_len",),
    "max_input_len": ("max_input_len",),
    "max_beam_width": ("max_beam_width",),
    "draft_length": ("max_draft_len",),
    "tokens_per_block": ("plugin_config.tokens_per_block",),
}


def is_engine(tree: Tree) -> bool:
    """Whether it is of an engine or a checkpoint of TensorRT-LLM."""
    if isinstance(tree.get("builder_config"), Mapping) or isinstance(tree.get("pretrained_config"), Mapping):
        return True
    return isinstance(tree.get("architecture"), str) and ("mapping" in tree or "num_hidden_layers" in tree)


def read_engine(tree: Tree, file: str) -> Configuration:
    """What it says; `file` names it."""
    if isinstance(tree.get("builder_config"), Mapping):
        return _read_old(tree, file)
    inner = isinstance(tree.get("pretrained_config"), Mapping)
    model, build = group(tree, "pretrained_config") if inner else tree, group(tree, "build_config")
    taking = Taking(file, "pretrained_config." if inner else "")
    _take_model(taking, model)
    taking.prefix = "build_config."
    for name, paths in _BUILD.items():
        taking.take(name, build, *paths)
    mode = at(build, "speculative_decoding_mode")
    # Releases up to 1.0 write a number, of which 1 is for none.
    if isinstance(mode, str) and mode.upper() != "NONE":
        taking.put("speculation", mode, "speculative_decoding_mode")
    if at(build, "plugin_config.use_paged_context_fmha") is False:
        taking.put("chunked_context", False, "plugin_config.use_paged_context_fmha")
    return taking.done()


def _take_model(taking: Taking, model: Tree) -> None:
    architecture = at(model, "architecture")
    if isinstance(architecture, str):
        taking.put("family", family_of_class(architecture), "architecture")
    for name, paths in _MODEL.items():
        if name == "quantization" and at(model, "quantization.quant_algo") == "NO_QUANT":
            continue
        # Models without experts write 0 for them, and those without a latent too.
        if any(at(model, path) == 0 for path in paths):
            continue
        taking.take(name, model, *paths)


def _read_old(tree: Tree, file: str) -> Configuration:
    builder, plugins = group(tree, "builder_config"), group(tree, "plugin_config")
    taking = Taking(file, "builder_config.")
    taking.take("family", builder, "name")
    _take_model(taking, builder)
    for name in ("max_batch_size", "max_num_tokens", "max_input_len", "max_beam_width"):
        taking.take(name, builder, name)
    longest, made = taking.number("max_input_len"), at(builder, "max_output_len")
    if longest is not None and isinstance(made, int) and not isinstance(made, bool) and made > 0:
        taking.put("max_seq_len", longest + made, "max_input_len and max_output_len")
    heads, hidden = taking.number("heads"), taking.number("hidden_size")
    if heads and hidden and hidden % heads == 0:
        taking.put("head_dim", hidden // heads, "hidden_size by num_heads")
    taking.prefix = "plugin_config."
    taking.take("tokens_per_block", plugins, "tokens_per_block")
    return taking.done()
