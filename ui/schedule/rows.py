"""The numbers behind the schedule: a row per request in view."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inspector.analysis.latency import UNKNOWN, request_times
from inspector.analysis.static_batching import StaticBatching
from inspector.picture.schedule import Lives, SchedulePicture
from inspector.trace.schema import NEVER
from ui.export import Cell, Rows

_HEADS = (
    "request",
    "group",
    "arrival_ns",
    "prompt_tokens",
    "output_tokens",
    "reused_tokens",
    "queue_wait_ns",
    "ttft_ns",
    "tpot_ns",
    "e2e_ns",
    "first_iteration",
    "last_iteration",
)
_STATIC = ("static_begin_ns_modelled", "static_end_ns_modelled", "static_batch_end_ns_modelled")


def schedule_rows(picture: SchedulePicture) -> Rows:
    """Of all requests in view, those that are scrolled out of sight included."""
    heads = _HEADS + (_STATIC if isinstance(picture.model, StaticBatching) else ())
    return Rows(heads, _rows(picture))


def _rows(picture: SchedulePicture) -> Iterator[list[Cell]]:
    trace, axis, steps, model = picture.trace, picture.axis, picture.steps, picture.model
    if axis is None:
        return
    lives, span = Lives.of(trace, axis, steps), axis.span
    there = lives.ours & (lives.first < span.high) & (lives.last > span.low)
    rows = np.flatnonzero(there).astype(np.int32)
    times, table = request_times(trace, rows), trace["requests"]
    modelled: dict[int, int] = {}
    if isinstance(model, StaticBatching):
        modelled = {row: at for at, row in enumerate(model.row.tolist())}
    for at, row in enumerate(rows.tolist()):
        group = int(table.get("group")[row])
        tpot = float(times.tpot[at])
        line: list[Cell] = [
            int(table["request"][row]),
            trace.names[group] if group >= 0 else None,
            int(table["arrival"][row]) if table["arrival"][row] != NEVER else None,
            *(_known(int(table.get(name)[row])) for name in ("prompt_tokens", "output_tokens", "reused_tokens")),
            *(_known(int(values[at])) for values in (times.wait, times.ttft)),
            tpot if np.isfinite(tpot) else None,
            _known(int(times.e2e[at])),
        ]
        ends: list[Cell] = [None, None]
        if steps is not None and steps.begun[row] >= 0:
            ends = [int(axis.batches.number[each]) for each in (steps.begun[row], steps.ended[row])]
        line += ends
        if isinstance(model, StaticBatching):
            one = modelled.get(row)
            line += [None] * 3 if one is None else [int(x[one]) for x in (model.begin, model.end, model.batch_end)]
        yield line


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
