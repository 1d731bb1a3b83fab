"""Time along the top: ticks at round times, in the unit that suits the span in view."""

from __future__ import annotations

from dataclasses import dataclass

from inspector.picture.labels import moment
from inspector.trace.selection import Window

_UNITS = (("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))
_MOST_DIGITS = 5
LEAST_PX = 96.0
"""How far apart ticks with a label are at least."""


@dataclass(frozen=True)
class Ticks:
    """`major` ticks (time, label) and `minor` ones. `base` says what the labels count from; '' is the trace's start."""

    base: str
    major: tuple[tuple[int, str], ...]
    minor: tuple[int, ...]


def ticks(window: Window, width: int, least_px: float = LEAST_PX) -> Ticks:
    """Ticks at multiples of 1, 2 or 5 times a power of ten ns, at least `least_px` pixels apart.

    Labels that would need many digits count from a round time, which `base` gives in full.
    """
    if window.length <= 0 or width <= 0:
        return Ticks("", (), ())
    least = window.length * least_px / width
    step, fifth = 1, 5
    while step < least:
        for factor, parts in ((1, 5), (2, 4), (5, 5)):
            if step * factor >= least:
                step, fifth = step * factor, parts
                break
        else:
            step *= 10
    origin = 0
    if len(str(abs(window.end) // step)) > _MOST_DIGITS:
        # The coarsest thousand below which everything in view can be said in few digits.
        big = 1000
        while big < step * 100:
            big *= 1000
        origin = window.start // big * big
    first = -(-(window.start - origin) // step) * step + origin
    times = range(first, window.end + 1, step)
    unit, factor = _unit(max(abs(window.start - origin), abs(window.end - origin)), step)
    digits = next(digits for digits in range(10) if step * 10**digits % factor == 0)
    sign = "+" if origin else ""
    major = tuple((time, f"{sign}{_decimal(time - origin, factor, digits)} {unit}") for time in times)
    small = max(step // fifth, 1)
    minor: tuple[int, ...] = ()
    if step >= fifth:
        start = -(-(window.start - origin) // small) * small + origin
        minor = tuple(time for time in range(start, window.end + 1, small) if (time - origin) % step)
    return Ticks(moment(origin) if origin else "", major, minor)


def _unit(largest: int, step: int) -> tuple[str, int]:
    """The largest unit that `largest` reaches, unless the step would then need more than three decimals."""
    best = _UNITS[0]
    for unit in _UNITS:
        if unit[1] <= max(largest, 1) and unit[1] <= step * 1000:
            best = unit
    return best


def _decimal(time: int, factor: int, digits: int) -> str:
    """time / factor with that many decimals, exactly."""
    sign = "−" if time < 0 else ""
    whole, rest = divmod(abs(time), factor)
    if not digits:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{rest * 10**digits // factor:0{digits}d}"
