"""From time to pixel: what is on screen, and the wider grid of columns for which a picture is computed."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.trace.selection import Window

SHORTEST_NS = 50
"""No window is shorter than this: below it a nanosecond, the smallest unit there is, would be tens of pixels wide."""


@dataclass(frozen=True)
class Grid:
    """`num` columns of `step` ns each, the first one beginning at `origin` (a multiple of `step`)."""

    origin: int
    step: int
    num: int

    @property
    def end(self) -> int:
        """Where the last column ends, ns."""
        return self.origin + self.step * self.num


@dataclass(frozen=True)
class Viewport:
    """A window of time on `width` pixels."""

    window: Window
    width: int

    @property
    def ns_per_px(self) -> float:
        """Time that one pixel stands for."""
        return self.window.length / max(self.width, 1)

    def x(self, time: float) -> float:
        """Pixel of a time; may lie outside 0..width."""
        return (time - self.window.start) * self.width / self.window.length

    def time(self, x: float) -> float:
        """Time of a pixel."""
        return self.window.start + x * self.window.length / max(self.width, 1)

    def grid(self) -> Grid:
        """Columns for a picture: a power of two ns each (one to two per pixel), three screens wide.

        It moves in jumps of half a screen, so that a picture serves many steps of panning, and columns lie on the same
        times wherever one pans, so that nothing shimmers.
        """
        step = 1 << max(int(self.ns_per_px).bit_length() - 1, 0)
        half = 1 << max((self.width - 1).bit_length() - 1, 5)
        first = self.window.start // (step * half) - 2
        last = -(-self.window.end // (step * half)) + 2
        return Grid(first * step * half, step, (last - first) * half)

    def zoomed(self, factor: float, x: float) -> Window:
        """The window after zooming so that the time at pixel `x` stays there; `factor` < 1 zooms in."""
        length = max(round(self.window.length * factor), SHORTEST_NS)
        share = x / max(self.width, 1)
        start = round(self.window.start + (self.window.length - length) * share)
        return Window(start, start + length)

    def panned(self, pixels: float) -> Window:
        """The window moved by that many pixels to the right."""
        shift = round(pixels * self.ns_per_px)
        return Window(self.window.start + shift, self.window.end + shift)
