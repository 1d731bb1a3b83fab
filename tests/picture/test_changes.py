"""What the user changed while a run went on, out of the marks that the engine makes."""

from __future__ import annotations

from inspector.picture.changes import Changes
from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo


def marked(*marks: tuple[int, str, str]) -> Trace:
    builder = Builder()
    thread = builder.thread(builder.process(1), 1)
    for time, name, domain in marks:
        ids = builder.names.add(name), builder.names.add(domain) if domain else -1
        builder.add("marks", time=time, thread=thread, name=ids[0], domain=ids[1])
    return builder.build(TraceInfo((), "recording"))


def test_marks_of_the_engine_are_changes_and_others_are_not() -> None:
    trace = marked((0, "first", ""), (7, "rate = 4", "engine"), (5, "step", "torch"), (6, "draft_len = 2", "engine"))
    assert trace.index(Changes).all == ((6, "draft_len = 2"), (7, "rate = 4"))


def test_a_trace_without_marks_has_no_changes() -> None:
    assert marked().index(Changes).all == ()
