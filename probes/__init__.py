"""What watches a workload while it runs and writes rows into a recording."""

from __future__ import annotations

NAMES = ("host", "nvml", "kernels", "executor")
"""What `inflight record --probe` can name: processors and memory of the host, its GPUs, CUDA kernel records, and the
executor of TensorRT-LLM. The built-in engine tells of itself in any case."""
OPTIONAL = ("dcgm", "pm")
"""Those that are off where they are not named: they may keep others from the same counters, and PM sampling locks the
clocks of the GPUs."""
