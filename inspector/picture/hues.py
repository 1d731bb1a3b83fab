"""A hue for every request that holds pages, so that those which hold some at the same time differ where they can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_replay import Replay
from inspector.analysis.page_steps import OPENS
from inspector.picture.lanes import lanes
from inspector.picture.palette import HUES

if TYPE_CHECKING:
    from inspector.trace.trace import Trace


@dataclass(frozen=True)
class RequestHues:
    """`hue` is an index into HUES for every row of requests; a request keeps it while a trace grows."""

    hue: npt.NDArray[np.int64]

    @classmethod
    def build(cls, trace: Trace) -> RequestHues:
        """The lowest hue that is free when a request takes its first page; beyond the last hue they repeat."""
        replay = trace.index(Replay)
        size = len(trace["requests"])
        taken = np.flatnonzero((replay.flags & OPENS != 0) & (replay.log.request >= 0))
        request = replay.log.request[taken]
        first = np.full(size, len(replay), np.int64)
        last = np.full(size, -1, np.int64)
        np.minimum.at(first, request, taken)
        np.maximum.at(last, request, replay.closed[taken].astype(np.int64))
        held = np.flatnonzero(last >= 0)
        held = held[np.argsort(first[held], kind="stable")]
        hue = np.zeros(size, np.int64)
        hue[held] = lanes(first[held], last[held]) % len(HUES)
        return cls(hue)
