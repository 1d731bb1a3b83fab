"""What one event holds, and how its text is decoded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

Scalar = str | int | float | bool | None


class Args(msgspec.Struct, gc=False):
    """The arguments that the program knows; the rest is skipped."""

    correlation: Any = None
    external: Any = msgspec.field(default=None, name="External id")
    old_external: Any = msgspec.field(default=None, name="external id")
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
    reserved: Any = msgspec.field(default=None, name="Total Reserved")
    sync_kind: Any = msgspec.field(default=None, name="cuda_sync_kind")
    waits_for_event: Any = msgspec.field(default=None, name="wait_on_cuda_event_id")
    waits_for_stream: Any = msgspec.field(default=None, name="wait_on_stream")
    waits_for_record: Any = msgspec.field(default=None, name="wait_on_cuda_event_record_corr_id")


NO_ARGS = Args()


class Event(msgspec.Struct, gc=False):
    """One event; times stay text, since a double cannot hold a nanosecond of this century. `scope` is of instants."""

    ph: str = ""
    cat: Scalar = None
    name: Scalar = ""
    ts: msgspec.Raw = msgspec.Raw(b"")
    dur: msgspec.Raw = msgspec.Raw(b"")
    pid: Scalar = 0
    tid: Scalar = 0
    id: Scalar = None
    scope: Any = msgspec.field(default=None, name="s")
    id2: Any = None
    args: Args | None = None

    @property
    def category(self) -> str:
        """Its category; '' where it has none."""
        return "" if self.cat is None else str(self.cat)


def known_args(events: Iterable[Event]) -> list[Args]:
    """The arguments of each, none where it has none."""
    return [event.args or NO_ARGS for event in events]


class Values(msgspec.Struct, gc=False):
    """A counter event with all its arguments."""

    ph: str = ""
    name: Scalar = ""
    ts: msgspec.Raw = msgspec.Raw(b"")
    pid: Scalar = 0
    args: Any = None


_EVENTS = msgspec.json.Decoder(list[Event])
_ONE = msgspec.json.Decoder(Event)
_VALUES = msgspec.json.Decoder(list[Values])
_ANY = msgspec.json.Decoder()
_WRONG = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def anything(text: bytes) -> Any:
    """Any JSON value; raises ValueError."""
    try:
        return _ANY.decode(text)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def whole_events(text: bytes) -> list[Event] | None:
    """Events with commas between them; None unless all of it is valid and of the usual shape."""
    try:
        return _EVENTS.decode(b"[" + text + b"]")
    except _WRONG:
        return None


def one_event(text: bytes) -> Event | None:
    """The event whose text this is; None where it is no valid JSON or no event."""
    try:
        return _ONE.decode(text)
    except _WRONG:
        pass
    try:
        whole = anything(text)
    except ValueError:
        return None
    if not isinstance(whole, dict) or "ph" not in whole:
        return None
    # Valid JSON of an unusual shape: arguments that are no object, a phase that is no text, an id that is a list.
    event = Event(str(whole["ph"]))
    for key in ("cat", "name", "pid", "tid", "id"):
        value = whole.get(key, getattr(event, key))
        setattr(event, key, value if isinstance(value, Scalar) else str(value))
    event.ts, event.dur = (msgspec.Raw(str(whole.get(key, "")).encode()) for key in ("ts", "dur"))
    event.scope, event.id2 = whole.get("s"), whole.get("id2")
    if isinstance(whole.get("args"), dict):
        event.args = msgspec.convert(whole["args"], Args)
    return event


def counter_values(text: bytes) -> list[Values]:
    """The counter events among events with commas between them, once more with all their values."""
    try:
        return [event for event in _VALUES.decode(b"[" + text + b"]") if event.ph == "C"]
    except _WRONG:
        return []
