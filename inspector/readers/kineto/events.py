"""Events out of JSON text, as profilers write it and as it is left after a crash.

The quick way decodes a few megabytes of whole events at once; that the strict decoder takes them proves that the cut
lay between two events. Where it does not, the events are taken one by one, repaired where possible, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from inspector.errors import Unreadable
from inspector.readers.kineto.blocks import BLOCK_BYTES, Text
from inspector.readers.kineto.event import Event, Values, anything, counter_values, one_event, whole_events
from inspector.readers.kineto.repair import EATEN, TOKENS, repaired, repairs

_MAX_HEAD = 64 << 20
_MAX_EVENT = 64 << 20
_MANY = 100
# The least text that is tried at once before its events are taken one by one.
_LEAST = 1 << 16

# Any key of the Chrome format may come first in an event.
_KEYS = (
    rb"ph|name|cat|pid|tid|ts|id|args|s|dur|bp|tts|tdur|cname|sf|esf|stack|estack|scope|bind_id|flow_in|flow_out|id2"
)
_BETWEEN = re.compile(rb'\}(?=\s*,\s*\{\s*"(?:' + _KEYS + rb')"\s*:)')
_SEPARATORS = re.compile(rb"[\s,]*")
_PHASE = attrgetter("ph")
_START = re.compile(rb'"traceEvents"\s*:\s*\[')


@dataclass
class Losses:
    """What was wrong with the text, counted, with the place of the first."""

    repaired: int = 0
    invalid: int = 0
    encoding: int = 0
    truncated: str = ""
    first: dict[str, str] = field(default_factory=dict)

    def break_off(self, why: str, place: int) -> None:
        """The text breaks off at that byte."""
        if self.truncated:
            return
        self.truncated = why
        self.first["truncated"] = f"at byte {place} of the text"

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
        self._piece = BLOCK_BYTES
        # Whether an event came, and the commas after the last one.
        self._begun, self._commas = False, 0
        self.header: dict[str, Any] = {}
        self.losses = Losses()

    def __iter__(self) -> Iterator[Chunk]:
        is_object = self._find_start()
        while True:
            self._fill(BLOCK_BYTES)
            self._skip_separators()
            if self._left() == 0:
                self._break_off("the file breaks off: its event list is not closed")
                return
            if self._next() == b"]":
                if self._begun and self._commas:
                    self.losses.count("repaired", self._place())
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
            if match := _SEPARATORS.match(self._buffer, self._at):
                self._at = match.end()
                self._commas += match[0].count(b",")
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
            self._break_off("the file breaks off after its event list")
            end = rest.rfind(b",")
            rest = rest[:end] + b"}" if end >= 0 else b"}"
        self._read_header(b"{" + rest.lstrip(b", \r\n\t"))

    def _read_header(self, text: bytes) -> None:
        for attempt in repairs(text):
            try:
                found = anything(attempt)
            except ValueError:
                continue
            if isinstance(found, dict):
                self.header.update(found)
            return
        self.losses.count("invalid", self._place())

    def _quick(self) -> Chunk | None:
        """Whole events decoded at once, as many as go: None where not even the smallest piece of text can be.

        A fault costs the events of a small piece, not those of a whole block: pieces are halved until they are sound,
        and grow again.
        """
        while True:
            cut = self._last_boundary(min(self._at + self._piece, len(self._buffer)))
            if cut:
                text = self._buffer[self._at : cut]
                events = whole_events(text)
                if events is not None:
                    self._at = cut
                    self._begun, self._commas = True, 0
                    self._piece = min(2 * self._piece, BLOCK_BYTES)
                    return Chunk(events, _values(events, text))
            if self._piece <= _LEAST:
                return None
            self._piece = max(min(self._piece, self._left()) // 2, _LEAST)

    def _last_boundary(self, end: int) -> int:
        """Where the last event before `end` that another one follows ends; 0 where there is none."""
        cut = 0
        # It is near, unless an event is huge.
        for reach in (1 << 14, 1 << 18, end):
            low = max(end - reach, self._at)
            for match in _BETWEEN.finditer(self._buffer, low, end):
                cut = match.end()
            if cut or low == self._at:
                break
        return cut

    def _careful(self) -> Chunk | None:
        """Events one by one over a small piece of text, or to the end of the list; None where the text breaks off."""
        chunk = Chunk([], [])
        stop = self._place() + min(self._left(), self._piece)
        while self._place() < stop:
            self._skip_separators()
            if self._next() != b"{":
                if self._next() in (b"]", b""):
                    return chunk
                if not self._resync():
                    return self._broken_off(chunk)
                continue
            between, place = self._begun and self._commas != 1, self._place()
            found = self._one()
            if found is None:
                return self._broken_off(chunk)
            self._begun, self._commas = True, 0
            if between:
                self.losses.count("repaired", place)
            event, text = found
            if event is not None:
                chunk.events.append(event)
                chunk.values += _values([event], text)
        return chunk

    def _break_off(self, why: str) -> None:
        self.losses.break_off(self._text.broken or why, self._place())

    def _broken_off(self, chunk: Chunk) -> Chunk | None:
        self._break_off("the file breaks off inside an event")
        self._at = len(self._buffer)
        return chunk if chunk.events else None

    def _one(self) -> tuple[Event | None, bytes] | None:
        """The event in front and its text, (None, b'') where it had to be given up; None where the text ends in it."""
        while True:
            between = _BETWEEN.search(self._buffer, self._at)
            if between and (event := one_event(self._buffer[self._at : between.end()])):
                return self._taken(event, between.end())
            # In a text that is faulty all over, not every fault is worth a look at all that follows.
            reach = _MAX_EVENT if self.losses.invalid < _MANY else _LEAST
            ends = [end for end in (_closing(self._buffer, self._at, reach), between.end() if between else 0) if end]
            if ends or self._ended or self._left() > _MAX_EVENT:
                break
            self._fill(self._left() + BLOCK_BYTES)
        for end in ends:
            if event := one_event(self._buffer[self._at : end]):
                return self._taken(event, end)
        for end in ends:
            for text, encoding in repaired(self._buffer[self._at : end]):
                if event := one_event(text):
                    self.losses.count("encoding" if encoding else "repaired", self._place())
                    self._at = end
                    return event, text
        if not between and (closed := self._with_closed_string()):
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
        end = _closing(rest, 0, _MAX_EVENT)
        event = one_event(rest[:end]) if end else None
        if event is None:
            return None
        self.losses.count("repaired", self._place())
        self._at += end - 1
        return event, rest[:end]

    def _resync(self) -> bool:
        """Skip what is no event; False where no event follows."""
        self.losses.count("invalid", self._place())
        between = _BETWEEN.search(self._buffer, self._at)
        if not between:
            return False
        self._at = between.end()
        return True


def _closing(text: bytes, start: int, reach: int) -> int:
    """Where the object that begins at `start` ends by its brackets, 0 where it does not within `reach` bytes."""
    depth = 0
    for match in TOKENS.finditer(text, start, start + reach):
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


def _values(events: Sequence[Event], text: bytes) -> list[Values]:
    return counter_values(text) if "C" in map(_PHASE, events) else []
