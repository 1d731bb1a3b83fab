"""What runs where in a pipeline: a cell per micro-batch and stage, or busy time of devices where no more is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from inspector.analysis.busy import Unions
from inspector.analysis.iterations import Iterations
from inspector.trace.intervals import difference
from inspector.trace.work import Work

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Source = Literal["stage records", "devices", "none"]


@dataclass(frozen=True)
class Cells:
    """Cells sorted by start; all int64. `stage` is a row of `stages` (their numbers; of devices for source "devices").

    `iteration` is the engine's number, -1 none; `micro_batch` -1 unknown; `cpu` the thread's processor time, ns, -1
    unknown.
    """

    source: Source
    stages: tuple[int, ...]
    start: Int
    end: Int
    stage: Int
    iteration: Int
    micro_batch: Int
    cpu: Int

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: npt.NDArray[np.generic]) -> Cells:
        """Those of the rows, the stages all of them."""
        columns = (self.start, self.end, self.stage, self.iteration, self.micro_batch, self.cpu)
        return Cells(self.source, self.stages, *(column[rows] for column in columns))


def cells(trace: Trace) -> Cells:
    """Stage records where there are some; else the work of every device, of which there must be two."""
    table = trace["stage_work"]
    if len(table):
        numbers, stage = np.unique(table["stage"], return_inverse=True)
        return Cells(
            "stage records",
            tuple(numbers.tolist()),
            table["start"],
            table["end"],
            stage.reshape(-1).astype(np.int64),
            table["iteration"],
            table["micro_batch"].astype(np.int64),
            table["cpu"],
        )
    return _of_devices(trace)


def _of_devices(trace: Trace) -> Cells:
    """Every iteration on every device, from its busy intervals without those in which only a collective ran."""
    none = np.empty(0, np.int64)
    working = [device for device, work in enumerate(trace.index(Work).devices) if len(work)]
    if len(working) < 2:
        return Cells("none", (), none, none, none, none, none, none)
    unions, iterations = trace.index(Unions), trace.index(Iterations)
    parts: list[tuple[Int, Int, Int, Int]] = []
    for stage, device in enumerate(working):
        kinds = unions.devices[device]
        alone = difference(kinds["communication"], kinds["compute"])
        busy = difference(kinds["all"], difference(alone, kinds["copy"]))
        work = trace.index(Work).devices[device]
        owner = iterations.of_work(trace, work)
        # The first work of an interval tells whose it is.
        first = np.minimum(np.searchsorted(work.start, busy.starts), len(work) - 1)
        row = owner[first]
        number = np.where(row >= 0, np.append(iterations.number, -1)[row], -1)
        parts.append((busy.starts, busy.ends, np.full(len(busy.starts), stage, np.int64), number.astype(np.int64)))
    start, end, stages, number = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(start, kind="stable")
    unknown = np.full(len(start), -1, np.int64)
    return Cells("devices", tuple(working), start[order], end[order], stages[order], number[order], unknown, unknown)
