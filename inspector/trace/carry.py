"""A selection that outlives its trace: the same things in the next generation, or in the recording when closed."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from inspector.trace.schema import SCHEMAS
from inspector.trace.selection import Selection
from inspector.trace.trace import Trace


def carried(selection: Selection, old: Trace, new: Trace) -> Selection:
    """`selection` of `old` for `new`, a trace of the same run on the same clock; what is not in it is not selected."""
    names = new.names
    name = selection.name
    if name is not None:
        found = names.find(old.names[name]) if name >= 0 else -1
        name = found if found >= 0 else None
    row = _record(selection, old, new)
    window = selection.window
    if window is not None and window.start < new.whole.start:
        # Of its beginning nothing is at hand any more: figures of it would be of less than they say.
        cut = window.clipped(new.whole.start, max(window.end, new.whole.start))
        window = cut if cut.length else None
    return selection.but(
        window=window,
        name=name,
        device=_same(old, new, selection.device, _device, "devices"),
        process=_same(old, new, selection.process, _process, "processes"),
        thread=_same(old, new, selection.thread, _thread, "threads"),
        stream=_same(old, new, selection.stream, _stream, "streams"),
        row=row,
        table=selection.table if row is not None else None,
    )


def _same(old: Trace, new: Trace, row: int | None, key: Callable[[Trace, int], Hashable], table: str) -> int | None:
    if row is None or not 0 <= row < len(old[table]):
        return None
    wanted = key(old, row)
    return next((each for each in range(len(new[table])) if key(new, each) == wanted), None)


def _device(trace: Trace, row: int) -> Hashable:
    return int(trace["devices"]["number"][row])


def _process(trace: Trace, row: int) -> Hashable:
    return int(trace["processes"]["pid"][row]) if row >= 0 else None


def _thread(trace: Trace, row: int) -> Hashable:
    threads = trace["threads"]
    return (_process(trace, int(threads["process"][row])), int(threads["tid"][row])) if row >= 0 else None


def _stream(trace: Trace, row: int) -> Hashable:
    streams = trace["streams"]
    if row < 0:
        return None
    device = _device(trace, int(streams["device"][row]))
    return _process(trace, int(streams["process"][row])), device, int(streams["number"][row])


def _record(selection: Selection, old: Trace, new: Trace) -> int | None:
    """The row of the record that is selected: of those that begin with it, the one that ends with it on its track."""
    table, row = selection.table, selection.row
    key = SCHEMAS[table].sorted_by if table in SCHEMAS and table is not None else None
    if table is None or row is None or key is None or row >= len(old[table]):
        return None
    if row < len(new[table]) and old[table].revision == new[table].revision and old[table][key] is new[table][key]:
        return row
    of = {"stream": _stream, "thread": _thread}
    start = old[table][key][row]
    low, high = (int(np.searchsorted(new[table][key], start, side)) for side in ("left", "right"))

    def known(trace: Trace, at: int) -> Hashable:
        rows = trace[table]
        ends = int(rows["end"][at]) if "end" in rows else None
        track = [of[column](trace, int(rows[column][at])) for column in of if column in rows]
        name = trace.names[int(rows["name"][at])] if "name" in rows else ""
        return ends, tuple(track), name

    wanted = known(old, row)
    return next((at for at in range(low, high) if known(new, at) == wanted), None)
