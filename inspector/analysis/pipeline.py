"""Pipeline stages: how busy each is, what share of the pipeline is bubbles, and why a stage is idle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from inspector.analysis.pipeline_cells import Cells, cells
from inspector.analysis.pipeline_ideal import unequal_bubble
from inspector.analysis.sums import sum_by
from inspector.trace.intervals import Intervals, clip, covered_until, difference, intersection, measure, union
from inspector.trace.selection import Window
from inspector.trace.work import LONG_AGO

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]

IDLE: tuple[str, ...] = ("fill", "drain", "previous stage", "next stage", "own host", "not told")
FILL, DRAIN, PREVIOUS, NEXT, HOST, UNTOLD = range(len(IDLE))
IDLE_EXPLANATIONS: dict[str, str] = {
    "fill": "The first micro-batch has not come this far yet.",
    "drain": "This stage is done with the iteration while later stages still work.",
    "previous stage": "The stage before this one had not finished the micro-batch that comes next.",
    "next stage": "The stage behind this one was still busy with an earlier micro-batch.",
    "own host": "The input was there and nothing held it up: handing over, scheduling, or a late process.",
    "not told": "The trace does not tell which micro-batch was waited for.",
}
# Stages write into rings of their own: what one says of a moment may come this much later than what another says.
_SETTLED_NS = 2_000_000_000


@dataclass(frozen=True)
class Slices:
    """Idle time of stages inside runs, one row per slice, sorted by start: `cause` is an index into IDLE,
    `iteration` and `micro_batch` those of the cell that comes next (for drain: that came last), -1 none. All int64."""

    stage: Int
    start: Int
    end: Int
    cause: Int
    iteration: Int
    micro_batch: Int

    def __len__(self) -> int:
        return len(self.stage)


@dataclass(frozen=True)
class Spans:
    """One row per iteration, sorted by start: its window from the first start to the last end of its cells, ns; the
    busy time in it over all stages (work of its neighbours included, where windows overlap); its micro-batches (0 not
    known); the bubble share that equal stages would have, (p-1)/(m+p-1), and the one of cells as unequal as measured
    (see `unequal_bubble`); NaN where micro-batches are not known."""

    iteration: Int
    start: Int
    end: Int
    busy: Int
    micro_batches: Int
    ideal: Float
    unequal: Float

    def __len__(self) -> int:
        return len(self.iteration)

    def area(self, stages: int) -> Int:
        """Window times stages, ns."""
        return (self.end - self.start) * stages

    def bubble(self, stages: int) -> Float:
        """1 - busy / (stages x window)."""
        area = self.area(stages)
        return 1 - np.divide(self.busy, area, out=np.ones(len(self)), where=area > 0)


T = TypeVar("T", Spans, Slices)


@dataclass(frozen=True)
class Pipeline:
    """Cells, what iterations make of them, and idle slices. A *run* is a stretch of overlapping iteration windows.

    Busy time of all stages and idle slices tile `runs` times stages exactly.
    """

    cells: Cells
    spans: Spans
    runs: Intervals
    slices: Slices
    working: tuple[Intervals, ...]

    @classmethod
    def build(cls, trace: Trace) -> Pipeline:
        """From stage records, else from devices; without either there are no cells."""
        return _made(cells(trace))

    @classmethod
    def extend(cls, old: Pipeline, trace: Trace) -> Pipeline:
        """Keep what ended well before the newest cell of `old`, and work out the rest."""
        found = cells(trace)
        cut = _cut(old)
        keep = int(np.searchsorted(old.cells.start, cut))
        grown = found.source == "stage records" and found.stages == old.cells.stages
        grown = grown and not (found.iteration < 0).any()
        if not (grown and keep and keep <= len(found) and _same(found, old.cells, keep)):
            return _made(found)
        rest = found.take(np.arange(keep, len(found)))
        if len(rest) and int(rest.start[0]) < cut:
            return _made(found)
        new = _made(rest)
        runs = Intervals(*(np.r_[a[old.runs.starts < cut], b] for a, b in zip(old.runs, new.runs, strict=True)))
        spans, slices = _joined(old.spans, new.spans, cut), _joined(old.slices, new.slices, cut)
        return cls(found, spans, runs, slices, _working(found))

    @property
    def num_stages(self) -> int:
        """p."""
        return len(self.cells.stages)

    def busy(self, stage: int) -> Intervals:
        """When a stage works."""
        return self.working[stage]


def _cut(old: Pipeline) -> int:
    """The start of a run that no cell of a recording that goes on will touch any more."""
    if not len(old.runs.starts):
        return 0
    row = int(np.searchsorted(old.runs.starts, int(old.runs.ends[-1]) - _SETTLED_NS, "right")) - 1
    return int(old.runs.starts[max(row, 0)])


def _same(found: Cells, old: Cells, keep: int) -> bool:
    names = ("start", "end", "stage", "micro_batch", "iteration")
    return all(np.array_equal(getattr(found, name)[:keep], getattr(old, name)[:keep]) for name in names)


def _joined(old: T, new: T, cut: int) -> T:
    """Rows of `old` that begin before `cut`, then those of `new`."""
    kept = {each.name: getattr(old, each.name)[old.start < cut] for each in fields(old)}
    return type(old)(**{name: np.r_[values, getattr(new, name)] for name, values in kept.items()})


def _made(found: Cells) -> Pipeline:
    working = _working(found)
    spans = _spans(found, working)
    runs = union(spans.start, spans.end)
    return Pipeline(found, spans, runs, _slices(found, runs, working), working)


def _working(found: Cells) -> tuple[Intervals, ...]:
    """When each stage works."""
    masks = (found.stage == stage for stage in range(len(found.stages)))
    return tuple(union(found.start[mask], found.end[mask]) for mask in masks)


def _spans(found: Cells, working: Sequence[Intervals]) -> Spans:
    # Where no cell has an iteration, all of them are looked at as one.
    rows = np.flatnonzero(found.iteration >= 0) if (found.iteration >= 0).any() else np.arange(len(found))
    number, first, row = np.unique(found.iteration[rows], return_index=True, return_inverse=True)
    row = row.reshape(-1)
    size, stages = len(number), max(len(found.stages), 1)
    start = found.start[rows][first]
    end = np.full(size, np.iinfo(np.int64).min)
    np.maximum.at(end, row, found.end[rows])
    busy = np.zeros(size, np.int64)
    for busy_of_stage in working:
        until = covered_until(busy_of_stage, np.r_[start, end])
        busy += until[size:] - until[:size]
    micro = found.micro_batch[rows]
    many = np.zeros(size, np.int64)
    known = micro >= 0
    pairs = np.unique(row[known] * (int(micro.max(initial=0)) + 1) + micro[known])
    np.add.at(many, pairs // (int(micro.max(initial=0)) + 1), 1)
    ideal = (stages - 1) / (np.where(many > 0, many, np.nan) + stages - 1)
    unequal = unequal_bubble(found.take(rows), row, size)
    order = np.argsort(start, kind="stable")
    return Spans(number[order], start[order], end[order], busy[order], many[order], ideal[order], unequal[order])


def _slices(found: Cells, runs: Intervals, working: Sequence[Intervals]) -> Slices:
    places = _Places(found)
    parts: list[tuple[Int, ...]] = []
    for stage in range(len(found.stages)):
        mine = np.flatnonzero(found.stage == stage)
        start = found.start[mine]
        idle = difference(runs, working[stage])
        run = np.searchsorted(runs.starts, idle.starts, "right") - 1
        behind = np.searchsorted(start, idle.starts) - 1
        ahead = np.searchsorted(start, idle.ends)
        begun = (behind >= 0) & (np.append(start, 0)[behind] >= runs.starts[run])
        goes_on = (ahead < len(mine)) & (np.append(start, 0)[ahead] < runs.ends[run])
        behind, ahead = np.append(mine, -1)[behind], np.append(mine, -1)[ahead]
        cause = np.select([begun & goes_on, begun, goes_on], [HOST, DRAIN, FILL], UNTOLD)
        ready, taken = idle.starts, idle.starts
        inner = np.flatnonzero(cause == HOST)
        if len(inner):
            told = (found.micro_batch[ahead[inner]] >= 0) & (found.micro_batch[behind[inner]] >= 0)
            cause[inner[~told]] = UNTOLD
            inner = inner[told]
            ready, taken = idle.starts.copy(), idle.starts.copy()
            before = places.before(ahead[inner], runs.starts[run[inner]])
            ready[inner] = np.clip(before, idle.starts[inner], idle.ends[inner])
            busy = places.behind(behind[inner])
            taken[inner] = np.clip(busy, ready[inner], idle.ends[inner])
        whose = np.where(goes_on, ahead, np.where(begun, behind, -1))
        for what, low, high in ((PREVIOUS, idle.starts, ready), (NEXT, ready, taken), (-1, taken, idle.ends)):
            rows = np.flatnonzero(high > low)
            kinds = cause[rows] if what < 0 else np.full(len(rows), what)
            iteration = np.append(found.iteration, -1)[whose[rows]]
            micro = np.append(found.micro_batch, -1)[whose[rows]]
            parts.append((np.full(len(rows), stage), low[rows], high[rows], kinds, iteration, micro))
    if not parts:
        return Slices(*(np.empty(0, np.int64) for _ in range(6)))
    columns = [np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[0], columns[1]))
    return Slices(*(column[order] for column in columns))


class _Places:
    """Finds the cell of an (iteration, micro-batch, stage)."""

    def __init__(self, found: Cells) -> None:
        self._found = found
        self._numbers, row = np.unique(found.iteration, return_inverse=True)
        self._width = int(found.micro_batch.max(initial=0)) + 2
        self._keys = row.reshape(-1) * self._width + found.micro_batch + 1
        self._of_stage: list[tuple[Int, Int]] = []
        for stage in range(len(found.stages)):
            mine = np.flatnonzero(found.stage == stage)
            order = mine[np.argsort(self._keys[mine], kind="stable")]
            self._of_stage.append((self._keys[order], order))
        # The cell before each one on its stage, -1 for the first.
        self._earlier = np.full(len(found), -1, np.int64)
        for stage in range(len(found.stages)):
            mine = np.flatnonzero(found.stage == stage)
            self._earlier[mine[1:]] = mine[:-1]

    def _find(self, stage: int, keys: Int) -> Int:
        known, rows = self._of_stage[stage]
        place = np.searchsorted(known, keys)
        held = np.minimum(place, len(known) - 1)
        return np.where(known[held] == keys, rows[held], -1)

    def before(self, cells_: Int, not_before: Int) -> Int:
        """When the stage before ended the same micro-batch, ns. Before the first stage stands the last one, which had
        it in the iteration before, where that ended in the same run. A long time ago where that is not known.
        """
        found = self._found
        stage = int(found.stage[cells_[0]]) if len(cells_) else 0
        keys = self._keys[cells_]
        if stage == 0:
            row = np.searchsorted(self._numbers, found.iteration[cells_] - 1)
            held = np.minimum(row, len(self._numbers) - 1)
            there = self._numbers[held] == found.iteration[cells_] - 1
            keys = np.where(there, held * self._width + found.micro_batch[cells_] + 1, -1)
        other = self._find(stage - 1 if stage else len(found.stages) - 1, keys)
        ends = np.append(found.end, LONG_AGO)[other]
        return np.where(ends >= not_before, ends, LONG_AGO)

    def behind(self, cells_: Int) -> Int:
        """Until when the next stage was busy with what it had before the same micro-batch, ns; else long ago."""
        found = self._found
        stage = int(found.stage[cells_[0]]) if len(cells_) else 0
        if stage + 1 >= len(found.stages):
            return np.full(len(cells_), LONG_AGO)
        earlier = np.append(self._earlier, -1)[self._find(stage + 1, self._keys[cells_])]
        ends: Int = np.append(found.end, LONG_AGO)[earlier]
        return ends


@dataclass(frozen=True)
class PipelineFigures:
    """Over the part of the runs that lies in a window.

    `active_ns` x stages = sum of `busy_ns` (by stage) + sum of `idle_ns` (stage x IDLE), exactly. `between_ns` of the
    window lie in no run. Of cells inside the window that tell it, `wall_ns` went by while their threads had `cpu_ns` of
    processor time, by stage: the difference is contention. `iterations` begin in the window; `ideal` and `unequal` are
    their means, weighted by their windows; NaN where micro-batches are not known. `overlapping` of them begin before
    the one before has ended; `cut` is whether the window begins or ends inside a run.
    """

    active_ns: int
    between_ns: int
    busy_ns: Int
    idle_ns: Int
    wall_ns: Int
    cpu_ns: Int
    iterations: int
    ideal: float
    unequal: float
    overlapping: int
    cut: bool

    @property
    def bubble(self) -> float:
        """Share of the stages' time in runs that is idle."""
        area = self.active_ns * len(self.busy_ns)
        return int(self.idle_ns.sum()) / area if area else 0.0

    @property
    def contention(self) -> float:
        """Share of the cells' time in which their threads had no processor; NaN where nobody tells."""
        wall = int(self.wall_ns.sum())
        return (wall - int(self.cpu_ns.sum())) / wall if wall else float("nan")


