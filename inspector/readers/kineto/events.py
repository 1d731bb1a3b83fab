"""Events out of JSON text, as profilers write it and as it is left after a crash.

The quick way decodes a few megabytes of whole events at once; that the strict decoder takes them proves that the cut
lay between two events. Where it does not, the events are taken one by one, repaired where possible, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from inspector.errors import Unreadable
from inspector.readers.kineto.blocks import BLOCK_BYTES, Text
from inspector.readers.kineto.repair import EATEN, TOKENS, repaired, repairs

_MAX_HEAD = 64 << 20
_MAX_EVENT = 64 << 20


class Args(msgspec.Struct, gc=False):
    """The arguments that the program knows; the rest is skipped."""

    correlation: Any = None
    external: Any = msgspec.field(default=None, name="External id")
    device: Any = None
    stream: Any = None
    context: Any = None
    bytes: Any = None
    graph_node: Any = msgspec.field(default=None, name="graph node id")
    name: Any = None
    labels: Any = None
    memory_bytes: Any = msgspec.field(default=None, name="Bytes")
    address: Any = msgspec.field(default=None, name="Addr")
    device_id: Any = msgspec.field(default=None, name="Device Id")
    device_type: Any = msgspec.field(default=None, name="Device Type")
    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    waits_for_event: Any = msgspec.field(default=None, name="wait_on_cuda_event_id")
    waits_for_stream: Any = msgspec.field(default=None, name="wait_on_stream")
    waits_for_record: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")


class Event(msgspec.Struct, gc=False):
    """One event; times stay text, since a double cannot hold a nanosecond of this century."""

    ph: str = ""
    cat: Any = None
    name: Any = ""
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    pid: Any = 0
    tid: Any = 0
    id: Any = None
    args: Args | None = None


class Values(msgspec.Struct, gc=False):
    """A counter event with all its arguments."""

    ph: str = ""
    name: Any = ""
    ts: msgspec.Raw = msgspec.Raw(b"")
    pid: Any = 0
    args: Any = None


_EVENTS = msgspec.json.Decoder(list[Event])
_ONE = msgspec.json.Decoder(Event)
_VALUES = msgspec.json.Decoder(list[Values])
_ANY = msgspec.json.Decoder()

_BETWEEN = re.compile(rb'\}(?=\s*,\s*\{\s*"(?:ph|name|cat|pid|tid|ts|id|args|s|dur|bp)"\s*:)')
_SEPARATORS = re.compile(rb"[\s,]*")
_START = re.compile(rb'"traceEvents"\s*:\s*\[')
_COUNTER = re.compile(rb'"ph"\s*:\s*"C"')


@dataclass
class Losses:
    """What was wrong with the text, counted, with the place of the first."""

    repaired: int = 0
    invalid: int = 0
    encoding: int = 0
    truncated: str = ""
    first: dict[str, str] = field(default_factory=dict)

    def count(self, what: str, place: int) -> None:
        """One more of `repaired`, `invalid` or `encoding`, at that byte of the text."""
        setattr(self, what, getattr(self, what) + 1)
        self.first.setdefault(what, f"at byte {place} of the text")


@dataclass
class Chunk:
    """Some events in file order, and the counter events among them once more with all their values."""

    events: list[Event]
    values: list[Values]


class EventReader:
    """The events of a text; after them `header` holds what stands beside the event list, `losses` what was wrong."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._source = iter(text)
        self._buffer = b""
        self._at = 0  # what stands before it in the buffer is done with
        self._dropped = 0
        self._ended = False
        self.header: dict[str, Any] = {}
        self.losses = Losses()

    def __iter__(self) -> Iterator[Chunk]:
        is_object = self._find_start()
        while True:
            self._fill(BLOCK_BYTES)
            self._skip_separators()
            if self._left() == 0:
                self.losses.truncated = self._text.broken or "the file breaks off: its event list is not closed"
                return
            if self._next() == b"]":
                break
            chunk = self._quick() or self._careful()
            if chunk is None:
                return
            yield chunk
        if is_object:
            self._tail()

    def _left(self) -> int:
        return len(self._buffer) - self._at

    def _next(self) -> bytes:
        return self._buffer[self._at : self._at + 1]

    def _place(self) -> int:
        return self._dropped + self._at

    def _fill(self, size: int) -> None:
        """Have at least `size` bytes in front, or all that is left of the text."""
        if self._left() >= size or self._ended:
            return
        parts = [self._buffer[self._at :]]
        length = len(parts[0])
        while length < size and not self._ended:
            block = next(self._source, b"")
            self._ended = not block
            parts.append(block)
            length += len(block)
        self._dropped += self._at
        self._buffer, self._at = b"".join(parts), 0

    def _skip_separators(self) -> None:
        while True:
            match = _SEPARATORS.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._left() or self._ended:
                return
            self._fill(BLOCK_BYTES)

    def _find_start(self) -> bool:
        """Go behind the opening bracket of the event list; True where it is part of an object."""
        self._fill(BLOCK_BYTES)
        if self._buffer.startswith(b"\xef\xbb\xbf"):
            self._at = 3
        self._skip_separators()
        if self._next() == b"[":
            self._at += 1
            return False
        while not (match := _START.search(self._buffer, self._at)):
            if self._ended or self._left() > _MAX_HEAD:
                raise Unreadable(
                    "no event list in this JSON", "it has no traceEvents", "open a PyTorch or Chrome trace"
                )
            self._fill(self._left() + BLOCK_BYTES)
        self._read_header(self._buffer[self._at : match.start()].rstrip().rstrip(b",") + b"}")
        self._at = match.end()
        return True

    def _tail(self) -> None:
        self._fill(_MAX_HEAD)
        rest = self._buffer[self._at + 1 :].strip()
        if not rest.endswith(b"}"):
            self.losses.truncated = self._text.broken or "the file breaks off after its event list"
            end = rest.rfind(b",")
            rest = rest[:end] + b"}" if end >= 0 else b"}"
        self._read_header(b"{" + rest.lstrip(b", \r\n\t"))

    def _read_header(self, text: bytes) -> None:
        for attempt in repairs(text):
            try:
                found = _ANY.decode(attempt)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if isinstance(found, dict):
                self.header.update(found)
            return
        self.losses.count("invalid", self._place())

    def _quick(self) -> Chunk | None:
        """All whole events of the buffer but the last, decoded at once; None where that fails."""
        cut, size = 0, len(self._buffer)
        # The last boundary is near the end of the buffer, unless an event is huge.
        for reach in (1 << 14, 1 << 18, size):
            low = max(size - reach, self._at)
            for match in _BETWEEN.finditer(self._buffer, low):
                cut = match.end()
            if cut or low == self._at:
                break
        if not cut:
            return None
        text = b"[" + self._buffer[self._at : cut] + b"]"
        try:
            events = _EVENTS.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        self._at = cut
        return Chunk(events, _values(text))

    def _careful(self) -> Chunk | None:
        """Events one by one up to the end of the buffer or of the list; None where the text breaks off."""
        chunk = Chunk([], [])
        stop = self._place() + self._left()
        while self._place() < stop:
            self._skip_separators()
            if self._next() != b"{":
                if self._next() in (b"]", b""):
                    return chunk
                if not self._resync():
                    return self._broken_off(chunk)
                continue
            found = self._one()
            if found is None:
                return self._broken_off(chunk)
            event, text = found
            if event is not None:
                chunk.events.append(event)
                if event.ph == "C":
                    chunk.values += _values(b"[" + text + b"]")
        return chunk

    def _broken_off(self, chunk: Chunk) -> Chunk | None:
        self.losses.truncated = self._text.broken or "the file breaks off inside an event"
        self._at = len(self._buffer)
        return chunk if chunk.events else None

    def _one(self) -> tuple[Event | None, bytes] | None:
        """The event in front and its text, (None, b'') where it had to be given up; None where the text ends in it."""
        ends: list[int] = []
        while True:
            between = _BETWEEN.search(self._buffer, self._at)
            if between and (event := _decoded(self._buffer[self._at : between.end()])):
                return self._taken(event, between.end())
            ends = [end for end in (self._closing(), between.end() if between else 0) if end]
            if ends or self._ended or self._left() > _MAX_EVENT:
                break
            self._fill(self._left() + BLOCK_BYTES)
        for end in ends:
            if event := _decoded(self._buffer[self._at : end]):
                return self._taken(event, end)
        for end in ends:
            for text, encoding in repaired(self._buffer[self._at : end]):
                if event := _decoded(text):
                    self.losses.count("encoding" if encoding else "repaired", self._place())
                    self._at = end
                    return event, text
        if closed := self._with_closed_string():
            return closed
        if not ends:
            return None
        self.losses.count("invalid", self._place())
        self._at = min(ends)
        return None, b""

    def _taken(self, event: Event, end: int) -> tuple[Event, bytes]:
        text = self._buffer[self._at : end]
        self._at = end
        return event, text

    def _with_closed_string(self) -> tuple[Event, bytes] | None:
        """The last event of the text, where a backslash at the end of a name has eaten the closing mark."""
        rest = self._buffer[self._at :]
        match = EATEN.search(rest)
        if not match:
            return None
        rest = rest[: match.start()] + b"\\" + rest[match.start() :]
        end = _closing(rest, 0)
        event = _decoded(rest[:end]) if end else None
        if event is None:
            return None
        self.losses.count("repaired", self._place())
        self._at += end - 1
        return event, rest[:end]

    def _closing(self) -> int:
        return _closing(self._buffer, self._at)

    def _resync(self) -> bool:
        """Skip what is no event; False where no event follows."""
        self.losses.count("invalid", self._place())
        between = _BETWEEN.search(self._buffer, self._at)
        if not between:
            return False
        self._at = between.end()
        return True


def _closing(text: bytes, start: int) -> int:
    """Where the object that begins at `start` ends by its brackets, 0 where it does not."""
    depth = 0
    for match in TOKENS.finditer(text, start, start + _MAX_EVENT):
        token = match[0]
        if token == b'"':
            return 0
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if not depth:
                return match.end()
    return 0


def _decoded(text: bytes) -> Event | None:
    try:
        return _ONE.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        whole = _ANY.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(whole, dict) or "ph" not in whole:
        return None
    # Valid JSON of an unusual shape: arguments that are no object, a phase that is no text.
    event = _ONE.decode(msgspec.json.encode({k: v for k, v in whole.items() if k not in ("args", "ph", "ts", "dur")}))
    event.ph = str(whole["ph"])
    event.ts, event.dur = (msgspec.Raw(str(whole.get(key, "")).encode()) for key in ("ts", "dur"))
    return event


def _values(text: bytes) -> list[Values]:
    if not _COUNTER.search(text):
        return []
    try:
        return [event for event in _VALUES.decode(text) if event.ph == "C"]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
