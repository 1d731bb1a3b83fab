"""What the code of a family of models takes for granted, so that its config.json need not say it.

From the classes of Hugging Face transformers; a family that is not here takes nothing for granted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """`gated`: the feed-forward part has three matrices, not two. `tied` holds where the file does not say.

    `full_kv`: without a number of KV heads there are as many as heads. `head_of_hidden`: without a head size it is
    the hidden size by heads. `learned_positions`: positions are rows of an embedding. `mlp_factor`: without a size, the
    feed-forward part is so many times the hidden size.
    """

    gated: bool = True
    tied: bool = False
    full_kv: bool = False
    head_of_hidden: bool = True
    learned_positions: bool = False
    mlp_factor: int = 0


_GATED = Family()
_OWN_HEADS = Family(head_of_hidden=False)
_GEMMA = Family(tied=True, head_of_hidden=False)
FAMILIES: Mapping[str, Family] = {
    "gpt2": Family(gated=False, tied=True, full_kv=True, learned_positions=True, mlp_factor=4),
    "gptj": Family(gated=False, full_kv=True, mlp_factor=4),
    "gpt_neox": Family(gated=False, full_kv=True),
    "opt": Family(gated=False, tied=True, full_kv=True, learned_positions=True),
    "phi": Family(gated=False, full_kv=True),
    "starcoder2": Family(gated=False, tied=True),
    "bloom": Family(gated=False, tied=True, full_kv=True, mlp_factor=4),
    "llama": Family(full_kv=True),
    "mistral": _GATED,
    "ministral": _OWN_HEADS,
    "mixtral": _GATED,
    "qwen2": _GATED,
    "qwen2_moe": _GATED,
    "qwen2_5_vl_text": _GATED,
    "qwen3": _OWN_HEADS,
    "qwen3_moe": _OWN_HEADS,
    "phi3": Family(full_kv=True),
    "olmo2": Family(full_kv=True),
    "granite": Family(full_kv=True),
    "smollm3": _GATED,
    "gemma": _GEMMA,
    "gemma2": _GEMMA,
    "gemma3_text": _GEMMA,
    "deepseek_v2": _OWN_HEADS,
    "deepseek_v3": _OWN_HEADS,
    "kimi_k2": _OWN_HEADS,
    "gpt_oss": Family(head_of_hidden=False),
}
# Names of TensorRT-LLM's own architectures, and of model classes, for the same families.
_CLASSES: Mapping[str, str] = {
    "LlamaForCausalLM": "llama",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "QWenForCausalLM": "qwen",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen2MoeForCausalLM": "qwen2_moe",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "GemmaForCausalLM": "gemma",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3_text",
    "GPT2LMHeadModel": "gpt2",
    "GPTJForCausalLM": "gptj",
    "GPTNeoXForCausalLM": "gpt_neox",
    "OPTForCausalLM": "opt",
    "BloomForCausalLM": "bloom",
    "PhiForCausalLM": "phi",
    "Phi3ForCausalLM": "phi3",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "GptOssForCausalLM": "gpt_oss",
}


def family_of_class(name: str) -> str:
    """The family of a model class, its own name where it is not known."""
    return _CLASSES.get(name, name)
