"""Options of TensorRT-LLM's LLM class, as they stand in a YAML file of trtllm-serve or trtllm-bench, or in JSON."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.configuration.settings import Configuration
from inspector.configuration.taking import Taking, Tree, at, group

_NAMES: Mapping[str, tuple[str, ...]] = {
    "model": ("model",),
    "dtype": ("dtype",),
    "quantization": ("quant_config.quant_algo",),
    "kv_dtype": ("kv_cache_config.dtype", "quant_config.kv_cache_quant_algo"),
    "quantization_group": ("quant_config.group_size",),
    "tensor_parallel": ("tensor_parallel_size", "tp_size"),
    "pipeline_parallel": ("pipeline_parallel_size", "pp_size"),
    "expert_parallel": ("moe_expert_parallel_size", "ep_size"),
    "context_parallel": ("context_parallel_size", "cp_size"),
    "attention_dp": ("enable_attention_dp",),
    "max_batch_size": ("max_batch_size", "build_config.max_batch_size"),
    "max_num_tokens": ("max_num_tokens", "build_config.max_num_tokens"),
    "max_seq_len": ("max_seq_len", "build_config.max_seq_len"),
    "max_input_len": ("max_input_len", "build_config.max_input_len"),
    "max_beam_width": ("max_beam_width", "build_config.max_beam_width"),
    "kv_fraction": ("kv_cache_config.free_gpu_memory_fraction",),
    "kv_tokens": ("kv_cache_config.max_tokens",),
    "tokens_per_block": ("kv_cache_config.tokens_per_block", "build_config.plugin_config.tokens_per_block"),
    "reuse": ("kv_cache_config.enable_block_reuse",),
    "host_cache": ("kv_cache_config.host_cache_size",),
    "backend": ("backend",),
    "chunked_context": ("enable_chunked_prefill", "enable_chunked_context"),
    "scheduler_policy": ("scheduler_config.capacity_scheduler_policy",),
    "speculation": ("speculative_config.decoding_type",),
    "draft_length": (
        "speculative_config.max_draft_len",
        "speculative_config.num_nextn_predict_layers",
        "speculative_config.draft_len",
    ),
    "draft_model": (
        "speculative_config.speculative_model",
        "speculative_config.speculative_model_dir",
        "speculative_config.draft_model",
    ),
}


def is_options(tree: Tree) -> bool:
    """Whether it holds at least one option that is known here."""
    return any(at(tree, path) is not None for paths in _NAMES.values() for path in paths if path != "model")


def read_options(tree: Tree, file: str, prefix: str = "") -> Configuration:
    """What the options say; `file` names where they stand, `prefix` what stands before their names there."""
    taking = Taking(file, prefix)
    for name, paths in _NAMES.items():
        taking.take(name, tree, *paths)
    window = at(tree, "kv_cache_config.max_attention_window")
    # By value and never by text: what a list of YAML holds may be endless.
    if isinstance(window, list) and window and all(isinstance(each, int) and each == window[0] for each in window):
        taking.put("sliding_window", window[0], "kv_cache_config.max_attention_window")
    off = at(tree, "disable_overlap_scheduler")
    if isinstance(off, bool):
        taking.put("overlap", not off, "disable_overlap_scheduler")
    for servers in ("context_servers", "generation_servers"):
        if group(tree, servers):
            taking.note(f"{file} is of several servers ({servers}): what each of them is told is not read")
    return taking.done()


def read_server_info(tree: object, file: str) -> Configuration:
    """What a server's /server_info says: options at the top or in a group of their own; {} and others say nothing."""
    if not isinstance(tree, Mapping):
        return Configuration()
    for name in ("llm_args", "server_args", "config"):
        inner = group(tree, name)
        if inner:
            return read_options(inner, file, f"{name}.")
    return read_options(tree, file)
