"""Random small traces for property tests, built as readers build them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo

CALLS = (
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    "cudaStreamSynchronize",
    "cudaMalloc",
    "cuModuleLoadData",
    "cudaMemcpyAsync",
    "cudaEventQuery",
)
RANGES = ("step", "_schedule", "sample", "gc collect", "_fetch_new_requests", "recv_sample_state")
KERNELS = ("gemm_a", "flash_fwd", "ncclDevKernel_AllReduce", "rmsNorm")
OS_CALLS = ("futex", "read", "poll")


@st.composite
def traces(draw: st.DrawFn, most: int = 12) -> Trace:
    """Up to two devices, processes, threads and streams each; times of a few hundred ns with many ties."""
    builder = Builder()
    times = st.integers(0, 300)
    processes = [builder.process(100 + n) for n in range(draw(st.integers(1, 2)))]
    threads = [builder.thread(process, tid) for process in processes for tid in range(draw(st.integers(1, 2)))]
    devices = [builder.device(n) for n in range(draw(st.integers(1, 2)))]
    streams = [
        builder.stream(process, device, number) for process in processes for device in devices for number in (7, 13)
    ]

    def spans(count: int, longest: int = 60) -> tuple[list[int], list[int]]:
        starts = [draw(times) for _ in range(count)]
        return starts, [start + draw(st.integers(0, longest)) for start in starts]

    def names(count: int, of: tuple[str, ...]) -> list[int]:
        return [builder.names.add(draw(st.sampled_from(of))) for _ in range(count)]

    ids = st.integers(0, 8)
    count = draw(st.integers(0, most))
    start, end = spans(count)
    builder.add(
        "kernels",
        start=start,
        end=end,
        stream=[draw(st.sampled_from(streams)) for _ in start],
        name=names(count, KERNELS),
        correlation=[draw(ids) for _ in start],
        graph_node=[draw(st.sampled_from((0, 0, 1, 2))) for _ in start],
    )
    count = draw(st.integers(0, 4))
    start, end = spans(count)
    builder.add(
        "memcpys",
        start=start,
        end=end,
        stream=[draw(st.sampled_from(streams)) for _ in start],
        name=names(count, ("Memcpy DtoH", "Memcpy HtoD")),
        correlation=[draw(ids) for _ in start],
        bytes=[1] * count,
        pageable=[draw(st.integers(0, 1)) for _ in start],
    )
    count = draw(st.integers(0, 2))
    start, end = spans(count)
    builder.add(
        "graphs",
        start=start,
        end=end,
        stream=[draw(st.sampled_from(streams)) for _ in start],
        name=names(count, ("CUDA graph 1",)),
        correlation=[draw(ids) for _ in start],
        graph=[1] * count,
    )
    for table, most_rows, of in (("host_calls", 14, CALLS), ("os_calls", 3, OS_CALLS), ("ranges", 5, RANGES)):
        count = draw(st.integers(0, most_rows))
        start, end = spans(count, 90)
        extra: dict[str, list[int]] = {}
        if table == "host_calls":
            extra["correlation"] = [draw(ids) for _ in start]
        if table == "ranges":
            extra |= {"kind": [0] * count, "domain": [-1] * count}
        builder.add(
            table,
            start=start,
            end=end,
            thread=[draw(st.sampled_from(threads)) for _ in start],
            name=names(count, of),
            **extra,
        )
    return builder.build(TraceInfo(paths=("random",), kind="test"))


def rows(trace: Trace, table: str) -> list[dict[str, int]]:
    """A table as plain dicts."""
    columns = {name: np.asarray(values).tolist() for name, values in trace[table].columns.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
