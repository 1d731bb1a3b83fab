"""HBM bandwidth against a count of single nanoseconds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.analysis.bandwidth import Bandwidths, Rate
from inspector.readers import open_trace
from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo

samples = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 100)), max_size=8).map(
    lambda pairs: sorted(dict(pairs).items())
)


def traced(*counters: tuple[str, str, list[tuple[int, int]]], bandwidth: int = -1) -> Trace:
    """A trace with one device and those counters: (name, unit, [(time, value)])."""
    builder = Builder()
    device = builder.device(0, "GPU", bandwidth=bandwidth)
    builder.add("ranges", start=0, end=1, thread=-1, name=-1, kind=0, domain=-1)
    for name, unit, points in counters:
        series = builder.series(name, unit, device)
        for time, value in points:
            builder.add("counters", time=time, series=series, value=value)
    return builder.build(TraceInfo(("x",), "recording"))


@given(samples, st.integers(-5, 45), st.integers(0, 45))
def test_means_against_single_nanoseconds(points: list[tuple[int, int]], start: int, length: int) -> None:
    rate = Rate(np.array([t for t, _ in points], np.int64), np.array([v / 100 for _, v in points]))
    told = []
    for ns in range(start, start + length):
        # The sample that tells of [ns, ns + 1) is the first one at its end or later, if there is one before it too.
        after = [value for time, value in points if time >= ns + 1]
        if after and any(time <= ns for time, _ in points):
            told.append(after[0] / 100)
    mean = rate.mean(start, start + length)
    if told:
        assert mean == pytest.approx(sum(told) / len(told))
    else:
        assert math.isnan(mean)


@given(samples, samples)
def test_read_and_write_make_both(read: list[tuple[int, int]], write: list[tuple[int, int]]) -> None:
    trace = traced(("DRAM Read Bandwidth", "%", read), ("DRAM Write Bandwidth", "%", write), bandwidth=1000)
    found = Bandwidths.build(trace).of(0)
    if not read or not write:
        assert found is None
        return
    assert found is not None
    assert found.peak == 1000
    assert found.read is not None
    assert found.write is not None
    for start in range(40):
        parts = found.read.mean(start, start + 1) + found.write.mean(start, start + 1)
        assert found.both.mean(start, start + 1) == pytest.approx(parts, nan_ok=True)


def test_one_counter_of_both(tmp_path: Path) -> None:
    found = Bandwidths.build(traced(("HBM read and write", "% of peak", [(0, 10), (10, 50), (20, 70)]))).of(0)
    assert found is not None
    assert (found.read, found.write, found.peak) == (None, None, -1)
    assert found.both.mean(0, 20) == pytest.approx(0.6)
    assert math.isnan(found.bytes_per_s(0.5))


def test_what_is_no_share_of_the_peak_is_not_taken_for_one() -> None:
    trace = traced(("DRAM Read Bandwidth", "GB/s", [(0, 1), (1, 2)]), ("memory in use", "%", [(0, 1), (1, 2)]))
    assert Bandwidths.build(trace).devices == ()


def test_a_sample_trace(sample_traces: Path) -> None:
    trace = open_trace(sample_traces / "decode_server.sqlite")
    found = Bandwidths.build(trace).of(0)
    assert found is not None
    assert found.peak > 0
    share = found.both.mean(0, trace.end_ns)
    assert 0 < share < 1
    assert found.bytes_per_s(share) == pytest.approx(share * found.peak)
