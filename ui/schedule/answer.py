"""All that the schedule view asks for at once: the picture, the figures, and which engines there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from inspector.analysis.batching import EngineBatches, engine_batches
from inspector.picture.schedule import Ask, SchedulePicture, schedule
from inspector.trace.selection import Window
from ui.schedule.figures import ScheduleFigures, schedule_figures

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True, eq=False)
class Answer:
    """`engines` are (row of processes, name), the one with most iterations first."""

    picture: SchedulePicture
    figures: ScheduleFigures
    engines: tuple[tuple[int, str], ...]


def answer(trace: Trace, ask: Ask, window: Window | None, everything: bool) -> Answer:
    """Figures are of `window` (None: the whole trace); with `everything` all iterations are drawn, not the span."""
    engines = trace.index(EngineBatches)
    batches = engine_batches(trace, ask.process)
    if everything and batches is not None and not ask.span.by_time:
        ask = replace(ask, span=replace(ask.span, low=0.0, high=float(max(len(batches), 1))))
    names = tuple(
        (each.process, trace.process_name(each.process) if each.process >= 0 else "process unknown")
        for each in engines.engines
    )
    return Answer(schedule(trace, ask), schedule_figures(trace, batches, window), names)


def scope(figures: ScheduleFigures, where: str) -> tuple[str, ...]:
    """What the figures are of, from long to short; `where` says over which time."""
    requests = figures.latency.requests
    return f"{requests:,} requests, {figures.iterations:,} iterations, {where}", f"{requests:,} requests", where