def contention_of(trace: Trace, device: int, window: Window) -> tuple[int, int]:
    """(wall time, of it without a processor), ns, of the work of the stage that a row of devices stands for.

    (0, 0) where it stands for none, as only processors do: nobody tells how a GPU's work waits for one.
    """
    if trace.device_kind(device) != "CPU" or not len(trace["stage_work"]):
        return 0, 0
    pipeline = trace.index(Pipeline)
    number = int(trace["devices"]["number"][device])
    if number not in pipeline.cells.stages:
        return 0, 0
    stage = pipeline.cells.stages.index(number)
    found = pipeline_figures(pipeline, window)
    wall = int(found.wall_ns[stage])
    return wall, wall - int(found.cpu_ns[stage])


def pipeline_figures(pipeline: Pipeline, window: Window) -> PipelineFigures:
    """Figures of the window."""
    stages, found, slices, spans = pipeline.num_stages, pipeline.cells, pipeline.slices, pipeline.spans
    low, high = window.start, window.end
    runs = clip(pipeline.runs, low, high)
    active = measure(runs)
    busy = np.zeros(stages, np.int64)
    for stage in range(stages):
        busy[stage] = measure(intersection(runs, pipeline.busy(stage)))
    idle = np.zeros((stages, len(IDLE)), np.int64)
    length = np.minimum(slices.end, high) - np.maximum(slices.start, low)
    inside = length > 0
    np.add.at(idle, (slices.stage[inside], slices.cause[inside]), length[inside])
    told = (found.start >= low) & (found.end <= high) & (found.cpu >= 0)
    wall = sum_by(found.stage[told], (found.end - found.start)[told], stages)
    cpu = sum_by(found.stage[told], found.cpu[told], stages)
    mine = (spans.start >= low) & (spans.start < high)
    weights = (spans.end - spans.start)[mine]

    def mean(values: Float) -> float:
        known = np.isfinite(values[mine]) & (weights > 0)
        return float(np.average(values[mine][known], weights=weights[known])) if known.any() else float("nan")

    return PipelineFigures(
        active,
        max(window.length - active, 0),
        busy,
        idle,
        wall,
        cpu,
        int(np.count_nonzero(mine)),
        mean(spans.ideal),
        mean(spans.unequal),
        int(np.count_nonzero(mine[1:] & (spans.start[1:] < np.maximum.accumulate(spans.end)[:-1]))),
        any(bool(((pipeline.runs.starts < time) & (time < pipeline.runs.ends)).any()) for time in (low, high)),
    )
