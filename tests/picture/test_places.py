"""Notes that speak of a place in time lead there."""

from __future__ import annotations

import pytest

from inspector.picture.places import place_of
from inspector.trace.builder import Builder
from inspector.trace.quality import Note
from inspector.trace.selection import Window
from inspector.trace.trace import Trace, TraceInfo


def kernels(*spans: tuple[int, int]) -> Trace:
    """The trace begins at 0 and ends at 10000, whatever else is in it."""
    builder = Builder()
    stream = builder.stream(builder.process(1), builder.device(0), 7)
    name = builder.names.add("k")
    for start, end in ((0, 100), (9900, 10_000), *spans):
        builder.add("kernels", start=start, end=end, stream=stream, name=name, correlation=-1)
    return builder.build(TraceInfo((), "test"))


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        (((6000, 5000), (3000, 2000)), Window(3000, 3001)),
        (((20_000, 19_000), (4000, 3999)), Window(4000, 4001)),
        (((20_000, 19_000),), None),
    ],
)
def test_the_earliest_wrong_record_inside_the_trace(wrong: tuple[tuple[int, int], ...], place: Window | None) -> None:
    trace = kernels(*wrong)
    (note,) = trace.quality.find("reversed")
    assert place_of(trace, note) == place


def test_the_first_loss_of_any_probe() -> None:
    builder = Builder()
    builder.add("threads", process=-1, tid=1, name=-1)
    names = [builder.names.add("kernels"), builder.names.add("engine")]
    for time, name, lost in ((0, 0, 0), (10, 1, 0), (20, 0, 0), (30, 1, 4), (40, 0, 9), (50, 1, 4)):
        builder.add(
            "probes", time=time, process=-1, name=names[name], state=1, records=time, lost=lost, cost=-1, message=-1
        )
    trace = builder.build(TraceInfo((), "recording"))
    assert place_of(trace, Note("profiler-loss", 13, "records lost")) == Window(10, 30)
    assert place_of(kernels(), Note("profiler-loss", 13, "records lost")) is None


def test_what_broke_off_is_at_the_end_and_other_notes_are_nowhere() -> None:
    trace = kernels((6000, 5000))
    assert place_of(trace, Note("truncated", 1, "")) == Window(9999, 10_000)
    assert place_of(trace, Note("absent", 1, "something: else")) is None
    assert place_of(trace, Note("outside", 1, "kernels: outside the session")) is None
