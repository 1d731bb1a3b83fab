"""Quantities for people: three significant digits with a unit that adapts, and the exact figure beside it."""

from __future__ import annotations

import re
from typing import NewType

Ns = NewType("Ns", int)
Bytes = NewType("Bytes", int)

_TIME = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1))
_BYTES = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("B", 1))
_COUNT = (("G", 10**9), ("M", 10**6), ("k", 10**3), ("", 1))
_DURATION = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+))\s*(ns|us|µs|ms|s)?")


def three_digits(value: float) -> str:
    """`value` with three significant digits and no exponent: 12345 -> '12345', 1.2345 -> '1.23', 0.5 -> '0.500'."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.9995 or size == 0 else f"{value:.3f}"


def _scaled(value: float, scales: tuple[tuple[str, int], ...]) -> str:
    # The unit is chosen after rounding, so that 999,999 ns reads "1.00 ms" and never "1000 us".
    size = abs(value)
    for unit, factor in scales:
        if size >= factor * 0.9995 and factor > 1:
            return f"{three_digits(value / factor)} {unit}".rstrip()
    unit = scales[-1][0]
    return f"{value:.0f} {unit}".rstrip() if float(value).is_integer() else f"{three_digits(value)} {unit}".rstrip()


def time(ns: float) -> str:
    """A duration of `ns` nanoseconds: '12.3 µs'."""
    return _scaled(ns, _TIME)


def place(ns: int, span: int = 1_000) -> str:
    """Where in time something of `span` ns lies, with digits enough to find it again: '448.123456 s', '12.345 ms'.

    To the microsecond, and to the nanosecond for what is shorter than that or lies in the first millisecond.
    """
    for unit, factor in _TIME[:-1]:
        if abs(ns) >= factor:
            finest = 1 if span < 1_000 or unit == "µs" else 1_000
            digits = len(str(factor // finest)) - 1
            sign, whole = "-" if ns < 0 else "", abs(ns) // finest
            number, rest = divmod(whole, factor // finest)
            return f"{sign}{number}.{rest:0{digits}d} {unit}" if digits else f"{sign}{number} {unit}"
    return f"{ns} ns"


def size(count: float) -> str:
    """An amount of bytes, decimal units as data sheets use them: '4.19 MB'."""
    return _scaled(count, _BYTES)


def rate(bytes_per_second: float) -> str:
    """A transfer rate: '1.21 TB/s'."""
    return f"{size(bytes_per_second)}/s"


def count(value: float) -> str:
    """A number of things, short: '1.23 M'."""
    return _scaled(value, _COUNT)


def exact(value: int) -> str:
    """Every digit, grouped: '12,345,678'."""
    return f"{value:,}"


def share(part: float, whole: float) -> str:
    """`part` of `whole` in percent, '12.3 %'; an en dash when there is no whole."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def parse_time(text: str, default: str = "ns") -> Ns:
    """'1.5ms', '20 us', '12' (in `default` units) -> nanoseconds; raises ValueError."""
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise ValueError(f"not a duration: {text!r}")
    unit = (match[2] or default).replace("us", "µs")
    return Ns(round(float(match[1]) * dict(_TIME)[unit]))
