"""The simulated runs, each one a situation: who runs where, what is planted when."""

from __future__ import annotations

from collections.abc import Sequence

from sample_traces import planted
from sample_traces.device import Group
from sample_traces.host import Host, Run, Turn, simulate
from sample_traces.server import Act, Plan, Request, Server, Streams

# Where a run begins: a profiler is at work before the process that it traces.
BEGIN_NS = 1_250_000_000


def decode_server(iterations: int = 150, layers: int = 3, spelling: int = 1, seed: int = 1) -> Run:
    """One GPU, one executor: requests come, are computed and leave; most idle time is the host's own code."""
    run = Run()
    process = run.process(4_242, "python3", (0,))
    host = Host(run, process, 4_242, "executor", BEGIN_NS, seed)
    plan = Plan(
        before={
            **every(iterations, 23, 11, planted.offload_blocks),
            **every(iterations, 37, 5, planted.clear_pages),
            **every(iterations, 61, 30, planted.wait_for_callback),
            **every(iterations, 71, 44, planted.stall_queue),
            0: [planted.load_module],
        },
        after={
            **every(iterations, 29, 20, planted.allocate),
            **every(iterations, 41, 33, planted.collect_garbage),
            **every(iterations, 53, 17, planted.take_lock),
            **every(iterations, 47, 9, planted.copy_logits),
        },
    )
    # A request comes about every fourth iteration; after the first fifth of them the server runs dry for a while.
    step = 250_000 + 70_000 * layers
    requests = [
        Request(BEGIN_NS + 500_000 + number * 4 * step, 120 + 97 * (number * 7 % 11), 18 + number * 5 % 23)
        for number in range(max(iterations // 3, 2))
    ]
    for request in requests[max(iterations // 20, 1) :]:
        request.arrival += 38 * step
    server = Server(host, Streams.of(run, process), requests, layers, spelling=spelling, plan=plan, last=iterations)
    front = Host(run, process, 4_243, "http", BEGIN_NS + 10_000, seed + 1)
    simulate([(host, server.run()), (front, planted.front_end(front, requests[iterations // 4].arrival))])
    return run


def planted_causes(repeats: int = 3, layers: int = 2, seed: int = 11) -> Run:
    """Every cause, `repeats` times: two GPUs, the executor, its peer rank on GPU 1 and a stranger on GPU 0."""
    run = Run()
    process = run.process(5_001, "python3", (0, 1))
    peer = run.process(5_002, "python3", (0, 1))
    stranger = run.process(5_003, "embed", (0, 1))
    host = Host(run, process, 5_001, "executor", BEGIN_NS, seed)
    acts: list[tuple[str, Act]] = [
        ("before", planted.load_module),
        ("after", planted.allocate),
        ("after", planted.collect_garbage),
        ("after", planted.take_lock),
        ("after", planted.copy_logits),
        ("before", planted.inject),
        ("before", planted.stall_queue),
        ("before", planted.wait_for_callback),
        ("after", planted.sleep),
        ("before", planted.feed(run.stream(process, 31, ordinal=1))),
        ("before", planted.clear_pages),
        ("before", planted.offload_blocks),
        ("before", planted.meet_peer),
    ]
    cycle = len(acts) + 4
    plan = Plan(
        before={
            cycle * turn + row + 1: [act]
            for turn in range(repeats)
            for row, (when, act) in enumerate(acts)
            if when == "before"
        },
        after={
            cycle * turn + row + 1: [act]
            for turn in range(repeats)
            for row, (when, act) in enumerate(acts)
            if when == "after"
        },
    )
    # Each wave of requests lasts one cycle; between two waves there are none.
    length = 12_000_000
    requests = [
        Request(BEGIN_NS + 400_000 + turn * length + part * 900_000, 220 + 60 * part, cycle - 2 * part)
        for turn in range(repeats)
        for part in range(2)
    ]
    server = Server(host, Streams.of(run, process), requests, layers, plan=plan)
    host.group, host.rank = Group(2), 0
    other = Host(run, peer, 5_002, "rank 1", BEGIN_NS, seed + 1)
    other.group, other.rank = host.group, 1
    tenant = Host(run, stranger, 5_003, "worker", BEGIN_NS, seed + 2)
    times = [BEGIN_NS + 2_000_000 + turn * length + 2_100_000 * part for turn in range(repeats) for part in range(2)]
    front = Host(run, process, 5_011, "http", BEGIN_NS + 10_000, seed + 3)
    simulate(
        [
            (host, server.run()),
            (other, planted.slow_peer(other, run.stream(peer, 7, ordinal=1), 2 * repeats)),
            (tenant, planted.other_tenant(tenant, run.stream(stranger, 7), times)),
            (front, planted.front_end(front, requests[-1].arrival)),
        ]
    )
    return run


def two_processes(iterations: int = 40, layers: int = 3, seed: int = 21) -> Run:
    """Two servers that do not know each other: each calls its GPU 0, and both count correlation ids from 1,000 on."""
    run = Run()
    threads: list[tuple[Host, Turn]] = []
    for number in range(2):
        process = run.process(6_100 + number, "python3", (number,))
        host = Host(run, process, 6_100 + number, "executor", BEGIN_NS + 70_000 * number, seed + number)
        requests = [
            Request(
                BEGIN_NS + 300_000 + (1_500_000 + 400_000 * number) * row, 150 + 130 * row, 9 + (row + number) * 4 % 7
            )
            for row in range(iterations // 6)
        ]
        plan = Plan(after=every(iterations, 9, 4 + number, planted.take_lock if number else planted.collect_garbage))
        server = Server(host, Streams.of(run, process), requests, layers, spelling=0, plan=plan)
        threads.append((host, server.run()))
    simulate(threads)
    return run


def two_ranks(iterations: int = 40, layers: int = 3, seed: int = 31) -> Run:
    """Two ranks of one tensor-parallel engine with NCCL all-reduces; now and then rank 1 is late."""
    run = Run()
    group = Group(2)
    threads: list[tuple[Host, Turn]] = []
    for rank in range(2):
        process = run.process(7_200 + rank, "python3", (rank,))
        host = Host(run, process, 7_200 + rank, f"rank {rank}", BEGIN_NS + 15_000 * rank, seed + rank)
        host.group, host.rank = group, rank
        requests = [Request(row, 180 + 110 * row, 12 + row * 5 % 9) for row in range(0, iterations - 12, 5)]
        late = (
            every(iterations, 11, 7, planted.take_lock) if rank else every(iterations, 13, 9, planted.collect_garbage)
        )
        plan = Plan(before=every(iterations, 8, 3, planted.meet_peer), after=late)
        server = Server(host, Streams.of(run, process), requests, layers, ranks=2, plan=plan, by_iteration=True)
        threads.append((host, server.run()))
    simulate(threads)
    return run


def every(iterations: int, period: int, first: int, act: Act) -> dict[int, Sequence[Act]]:
    """`act` in every `period`-th iteration from `first` on."""
    return {number: [act] for number in range(first, iterations, period)}
