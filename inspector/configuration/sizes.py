"""Bytes that follow from a configuration: of the KV cache for a token, and of the weights. Modelled, not measured.

Formulas of specs/analyses.md, "Modelled": from the model's shape and number format. All ranks together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from inspector.configuration.families import FAMILIES
from inspector.configuration.settings import Configuration

# Bytes of a number. With fp4 and its kin each block of numbers has a scale of a byte: 16 numbers of NVIDIA's form, 32
# of the open one.
_BYTES: dict[str, Fraction] = {
    **dict.fromkeys(("float32", "fp32", "float"), Fraction(4)),
    **dict.fromkeys(("float16", "fp16", "half", "bfloat16", "bf16"), Fraction(2)),
    **dict.fromkeys(("fp8", "float8", "float8_e4m3fn", "fp8_e4m3", "fp8_e5m2", "int8", "uint8"), Fraction(1)),
    **dict.fromkeys(("int4", "uint4"), Fraction(1, 2)),
    **dict.fromkeys(("nvfp4", "fp4"), Fraction(1, 2) + Fraction(1, 16)),
    "mxfp4": Fraction(1, 2) + Fraction(1, 32),
}
# What an algorithm makes of the weights of linear layers, by the words in its name; the first that is found.
_ALGORITHMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), number)
    for pattern, number in (
        (r"mixed", ""),
        (r"nvfp4|w4a8_nvfp4", "nvfp4"),
        (r"mxfp4", "mxfp4"),
        (r"w4a|int4|awq|gptq", "int4"),
        (r"fp8|float8", "fp8"),
        (r"w8a|int8", "int8"),
    )
)
_NONE = re.compile(r"no_quant|none")


@dataclass(frozen=True)
class Derived:
    """`value` in bytes, None where something is not known, which `why` names; `formula` with its numbers in place."""

    value: int | None
    formula: str = ""
    why: str = ""


@dataclass(frozen=True)
class Parameters:
    """Numbers in the matrices of a model: embeddings with the output head, the linear layers outside of routed
    experts, all routed experts, and the routers. Norms and biases, far below a percent, are not among them.
    """

    embeddings: int
    linear: int
    experts: int
    routers: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.embeddings + self.linear + self.experts + self.routers


class _Unknown(Exception):
    """Carries the name of what is not known."""


def kv_bytes_per_token(config: Configuration) -> Derived:
    """Bytes of keys and values of one token in all layers; layers that attend to a window only keep them as long."""
    try:
        format_name = _known_text(config, "kv_dtype", "dtype")
        size = _size_of(format_name)
        layers = _known(config, "layers")
        latent = config.integer("latent_kv")
        if latent:
            per_layer = latent + (config.integer("rope_dim") or 0)
            formula = f"{layers} layers × {per_layer} numbers of the latent × {_text(size)} bytes ({format_name})"
            return Derived(_whole(layers * per_layer * size), formula)
        heads, head = _known(config, "kv_heads"), _known(config, "head_dim")
    except _Unknown as unknown:
        return Derived(None, why=f"{unknown} is not known")
    formula = f"2 × {layers} layers × {heads} KV heads × {head} × {_text(size)} bytes ({format_name})"
    return Derived(_whole(2 * layers * heads * head * size), formula)


def weight_bytes(config: Configuration) -> Derived:
    """Bytes of the weights: as the checkpoint has them, where that is known, else from the shape."""
    stored = config.integer("checkpoint_bytes")
    if stored is not None:
        return Derived(stored, "as the index of the checkpoint says")
    try:
        counted = _parameters(config)
        plain_name = _known_text(config, "dtype")
        plain = _size_of(plain_name)
        quantized, name = _quantized(config, plain, plain_name)
    except _Unknown as unknown:
        return Derived(None, why=f"{unknown} is not known")
    # That form is made for experts alone.
    linear = plain if name == "mxfp4" and counted.experts else quantized
    size = (counted.embeddings + counted.routers) * plain + counted.linear * linear + counted.experts * quantized
    parts = [f"{counted.embeddings + counted.routers:,} × {_text(plain)} bytes of embeddings ({plain_name})"]
    parts.append(f"{counted.linear:,} × {_text(linear)} of linear layers ({plain_name if linear == plain else name})")
    if counted.experts:
        parts.append(f"{counted.experts:,} × {_text(quantized)} of experts ({name})")
    return Derived(_whole(size), " + ".join(parts))


def page_bytes(config: Configuration) -> Derived:
    """Bytes of one page of the KV cache, all ranks together."""
    token, tokens = kv_bytes_per_token(config), config.integer("tokens_per_block")
    if token.value is None:
        return token
    if tokens is None:
        return Derived(None, why="tokens_per_block is not known")
    return Derived(token.value * tokens, f"{tokens:,} tokens × {token.value:,} bytes")


def pass_bytes(config: Configuration) -> Derived:
    """Bytes of weights that a forward pass reads at the least: each once. Of an embedding that is not the output head
    too, it reads but a few rows, and of routed experts it may do with those of a single token.
    """
    try:
        counted = _parameters(config)
        plain_name = _known_text(config, "dtype")
        plain = _size_of(plain_name)
        quantized, name = _quantized(config, plain, plain_name)
        experts = Fraction(0)
        if counted.experts:
            experts = Fraction(counted.experts * _known(config, "experts_per_token"), _known(config, "experts"))
    except _Unknown as unknown:
        stored = config.integer("checkpoint_bytes")
        if stored is not None and not config.integer("experts"):
            return Derived(stored, "the checkpoint, as its index says")
        return Derived(None, why=f"{unknown} is not known")
    head = _known(config, "vocabulary") * _known(config, "hidden_size")
    linear, linear_name = (plain, plain_name) if name == "mxfp4" and counted.experts else (quantized, name)
    size = (head + counted.routers) * plain + counted.linear * linear + experts * quantized
    parts = [f"{head + counted.routers:,} × {_text(plain)} bytes of the output head ({plain_name})"]
    parts.append(f"{counted.linear:,} × {_text(linear)} of linear layers ({linear_name})")
    if counted.experts:
        parts.append(f"{_whole(experts):,} × {_text(quantized)} of experts of one token ({name})")
    return Derived(_whole(size), " + ".join(parts))


def parameters(config: Configuration) -> Parameters | None:
    """How many numbers the matrices have; None where that does not follow from what is known."""
    try:
        return _parameters(config)
    except _Unknown:
        return None


def _parameters(config: Configuration) -> Parameters:
    family = FAMILIES.get(_known_text(config, "family"))
    if family is None:
        raise _Unknown(f"how the family {config.text('family')} is built")
    hidden, layers, tokens = _known(config, "hidden_size"), _known(config, "layers"), _known(config, "vocabulary")
    tied = config.flag("tied")
    if tied is None:
        raise _Unknown("whether the embeddings are tied")
    embeddings = tokens * hidden * (1 if tied else 2)
    if family.learned_positions:
        embeddings += _known(config, "positions") * hidden
    matrices = 3 if family.gated else 2
    attention = _attention(config, hidden)
    experts = config.integer("experts")
    if not experts:
        linear = layers * (attention + matrices * hidden * _known(config, "intermediate_size"))
        return Parameters(embeddings, linear, 0, 0)
    size = config.integer("expert_size") or _known(config, "intermediate_size")
    shared = (config.integer("shared_experts") or 0) * size + (config.integer("shared_expert_size") or 0)
    dense = min(config.integer("dense_layers") or 0, layers)
    linear = layers * attention + (layers - dense) * matrices * hidden * shared
    if dense:
        linear += dense * matrices * hidden * _known(config, "intermediate_size")
    return Parameters(
        embeddings, linear, (layers - dense) * experts * matrices * hidden * size, (layers - dense) * hidden * experts
    )


def _attention(config: Configuration, hidden: int) -> int:
    heads = _known(config, "heads")
    latent = config.integer("latent_kv")
    if not latent:
        head = _known(config, "head_dim")
        # Queries and the output, keys and values.
        return 2 * hidden * head * (heads + _known(config, "kv_heads"))
    rope, nope, value = _known(config, "rope_dim"), _known(config, "nope_dim"), _known(config, "value_dim")
    queries, squeezed = heads * (nope + rope), config.integer("latent_q")
    into = squeezed * (hidden + queries) if squeezed else hidden * queries
    return into + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden


def _quantized(config: Configuration, plain: Fraction, plain_name: str) -> tuple[Fraction, str]:
    algorithm = config.text("quantization")
    if algorithm is None or _NONE.fullmatch(algorithm.lower()):
        return plain, plain_name
    name = next((number for pattern, number in _ALGORITHMS if pattern.search(algorithm.lower())), "")
    if not name:
        raise _Unknown(f"how much {algorithm} leaves of a weight")
    size, group = _BYTES[name], config.integer("quantization_group")
    # A scale of two bytes for each group; scales of whole channels and large blocks are far below a percent.
    return (size + Fraction(2, group), name) if name == "int4" and group else (size, name)


def _size_of(number: str) -> Fraction:
    size = _BYTES.get(number.lower())
    if size is None:
        raise _Unknown(f"the size of {number}")
    return size


def _known(config: Configuration, name: str) -> int:
    value = config.integer(name)
    if value is None:
        raise _Unknown(name)
    return value


def _known_text(config: Configuration, *names: str) -> str:
    found = next((text for name in names if (text := config.text(name)) is not None), None)
    if found is None:
        raise _Unknown(names[-1])
    return found


def _whole(size: Fraction) -> int:
    return -(-size.numerator // size.denominator)


def _text(size: Fraction) -> str:
    return f"{float(size):g}"
