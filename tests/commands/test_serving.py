"""What the summary says of serving is what the views say, since both ask the same functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.analysis.batching import EngineBatches
from inspector.cli import main
from inspector.commands.serving import serving, serving_lines
from inspector.commands.summary import summary
from inspector.picture.pipeline import pipeline_picture
from inspector.picture.speculation import speculation
from inspector.trace.selection import Window
from inspector.trace.trace import Trace
from tests.drawn import draw
from tests.engine_traces import Setup, engine_trace
from ui.pages.figures import figure_lines
from ui.pages.moment import Wanted, moment
from ui.schedule.figures import measures as schedule_measures
from ui.schedule.figures import schedule_figures
from ui.speculation.figures import measures as speculation_measures


@pytest.fixture(scope="module")
def trace() -> Trace:
    return engine_trace(Setup(stages=2, micro_batches=2))


@pytest.fixture(params=["whole", "part"])
def window(request: pytest.FixtureRequest, trace: Trace) -> Window | None:
    return None if request.param == "whole" else Window(trace.end_ns // 4, trace.end_ns * 3 // 4)


def test_latency_and_batch_are_those_of_the_schedule(trace: Trace, window: Window | None) -> None:
    found = serving(trace, window)
    text = "\n".join(serving_lines(found))
    shown = schedule_figures(trace, trace.index(EngineBatches).of(None), window)
    for measure in schedule_measures(shown):
        if "p50" in measure.title:
            name = measure.title.split(" p50")[0]
            values = measure.value.replace(" ms", "").split(" / ")
            line = next(each for each in text.splitlines() if each.strip().lower().startswith(f"{name.lower()} p50"))
            assert [each in line for each in values] == [True] * 3
        else:
            assert measure.value in text
            assert measure.note.split()[1] in text


def test_acceptance_is_that_of_the_speculation_view(trace: Trace, window: Window | None) -> None:
    text = "\n".join(serving_lines(serving(trace, window)))
    pooled, of_requests, per_pass, *_ = speculation_measures(speculation(trace, window, None, 10))
    assert f"acceptance {pooled.value}, " in text
    assert f"mean of requests {of_requests.value}" in text
    assert f"{per_pass.value} tokens per pass" in text


def test_pages_are_those_of_the_moment_in_the_view(trace: Trace, window: Window | None) -> None:
    found = serving(trace, window)["pages"]
    shown = moment(trace, Wanted(time=None if window is None else window.end))
    lines = {label: text for label, text, _, _ in figure_lines(shown)}
    assert lines["in use"].startswith(f"{found['in_use']:,} of {found['blocks']:,}")
    assert lines["can be had"].startswith(f"{found['can_be_had']:,} ")
    assert lines["evicted"] == f"{found['evicted']:,} so far"
    assert lines["reuse"].endswith(f"{found['reused']:,} of {found['reused'] + found['missed']:,}")


def test_bubbles_are_those_of_the_pipeline_view(trace: Trace, window: Window | None) -> None:
    found = serving(trace, window)["pipeline"]
    figures = pipeline_picture(trace, window or trace.whole, 100).figures
    assert (found["bubble"], found["equal_stages"], found["stages_as_unequal"]) == (
        figures.bubble,
        figures.ideal,
        figures.unequal,
    )
    assert found["active_ns"] * found["stages"] == sum(found["busy_ns"]) + sum(found["idle_ns"].values())


def test_a_trace_without_an_engine_says_nothing_of_serving() -> None:
    found = summary(draw("\n gpu 0 stream 7   .AA..BB\n thread 1 calls   L..L...\n").trace, [0])
    assert found["serving"] == {}
    assert serving_lines(found["serving"]) == []


def test_marks_beside_the_causes_are_in_the_summary() -> None:
    drawn = draw(
        """
      gpu 0 stream 7             .AA...............BB
      gpu 1 stream 7 process 2   ...........CCCC.....
      thread 1 calls             L...............LL..
      thread 1 process 2 calls   L...................
      thread 1 nvtx              ..QQQQXXXRRRRRRYY...
      thread 1 os                ..O..O.O............
    """,
        ranges={"X": "paused by the user", "R": "receive", "Y": "inflight probe: reading operators"},
    )
    (device, _) = summary(drawn.trace, [0, 1])["devices"]
    assert (device["paused_by_user_ns"], device["own_probe_idle_ns"]) == (3000, 1000)
    assert device["at_work_while_waiting_for_a_peer_ns"] == {"1": 4000, "none": 2000}
    assert sum(device["idle_by_cause_ns"].values()) == device["idle_ns"]


def test_iterations_say_why_idle_can_be_longer_than_they_are(
    capsys: pytest.CaptureFixture[str], sample_traces: Path
) -> None:
    assert main(["iterations", str(sample_traces / "decode_server.sqlite")]) == 0
    assert "idle can be longer than the iteration: a gap that began before it counts whole" in capsys.readouterr().out
