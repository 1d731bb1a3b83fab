"""What names of kernels and calls are taken for: the families of the field, and calls of CUDA and HIP."""

from __future__ import annotations

import pytest

from inspector.analysis import calls
from inspector.analysis.categories import CATEGORIES, category_of


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("attention", "fmhaSm100fKernel_QkvE4m3OBfloat16H128PagedKvCausalP64VarSeqQ128Kv128PersistentContext"),
        (
            "attention",
            "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4>>(Flash_fwd_params)",
        ),
        ("attention", "kernel_mha"),
        ("attention", "void tensorrt_llm::kernels::mmha::masked_multihead_attention_kernel<uint16_t, 128>(Params)"),
        ("attention", "BatchDecodeWithPagedKVCacheKernel"),
        ("attention", "fmhaReductionKernel"),
        ("KV copy", "void tensorrt_llm::kernels::applyBiasRopeUpdateKVCacheV2<__half, 128>(QKVPreprocessingParams)"),
        ("KV copy", "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(const T1 *)"),
        ("KV copy", "kvCacheBlocksCopy"),
        ("GEMM", "nvjet_tst_128x64_64x8_4x1_v_bz_TNT"),
        (
            "GEMM",
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int>>>(Params)",
        ),
        ("GEMM", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"),
        ("GEMM", "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams)"),
        ("GEMM", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_SE_1LDSB0"),
        ("MoE", "void tensorrt_llm::kernels::expandInputRowsKernel<__half>(T1 const*)"),
        ("MoE", "bmm_E4m3_E4m3E4m3_Fp32_t128x8x128_s6_et64x8_m64x8x32_cga1x1x1_16dp256b"),
        ("MoE", "fused_moe_kernel"),
        ("MoE", "routingIndicesClusterKernel"),
        ("collectives", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
        (
            "collectives",
            "void tensorrt_llm::kernels::ar_fusion::allreduce_fusion_kernel_oneshot_lamport<(Pattern)1>(Params)",
        ),
        ("collectives", "moe_comm::moeA2ADispatchKernel"),
        ("norm", "void tensorrt_llm::kernels::generalRmsNorm<__half>(T1 const*)"),
        ("norm", "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<c10::Half>>(int)"),
        ("norm", "silu_and_mul_kernel"),
        ("norm", "triton_poi_fused_add_0"),
        ("sampling", "void tensorrt_llm::kernels::topKStage1<float, 256, 16>(float const*)"),
        ("sampling", "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float>(float*)"),
        ("sampling", "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024>(float*)"),
        ("memory", "Memcpy HtoD (Pageable -> Device)"),
        ("memory", "[CUDA memcpy DtoH]"),
        ("forward pass", "target forward"),
        ("forward pass", "draft forward"),
        ("forward pass", "stage forward"),
        ("other", "stage forwarding"),
        ("other", "saxpy(int, float, float *, float *)"),
    ],
)
def test_category(category: str, name: str) -> None:
    assert CATEGORIES[category_of(name)] == category


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "sync",
            "cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cuStreamSynchronize cuCtxSynchronize"
            " cudaMemcpy cudaMemcpy2D cuMemcpyDtoH_v2 cuMemcpyHtoD_v2 hipMemcpy hipMemcpyWithStream",
        ),
        (
            "allocation",
            "cudaMalloc cudaMallocAsync cudaFree cudaFreeHost cudaHostAlloc cudaHostRegister cudaMallocManaged"
            " cudaMemPoolTrimTo cuMemAlloc_v2 cuMemCreate cuMemMap cuMemSetAccess cuMemHostAlloc hipMalloc hipHostFree",
        ),
        (
            "module load",
            "cuModuleLoadData cuModuleLoadDataEx cuModuleGetFunction cuLibraryLoadData cuLibraryGetKernel"
            " cudaGraphInstantiate cudaGraphInstantiateWithFlags cudaGraphExecUpdate cudaStreamBeginCapture"
            " cudaStreamEndCapture cuGraphInstantiate_v2 hipModuleLoadData cuLinkComplete hipGraphInstantiate",
        ),
        (
            "launching",
            "cudaLaunchKernel cudaLaunchKernelExC cuLaunchKernel cuLaunchKernelEx cudaGraphLaunch cuGraphLaunch"
            " cudaMemcpyAsync cudaMemcpyPeerAsync cuMemcpyHtoDAsync_v2 cuMemcpyDtoDAsync_v2 cudaMemsetAsync cudaMemset"
            " hipLaunchKernel hipExtModuleLaunchKernel hipModuleLaunchKernel hipGraphLaunch hipMemcpyAsync"
            " cudaLaunchHostFunc cudaLaunchCooperativeKernel",
        ),
        (
            "other",
            "cudaEventRecord cudaEventQuery cudaStreamWaitEvent cudaGetDevice cudaFuncSetAttribute"
            " cudaStreamIsCapturing cudaPeekAtLastError hipGetDevicePropertiesR0600"
            " cuEventRecord cudaStreamCreateWithFlags cuMemGetInfo_v2 cudaMemGetInfo",
        ),
    ],
)
def test_call_kind(kind: str, names: str) -> None:
    for name in names.split():
        assert (name, calls.CALL_KINDS[calls.call_kind(name)]) == (name, kind)


def test_blocking_calls_and_marked_ranges() -> None:
    for name in ("pthread_cond_wait", "pthread_cond_timedwait", "poll", "epoll_wait", "sem_wait", "nanosleep", "futex"):
        assert calls.is_blocking(name), name
    for name in ("read", "open64", "mmap", "ioctl", "write"):
        assert not calls.is_blocking(name), name
    assert calls.is_gc("gc: generation 2")
    assert not calls.is_gc("gcn layer")
    assert calls.is_request_wait("_fetch_new_requests")
    assert not calls.is_request_wait("_schedule")
