"""Which process launched which work, in files that hold the calls of one process or of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from inspector.readers.kineto.host import Chunk
from inspector.readers.kineto.numbers import Int
from inspector.trace.builder import Builder
from inspector.trace.table import Array


class Launchers:
    """The launch calls by correlation id; `without` gives the process of work where there are no calls at all."""

    def __init__(self, builder: Builder, calls: Sequence[Chunk], without: Callable[[], int]) -> None:
        owners = builder.owners("threads", "process")
        ids, starts, threads, names = (
            np.concatenate([np.empty(0, np.int64), *(chunk[key] for chunk in calls)])
            for key in ("correlation", "start", "thread", "name")
        )
        linked = ids > 0
        ids, starts, names, processes = ids[linked], starts[linked], names[linked], owners[threads[linked]]
        order = np.lexsort((starts, ids))
        self._ids, self._starts, self._processes = ids[order], starts[order], processes[order]
        self.processes: Array = np.unique(owners[threads])
        graphs = np.array(["GraphLaunch" in text for text in builder.names.texts], bool)[names]
        self._graphs: Array = np.unique(np.stack([processes[graphs], ids[graphs]], axis=1), axis=0)
        self._default = int(np.bincount(owners[threads]).argmax()) if len(threads) else without()

    def process_of(self, ids: Int, starts: Int, devices: Int) -> tuple[Array, int]:
        """(row of processes of each piece of work, for how many it was guessed).

        Where several processes used one id, it is the one whose other work on that device has ids of its own; failing
        that, the one that called last before the work began.
        """
        if len(self.processes) <= 1:
            return np.full(len(ids), self._default, np.int32), 0
        first, after = np.searchsorted(self._ids, ids), np.searchsorted(self._ids, ids, "right")
        known = (after > first) & (ids > 0)
        changes = np.r_[0, np.cumsum(self._processes[1:] != self._processes[:-1])]
        last = np.maximum(after - 1, 0)
        several = known & (changes[last] != changes[np.minimum(first, len(self._ids) - 1)])
        found = np.where(known, self._processes[last], self._default).astype(np.int32)
        unsure = several | ~known
        for device in np.unique(devices[unsure]).tolist():
            here = devices == device
            sure = found[here & ~unsure]
            if not len(sure):
                continue
            likely = int(np.bincount(sure).argmax())
            theirs = several & here if (sure == likely).all() else np.zeros(len(ids), bool)
            found[here & ~known] = likely
            found[theirs] = likely
            several &= ~theirs
        for row in np.flatnonzero(several).tolist():
            calls = slice(int(first[row]), int(after[row]))
            before = int(np.searchsorted(self._starts[calls], starts[row], "right")) - 1
            found[row] = self._processes[calls][max(before, 0)]
        return found, int(np.count_nonzero(unsure))

    def is_graph(self, processes: Array, ids: Int) -> Array:
        """Whether a graph launch started it."""
        answer = np.zeros(len(ids), bool)
        for process in np.unique(self._graphs[:, 0]).tolist():
            launches = self._graphs[self._graphs[:, 0] == process, 1]
            answer |= (processes == process) & np.isin(ids, launches)
        return answer
