"""What the box beside the pointer says of a record: only what needs no analysis that is not there yet."""

from __future__ import annotations

from inspector import units
from inspector.analysis.causes import CAUSES, EXPLANATIONS, Causes, of_host
from inspector.analysis.iterations import Iterations
from inspector.picture.labels import forms, moment
from inspector.picture.palette import INKS
from inspector.picture.timeline import Hit
from inspector.trace.schema import WORK_TABLES
from inspector.trace.trace import Trace

Lines = list[tuple[str, str]]


def tip(trace: Trace, hit: Hit) -> Lines:
    """A title, then label and value."""
    length = units.time(hit.end - hit.start)
    exact = f"{length}   {units.exact(hit.end - hit.start)} ns" if hit.end - hit.start >= 1000 else length
    lines: Lines = [("", _title(trace, hit)), ("duration", exact), ("start", moment(hit.start))]
    if hit.source in WORK_TABLES:
        columns = trace[hit.source]
        stream = int(columns["stream"][hit.row])
        lines.append(("kind", INKS[hit.ink].name))
        if stream >= 0:
            lines.append(("stream", trace.stream_name(stream)))
        if "bytes" in columns and int(columns["bytes"][hit.row]) >= 0:
            lines.append(("bytes", units.size(int(columns["bytes"][hit.row]))))
    elif hit.source == "causes":
        slices = trace.index(Causes).devices[hit.track.key]
        host = int(slices.host[hit.row])
        # What the host did meanwhile explains nothing where the device held itself up.
        if int(slices.thread[hit.row]) >= 0 and of_host(slices.cause[hit.row], slices.host[hit.row]):
            lines.append(("host", trace.names[host] if host >= 0 else "unmarked"))
        lines.append(("why", EXPLANATIONS[CAUSES[int(slices.cause[hit.row])]]))
    elif hit.source == "iterations":
        found = trace.index(Iterations)
        if found.kind(hit.row):
            lines.append(("kind", found.kind(hit.row)))
            requests = f"{int(found.context[hit.row])} context, {int(found.generation[hit.row])} generation"
            lines.append(("requests", requests))
        if int(found.process[hit.row]) >= 0:
            lines.append(("process", trace.process_name(int(found.process[hit.row]))))
        lines.append(("found from", found.source))
    elif hit.source == "host_calls" and INKS[hit.ink].name != "other call":
        lines.append(("kind", INKS[hit.ink].name))
    return lines


def _title(trace: Trace, hit: Hit) -> str:
    if hit.source in trace.tables and "name" in trace[hit.source]:
        name = trace.names[int(trace[hit.source]["name"][hit.row])]
        return next((form for form in forms(name) if len(form) <= 72), forms(name)[-1])
    if hit.source == "causes":
        return f"idle: {CAUSES[int(trace.index(Causes).devices[hit.track.key].cause[hit.row])]}"
    if hit.source == "iterations":
        return f"iteration {int(trace.index(Iterations).number[hit.row]):,}"
    return "CUDA graph launch" if hit.source == "graph launch" else hit.source
