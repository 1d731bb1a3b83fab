"""A recording that was not compacted: every whole batch of every producer's streams and what its rings still hold.

Read in one go here, and bit by bit by `inspector.readers.recording.follow`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from inspector.errors import Unreadable
from inspector.readers.reader import Progress, Report
from inspector.readers.recording.growth import Growth
from inspector.readers.recording.producer import Columns, Producer
from inspector.readers.recording.rings import rest, ring_names
from inspector.trace.header import Header
from inspector.trace.quality import Quality
from inspector.trace.schema import SCHEMAS

_FILE = re.compile(r"([A-Za-z0-9_-]+)\.([a-z_]+)\.arrows")
# Two clocks that part by more during a recording are worth a word.
_DRIFT_NS = 1_000_000
# Of all tables, at a time.
_ROUND_BYTES = 32 << 20
# Rows that come by no more than this behind later ones are in their places at once.
_LATE_NS = 1_000_000_000
Read = list[tuple[Producer, list[str], dict[str, Columns]]]


class Streams:
    """The producers of a recording, and what was read of them so far."""

    def __init__(self, folder: Path, head: Header) -> None:
        self.growth = Growth(head.clock[0].monotonic_ns if head.clock else None)
        self._folder = folder
        self._producers: dict[str, Producer] = {}

    def find(self) -> list[Producer]:
        """All producers that have a stream or a ring by now, by name. Raises Unreadable."""
        try:
            files = sorted(os.listdir(self._folder))
        except OSError as error:
            why = error.strerror or str(error)
            raise Unreadable(f"cannot read {self._folder}", why, "check its permissions") from error
        for file in files:
            if (match := _FILE.fullmatch(file)) and (match[2] in SCHEMAS or match[2] == "names"):
                self._producer(match[1]).open(match[2])
        return [self._producers[name] for name in sorted(self._producers)]

    def take(self, producers: list[Producer], most_bytes: int) -> int:
        """Read what is new of producers, about `most_bytes` of each table; how many rows. Raises Unreadable."""
        return self.growth.take([(producer, *producer.read(most_bytes)) for producer in producers])

    def take_in_rounds(self, report: Report) -> None:
        """Read everything that is written by now, all tables abreast, and show what nothing can come before any more.

        So what has been read lies where tables grow, and little of it in memory. Raises Unreadable, Cancelled.
        """
        producers = self.find()
        sizes = [(producer, producer.sizes()) for producer in producers]
        total = sum(sum(each.values()) for _, each in sizes)
        rounds = -(-total // _ROUND_BYTES)
        rows = 0
        for done in range(rounds):
            report(Progress("recovering", total * done // rounds, total, rows))
            read: Read = []
            for producer, files in sizes:
                most = {table: max(size // rounds, 1) for table, size in files.items()}
                read.append((producer, *producer.read(_ROUND_BYTES, most)))
            rows += self.growth.take(read)
            del read
            cut = self.cut_at()
            if cut is not None:
                self.growth.settle(cut - _LATE_NS)

    def cut_at(self) -> int | None:
        """How far those tables go, trace time, of which there was more to read; None when all of it was read."""
        return min(
            (producer.reached[table] for producer in self._producers.values() for table in producer.cut),
            default=None,
        )

    def close(self, with_rings: bool, is_live: bool = False) -> None:
        """Take the rest, of the rings too, and show everything. Raises Unreadable.

        Of a recording that goes on, all that there is now: what is in the middle of being written is not broken.
        """
        producers = self.find()
        self.take(producers, 1 << 62)
        quality = self.growth.builder.quality
        for producer in producers:
            for file in () if is_live else producer.broken():
                quality.add("truncated", "streams that end in the middle of a batch", first=file)
        if with_rings:
            for name in ring_names(self._folder):
                producer = self._producer(name)
                found = rest(self._folder, producer, quality)
                if found is not None:
                    self.growth.take([(producer, *found)])
        self.growth.finish()

    def _producer(self, name: str) -> Producer:
        if name not in self._producers:
            number = self.growth.add_producer(name)
            self._producers[name] = Producer(self._folder, name, number, self.growth.builder)
        return self._producers[name]


def read_streams(folder: Path, head: Header, is_live: bool, report: Report) -> Streams:
    """The recording with all that it holds; raises Unreadable, Cancelled."""
    streams = Streams(folder, head)
    report(Progress("recovering"))
    streams.take_in_rounds(report)
    streams.close(with_rings=not is_live and not is_closed(head), is_live=is_live)
    return streams


def is_closed(head: Header) -> bool:
    """Whether the recorder had come to its end: it notes that on both clocks."""
    return head.state == "recording" and len(head.clock) > 1


def start_epoch(head: Header) -> int | None:
    """The wall clock of trace time 0, where the header tells it."""
    return head.clock[0].epoch_ns if head.clock else None


def note_clocks(head: Header, quality: Quality) -> None:
    """Say so where the clocks parted."""
    if not head.clock:
        return
    first, last = head.clock[0], head.clock[-1]
    if abs((last.epoch_ns - last.monotonic_ns) - (first.epoch_ns - first.monotonic_ns)) > _DRIFT_NS:
        quality.add("clock", "the wall clock and that of the records parted during the recording")
