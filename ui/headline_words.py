"""What the first three figures say, in words, from long to short; no word claims more than the figures do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import units
from inspector.analysis.causes import CAUSES, UNCHANGED
from inspector.analysis.edges import Edges
from inspector.picture.labels import forms
from ui.figures import Cause, Figures, Next

if TYPE_CHECKING:
    from inspector.trace.trace import Trace

Words = tuple[str, ...]


def range_words(length: int, kind: str, found: Edges) -> Words:
    """What the figures of a whole trace are of, and what was recorded before and after it."""
    span = units.time(length)
    told: list[str] = []
    if found.before_ns:
        told.append(f"starts {units.time(found.before_ns)} after the host's first record")
    if found.paused_ns:
        told.append(f"paused by the user for {units.time(found.paused_ns)}")
    elif found.after_ns:
        told.append(f"none in the last {units.time(found.after_ns)}")
    if not told:
        return f"{span}, first to last {kind} work", f"{span} of {kind} work", span
    every = ", ".join(told)
    short = told[-1].replace(" after the host's first record", " after the host")
    return (
        f"{span}, first to last {kind} work, {every}",
        f"{span}, {every}",
        f"{span}, {told[-1]}",
        f"{span}, {short}",
    )


def is_copying(answer: Figures) -> bool:
    """Whether copies are most of what the device was busy with."""
    return answer.busy.copy_ns > answer.busy.kernel_ns


def busy_value(answer: Figures) -> str:
    """The share; a device that mostly copies is not one that computes."""
    share = units.share(answer.busy.busy_ns, answer.busy.span_ns)
    return f"{share}, mostly copies" if is_copying(answer) else share


def busy_words(answer: Figures) -> Words:
    """What the busy time was, and how much was idle."""
    found = answer.busy
    gaps = f" in {units.exact(found.gaps)} gap{'s' if found.gaps != 1 else ''}"
    idle = from_long(
        f"idle {units.time(found.idle_ns)}",
        gaps,
        f", {units.share(answer.probe_ns, found.idle_ns)} of it by inflight's own probe" if answer.probe_ns else "",
        ", whole graphs counted as busy" if answer.whole_graphs else "",
    )
    if is_copying(answer):
        copies, kernels = (units.share(ns, found.span_ns) for ns in (found.copy_ns, found.kernel_ns))
        first = f"copies {copies}, kernels {kernels}"
        return (*(f"{first}, {words}" for words in idle), first)
    if answer.worked_ns:
        # How much of a busy processor was none weighs more than the number of gaps.
        waited, short = units.share(answer.waited_ns, answer.worked_ns), f"idle {units.time(found.idle_ns)}"
        crowded = [f"{words}, {waited} of the work without a core" for words in idle]
        return (*crowded, f"{short}, {waited} without a core", short)
    return idle


def busy_tip(answer: Figures, kind: str) -> str:
    """The exact figures."""
    found = answer.busy
    lines = [
        f"busy {found.busy_ns:,} ns of {found.span_ns:,} ns, idle {found.idle_ns:,} ns",
        f"kernels {units.time(found.kernel_ns)}, copies {units.time(found.copy_ns)}, "
        f"both at once {units.time(found.overlap_ns)}, communication {units.time(found.communication_ns)} "
        f"({units.time(found.hidden_communication_ns)} of it beside other work)",
    ]
    if kind == "CPU":
        lines.append(
            "There is no GPU: this is the measured wall time of forward passes on the processor, "
            "and it includes waiting for a core"
        )
    if answer.worked_ns:
        lines.append(
            f"of {units.time(answer.worked_ns)} in the target's forward passes their thread had no core for "
            f"{units.time(answer.waited_ns)}: contention, measured as wall time less thread CPU time"
        )
    if answer.probe_ns:
        lines.append(f"{answer.probe_ns:,} ns of the idle time the late thread was in inflight's own probe")
    return "\n".join(lines)


def cause_words(trace: Trace, cause: Cause, idle_ns: int) -> Words:
    """How much it was, and who held the device up."""
    time, whole = units.time(cause.total_ns), f" of {units.time(idle_ns)} idle"
    if cause.is_pause:
        return from_long(time, whole, ", counted as no requests")
    if cause.meanwhile:
        said = meanwhile_words(trace, cause)
        shorter = [f"{time}, meanwhile {', '.join(said[:count])}" for count in range(len(said), 0, -1)]
        return f"{time}{whole}, meanwhile at work: {', '.join(said)}", *shorter, f"{time}, {said[0]}"
    return from_long(time, whole, f", {host_words(cause)}")


def meanwhile_words(trace: Trace, cause: Cause) -> list[str]:
    """What was at work while this device waited for a peer, most first."""
    parts = []
    for device, ns in cause.meanwhile:
        name = trace.device_short(device).removeprefix("CPU ") if device >= 0 else "no other device"
        parts.append(f"{name} {units.share(ns, cause.total_ns)}")
    return parts


def host_words(found: Cause) -> str:
    """Where the host was meanwhile, and of what that is a share."""
    if not found.host:
        untold = CAUSES[found.cause] in ("graph internal", "unattributed")
        return "no host call behind it" if untold else "launched in time"
    share = "most" if 2 * found.host_ns >= found.total_ns else units.share(found.host_ns, found.total_ns)
    return f"{share} of the {found.name} in {found.host}"


def why_not(cause: Cause) -> str:
    """Why the largest cause is not what to look at; '' where it can be changed."""
    return "it stood still because it was told to" if cause.is_pause else UNCHANGED.get(CAUSES[cause.cause], "")


def rule_words(cause: Cause, following: Next) -> Words:
    """By which rule the gap was chosen, and why the largest cause is passed over."""
    why = why_not(cause)
    if not following.can_change:
        return "no cause here can be changed; the longest", "nothing can be changed", ""
    if not why:
        return (
            "most in one gap of a cause that can be changed",
            "most in one gap that can be changed",
            "most in one gap",
            "",
        )
    return (
        f"not {cause.name}: {why}; most in one gap of the rest",
        f"not {cause.name}: {why}",
        f"other than {cause.name}",
        "",
    )


def next_words(following: Next) -> Words:
    """Where the gap is."""
    before = following.before or "the end"
    return (f"in one gap, before {before}", *(f"before {form}" for form in forms(before)), "in one gap")


def next_tip(cause: Cause, following: Next) -> str:
    """The exact figures, and the rule in full."""
    name = CAUSES[following.cause]
    why = why_not(cause)
    chosen = f"the gap with most time of one cause that can be changed ({', '.join(UNCHANGED)} cannot)"
    if not following.can_change:
        chosen = "no cause here can be changed; the gap with most time of one"
    lines = [
        f"gap of {following.span.length:,} ns from {following.span.start:,} ns, {following.cause_ns:,} ns of it {name}",
        f"before {following.before or 'the end'}",
        f"chosen as {chosen}; time of inflight's own probe is left out",
    ]
    return "\n".join([*lines, *([f"the largest cause, {cause.name}: {why}"] if why else [])])


def from_long(*parts: str) -> Words:
    """All of it, then less and less: what stands last goes first."""
    return tuple("".join(parts[:count]) for count in range(len(parts), 0, -1))
