"""The streams of one producer in a recording's folder, and how a ring is emptied into them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from inspector.errors import Unreadable
from inspector.trace.arrow import StreamWriter
from inspector.trace.quality import Quality
from inspector.trace.ring import Ring
from inspector.trace.ring_rows import Columns, RingRows
from inspector.trace.schema import PROBE_STATES

_STEPS = 1024
_FAILED = PROBE_STATES.index("failed")
_MOST_TEXTS, _LONGEST_TEXT, _MOST_FAILURES = 1 << 14, 400, 16


class Streams:
    """`<producer>.<table>.arrows` for each table that gets rows, and `<producer>.names.arrows`."""

    def __init__(self, folder: Path, producer: str) -> None:
        self.producer = producer
        self.rows: dict[str, int] = {}
        """Rows written so far, by table."""
        self.iteration = -1
        """Number of the last iteration written."""
        self.durations: deque[int] = deque(maxlen=_STEPS)
        """How long iterations took, ns, in the order in which they were written; whoever looks takes them out."""
        self._folder = folder
        self._writers: dict[str, StreamWriter] = {}

    def append(self, texts: Sequence[str], tables: Mapping[str, Columns], to: int) -> None:
        """Append texts, then rows, table by table: what others refer to has to come first, so that no row stands in the
        folder without it. `to` is how far the source was read. Raises OSError; what came before is written then.
        """
        if texts:
            self._writer("names").append_texts(texts, to)
        for table, columns in tables.items():
            self._writer(table).append(columns, to)
            self.rows[table] = self.rows.get(table, 0) + len(next(iter(columns.values())))
            if table == "iterations":
                self.iteration = max(self.iteration, int(columns["iteration"].max(initial=-1)))
                self.durations.extend((columns["end"] - columns["start"])[-_STEPS:].tolist())

    def close(self) -> None:
        """End the streams. Raises OSError, after all of them are closed."""
        failed: OSError | None = None
        for writer in self._writers.values():
            try:
                writer.close()
            except OSError as error:
                failed = error
        self._writers = {}
        if failed is not None:
            raise failed

    def _writer(self, table: str) -> StreamWriter:
        writer = self._writers.get(table)
        if writer is None:
            path = self._folder / f"{self.producer}.{table}.arrows"
            writer = self._writers[table] = StreamWriter(path)
        return writer


class Drain:
    """One ring and its streams. Raises Unreadable for what is no ring (yet)."""

    def __init__(self, path: Path) -> None:
        self.ring = Ring(path, writable=True)
        self.rows = RingRows(self.ring.pid, self.ring.rank)
        self.streams = Streams(path.parent, path.name[: -len(path.suffix)])
        # Why its probe failed, as it said; the texts among which its words are, by name id.
        self._failures: dict[str, None] = {}
        self._texts: dict[int, str] = {}
        self.ended = False
        """Nothing more will come of it: its producer has closed it, or it cannot be read."""

    def drain(self) -> None:
        """Write what stands in the ring to the streams, and only then give the room back.

        Whenever this is broken off, each frame stands in the ring or, as its stream says, in the stream. Raises OSError
        when the disk does not take it.
        """
        try:
            # Asked first, so that what is written before it is closed is taken.
            closed = self.ring.counts().closed
            taken = self.ring.take()
            if taken.upto > taken.since:
                texts, tables = self.rows.resolve(taken)
                self._listen(texts, tables)
                self.streams.append(texts, tables, taken.upto)
                self.ring.release(taken.upto)
            if taken.damage:
                # There is no telling where the next frame would begin, so all that is written by now is given up.
                text = f"bytes of a ring that could not be read: {taken.damage}"
                self.rows.quality.add("invalid", text, self.ring.skip())
            if closed:
                self.ring.empty()
                self.ended = True
        except Unreadable as error:
            self.ended = True
            self.rows.quality.add("invalid", f"rings that could not be read any more: {error.why}")

    def quality(self) -> Quality:
        """What its producer dropped so far, and what had to be left out here."""
        found = Quality(list(self.rows.quality.notes))
        with suppress(Unreadable):
            for table, count in self.ring.lost().items():
                found.add("profiler-loss", f"{table}: dropped by the workload, whose ring was full", count)
        for why in self._failures:
            found.add("probe", why)
        return found

    def _listen(self, texts: Sequence[str], tables: Mapping[str, Columns]) -> None:
        """Remember what a probe says when it fails."""
        first = self.rows.num_names - len(texts)
        for number, text in enumerate(texts, first):
            if len(self._texts) < _MOST_TEXTS and len(text) <= _LONGEST_TEXT:
                self._texts[number] = text
        told = tables.get("probes")
        if told is None:
            return
        for row in np.flatnonzero(told["state"] == _FAILED).tolist():
            name, message = int(told["name"][row]), int(told["message"][row])
            who = f"{self._texts.get(name, self.streams.producer)} of process {self.ring.pid}"
            if len(self._failures) < _MOST_FAILURES:
                self._failures[f"{who}: {self._texts.get(message, 'it does not say why')}"] = None

    def close(self) -> None:
        """Let go of the ring and end the streams. Raises OSError."""
        self.ring.close()
        self.streams.close()
