"""The strips of the memory bandwidth view as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.picture.bandwidth import bandwidth_picture, value_text
from inspector.trace.builder import Builder
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
