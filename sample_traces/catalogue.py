"""Kernels of a small bf16 Llama as TensorRT-LLM runs it on Hopper: names as its traces have them, usual durations."""

from __future__ import annotations

from sample_traces.device import Kernel

_BF16 = "__nv_bfloat16"

EMBEDDING = Kernel(
    "void at::native::(anonymous namespace)::indexSelectSmallIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>"
    "(at::cuda::detail::TensorInfo<c10::BFloat16, unsigned int>)",
    2_400,
    grid=16,
    block=128,
    sm=12,
    read=6,
)
NORM = Kernel(
    f"void flashinfer::norm::FusedAddRMSNormKernel<8u, {_BF16}>({_BF16}*, {_BF16}*, {_BF16}*, unsigned int, "
    "unsigned int, unsigned int, float, float)",
    2_200,
    grid=16,
    block=512,
    sm=14,
    read=8,
    write=5,
)
QKV = Kernel("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 6_300, sm=92, tensor=14, read=78, write=2)
ROPE = Kernel(
    "void tensorrt_llm::kernels::applyBiasRopeUpdateKVCacheV2<__nv_bfloat16, __nv_bfloat16, 128, "
    "tensorrt_llm::kernels::KVBlockArray>(tensorrt_llm::kernels::QKVPreprocessingParams<__nv_bfloat16, "
    "tensorrt_llm::kernels::KVBlockArray>)",
    2_900,
    grid=96,
    block=256,
    sm=40,
    read=12,
    write=12,
)
XQA = Kernel("kernel_mha", 8_800, grid=256, block=256, sm=84, tensor=11, read=61, write=1)
OUT = Kernel("nvjet_tst_64x8_64x16_1x4_h_bz_splitK_TNT", 5_200, sm=88, tensor=13, read=74, write=2)
GATE_UP = Kernel("nvjet_tst_128x8_64x12_2x1_v_bz_TNT", 15_600, sm=97, tensor=19, read=86, write=1)
SILU = Kernel(
    "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(silu(float const&))>(__nv_bfloat16*, "
    "__nv_bfloat16 const*, int)",
    2_100,
    grid=32,
    block=1024,
    sm=22,
    read=9,
    write=6,
)
DOWN = Kernel("nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT", 8_900, sm=95, tensor=17, read=84, write=1)
HEAD = Kernel("nvjet_tst_256x8_64x6_2x1_v_bz_TNT", 27_000, sm=98, tensor=21, read=88, write=2)
ALL_REDUCE = Kernel(
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    7_800,
    grid=24,
    block=512,
    sm=18,
    read=7,
    write=7,
    collective=True,
)
FUSED_ALL_REDUCE = Kernel(
    "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<"
    "(tensorrt_llm::kernels::ar_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 2, true>("
    "tensorrt_llm::kernels::ar_fusion::AllReduceFusionParams)",
    5_400,
    grid=64,
    block=512,
    sm=45,
    read=9,
    write=9,
    collective=True,
)

CONTEXT_QKV = Kernel("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 38_000, sm=98, tensor=83, read=31, write=12)
CONTEXT_FMHA = Kernel(
    "fmha_v2_flash_attention_bf16_64_128_S_q_paged_kv_128_causal_tma_ws_sm90_kernel",
    46_000,
    sm=97,
    tensor=64,
    read=18,
    write=8,
)
CONTEXT_OUT = Kernel("nvjet_tst_192x192_64x4_2x1_v_bz_TNT", 29_000, sm=97, tensor=79, read=30, write=11)
CONTEXT_GATE_UP = Kernel("nvjet_tst_256x128_64x4_2x1_v_bz_coopA_TNT", 91_000, sm=99, tensor=88, read=34, write=15)
CONTEXT_DOWN = Kernel("nvjet_tst_192x128_64x5_2x1_v_bz_splitK_TNT", 47_000, sm=98, tensor=84, read=36, write=9)
SPLIT_K = Kernel(
    "void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, false, __nv_bfloat16, "
    "__nv_bfloat16, __nv_bfloat16, true, false, false>(cublasLt::cublasSplitKParams<float>)",
    3_900,
    grid=256,
    block=512,
    sm=60,
    read=44,
    write=20,
)

ARGMAX = Kernel(
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, "
    "long, 4, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>)",
    7_400,
    grid=16,
    block=512,
    sm=10,
    read=8,
)
TOP_K = Kernel(
    "void tensorrt_llm::kernels::topKStage1<float, 256, 8>(float const*, float const* const*, float*, int*, float*, "
    "tensorrt_llm::kernels::FinishedState const*, int, int const*, int, int const*, bool const*, int const*, bool)",
    9_100,
    grid=128,
    block=256,
    sm=52,
    read=24,
    write=3,
)
GATHER = Kernel(
    "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)",
    1_700,
    grid=8,
    block=256,
    sm=6,
    read=3,
)
FOREIGN = Kernel(
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align8>("
    "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align8::Params)",
    140_000,
    sm=96,
    tensor=77,
    read=33,
    write=10,
)
INJECTED = Kernel(
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int, "
    "at::native::FillFunctor<int>, std::array<char*, 1ul>)",
    1_500,
    grid=4,
    block=128,
    sm=4,
    write=2,
    read=0,
)


def generation_step(layers: int, ranks: int = 1) -> list[Kernel]:
    """The kernels of one generation forward pass, in order."""
    join = [ALL_REDUCE] if ranks > 1 else []
    layer = [NORM, QKV, ROPE, XQA, OUT, *join, NORM, GATE_UP, SILU, DOWN, *join]
    return [EMBEDDING, *layer * layers, NORM, GATHER, HEAD]


def context_step(layers: int, ranks: int = 1) -> list[Kernel]:
    """The kernels of one forward pass with context requests, in order."""
    join = [ALL_REDUCE] if ranks > 1 else []
    layer = [NORM, CONTEXT_QKV, ROPE, CONTEXT_FMHA, CONTEXT_OUT, *join]
    layer += [NORM, CONTEXT_GATE_UP, SILU, CONTEXT_DOWN, SPLIT_K, *join]
    return [EMBEDDING, *layer * layers, NORM, GATHER, HEAD]
