"""What kind of work a kernel is, told from its name: first rule that matches wins."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import WORK_TABLES

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

CATEGORIES: tuple[str, ...] = (
    "attention",
    "GEMM",
    "MoE",
    "collectives",
    "norm",
    "sampling",
    "KV copy",
    "memory",
    "forward pass",
    "other",
)
OTHER = CATEGORIES.index("other")
MEMORY = CATEGORIES.index("memory")
COLLECTIVES = CATEGORIES.index("collectives")

# Families as TensorRT-LLM, FlashInfer, cuBLAS, NCCL, PyTorch and Triton name their kernels. The order decides: a fused
# all-reduce + norm is a collective, a grouped GEMM of experts is MoE, a soft-max of logits is sampling.
_RULES: tuple[tuple[str, str], ...] = (
    ("memory", r"^\[?(CUDA |HIP )?mem(cpy|set)\b|^Mem(cpy|set)\b|^(Copy|Fill)(Buffer|Image)"),
    (
        "collectives",
        r"nccl|rccl|all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|oneshot|twoshot|lamport|userbuffers|mnnvl"
        r"|moeA2A|moe_comm|deep_?ep|notify_dispatch|nvshmem|computeCountAndIndiceDevice|computeCumsumDevice"
        r"|moveIndiceDevice|memsetExpertIdsDevice|cross_device_reduce|SendRecv",
    ),
    # What stands in for kernels where a model runs without a GPU.
    ("forward pass", r"^(target|draft|stage) forward$"),
    ("attention", r"BatchPrefill|BatchDecode|fmha"),
    (
        "KV copy",
        r"kv_?cache|kvBlock|append_paged_kv|reshape_and_cache|UpdateKV|copyBlock|computeSeqAndPaddingOffsets|RopeUpdateKV"
        r"|KVBlockArray|concat_and_cache|swap_blocks|store_cache|set_kv_buffer",
    ),
    (
        "MoE",
        r"moe|expert|grouped_gemm|routing(Indices|Init|Main|Custom)|deepseek_v3_topk|bmm_(E|Bfloat16_E|Fp)|topkGating"
        r"|finalize(Kernel|MoeRouting)|expandInputRows|doActivationKernel|computeStridesTmaWarpSpecialized",
    ),
    (
        "attention",
        r"flash(?!infer)|mha_|_mha|kernel_mha|xqa|masked_multihead|paged_attention|attention|attn"
        r"|PagedKVCache|mla|mqa_logits|topKPerRowDecode|mem_eff|sdpa|indexerKCache|convert_req_index",
    ),
    (
        "sampling",
        r"top_?k|top_?p|sampl|softmax|argmax|multinomial|curand|penalt|banWords|lengthCriterion|logits|gatherTopK"
        r"|bitonicSort|RadixSort|radix_sort|sort_|acceptDraft|eagle|mtp\w*Kernel|packAcceptedPaths|addBiasSoftMax|SoftMax",
    ),
    (
        "GEMM",
        r"gemm|gemv|nvjet|cutlass|xmma|cublas|splitK|Cijk_|matmul|_mm_|wgmma|fpA_intB|dot_kernel|ampere_\w*16|volta_\w*16"
        r"|hopper_\w*16|convolve|_conv|winograd|dgrad|wgrad|fprop|Conv",
    ),
    (
        "norm",
        r"norm|silu|gelu|relu|swiglu|act_and_mul|elementwise|at::native|triton_|CatArray|quant|cvt_|rope|rotary|bias|fill"
        r"|reduce|scale_1x|embedding|lookup|index|transpose|permute|copy|cast|mamba|selective_scan|multi_tensor",
    ),
)
_COPIES = ("memcpys", "memsets")
_COMPILED = tuple((CATEGORIES.index(name), re.compile(rule, re.IGNORECASE)) for name, rule in _RULES)


def category_of(name: str) -> int:
    """Index into CATEGORIES for the name of a kernel, copy or set."""
    for category, rule in _COMPILED:
        if rule.search(name):
            return category
    return OTHER


@dataclass(frozen=True)
class Categories:
    """`of_name[id]` is the category, int8, of every name that work in the trace carries; `other` for the rest."""

    of_name: npt.NDArray[np.int8]
    tables: npt.NDArray[np.uint8] = field(repr=False)
    seen: Mapping[str, tuple[int, int]] = field(repr=False)

    @classmethod
    def build(cls, trace: Trace) -> Categories:
        """Match each distinct name once."""
        return cls._made(trace, None)

    @classmethod
    def extend(cls, old: Categories, trace: Trace) -> Categories:
        """Names of new rows only; where rows were put in between, all of them."""
        return cls._made(trace, old)

    @classmethod
    def _made(cls, trace: Trace, old: Categories | None) -> Categories:
        of_name = np.full(len(trace.names) + 1, OTHER, np.int8)  # the last one answers for -1, no name
        tables = np.zeros(len(trace.names), np.uint8)  # the work tables that use a name, one bit each
        if old is not None:
            of_name[: len(old.tables)], tables[: len(old.tables)] = old.of_name[:-1], old.tables
        before = tables.copy()
        seen = {}
        for bit, table in enumerate(WORK_TABLES):
            revision, rows = old.seen[table] if old is not None else (-1, 0)
            new = slice(rows if revision == trace[table].revision else 0, None)
            tables[np.flatnonzero(np.bincount(trace[table]["name"][new] + 1, minlength=1)[1:])] |= 1 << bit
            seen[table] = trace[table].revision, len(trace[table])
        for name in np.flatnonzero(tables != before).tolist():
            last = int(tables[name]).bit_length() - 1
            of_name[name] = MEMORY if WORK_TABLES[last] in _COPIES else category_of(trace.names[name])
        return cls(of_name, tables, seen)

    def of(self, trace: Trace, table: str) -> npt.NDArray[np.int8]:
        """Category of every row of a work table, int8."""
        return self.of_name[trace[table]["name"]]
