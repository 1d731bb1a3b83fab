"""How much of a stage's busy time its thread had no processor: wall time of forward passes less processor time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from inspector.trace.selection import Window
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class Contention:
    """`wall_ns` went by in passes that tell it, while their threads had `cpu_ns` of processor time; 0: none does."""

    wall_ns: int
    cpu_ns: int

    @property
    def lost_ns(self) -> int:
        """Without a processor."""
        return max(self.wall_ns - self.cpu_ns, 0)


def contention(trace: Trace, device: int, window: Window | None = None) -> Contention:
    """Of the passes of a row of devices that lie in `window`, where a processor stands for the device."""
    table = trace["stage_work"]
    if not len(table) or trace.device_kind(device) != "CPU":
        return Contention(0, 0)
    mine = (table["stage"] == trace["devices"]["number"][device]) & (table["cpu"] >= 0)
    if window is not None:
        mine &= (table["start"] >= window.start) & (table["end"] <= window.end)
    wall = (table["end"] - table["start"])[mine]
    return Contention(int(wall.sum()), int(table["cpu"][mine].sum(dtype=np.int64)))
