"""What each request did in each iteration, ready to be drawn: runs of equal phase, and how long a token took.

The index grows with the trace: new steps are sorted among themselves and joined to where each request stood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import PHASES
from inspector.trace.table import Array

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

QUEUED, CONTEXT, GENERATION, PAUSED, FINISHED = range(len(PHASES))
SKIPPED = len(PHASES)
"""Phase of a run in which a request was held but took no part, though it was not paused."""


@dataclass(frozen=True)
class Runs:
    """Stretches of equal phase, in no order: a request (row), its ordinals [first, last), a phase or SKIPPED.

    A pause that has not ended reaches only over the iteration in which it began. A request that was paused and taken
    up again in one iteration has two runs there.
    """

    request: Rows
    first: Rows
    last: Rows
    phase: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.request)

    def take(self, rows: Array) -> Runs:
        """Those rows (mask or indices)."""
        return Runs(self.request[rows], self.first[rows], self.last[rows], self.phase[rows])


@dataclass(frozen=True)
class Steps:
    """Steps that belong to an iteration and a request, in the order of their iterations.

    `row` is the row of the steps table, `iteration` of iterations; `before` the row of the iteration in which the same
    request was given tokens the last time before, -1 for its first ones and where a step gave none.
    `ordinal` (one per row of iterations) numbers the iterations of each process. Per request: `begun` and `ended` are
    ordinals of its first work and its last step, -1 without; `done` is where it left, -1 while it has not; `given` the
    row of the iteration that gave it tokens last. `unplaced` counts steps without iteration or request; `read` rows of
    the table's `revision` have been taken.
    """

    row: Rows
    iteration: Rows
    request: Rows
    phase: npt.NDArray[np.int8]
    before: Rows
    ordinal: Rows
    runs: Runs
    begun: Rows
    ended: Rows
    done: Rows
    given: Rows
    process: Rows
    unplaced: int
    read: int
    revision: int

    @classmethod
    def build(cls, trace: Trace) -> Steps:
        """From all steps."""
        none = np.empty(0, np.int32)
        small = none.astype(np.int8)
        runs = Runs(none, none, none, small)
        empty = cls(
            none, none, none, small, none, none, runs, none, none, none, none, none, 0, 0, trace["steps"].revision
        )
        return _grown(empty, trace)

    @classmethod
    def extend(cls, old: Steps, trace: Trace) -> Steps:
        """With the steps that came since; anew where earlier rows are no longer what they were."""
        steps, ordinal = trace["steps"], ordinals(trace)
        known = len(old.row)
        same = (
            old.revision == steps.revision
            and old.read <= len(steps)
            and not old.unplaced
            and np.array_equal(ordinal[: len(old.ordinal)], old.ordinal)
            and np.array_equal(steps["iteration"][:known], old.iteration)
            and np.array_equal(steps["request"][:known], old.request)
            and np.array_equal(old.row, np.arange(known))
        )
        if same:
            later = steps["iteration"][known:]
            same = not len(later) or not known or int(later.min()) >= int(old.iteration[-1])
        return _grown(old, trace) if same else cls.build(trace)

    def of(self, first: int, last: int) -> slice:
        """The steps whose row of iterations is in [first, last)."""
        # In the type of the column: another one would make a copy of all of it.
        low, high = np.searchsorted(self.iteration, np.array([first, last], self.iteration.dtype))
        return slice(int(low), int(high))


def ordinals(trace: Trace) -> Rows:
    """Number of each iteration among those of its process, in the order of their start."""
    process = trace["iterations"]["process"]
    numbers = np.empty(len(process), np.int32)
    for each in np.unique(process).tolist():
        mine = np.flatnonzero(process == each)
        numbers[mine] = np.arange(len(mine))
    return numbers


def _grown(old: Steps, trace: Trace) -> Steps:
    table, requests, ordinal = trace["steps"], len(trace["requests"]), ordinals(trace)
    iteration, request = table["iteration"][old.read :], table["request"][old.read :]
    placed = (iteration >= 0) & (request >= 0)
    row = np.flatnonzero(placed).astype(np.int32)
    row = row[np.argsort(iteration[row], kind="stable")]
    iteration, request, row = iteration[row], request[row], row + np.int32(old.read)
    phase = table["phase"][row]
    number = ordinal[iteration]
    begun, ended, done, given, process = (
        np.r_[column, np.full(requests - len(column), -1, np.int32)]
        for column in (old.begun, old.ended, old.done, old.given, old.process)
    )
    first_of = np.full(requests, np.iinfo(np.int32).max, np.int32)
    works = (phase == CONTEXT) | (phase == GENERATION)
    np.minimum.at(first_of, request[works], number[works])
    fresh = (begun < 0) & (first_of < np.iinfo(np.int32).max)
    begun[fresh] = first_of[fresh]
    np.maximum.at(ended, request, number)
    process[request] = trace["iterations"]["process"][iteration]
    left = phase == FINISHED
    done[request[left]] = number[left]
    emitted = table.get("emitted")[row]
    # A pass in the generation phase gives at least one token, whether it was counted or not.
    gave = (emitted > 0) | ((emitted < 0) & (phase == GENERATION))
    before = _before(gave, iteration, request, given)
    return Steps(
        np.r_[old.row, row],
        np.r_[old.iteration, iteration],
        np.r_[old.request, request],
        np.r_[old.phase, phase],
        np.r_[old.before, before],
        ordinal,
        _joined(old.runs, request[~left], number[~left], phase[~left]),
        begun,
        ended,
        done,
        given,
        process,
        old.unplaced + int(np.count_nonzero(~placed)),
        len(table),
        table.revision,
    )


def _before(gives: npt.NDArray[np.bool_], iteration: Rows, request: Rows, given: Rows) -> Rows:
    """Where each request was given tokens before; `given` is brought up to date."""
    before = np.full(len(iteration), -1, np.int32)
    gave = np.flatnonzero(gives)
    gave = gave[np.argsort(request[gave], kind="stable")]
    if len(gave):
        starts = np.r_[True, request[gave][1:] != request[gave][:-1]]
        before[gave[1:]] = iteration[gave[:-1]]
        before[gave[starts]] = given[request[gave[starts]]]
        ends = np.r_[starts[1:], True]
        given[request[gave[ends]]] = iteration[gave[ends]]
    return before


def _joined(old: Runs, request: Rows, number: Rows, phase: npt.NDArray[np.int8]) -> Runs:
    """Runs with new steps: the last run of each request that has some is opened again, and they go on from it."""
    if not len(request):
        return old
    touched = np.zeros(int(max(request.max(), old.request.max(initial=0))) + 1, bool)
    touched[request] = True
    last = np.full(len(touched), -1, np.int32)
    np.maximum.at(last, old.request, old.last)
    opened = touched[old.request] & (old.last == last[old.request])
    piece = old.take(opened)
    request = np.r_[piece.request, request]
    first, end = np.r_[piece.first, number], np.r_[piece.last, number + np.int32(1)]
    phase = np.r_[piece.phase, phase]
    # Stable: a pause and work in one iteration stay in the order in which the engine told them.
    order = np.lexsort((first, request))
    request, first, end, phase = request[order], first[order], end[order], phase[order]
    same = np.r_[False, request[1:] == request[:-1]]
    reach = np.r_[np.int32(0), end[:-1]]
    held = np.r_[np.int8(0), phase[:-1]]
    gap = np.flatnonzero(same & (first > reach))
    fill = np.where(held[gap] == PAUSED, PAUSED, SKIPPED).astype(np.int8)
    # Gaps go in before what ends them.
    request, first, end, phase = (
        np.insert(column, gap, values)
        for column, values in (
            (request, request[gap]),
            (first, reach[gap]),
            (end, first[gap]),
            (phase, fill),
        )
    )
    starts = np.r_[True, (request[1:] != request[:-1]) | (phase[1:] != phase[:-1]) | (first[1:] > end[:-1])]
    at = np.flatnonzero(starts)
    stop = np.r_[at[1:], len(request)] - 1
    kept = old.take(~opened)
    return Runs(
        np.r_[kept.request, request[at]],
        np.r_[kept.first, first[at]],
        np.r_[kept.last, end[stop]],
        np.r_[kept.phase, phase[at]],
    )
