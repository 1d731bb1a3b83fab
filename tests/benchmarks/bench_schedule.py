"""By hand: milliseconds per step of the schedule over 2,000 requests, 100,000 iterations and 1.4 million steps.

    QT_QPA_PLATFORM=offscreen .venv/bin/python -m tests.benchmarks.bench_schedule

A *picture* is what the pool computes; a *first frame* is drawn anew from it, a *moved* one while the next is awaited.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from PySide6.QtWidgets import QApplication

from inspector.analysis.steps import Steps
from inspector.picture.schedule import Ask, schedule
from inspector.picture.schedule_axis import Span
from inspector.picture.speculation import speculation
from inspector.trace.builder import Builder
from inspector.trace.trace import Trace, TraceInfo
from ui.schedule.canvas import ScheduleCanvas
from ui.settings import SettingsFile
from ui.theme import Theme

REQUESTS, ITERATIONS, BATCH, WIDTH = 2_000, 100_000, 16, 1_600


def long_run() -> Trace:
    """Every request runs for as many iterations as keep the batch full; one in nine iterations of it is skipped."""
    random = np.random.default_rng(1)
    length = ITERATIONS * BATCH // REQUESTS
    first = np.sort(random.integers(0, ITERATIONS - length, REQUESTS))
    request = np.repeat(np.arange(REQUESTS), length)
    iteration = (first[:, None] + np.arange(length)).reshape(-1)
    kept = random.random(len(request)) > 0.11
    request, iteration = request[kept], iteration[kept]
    order = np.argsort(iteration, kind="stable")
    request, iteration = request[order], iteration[order]
    phase = np.where(random.random(len(request)) < 0.02, 1, 2)
    drafted = np.where(phase == 2, 4, 0)
    accepted = np.minimum(random.integers(0, 5, len(request)), drafted)
    builder = Builder()
    process = builder.process(1)
    start = np.arange(ITERATIONS) * 10_000_000
    used = np.bincount(iteration, minlength=ITERATIONS)
    zero = dict.fromkeys(("used_blocks", "free_blocks", "reused_blocks", "missed_blocks", "paused_requests"), 0)
    builder.add(
        "iterations",
        start=start,
        end=start + 9_000_000,
        process=process,
        iteration=np.arange(ITERATIONS),
        context_requests=0,
        generation_requests=used,
        queued_requests=random.integers(0, 30, ITERATIONS),
        tokens=used * 5,
        max_batch_size=2 * BATCH,
        max_num_tokens=256,
        **zero,
    )
    arrival = start[first] - 5_000_000 * (first > 0)
    builder.add(
        "requests",
        request=np.arange(REQUESTS),
        arrival=arrival,
        first_token=start[first] + 9_000_000,
        last_token=start[first + length - 1] + 9_000_000,
        prompt_tokens=100,
        output_tokens=length,
    )
    builder.add(
        "steps",
        iteration=iteration,
        request=request,
        phase=phase,
        tokens=5,
        drafted=drafted,
        accepted=accepted,
        blocks=1,
        emitted=accepted + 1,
    )
    return builder.build(TraceInfo(("long run",), "recording"))


def milliseconds(work: Callable[[], object], times: int = 9) -> float:
    """Median of some runs."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return float(np.median(took)) * 1e3


def canvas_of(trace: Trace, ask: Ask) -> ScheduleCanvas:
    """The view's canvas with a picture."""
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    canvas = ScheduleCanvas(Theme(application, SettingsFile()))
    canvas.resize(WIDTH + 320, 700)
    canvas.show_picture(schedule(trace, ask))
    return canvas


def step(trace: Trace, title: str, span: Span) -> str:
    """A picture as the pool makes it, the first frame from it, and one that is moved a little."""
    ask = Ask(span, 0, 600)
    picture = milliseconds(lambda: schedule(trace, ask))
    canvas = canvas_of(trace, ask)
    answer = schedule(trace, ask)

    def first() -> None:
        canvas.show_picture(replace(answer))
        canvas.look(span)
        canvas.grab()

    def moved() -> None:
        canvas.look(replace(span, low=span.low + span.length / 50, high=span.high + span.length / 50))
        canvas.grab()

    frames = f"first frame {milliseconds(first):.1f} ms, moved {milliseconds(moved):.1f} ms"
    return f"{title}: picture {picture:.1f} ms, {frames}"


def main() -> None:
    """Write one line per kind of step."""
    application = QApplication([])
    trace = long_run()
    lines = [f"{len(trace['steps']):,} steps"]
    lines.append(f"index of steps, once: {milliseconds(lambda: Steps.build(trace), 1):.0f} ms")
    for title, span in (
        ("everything", Span(False, 0, ITERATIONS, WIDTH)),
        ("5,000 iterations", Span(False, 40_000, 45_000, WIDTH)),
        ("200 iterations", Span(False, 40_000, 40_200, WIDTH)),
        ("everything by time", Span(True, 0, trace.end_ns, WIDTH)),
        ("2 s", Span(True, 400 * 10**9, 402 * 10**9, WIDTH)),
    ):
        lines.append(step(trace, title, span))
    lines.append(f"speculation of everything: {milliseconds(lambda: speculation(trace, None, None, 120), 3):.0f} ms")
    sys.stdout.write("\n".join(lines) + "\n")
    application.quit()


if __name__ == "__main__":
    main()
