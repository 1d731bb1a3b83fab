"""Bytes that follow from a configuration, against the plainest reckoning: every matrix written down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.configuration import sizes
from inspector.configuration.folder import of_config
from inspector.configuration.settings import Configuration, Setting, of
from tests.configuration import shapes

BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "fp8": 8, "int8": 8, "int4": 4}


def config(**values: int | str | bool) -> Configuration:
    found = of(Setting(name, value, "here", "") for name, value in values.items())
    assert found.notes == ()
    return found


def whole(bits: int) -> int:
    return -(-bits // 8)


@given(st.integers(1, 200), st.integers(1, 64), st.integers(1, 512), st.sampled_from(sorted(BITS)), st.integers(1, 256))
def test_kv_of_a_token_and_of_a_page(layers: int, heads: int, head: int, number: str, tokens: int) -> None:
    found = config(layers=layers, kv_heads=heads, head_dim=head, kv_dtype=number, tokens_per_block=tokens)
    bits = 0
    for _ in range(layers):
        for _ in ("keys", "values"):
            bits += heads * head * BITS[number]
    assert sizes.kv_bytes_per_token(found).value == whole(bits)
    assert sizes.page_bytes(found).value == whole(bits) * tokens


@given(st.integers(1, 100), st.integers(1, 2048), st.integers(0, 256), st.sampled_from(sorted(BITS)))
def test_kv_of_a_latent(layers: int, latent: int, rope: int, number: str) -> None:
    known: dict[str, int | str] = {"layers": layers, "latent_kv": latent, "dtype": number}
    # Heads say nothing of it: all of them read the same latent.
    known |= {"kv_heads": 128, "head_dim": 192}
    if rope:
        known["rope_dim"] = rope
    assert sizes.kv_bytes_per_token(config(**known)).value == whole(layers * (latent + rope) * BITS[number])


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (shapes.LLAMA_3_8B, 2 * 32 * 8 * 128 * 2),
        (shapes.DEEPSEEK_V3, 61 * (512 + 64) * 2),
        (shapes.GPT_2, None),
    ],
)
def test_kv_of_known_models(tree: dict[str, object], expected: int | None) -> None:
    found = sizes.kv_bytes_per_token(of_config(tree, "c"))
    assert found.value == expected
    assert bool(found.why) == (expected is None)


def test_kv_of_a_large_llama_as_the_lesson_has_it() -> None:
    found = config(layers=80, kv_heads=8, head_dim=128, kv_dtype="fp16")
    assert sizes.kv_bytes_per_token(found).value == 327_680
    assert sizes.kv_bytes_per_token(config(layers=80, kv_heads=8, head_dim=128, kv_dtype="FP8")).value == 163_840


SHAPE = {"layers": (1, 8), "hidden_size": (1, 64), "heads": (1, 8), "kv_heads": (1, 8), "head_dim": (1, 16)}


@given(
    st.fixed_dictionaries({name: st.integers(*ends) for name, ends in SHAPE.items()}),
    st.integers(1, 64),
    st.integers(1, 100),
    st.booleans(),
    st.sampled_from(["float32", "bfloat16"]),
    st.sampled_from([None, "FP8", "W4A16_AWQ"]),
    st.one_of(st.none(), st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 20))),
)
def test_weights_and_what_a_pass_reads_of_them(
    shape: dict[str, int],
    inner: int,
    vocabulary: int,
    tied: bool,
    number: str,
    quantization: str | None,
    experts: tuple[int, int, int] | None,
) -> None:
    known: dict[str, int | str | bool] = {
        **shape,
        "family": "mixtral",
        "intermediate_size": inner,
        "vocabulary": vocabulary,
        "tied": tied,
        "dtype": number,
    }
    small = BITS[number]
    if quantization is not None:
        known["quantization"] = quantization
        small = {"FP8": 8, "W4A16_AWQ": 4}[quantization]
    hidden, head = shape["hidden_size"], shape["head_dim"]
    used = routed = 1
    if experts is not None:
        routed, used = max(experts[:2]), min(experts[:2])
        known |= {"experts": routed, "experts_per_token": used, "expert_size": experts[2]}
        inner = experts[2]
    matrices = {"in": (vocabulary * hidden, BITS[number], tied), "out": (vocabulary * hidden, BITS[number], True)}
    if tied:
        del matrices["in"]
    for layer in range(shape["layers"]):
        for name, rows in (("q", shape["heads"]), ("k", shape["kv_heads"]), ("v", shape["kv_heads"])):
            matrices[f"{layer}{name}"] = (hidden * rows * head, small, True)
        matrices[f"{layer}o"] = (shape["heads"] * head * hidden, small, True)
        if experts is not None:
            matrices[f"{layer}router"] = (hidden * routed, BITS[number], True)
        for expert in range(routed):
            for part in ("gate", "up", "down"):
                matrices[f"{layer}{expert}{part}"] = (hidden * inner, small, expert < used)
    found = config(**known)
    assert sizes.weight_bytes(found).value == whole(sum(count * bits for count, bits, _ in matrices.values()))
    read = sum(count * bits for count, bits, is_read in matrices.values() if is_read)
    assert sizes.pass_bytes(found).value == whole(read)


def test_what_is_not_known_is_named() -> None:
    assert sizes.kv_bytes_per_token(config(layers=2)).why == "dtype is not known"
    assert (
        sizes.page_bytes(config(layers=2, kv_heads=1, head_dim=4, dtype="fp8")).why == "tokens_per_block is not known"
    )
    assert sizes.pass_bytes(config(layers=2)).why == "family is not known"
    assert sizes.pass_bytes(config(checkpoint_bytes=7)).value == 7
    assert sizes.pass_bytes(config(checkpoint_bytes=7, experts=2)).value is None
    assert "mystery" in sizes.kv_bytes_per_token(config(layers=2, kv_heads=1, head_dim=4, dtype="mystery")).why
