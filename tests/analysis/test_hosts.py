"""Names of what the host did, without what differs from one time to the next."""

from __future__ import annotations

import pytest

from inspector.analysis.hosts import group_of


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("aten::addmm, seq = 47595, op_id = 999269", "aten::addmm"),
        ("FSDP::pre_forward (blocks.11.mlp)", "FSDP::pre_forward"),
        ("[Executor] _forward_step 17: 2 ctx reqs, 14 gen reqs", "[Executor] _forward_step #: # ctx reqs, # gen reqs"),
        ("_schedule", "_schedule"),
        ("cudaMemcpy2D", "cudaMemcpy2D"),
        ("aten::conv2d", "aten::conv2d"),
        ("torch/nn/modules/module.py(1735): _call_impl", "torch/nn/modules/module.py(1735): _call_impl"),
        ("<built-in method cat of type object at 0x7d6b7761df60>", "<built-in method cat of type object at #>"),
        ("ProfilerStep#12", "ProfilerStep##"),
        ("42", "#"),
    ],
)
def test_group(name: str, group: str) -> None:
    assert group_of(name) == group
