"""What the user looks at: one frozen value in one place, which every view reads and none owns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Window:
    """A span of trace time [start, end), ns."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Its length, ns."""
        return self.end - self.start

    def clipped(self, low: int, high: int) -> Window:
        """The part inside [low, high)."""
        start = min(max(self.start, low), high)
        return Window(start, max(min(self.end, high), start))


@dataclass(frozen=True)
class Selection:
    """Everything that can be selected; None is "not selected".

    `device`, `stream`, `thread`, `process` are rows of their tables; `table` and `row` point at one record (a kernel, a
    call, a range); `name` is a name id; `gap` the start of an idle gap of `device`, ns; `iteration` its number;
    `request` and `page` the engine's own ids.
    """

    window: Window | None = None
    device: int | None = None
    process: int | None = None
    stream: int | None = None
    thread: int | None = None
    table: str | None = None
    row: int | None = None
    name: int | None = None
    gap: int | None = None
    iteration: int | None = None
    request: int | None = None
    page: int | None = None

    def but(self, **changes: Any) -> Selection:
        """A copy with those fields changed."""
        return replace(self, **changes)


NOTHING = Selection()
