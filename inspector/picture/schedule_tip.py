"""What stands at one place of the schedule, exactly: a request in an iteration, or an iteration alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector import units
from inspector.analysis.batching import Batches
from inspector.analysis.latency import UNKNOWN
from inspector.analysis.static_batching import StaticBatching
from inspector.analysis.steps import FINISHED, PAUSED, QUEUED, SKIPPED, Steps
from inspector.picture.schedule import SchedulePicture
from inspector.trace.schema import PHASES

Lines = list[tuple[str, str]]
_WORDS = {**dict(enumerate(PHASES)), SKIPPED: "held, not scheduled"}


@dataclass(frozen=True)
class Place:
    """A row of requests and an ordinal of iterations, -1 where there is none, and what to say of them."""

    request: int
    ordinal: int
    lines: Lines


def place_at(picture: SchedulePicture, x: float, row: int) -> Place | None:
    """At pixel `x` of the `row`-th request of the picture; a row below 0 is the strips above. None: nothing there."""
    axis = picture.axis
    if axis is None or not 0 <= x < picture.ask.span.width:
        return None
    ordinal = axis.ordinal_at(x)
    if row < 0:
        return Place(-1, ordinal, iteration_lines(axis.batches, ordinal)) if ordinal >= 0 else None
    if row >= len(picture.rows):
        return None
    lines = request_lines(picture, row)
    if ordinal >= 0:
        lines += cell_lines(picture, int(picture.rows[row]), ordinal)
    lines += _static_lines(picture, row)
    return Place(int(picture.rows[row]), ordinal, lines)


def iteration_lines(batches: Batches, ordinal: int) -> Lines:
    """What the engine told of an iteration; what it did not tell is left out."""
    at = ordinal
    lines = [
        ("iteration", units.exact(int(batches.number[at]))),
        ("length", units.time(int(batches.end[at] - batches.start[at]))),
    ]
    for name, used, room in (
        ("requests", int(batches.scheduled[at]), int(batches.room[at])),
        ("tokens", int(batches.tokens[at]), int(batches.budget[at])),
    ):
        if used >= 0:
            lines.append((name, f"{used} of {room} ({units.share(used, room)})" if room > 0 else str(used)))
    for name, value in (
        ("in context", batches.context[at]),
        ("in generation", batches.generation[at]),
        ("queued", batches.queued[at]),
        ("paused", batches.paused[at]),
    ):
        if value >= 0:
            lines.append((name, str(int(value))))
    return lines


def request_lines(picture: SchedulePicture, row: int) -> Lines:
    """Who it is, and its times."""
    table, at, times = picture.trace["requests"], int(picture.rows[row]), picture.times
    group = int(table.get("group")[at])
    name = f"{int(table['request'][at])}" + (f" · {picture.trace.names[group]}" if group >= 0 else "")
    lines = [("request", name)]
    tokens = [
        (f"{int(table[key][at])} {word}") for key, word in (("prompt_tokens", "prompt"), ("output_tokens", "out"))
    ]
    reused = int(table.get("reused_tokens")[at])
    lines.append(("tokens", ", ".join(tokens) + (f", {reused} reused" if reused > 0 else "")))
    for title, value in (("queue wait", times.wait), ("TTFT", times.ttft), ("E2E", times.e2e)):
        if value[row] != UNKNOWN:
            lines.append((title, f"{units.time(int(value[row]))} ({units.exact(int(value[row]))} ns)"))
    tpot = times.tpot[row]
    if np.isfinite(tpot):
        lines.append(("TPOT", units.time(float(tpot))))
    return lines


def cell_lines(picture: SchedulePicture, request: int, ordinal: int) -> Lines:
    """What a request (row) did in an iteration."""
    axis, steps = picture.axis, picture.steps
    if axis is None or steps is None:
        return []
    lines = [("iteration", units.exact(int(axis.batches.number[ordinal])))]
    found = step_rows(steps, axis.batches, request, ordinal)
    if not len(found):
        return [*lines, ("phase", _between(picture, request, ordinal))]
    table = picture.trace["steps"]
    for row in found.tolist():
        phase = int(table["phase"][row])
        words = _WORDS[phase] + (" (left the engine)" if phase == FINISHED else "")
        if phase not in (PAUSED, FINISHED):
            tokens = int(table["tokens"][row])
            words += f", {tokens} tokens computed" if tokens >= 0 else ", how many tokens is not told"
        lines.append(("phase", words))
        drafted, accepted, given = (int(table.get(key)[row]) for key in ("drafted", "accepted", "emitted"))
        if drafted > 0:
            lines.append(("drafts", f"{accepted} of {drafted} accepted"))
        if given > 0:
            lines.append(("given out", f"{given} token" + "s" * (given > 1)))
        elif given < 0:
            lines.append(("given out", "not told"))
        blocks = int(table["blocks"][row])
        if blocks >= 0 and phase not in (PAUSED, FINISHED):
            lines.append(("pages", f"{blocks} held"))
    return lines


def step_rows(steps: Steps, batches: Batches, request: int, ordinal: int) -> npt.NDArray[np.int32]:
    """Rows of steps of a request (row) in an iteration of its process."""
    iteration = int(batches.row[ordinal])
    part = steps.of(iteration, iteration + 1)
    found: npt.NDArray[np.int32] = steps.row[part][steps.request[part] == request]
    return found


def _between(picture: SchedulePicture, request: int, ordinal: int) -> str:
    """Of an iteration in which it had no step."""
    axis, steps = picture.axis, picture.steps
    if axis is None or steps is None:
        return "not known"
    begun, ended = int(steps.begun[request]), int(steps.ended[request])
    if 0 <= steps.done[request] < ordinal:
        return "gone"
    if begun < 0 or ordinal < begun:
        came = int(picture.trace["requests"]["arrival"][request]) < int(axis.batches.end[ordinal])
        return _WORDS[QUEUED] if came else "not here yet"
    runs = steps.runs
    inside = (runs.request == request) & (runs.first <= ordinal) & (runs.last > ordinal)
    found = np.flatnonzero(inside)
    if len(found):
        return _WORDS[int(runs.phase[found[0]])]
    last = np.flatnonzero((runs.request == request) & (runs.last == ended + 1))
    return _WORDS[PAUSED if len(last) and runs.phase[last[-1]] == PAUSED else SKIPPED]


def _static_lines(picture: SchedulePicture, row: int) -> Lines:
    model = picture.model
    if not isinstance(model, StaticBatching):
        return []
    at = np.flatnonzero(model.row == picture.rows[row])
    if not len(at):
        return [("static batching", "left out: it had not finished")]
    one = int(at[0])
    arrival = int(picture.trace["requests"]["arrival"][picture.rows[row]])
    waits, pads = int(model.begin[one]) - arrival, int(model.batch_end[one] - model.end[one])
    batch = f"batch {int(model.batch[one]) + 1}, waits {units.time(waits)}, then pads {units.time(pads)} (modelled)"
    return [("static batching", batch)]
