"""Pages in use by an engine's own records of its iterations, where page events tell only what is cached.

A server tells over HTTP which contents are cached, and how many pages are in use and free, but not who holds a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from inspector.analysis.page_log import ALLOCATED, REUSED, PageLog

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Int = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ToldPages:
    """Per iteration from its `start` (ns, ascending) on: pages `used`, `free`, and of the free ones `cached`; -1 where
    that is not told. Empty where page events tell who holds a page, or where no iteration tells anything.
    """

    start: Int
    used: Int
    free: Int
    cached: Int

    @classmethod
    def build(cls, trace: Trace) -> ToldPages:
        """O(events + iterations). Of several engines, that of the first iteration that tells."""
        kinds, table = trace.index(PageLog).kind, trace["iterations"]
        used, free = (table[name].astype(np.int64) for name in ("used_blocks", "free_blocks"))
        told = (used >= 0) & (free >= 0)
        if not told.any() or (kinds == ALLOCATED).any() or (kinds == REUSED).any():
            none = np.empty(0, np.int64)
            return cls(none, none, none, none)
        mine = table["process"] == table["process"][int(np.argmax(told))]
        cached = table.get("cached_blocks").astype(np.int64)
        values = (np.where(told, each, -1)[mine] for each in (used, free, cached))
        return cls(table["start"][mine], *values)

    @property
    def applies(self) -> bool:
        """Whether pages in use are counted by these."""
        return len(self.start) > 0

    def counts(self, times: Int, blocks: Int, held: Int, perhaps: Int) -> tuple[Int, Int, Int, Int]:
        """Pages of the pool, in use, cached and held by none, and either cached or free, at each of `times`.

        `held` pages hold cached contents, in use or not, by page events; `perhaps` more may, where events are missing.
        Contents may be those of pages in use: held - used is the least that is cached and held by none.
        """
        at = np.searchsorted(self.start, times, "right") - 1
        used, free, cached = (np.where(at >= 0, each[at], -1) for each in (self.used, self.free, self.cached))
        known = used >= 0
        least = np.clip(held - used, 0, np.maximum(free, 0))
        most = np.minimum(held + perhaps, np.maximum(free, 0))
        told = cached >= 0
        kept = np.where(told, np.minimum(cached, free), least)
        unsure = np.where(told, 0, np.maximum(most - least, 0))
        return (
            np.where(known, used + free, blocks),
            np.where(known, used, 0),
            np.where(known, kept, 0),
            np.where(known, unsure, blocks),
        )
