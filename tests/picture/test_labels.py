from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.picture.labels import fit, forms, moment, short


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("void at::native::fill<4, at::F<int>>(int, at::F<int>)", "fill"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclArgs<4096ul>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        ("void cutlass::device_kernel<cutlass::gemm::GemmUniversal<int>>(T::Params)", "GemmUniversal"),
        ("void (anonymous namespace)::softmax<a>(b)", "softmax"),
        ("nvjet_tst_64x8", "nvjet_tst_64x8"),
        ("aten::mm", "mm"),
        ("[CUDA memcpy DtoH]", "[CUDA memcpy DtoH]"),
        ("operator<<(a)", "operator<<"),
        ("/opt/sglang/srt/models/qwen3.py: forward", "forward"),
        ("torch/nn/modules/module.py(1553): _call_impl", "_call_impl"),
        ("nn.Module: Qwen3Attention_0", "Qwen3Attention_0"),
        ("<built-in method linear of type object at 0x7f>", "linear"),
    ],
)
def test_what_is_left_names_the_kernel(name: str, expected: str) -> None:
    assert short(name) == expected


@given(st.text(alphabet="abc:<>() ,_", max_size=40))
def test_forms_get_shorter_and_never_empty(name: str) -> None:
    found = forms(name)
    assert found[0] == name
    assert all(len(later) < len(earlier) for earlier, later in itertools.pairwise(found))
    assert all(found[1:])


@given(st.text(alphabet="abcdefgh_", min_size=1, max_size=40), st.integers(0, 50))
def test_what_is_shown_fits(name: str, room: int) -> None:
    shown = fit(name, lambda text: len(text) <= room)
    assert len(shown) <= room
    assert shown == name if len(name) <= room else shown == "" or shown.endswith("…")


def test_a_python_frame_keeps_its_file_where_there_is_room() -> None:
    name = "/opt/sglang/srt/models/qwen3.py: forward"
    assert forms(name) == (name, "qwen3.py: forward", "forward")
    assert fit(name, lambda text: len(text) <= 20) == "qwen3.py: forward"


def test_a_moment_keeps_every_nanosecond() -> None:
    assert moment(1_234_567_890) == "1.234 567 890 s"
    assert moment(2_000_000_000) == "2.000 s"
    assert moment(-1) == "−0.000 000 001 s"
