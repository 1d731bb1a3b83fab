"""The schedule as cells: requests down, iterations or time across, a code per pixel; strips of the batch above it.

Far out a row is painted from runs of equal phase, near from the steps themselves:

    far    ..====----------====|          queued, context, generation, paused, generation, finished
    near   [##  ][# ][####][###]          a cell is as full as its pass gave tokens, of those that it could have given
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.batching import Batches, engine_batches
from inspector.analysis.latency import RequestTimes, request_times, scheduled
from inspector.analysis.static_batching import NoModel, StaticBatching, static_batching
from inspector.analysis.steps import CONTEXT, FINISHED, GENERATION, PAUSED, QUEUED, SKIPPED, Steps
from inspector.picture.groups import group_ranks
from inspector.picture.palette import ink
from inspector.picture.schedule_axis import Axis, Span, most
from inspector.trace.schema import NEVER

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]

NOTHING, ROOM, PADDING, UNTOLD = 255, SKIPPED + 1, SKIPPED + 2, SKIPPED + 3
CELL_INKS: tuple[int, ...] = tuple(
    ink(name)
    for name in (
        "queued",
        "context chunk",
        "generation",
        "paused",
        "finished",
        "held, not scheduled",
        "generation, room for more tokens",
        "padding",
        "generation, tokens not told",
    )
)
"""Ink of each code: phases, then SKIPPED, ROOM (for more tokens), PADDING, UNTOLD (how many tokens)."""
# What is rare is painted last, so that it is seen however narrow.
_ORDER = (SKIPPED, QUEUED, GENERATION, CONTEXT, PAUSED)
NEAR_PX, APART_PX = 4, 6
"""From the first width of an iteration on cells are drawn one by one, from the second on apart from each other."""


@dataclass(frozen=True)
class Ask:
    """What is to be drawn: of a `process` (None: the one with most iterations), rows [top, bottom) of the requests
    that were there within the span, those that only waited in it left out unless `waiting`; `static` draws the model
    of static batching too.
    """

    span: Span
    top: int
    bottom: int
    process: int | None = None
    static: bool = False
    waiting: bool = True


@dataclass(frozen=True)
class Strips:
    """Per pixel column the largest of its iterations, -1 unknown or none: requests and those in context, their room,
    tokens and those of contexts, the budget, the queue. `highest_*` are for scales: of the whole trace.
    """

    batch: Int
    context: Int
    room: Int
    tokens: Int
    context_tokens: Int
    budget: Int
    queued: Int
    paused: Int
    highest_batch: int
    highest_tokens: int
    highest_queue: int


@dataclass(frozen=True, eq=False)
class SchedulePicture:
    """`rows` (of requests) from `top` on of the `alive` ones in view by arrival, those among them that only static
    batching would still hold; `everyone` are the rows of all that are alive. `waiting` ones only waited. `cells`
    (rows, width) are codes or NOTHING; `static` the same for static batching. `fullest` is how many tokens a full
    cell stands for, `groups` the rank of each kind of prompt (name id). `missing` says what the trace has no data
    for.
    """

    trace: Trace
    ask: Ask
    axis: Axis | None
    steps: Steps | None
    strips: Strips | None
    alive: int
    waiting: int
    top: int
    everyone: Rows
    rows: Rows
    times: RequestTimes
    cells: Codes
    static: Codes | None
    model: StaticBatching | NoModel | None
    fullest: int
    groups: dict[int, int]
    missing: tuple[str, ...]


def schedule(trace: Trace, ask: Ask) -> SchedulePicture:
    """The picture of what is asked for."""
    engine = engine_batches(trace, ask.process)
    missing = tuple(_missing(trace, engine))
    none = np.empty(0, np.int32)
    if engine is None:
        empty = np.empty((0, ask.span.width), np.uint8)
        times = request_times(trace, none)
        return SchedulePicture(
            trace, ask, None, None, None, 0, 0, 0, none, none, times, empty, None, None, 1, {}, missing
        )
    axis = Axis(ask.span, engine)
    steps = trace.index(Steps) if len(trace["steps"]) else None
    lives = Lives.of(trace, axis, steps)
    model = static_batching(trace, engine) if ask.static else None
    last = lives.last.copy()
    if isinstance(model, StaticBatching):
        last[model.row] = np.maximum(last[model.row], axis.of_time(model.batch_end))
    there = lives.ours & (lives.first < ask.span.high) & (last > ask.span.low)
    waits = there & (lives.begun >= ask.span.high)
    alive = np.flatnonzero(there if ask.waiting else there & ~waits).astype(np.int32)
    top = min(max(ask.top, 0), len(alive))
    rows = alive[top : max(ask.bottom, top)]
    fullest = _fullest(trace)
    cells = _cells(trace, axis, steps, lives, rows, fullest)
    static = _static(axis, model, lives, rows, len(lives.first)) if isinstance(model, StaticBatching) else None
    return SchedulePicture(
        trace,
        ask,
        axis,
        steps,
        _strips(axis),
        len(alive),
        int(np.count_nonzero(waits)),
        top,
        alive,
        rows,
        request_times(trace, rows),
        cells,
        static,
        model,
        fullest,
        group_ranks(trace),
        missing,
    )


@dataclass(frozen=True)
class Lives:
    """Per request, in places of the axis: from its arrival (`first`) over its first step (`begun`) to where it left or
    stands now (`last`). `ours` are those of the engine that is shown.
    """

    first: npt.NDArray[np.float64]
    begun: npt.NDArray[np.float64]
    last: npt.NDArray[np.float64]
    ours: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace, axis: Axis, steps: Steps | None) -> Lives:
        """Of all requests."""
        table, process = trace["requests"], axis.batches.process
        mine = table.get("process")
        if steps is not None:
            mine = np.where(steps.process >= 0, steps.process, mine)
        first = axis.of_time(table["arrival"])
        begun, last = np.full(len(first), axis.end), np.full(len(first), axis.end)
        if steps is not None:
            known = np.flatnonzero((steps.begun >= 0) & (mine == process))
            begun[known] = axis.left(steps.begun[known])
            # Of those that never took part their record may still tell that they are gone.
            lost = np.flatnonzero((steps.begun < 0) & (steps.done < 0) & (table.get("finished") != NEVER))
            begun[lost] = last[lost] = axis.of_time(table.get("finished")[lost])
            gone = np.flatnonzero((steps.done >= 0) & (mine == process))
            last[gone] = axis.right(steps.done[gone])
            begun = np.minimum(begun, last)
        else:
            rows = np.arange(len(first), dtype=np.int32)
            start, ended = scheduled(trace, rows), table["last_token"]
            if "finished" in table:
                ended = np.where(table["finished"] != NEVER, ended, NEVER)
            begun[start != NEVER] = axis.of_time(start[start != NEVER])
            last[ended != NEVER] = axis.of_time(ended[ended != NEVER])
        return cls(np.minimum(first, begun), begun, last, (mine == process) | (mine < 0))


def _cells(trace: Trace, axis: Axis, steps: Steps | None, lives: Lives, rows: Rows, fullest: int) -> Codes:
    cells = np.full((len(rows), axis.span.width), NOTHING, np.uint8)
    place = np.full(len(lives.first), -1, np.int64)
    place[rows] = np.arange(len(rows))
    _paint(cells, axis, place[rows], lives.first[rows], lives.begun[rows], QUEUED)
    if trace.kept.from_ns:
        # It had its first turn before what is at hand begins.
        told = scheduled(trace, rows)
        held = rows[(told != NEVER) & (told < trace.kept.from_ns)]
        _paint(cells, axis, place[held], lives.first[held], lives.begun[held], SKIPPED)
    if steps is None:
        first_token = trace["requests"]["first_token"][rows]
        middle = np.where(first_token != NEVER, axis.of_time(first_token), lives.last[rows])
        _paint(cells, axis, place[rows], lives.begun[rows], middle, CONTEXT)
        _paint(cells, axis, place[rows], middle, lives.last[rows], GENERATION)
        return cells
    first, last = axis.inside()
    near = axis.px_each >= NEAR_PX
    runs = steps.runs
    inside = (place[runs.request] >= 0) & (runs.first < max(last, first + 1)) & (runs.last >= first)
    mine = runs.take(np.flatnonzero(inside))
    left, right = axis.left(mine.first), axis.right(mine.last - 1)
    # A pause that is not over reaches up to now.
    pending = (mine.phase == PAUSED) & (mine.last == steps.ended[mine.request] + 1) & (steps.done[mine.request] < 0)
    right = np.where(pending, axis.end, right)
    for phase in _ORDER:
        if phase == QUEUED or (near and phase in (GENERATION, CONTEXT)):
            continue
        at = np.flatnonzero(mine.phase == phase)
        _paint(cells, axis, place[mine.request[at]], left[at], right[at], phase)
    if near:
        _near(cells, trace, axis, steps, place, (first, last), fullest)
    gone = np.flatnonzero(steps.done[rows] >= 0)
    end = axis.span.pixels(lives.last[rows[gone]] - axis.span.per_px * 1e-3)
    for back in range(2 if near else 1):
        seen = (end - back >= 0) & (end - back < axis.span.width)
        cells[gone[seen], end[seen] - back] = FINISHED
    return cells


def _near(
    cells: Codes, trace: Trace, axis: Axis, steps: Steps, place: Int, seen: tuple[int, int], fullest: int
) -> None:
    """Every step as a cell of its own, a pixel apart from the next one where there is room."""
    rows = axis.batches.row[seen[0] : seen[1]]
    if not len(rows):
        return
    part = steps.of(int(rows[0]), int(rows[-1]) + 1)
    iteration, request, phase = steps.iteration[part], steps.request[part], steps.phase[part]
    at = np.flatnonzero((place[request] >= 0) & ((phase == CONTEXT) | (phase == GENERATION)))
    at = at[trace["iterations"]["process"][iteration[at]] == axis.batches.process]
    ordinal, row = steps.ordinal[iteration[at]], place[request[at]]
    left, right = axis.span.pixels(axis.left(ordinal)), axis.span.pixels(axis.right(ordinal))
    apart = (axis.px_each >= APART_PX) & (right - left > 3)
    _fill(cells, row, left, right, NOTHING)
    right = np.maximum(right - apart, left + 1)
    context = phase[at] == CONTEXT
    _fill(cells, row[context], left[context], right[context], CONTEXT)
    bar = ~context
    _fill(cells, row[bar], left[bar], right[bar], ROOM)
    emitted = trace["steps"].get("emitted")[steps.row[part][at][bar]]
    share = np.where(emitted < 0, 1, emitted / fullest)
    begin = axis.left(ordinal[bar])
    length = axis.right(ordinal[bar]) - begin
    full = np.maximum(np.round(length / axis.span.per_px * share), 1)
    stop = np.minimum(axis.span.pixels(begin + full * axis.span.per_px), right[bar])
    _fill(cells, row[bar], left[bar], np.where(emitted == 0, left[bar], stop), GENERATION)
    untold = emitted < 0
    _fill(cells, row[bar][untold], left[bar][untold], right[bar][untold], UNTOLD)
    # Paused and taken up again at once: the cell of the work keeps a mark of it.
    both = request.astype(np.int64) << 32 | iteration
    pause = np.flatnonzero((place[request] >= 0) & (phase == PAUSED))
    pause = pause[np.isin(both[pause], both[at])]
    ordinal = steps.ordinal[iteration[pause]]
    left, right = axis.span.pixels(axis.left(ordinal)), axis.span.pixels(axis.right(ordinal))
    _fill(cells, place[request[pause]], left, left + np.maximum((right - left) // 6, 2), PAUSED)


def _static(axis: Axis, model: StaticBatching, lives: Lives, rows: Rows, size: int) -> Codes:
    """What the model says for those rows; nothing for requests that it left out."""
    cells = np.full((len(rows), axis.span.width), NOTHING, np.uint8)
    at = np.full(size, -1, np.int64)
    at[model.row] = np.arange(len(model.row))
    known = np.flatnonzero(at[rows] >= 0)
    mine = at[rows[known]]
    places = [axis.of_time(each[mine]) for each in (model.begin, model.context_end, model.end, model.batch_end)]
    edges = [lives.first[rows[known]], *places]
    for code, left, right in zip((QUEUED, CONTEXT, GENERATION, PADDING), edges[:-1], edges[1:], strict=True):
        _paint(cells, axis, known, left, right, code)
    return cells


def _paint(
    cells: Codes, axis: Axis, row: Int, left: npt.NDArray[np.float64], right: npt.NDArray[np.float64], code: int
) -> None:
    """Places [left, right) of rows, at least a pixel wide where they are in view and not empty."""
    seen = np.flatnonzero((right > left) & (right > axis.span.low) & (left < axis.span.high))
    begin, end = axis.span.pixels(left[seen]), axis.span.pixels(right[seen])
    _fill(cells, row[seen], begin, np.maximum(end, begin + 1), code)


def _fill(cells: Codes, row: Int, left: Int, right: Int, code: int) -> None:
    """Pixels [left, right) of rows, cut to what there is."""
    width = cells.shape[1]
    left, right = np.clip(left, 0, width), np.clip(right, 0, width)
    length = np.maximum(right - left, 0)
    starts = np.cumsum(length) - length
    flat = np.arange(int(length.sum())) + np.repeat(row * width + left - starts, length)
    cells.reshape(-1)[flat] = code


def _strips(axis: Axis) -> Strips:
    batches = axis.batches
    first, last = axis.columns()

    def highest(*values: Rows) -> int:
        return max(int(each.max(initial=0)) for each in values)

    def seen(values: Rows) -> Int:
        return most(values, first, last)

    return Strips(
        seen(batches.scheduled),
        seen(batches.context),
        seen(batches.room),
        seen(batches.tokens),
        seen(batches.context_tokens),
        seen(batches.budget),
        seen(batches.queued),
        seen(batches.paused),
        highest(batches.scheduled, batches.room),
        highest(batches.tokens, batches.budget),
        highest(batches.queued),
    )


def _fullest(trace: Trace) -> int:
    """Most tokens that a pass could have given one request: one more than the longest draft."""
    return 1 + max(int(trace["steps"]["drafted"].max(initial=0)), 0)


def limits_words(engine: Batches) -> list[str]:
    """Where limits come from that were not recorded, a sentence each."""
    return [
        f"{title} {int(values.max(initial=0)):,} was not recorded: it is {place}"
        for title, values, place in (
            ("max_batch_size", engine.room, engine.room_from),
            ("max_num_tokens", engine.budget, engine.budget_from),
        )
        if place
    ]


def _missing(trace: Trace, engine: Batches | None) -> list[str]:
    how = trace.info.missing
    found = []
    if engine is None:
        found.append("No iterations that tell of a batch: " + how.get("iterations", "record the engine with its probe"))
    if not len(trace["requests"]):
        found.append(
            "No request records: " + how.get("requests", "record with inflight record, which hooks the engine")
        )
    elif not len(trace["steps"]):
        found.append(
            "No steps of requests: rows are drawn from arrival, first and last token; chunks and pauses are not known"
        )
    elif trace.index(Steps).unplaced:
        found.append(f"{trace.index(Steps).unplaced:,} steps without iteration or request are not drawn")
    if engine is not None and not (engine.room > 0).any():
        found.append("max_batch_size is not in this trace")
    if engine is not None:
        found += limits_words(engine)
    if engine is not None and not (engine.tokens >= 0).any():
        found.append("Tokens per iteration are not in this trace")
    elif engine is not None and (engine.tokens < 0).any():
        told = f"{np.count_nonzero(engine.tokens >= 0):,} of {len(engine):,}"
        found.append(f"Tokens: {told} iterations tell them; of the others what is known of contexts is drawn")
    return found
