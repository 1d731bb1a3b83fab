"""The folder of a recording while it is made: its header, the rings that appear in it, the streams that grow.

Only one process writes a recording; it holds the lock for as long as it lives.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from inspector.errors import InspectorError, Unreadable, Usage
from inspector.trace import header, lock
from inspector.trace.header import Anchor, Header, Info, Said
from inspector.trace.quality import Quality
from inspector.trace.ring import SUFFIX as RING_SUFFIX
from inspector.trace.save import SUFFIX
from probes.inprocess.producer import UNMADE
from probes.inprocess.watch import OFF
from probes.streams import Drain, Streams

_SECOND = 1_000_000_000
_SPARE_BYTES = 1 << 14
_UNMADE = re.compile(rf"([A-Za-z0-9_-]+){re.escape(UNMADE)}")
_OFF = re.compile(rf"([A-Za-z0-9_-]+){re.escape(OFF)}")
_MOST_REASON = 200


class Recording:
    """A new recording at `path`, state "recording".

    Raises Usage when something stands there already, InspectorError when the folder cannot be made.
    """

    def __init__(self, path: Path, command: Sequence[str], probes: dict[str, dict[str, str]]) -> None:
        self.path = Path(os.path.abspath(path))
        if self.path.suffix != SUFFIX:
            raise Usage(f"{path} does not end in {SUFFIX}", "", f"call it {self.path.name}{SUFFIX}")
        made = False
        try:
            self.path.mkdir(mode=0o700)
            made = True
            self._lock = lock.take(self.path)
            # Room for the last words of a recording that has filled its disk.
            os.posix_fallocate(self._lock, 0, _SPARE_BYTES)
            self.header = Header(
                format=header.FORMAT,
                state="recording",
                host=platform.node(),
                command=list(command),
                clock=[anchor()],
                probes=probes,
                info=Info(producer="Inflight Inspector", details={"cores": f"{len(os.sched_getaffinity(0))}"}),
            )
            header.write(self.path, self.header)
            self._written = self.header
        except FileExistsError as error:
            raise Usage(f"{path} is there already", "", "choose another name with --out") from error
        except OSError as error:
            if made:
                shutil.rmtree(self.path, ignore_errors=True)
            raise InspectorError(
                f"cannot record into {path}", error.strerror or str(error), "choose a folder that may be written"
            ) from error
        self.pids: set[int] = set()
        """Processes that have or had a ring."""
        # By file name those that may still be written to; the streams of the others, and of those without a ring.
        self._drains: dict[str, Drain] = {}
        self._ended: set[str] = set()
        self._streams: list[Streams] = []
        self.quality = Quality()
        """What the recorder itself has to say."""
        self._told_ns = self.start_ns

    @property
    def start_ns(self) -> int:
        """CLOCK_MONOTONIC of its beginning."""
        return self.header.clock[0].monotonic_ns

    def add_streams(self, producer: str) -> Streams:
        """Streams of a producer that has no ring."""
        streams = Streams(self.path, producer)
        self._streams.append(streams)
        return streams

    def tell_probe(self, name: str, settings: dict[str, str]) -> None:
        """Say in the header, from its next writing on, how a probe is set, or why it is absent."""
        self.header = msgspec.structs.replace(self.header, probes={**self.header.probes, name: settings})

    def tell_command(self, command: Sequence[str]) -> None:
        """Say in the header, from its next writing on, what is really run."""
        self.header = msgspec.structs.replace(self.header, command=list(command))

    def last_iteration(self) -> int:
        """Number of the last iteration that has ended, -1 when there is none yet."""
        return max((streams.iteration for streams in self._all_streams()), default=-1)

    def unmade_rings(self) -> dict[str, str]:
        """Producers whose ring could not be made ("engine-4711"), and why."""
        return self._reasons(_UNMADE, "no room on the disk")

    def off_probes(self) -> dict[str, str]:
        """Probes that are off in a process which could not make a ring to say so ("torch_guest-4711"), and why."""
        return self._reasons(_OFF, "it does not say why")

    def _reasons(self, called: re.Pattern[str], otherwise: str) -> dict[str, str]:
        found = {}
        for name in sorted(os.listdir(self.path)):
            if match := called.fullmatch(name):
                found[match[1]] = _reason(self.path / name) or otherwise
        return found

    @property
    def drains(self) -> Iterable[Drain]:
        """Rings that may still be written to, with their streams."""
        return self._drains.values()

    def drain(self) -> None:
        """Find new rings, empty all of them, and once a second tell the header what was lost. Raises OSError."""
        for name in self._new_rings():
            try:
                drain = Drain(self.path / name)
            except Unreadable:
                # Its producer is about to write the head. One that stays so is told of at the end.
                continue
            self._drains[name] = drain
            self.pids.add(drain.ring.pid)
        for name, drain in list(self._drains.items()):
            drain.drain()
            if drain.ended:
                # A workload of many short processes would take up all files that may be open.
                _add(self.quality, drain.quality())
                self._streams.append(drain.streams)
                self._ended.add(name)
                del self._drains[name]
                drain.close()
        now = time.monotonic_ns()
        if now - self._told_ns >= _SECOND:
            self._told_ns = now
            self.tell()

    def tell(self) -> None:
        """Write the header if it has changed. Raises OSError."""
        quality = Quality(list(self.quality.notes))
        for drain in self._drains.values():
            _add(quality, drain.quality())
        now = msgspec.structs.replace(
            self.header,
            producers=sorted(streams.producer for streams in self._all_streams()),
            quality=[Said(note.code, note.count, note.text, note.first) for note in quality.notes],
        )
        self.header = now
        if now != self._written:
            header.write(self.path, now)
            self._written = now

    def finish(self) -> None:
        """Take what is left, end the streams, and note the end on both clocks. Raises OSError."""
        self.drain()
        for name in self._new_rings():
            self.quality.add("invalid", "rings that could not be read", first=name)
        self.header = msgspec.structs.replace(self.header, clock=[*self.header.clock, anchor()])
        self.tell()
        self.close_streams()

    def close_streams(self) -> None:
        """End the streams and let go of the rings, which stay. Raises OSError."""
        failed: OSError | None = None
        everything: list[Drain | Streams] = [*self._drains.values(), *self._streams]
        for each in everything:
            try:
                each.close()
            except OSError as error:
                failed = error
        if failed is not None:
            raise failed

    def stop(self, why: str) -> None:
        """End it here, though the workload goes on: what is written stays, and the header says `why`, if it can."""
        self.quality.add("truncated", why)
        with suppress(OSError):
            os.ftruncate(self._lock, 0)
        with suppress(OSError):
            self.tell()
        with suppress(OSError):
            self.close_streams()
        self.leave()

    def leave(self) -> None:
        """Give up the lock: from now on the recording is what its header says."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def discard(self) -> None:
        """Remove the folder: nothing was recorded."""
        self.leave()
        shutil.rmtree(self.path, ignore_errors=True)

    def num_records(self) -> int:
        """Rows written so far, of all tables."""
        return sum(sum(streams.rows.values()) for streams in self._all_streams())

    def num_lost(self) -> int:
        """Rows that workloads dropped, and those that had to be left out."""
        return sum(said.count for said in self.header.quality if said.code in ("profiler-loss", "invalid"))

    def _new_rings(self) -> list[str]:
        names = sorted(name for name in os.listdir(self.path) if name.endswith(RING_SUFFIX))
        return [name for name in names if name not in self._drains and name not in self._ended]

    def _all_streams(self) -> list[Streams]:
        return [*(drain.streams for drain in self._drains.values()), *self._streams]


def _reason(path: Path) -> str:
    """What a workload has written there, as far as it can be shown; it may be anything."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(file, _MOST_REASON).decode("utf-8", "replace")
        finally:
            os.close(file)
        return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    return ""


def _add(quality: Quality, more: Quality) -> None:
    for note in more.notes:
        quality.add(note.code, note.text, note.count, note.first)


def anchor() -> Anchor:
    """Now, on both clocks: the closest pair of a few."""
    pairs = []
    for _ in range(5):
        before = time.monotonic_ns()
        epoch = time.time_ns()
        after = time.monotonic_ns()
        pairs.append((after - before, Anchor((before + after) // 2, epoch)))
    return min(pairs, key=lambda pair: pair[0])[1]
