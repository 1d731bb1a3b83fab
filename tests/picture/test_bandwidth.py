"""The strips of the memory bandwidth view as arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.picture.bandwidth import bandwidth_picture, value_text
from inspector.trace.builder import Builder
from inspector.trace.schema import SCHEMAS
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo


def traced(*counters: tuple[str, str, list[float]]) -> Trace:
    """Counters of one device with a sample each 10 ns: (name, unit, values)."""
    builder = Builder()
    device = builder.device(0, "GPU", bandwidth=1000)
    for name, unit, values in counters:
        series = builder.series(name, unit, device)
        builder.add("counters", time=np.arange(len(values)) * 10, series=series, value=values)
    return builder.build(TraceInfo(("x",), "recording"))


def test_counters_of_other_units_stand_on_scales_of_their_own() -> None:
    trace = traced(
        ("PCIe RX Throughput", "%", [10, 20]),
        ("PCIe sent", "bytes/s", [5e9, 7e9]),
        ("SM clock", "MHz", [1980, 1500]),
        ("GPC Clock Frequency", "Hz", [1.2e9, 1.3e9]),
        ("power", "W", [500, 300]),
    )
    shown = bandwidth_picture(trace, 0, Window(0, 20), None, 20)
    strips = {(strip.title, strip.unit): strip for strip in shown.strips}
    assert list(strips) == [("Clocks", "Hz"), ("Power", "W"), ("Links", "%"), ("Links", "bytes/s")]
    assert strips["Links", "%"].top == 100
    assert strips["Links", "bytes/s"].top == 7e9
    clocks = strips["Clocks", "Hz"]
    assert clocks.top == 1.98e9
    sm = clocks.layers[0]
    assert sm.high[0] == 1.98e9
    assert value_text(float(sm.samples.value[0]) * sm.scale, "Hz") == "1.98 GHz"


def test_read_and_write_are_the_means_of_their_columns() -> None:
    trace = traced(("DRAM Read Bandwidth", "%", [0, 40, 20]), ("DRAM Write Bandwidth", "%", [0, 10, 30]))
    shown = bandwidth_picture(trace, 0, Window(0, 20), Window(0, 10), 2)
    (memory,) = shown.strips
    read, write = memory.layers
    assert read.high.tolist() == [40, 20]
    assert write.high.tolist() == [10, 30]
    assert write.stacked
    assert shown.share == pytest.approx(0.5)
    assert shown.bandwidth is not None
    assert shown.bandwidth.bytes_per_s(shown.share) == pytest.approx(500)


def with_iterations(count: int, length: int, values: list[float]) -> Trace:
    builder = Builder()
    device = builder.device(0, "GPU", bandwidth=1000)
    series = builder.series("HBM read and write", "%", device)
    builder.add("counters", time=np.arange(len(values)) * length, series=series, value=values)
    unknown = {c.name: -1 for c in SCHEMAS["iterations"].columns if c.dtype == "int32" and not c.optional}
    start = np.arange(count) * length
    columns = {**unknown, "process": builder.process(1), "iteration": np.arange(count), "start": start}
    builder.add("iterations", **columns, end=start + length)
    return builder.build(TraceInfo(("x",), "recording"))


def test_each_iteration_is_a_bar_where_there_is_room() -> None:
    trace = with_iterations(6, 10, [0, 50, 20, 90, 10, 120, 40])
    bars = bandwidth_picture(trace, 0, Window(0, 60), None, 6).bars
    assert bars.number.tolist() == list(range(6))
    assert bars.of.tolist() == [1] * 6
    np.testing.assert_allclose(bars.share, [0.5, 0.2, 0.9, 0.1, 1.2, 0.4])


@given(st.lists(st.integers(0, 130), min_size=60, max_size=200), st.integers(1, 20), st.integers(0, 30))
def test_a_thinned_picture_shows_the_highest_of_each_column(shares: list[int], width: int, begin: int) -> None:
    trace = with_iterations(len(shares), 10, [0.0, *map(float, shares)])
    window = Window(begin * 10, len(shares) * 10)
    bars = bandwidth_picture(trace, 0, window, None, width).bars
    every = bandwidth_picture(trace, 0, window, None, len(shares)).bars
    columns: dict[int, list[float]] = {}
    for start, share in zip(every.start.tolist(), every.share.tolist(), strict=True):
        columns.setdefault(min((start - window.start) * width // window.length, width - 1), []).append(share)
    if len(every.share) <= 2 * width:
        assert bars.of.tolist() == [1] * len(every.share)
        return
    assert bars.of.tolist() == [len(columns[column]) for column in sorted(columns)]
    np.testing.assert_allclose(bars.share, [max(columns[column]) for column in sorted(columns)])
    of_number = dict(zip(every.number.tolist(), every.share.tolist(), strict=True))
    np.testing.assert_allclose(bars.share, [of_number[number] for number in bars.number.tolist()])
