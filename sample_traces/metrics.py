"""GPU metric samples that agree with the simulated work: what ran in each sampling interval, weighted by its length."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from sample_traces.device import Device, Work

# Percent of peak, but for the clocks, whose values are in Hz whatever the name says.
METRICS: tuple[str, ...] = (
    "GPC Clock Frequency [MHz]",
    "SYS Clock Frequency [MHz]",
    "GR Active [Throughput %]",
    "SMs Active [Throughput %]",
    "SM Issue [Throughput %]",
    "Tensor Active [Throughput %]",
    "DRAM Read Bandwidth [Throughput %]",
    "DRAM Write Bandwidth [Throughput %]",
    "PCIe RX Throughput [Throughput %]",
    "PCIe TX Throughput [Throughput %]",
)
_GPC_HZ, _SYS_HZ = 1_980_000_000, 1_905_000_000


class Sample(NamedTuple):
    """All METRICS of one GPU over the interval that ends at `time`."""

    time: int
    gpu: int
    values: tuple[int, ...]


def sample(device: Device, interval_ns: int = 100_000, seed: int = 7) -> list[Sample]:
    """Samples over the whole of the device's work, one per `interval_ns`."""
    works = sorted(device.work, key=lambda work: work.start)
    starts = [work.start for work in works]
    chance = random.Random(seed)
    longest = max(work.end - work.start for work in works)
    first, last = works[0].start // interval_ns, max(work.end for work in works) // interval_ns + 1
    samples = []
    for step in range(first, last + 1):
        low, high = step * interval_ns, (step + 1) * interval_ns
        inside = works[bisect_left(starts, low - longest) : bisect_left(starts, high)]
        # Under heavy tensor work the clock gives way a little, in steps of 15 MHz.
        values = _shares(inside, low, high)
        clock = _GPC_HZ - 15_000_000 * (values[3] // 25 + chance.getrandbits(1))
        samples.append(Sample(high, device.number, (clock, _SYS_HZ, *values)))
    return samples


def _shares(works: Sequence[Work], low: int, high: int) -> tuple[int, ...]:
    sums = [0] * 7
    reach = low
    active = 0
    for work in works:
        length = min(work.end, high) - max(work.start, low)
        if length <= 0:
            continue
        active += max(min(work.end, high) - max(work.start, reach), 0)
        reach = max(reach, work.end)
        kernel = work.kernel
        shares = (kernel.sm, kernel.sm * 2 // 5, kernel.tensor, kernel.read, kernel.write)
        for row, share in enumerate(shares):
            sums[row] += share * length
        if work.copy_kind in (1, 2):
            sums[4 + work.copy_kind] += 80 * length
    span = high - low
    return (100 * active // span, *(min(value // span, 100) for value in sums))
