"""What can be planted into a run: one function per disturbance, and the threads of other processes."""

from __future__ import annotations

from collections.abc import Sequence

from sample_traces.catalogue import DOWN, FOREIGN, FUSED_ALL_REDUCE, GATHER, INJECTED, QKV
from sample_traces.device import Stream
from sample_traces.host import Host, Turn
from sample_traces.server import Act, Server


def allocate(server: Server) -> Turn:
    """Take and give back device memory in the middle of a step."""
    server.host.call("cudaMalloc_v3020", 190_000, "allocation")
    yield None
    server.host.call("cudaFree_v3020", 120_000, "allocation")


def load_module(server: Server) -> Turn:
    """Load a kernel's code lazily, as its first use does."""
    server.host.call("cuLibraryLoadData", 340_000, "module load")
    server.host.launch(server.streams.compute, GATHER)
    yield None


def collect_garbage(server: Server) -> Turn:
    """Let the interpreter collect garbage."""
    server.host.collect_garbage(620_000)
    yield None


def take_lock(server: Server) -> Turn:
    """Wait for a lock that another thread holds."""
    server.host.block(270_000, "pthread_mutex_lock")
    yield None


def sleep(server: Server) -> Turn:
    """Wait for a condition that another thread signals."""
    server.host.push("_recv_disagg_gen_cache")
    server.host.work(9_000)
    server.host.block(180_000, "pthread_cond_wait")
    server.host.pop()
    yield None


def copy_logits(server: Server) -> Turn:
    """Copy logits to pageable memory, which blocks the thread, and look at them."""
    server.host.push("_handle_logits")
    yield from server.host.copy_and_wait(server.streams.compute, 3_000_000)
    server.host.work(45_000)
    server.host.pop()


def offload_blocks(server: Server) -> Turn:
    """Move KV blocks to the host, on a stream of their own."""
    for _ in range(3):
        server.host.work(3_000)
        server.host.copy(server.streams.blocks, 2, 1_500_000)
    yield None


def clear_pages(server: Server) -> Turn:
    """Set new KV pages to zero before the step."""
    server.host.memset(server.streams.compute, 262_144)
    yield None


def inject(server: Server) -> Turn:
    """Run a kernel whose launch call the trace does not have."""
    server.host.work(60_000)
    server.host.launch(server.streams.compute, INJECTED, recorded=False)
    server.host.work(40_000)
    yield None


def stall_queue(server: Server) -> Turn:
    """Launch a kernel that the device leaves in its queue for no reason that a trace could show."""
    yield None
    server.host.launch(server.streams.compute, GATHER, hold=230_000)


def wait_for_callback(server: Server) -> Turn:
    """Let the compute stream wait for an event behind a host function in another stream."""
    host, streams = server.host, server.streams
    called = host.host_function(streams.blocks, 260_000)
    event = host.record_event(streams.blocks)
    host.stream_wait(streams.compute, event)
    host.launch(streams.compute, DOWN, waits=(called,))
    yield None


def meet_peer(server: Server) -> Turn:
    """Two collectives that start only when the other rank is there; see `slow_peer`."""
    for _ in range(2):
        server.host.call("cuStreamWaitValue32_v2", 1_800)
        server.host.launch(server.streams.compute, FUSED_ALL_REDUCE, gate=True)
    yield None


def feed(stream: Stream) -> Act:
    """An act that launches a burst of copies to another device."""

    def act(server: Server) -> Turn:
        for _ in range(36):
            yield None
            server.host.copy(stream, 10, 65_536, name="cudaMemcpyPeerAsync_v4000")

    return act


def slow_peer(host: Host, stream: Stream, meetings: int) -> Turn:
    """The other rank: waits in every second collective for the first one, and lets it wait in the others."""
    for number in range(meetings):
        host.push("_forward_step_peer")
        host.block(310_000 if number % 2 else 60_000, "sem_wait")
        host.launch(stream, QKV)
        host.work(5_000)
        host.call("cuStreamWaitValue32_v2", 1_800)
        joined = host.launch(stream, FUSED_ALL_REDUCE, gate=True)
        yield from host.synchronize(joined)
        host.pop()


def other_tenant(host: Host, stream: Stream, times: Sequence[int]) -> Turn:
    """Another process on the same GPU that now and then runs a few kernels of its own."""
    for time in times:
        if time > host.now:
            host.block(time - host.now, "clock_nanosleep")
        for _ in range(3):
            host.work(20_000)
            yield None
            last = host.launch(stream, FOREIGN)
        yield from host.synchronize(last)


def front_end(host: Host, until: int) -> Turn:
    """The HTTP thread: waits for sockets under ranges of its own that have nothing to do with the GPU."""
    number = 0
    while host.now < until:
        host.push(f"await_response {number}", domain=0)
        host.block(900_000, "epoll_wait")
        host.work(30_000)
        host.pop()
        number += 1
        yield None
