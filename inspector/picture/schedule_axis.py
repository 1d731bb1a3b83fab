"""Across a schedule: iterations by their number in a row, or time. What lies where, and what a pixel column holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inspector.analysis.batching import Batches

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Span:
    """What is in view, on `width` pixels: [low, high) in ns with `by_time`, else in ordinals of iterations."""

    by_time: bool
    low: float
    high: float
    width: int

    @property
    def length(self) -> float:
        """In ns or iterations."""
        return self.high - self.low

    @property
    def per_px(self) -> float:
        """How much a pixel stands for."""
        return self.length / max(self.width, 1)

    def x(self, place: float) -> float:
        """Pixel of a place."""
        return (place - self.low) / self.per_px

    def at(self, x: float) -> float:
        """Place of a pixel."""
        return self.low + x * self.per_px

    def pixels(self, places: npt.NDArray[np.generic]) -> Int:
        """Pixels of places, whole numbers, in view or not."""
        return np.floor((places.astype(np.float64) - self.low) / self.per_px + 1e-7).astype(np.int64)

    def zoomed(self, factor: float, x: float) -> Span:
        """After zooming so that what is at pixel `x` stays there; `factor` < 1 zooms in."""
        place, length = self.at(x), self.length * factor
        low = place - length * x / max(self.width, 1)
        return Span(self.by_time, low, low + length, self.width)

    def moved(self, pixels: float) -> Span:
        """Moved by so many pixels to the right."""
        shift = pixels * self.per_px
        return Span(self.by_time, self.low + shift, self.high + shift, self.width)


@dataclass(frozen=True)
class Axis:
    """A span over the iterations of one engine process."""

    span: Span
    batches: Batches

    @property
    def end(self) -> float:
        """Where the newest iteration ends."""
        if not len(self.batches):
            return 0.0
        return float(self.batches.end.max()) if self.span.by_time else float(len(self.batches))

    def left(self, ordinals: npt.NDArray[np.integer]) -> Float:
        """Where those iterations begin."""
        places = self.batches.start[ordinals] if self.span.by_time else ordinals
        return np.asarray(places, np.float64)

    def right(self, ordinals: npt.NDArray[np.integer]) -> Float:
        """Where those iterations end."""
        places = self.batches.end[ordinals] if self.span.by_time else ordinals + 1
        return np.asarray(places, np.float64)

    def of_time(self, times: Int) -> Float:
        """Places of times: in iterations the one that was under way, or came next."""
        if self.span.by_time:
            return np.asarray(times, np.float64)
        return np.searchsorted(self.batches.end, times, "right").astype(np.float64)

    def inside(self) -> tuple[int, int]:
        """Ordinals [first, last) of the iterations that are at least partly in view."""
        span, batches = self.span, self.batches
        if span.by_time:
            first = int(np.searchsorted(batches.end, span.low, "right"))
            return first, max(int(np.searchsorted(batches.start, span.high)), first)
        first = min(max(int(np.floor(span.low)), 0), len(batches))
        return first, max(min(int(np.ceil(span.high)), len(batches)), first)

    @property
    def px_each(self) -> float:
        """Pixels of an iteration; with time across the mean of those in view."""
        if not self.span.by_time:
            return 1 / self.span.per_px
        first, last = self.inside()
        return self.span.width / max(last - first, 1)

    def ordinal_at(self, x: float) -> int:
        """Ordinal of the iteration at pixel `x`; -1 where there is none."""
        place, batches = self.span.at(x), self.batches
        if not self.span.by_time:
            return int(place) if 0 <= place < len(batches) else -1
        at = int(np.searchsorted(batches.start, place, "right")) - 1
        return at if at >= 0 and place < batches.end[at] else -1

    def columns(self) -> tuple[Int, Int]:
        """Ordinals [first, last) that each pixel column touches; empty where no iteration ran."""
        span, batches = self.span, self.batches
        edges = span.low + np.arange(span.width + 1) * span.per_px
        if span.by_time:
            first = np.searchsorted(batches.end, edges[:-1], "right")
            last = np.searchsorted(batches.start, edges[1:], "left")
        else:
            first = np.floor(edges[:-1] + 1e-9).astype(np.int64)
            last = np.ceil(edges[1:] - 1e-9).astype(np.int64)
        first, last = (np.clip(each, 0, len(batches)).astype(np.int64) for each in (first, last))
        return first, np.maximum(last, first)


def most(values: npt.NDArray[np.integer], first: Int, last: Int) -> Int:
    """Largest of values[first:last] of each column; -1 where a column is empty or holds nothing that is known."""
    padded = np.r_[values, -1].astype(np.int64)
    pairs = np.empty(2 * len(first), np.int64)
    pairs[::2], pairs[1::2] = np.minimum(first, len(values)), np.minimum(last, len(values))
    if not len(pairs):
        return np.empty(0, np.int64)
    found = np.maximum.reduceat(padded, pairs)[::2]
    return np.where(last > first, found, -1)
