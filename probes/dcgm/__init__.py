"""What DCGM's host engine says of the GPUs, as `dcgmi dmon` prints it: DRAM, SM and tensor-core activity, PCIe bytes.

A host engine that runs already is read, none is started. Before Hopper its profiling fields hold the lock on the
counters of the GPU: then no other profiler that wants them can run beside it (Nsight's GPU metrics, Nsight Compute,
CUPTI's sampling), nor it beside them. Kernel records do not mind. Tried against a stand-in for dcgmi only.
"""
