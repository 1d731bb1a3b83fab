"""A pipeline on a screen: cells of micro-batches and bubbles one by one where there is room, else shares per column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.pipeline import IDLE, Pipeline, PipelineFigures, Spans, pipeline_figures
from inspector.analysis.pipeline_cells import Cells
from inspector.picture.palette import ink
from inspector.trace.intervals import cover, union
from inspector.trace.selection import Window

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float32]

IDLE_INKS: tuple[int, ...] = tuple(ink(name) for name in IDLE)
MOST_DRAWN = 1000
"""So many cells and bubbles are drawn one by one."""


@dataclass(frozen=True)
class Pieces:
    """Cells and bubbles that touch the window, in no order; `kind` -1 for a cell, else an index into IDLE. `idle` is
    the share of a cell's time in which its thread had no processor, NaN unknown."""

    stage: Int
    start: Int
    end: Int
    kind: Int
    iteration: Int
    micro_batch: Int
    idle: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.stage)


@dataclass(frozen=True)
class PipelinePicture:
    """What stands in `window`. Either `pieces`, or where these are too many `shares`: (stages, 1 + IDLE, columns) of
    each column's time busy and idle by cause. `spans` are the iterations that touch the window."""

    window: Window
    names: tuple[str, ...]
    source: str
    num_stages: int
    pieces: Pieces | None
    shares: Float
    spans: Spans
    figures: PipelineFigures


def pipeline_picture(trace: Trace, window: Window, columns: int) -> PipelinePicture:
    """The window, where shares are needed cut into that many columns.

    Of a run that goes on, what begins after `settled_ns` may not have been read yet: no time there counts as idle.
    """
    pipeline = trace.index(Pipeline)
    cells, slices, spans = pipeline.cells, pipeline.slices, pipeline.spans
    known = window.clipped(min(window.start, trace.settled_ns), trace.settled_ns)
    here = _touching(cells.start, cells.end, window)
    idle = _touching(slices.start, slices.end, known)
    names = stage_names(trace, cells)
    mine = _touching(spans.start, spans.end, window)
    mine = mine[spans.end[mine] <= trace.settled_ns]
    shown = Spans(*(getattr(spans, name)[mine] for name in spans.__dataclass_fields__))
    figures = pipeline_figures(pipeline, known)
    none = np.zeros((pipeline.num_stages, 1 + len(IDLE), 0), np.float32)
    if len(here) + len(idle) > MOST_DRAWN:
        shares = _shares(pipeline, window, known.end, _calm(shown, window, columns))
        return PipelinePicture(window, names, cells.source, len(names), None, shares, shown, figures)
    length = (cells.end - cells.start)[here]
    cpu = cells.cpu[here]
    lost = np.where((cpu >= 0) & (length > 0), 1 - np.divide(cpu, np.maximum(length, 1)), np.nan)
    pieces = Pieces(
        np.r_[cells.stage[here], slices.stage[idle]],
        np.r_[cells.start[here], slices.start[idle]],
        np.r_[cells.end[here], np.minimum(slices.end[idle], known.end)],
        np.r_[np.full(len(here), -1), slices.cause[idle]],
        np.r_[cells.iteration[here], slices.iteration[idle]],
        np.r_[cells.micro_batch[here], slices.micro_batch[idle]],
        np.r_[lost, np.full(len(idle), np.nan)],
    )
    return PipelinePicture(window, names, cells.source, len(names), pieces, none, shown, figures)


def stage_names(trace: Trace, cells: Cells) -> tuple[str, ...]:
    """'stage 0', or 'GPU 0' where devices stand for stages."""
    if cells.source == "devices":
        return tuple(trace.device_name(device).partition(" · ")[0] for device in cells.stages)
    return tuple(f"stage {number}" for number in cells.stages)


def _touching(start: Int, end: Int, window: Window) -> Int:
    """Rows that overlap the window; of those sorted by start only the ones that begin before its end are looked at."""
    last = int(np.searchsorted(start, window.end))
    return np.flatnonzero(end[:last] > window.start)


def _calm(spans: Spans, window: Window, columns: int) -> int:
    """Columns no narrower than an iteration: what goes on inside of one is noise where it has a few pixels."""
    if len(spans) < 2:
        return columns
    apart = float(np.median(np.diff(spans.start)))
    return int(min(max(window.length / max(apart, 1.0), 24), columns))


def _shares(pipeline: Pipeline, window: Window, known_until: int, columns: int) -> Float:
    columns = max(columns, 1)
    edges = window.start + (window.length * np.arange(columns + 1, dtype=np.int64)) // columns
    length = np.maximum(np.diff(edges), 1)
    slices = pipeline.slices
    shares = np.zeros((pipeline.num_stages, 1 + len(IDLE), columns), np.float32)
    for stage in range(pipeline.num_stages):
        shares[stage, 0] = cover(pipeline.busy(stage), edges) / length
        mine = slices.stage == stage
        for cause in range(len(IDLE)):
            rows = mine & (slices.cause == cause)
            idle = union(slices.start[rows], slices.end[rows])
            shares[stage, 1 + cause] = cover(idle, np.minimum(edges, known_until)) / length
    return shares


@dataclass(frozen=True)
class BubbleStrip:
    """Bubble share per column of a window: lowest and highest of the iterations that begin in it, and the means of what
    equal and unequal stages would have; NaN where no iteration begins. `row` is the first of them, -1."""

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    ideal: npt.NDArray[np.float64]
    unequal: npt.NDArray[np.float64]


def bubble_strip(spans: Spans, stages: int, window: Window, columns: int) -> BubbleStrip:
    """Iterations by where they begin."""
    columns = max(columns, 1)
    inside = np.flatnonzero((spans.start >= window.start) & (spans.start < window.end))
    column = ((spans.start[inside] - window.start) * columns) // max(window.length, 1)
    bubble = spans.bubble(stages)[inside]
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    np.minimum.at(low, column, bubble)
    np.maximum.at(high, column, bubble)
    low[~np.isfinite(low)], high[~np.isfinite(high)] = np.nan, np.nan
    return BubbleStrip(
        low, high, _means(spans.ideal[inside], column, columns), _means(spans.unequal[inside], column, columns)
    )


def _means(values: npt.NDArray[np.float64], column: Int, columns: int) -> npt.NDArray[np.float64]:
    known = np.isfinite(values)
    count = np.bincount(column[known], minlength=columns)
    total = np.bincount(column[known], values[known], minlength=columns)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
