"""Numbers of JSON text: microseconds as decimals to integer nanoseconds, exactly, and ids to integers."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_MOST = 2**62
# Longer texts are rare; the table of characters is not made as wide as they are.
_WIDE = 24
# 9,199,999,999,999,999 us still fit int64 as ns; of 16 digits, the first one tells.
_DIGITS = 16


class Times(NamedTuple):
    """Times in ns; how many had digits beyond the nanosecond (rounded half up); which were no number (they are 0)."""

    ns: Int
    rounded: int
    unreadable: Mask


def exact_ns(texts: Sequence[bytes]) -> Times:
    """Decimal microseconds, which may stand in quotation marks or have an exponent, as nanoseconds."""
    count = len(texts)
    if not count:
        return Times(np.empty(0, np.int64), 0, np.empty(0, bool))
    odd = np.zeros(count, bool)
    if max(map(len, texts)) > _WIDE:
        odd |= np.fromiter((len(text) > _WIDE for text in texts), bool, count)
        table = np.array([text[:_WIDE] for text in texts], np.bytes_)
    else:
        table = np.array(texts, np.bytes_)
    characters = table.view(np.uint8).reshape(count, table.dtype.itemsize)
    value = np.zeros(count, np.int64)
    # Digits before the point, and -1 or the digits behind it.
    whole, decimals = np.zeros(count, np.int8), np.full(count, -1, np.int8)
    up, rounded = np.zeros(count, bool), np.zeros(count, bool)
    for column in characters.T:
        digit = (column >= ord("0")) & (column <= ord("9"))
        point = (column == ord(".")) & (decimals < 0)
        odd |= ~(digit | point | (column == 0))
        takes = digit & (decimals < 3)
        value = np.where(takes, value * 10 + (column.astype(np.int64) - ord("0")), value)
        beyond = digit & (decimals >= 3)
        if beyond.any():
            up |= beyond & (decimals == 3) & (column >= ord("5"))
            rounded |= beyond & (column != ord("0"))
        whole += digit & (decimals < 0)
        decimals = np.where(point, 0, decimals + (digit & (decimals >= 0))).astype(np.int8)
    odd |= (whole == 0) | (whole > _DIGITS) | ((whole == _DIGITS) & (characters[:, 0] == ord("9")))
    value = value * 10 ** (3 - np.clip(decimals, 0, 3).astype(np.int64)) + up
    odd |= value >= _MOST
    unreadable = np.zeros(count, bool)
    for row in np.flatnonzero(odd).tolist():
        found = _slowly(texts[row])
        unreadable[row] = found is None
        value[row], rounded[row] = found or (0, False)
    return Times(value, int(np.count_nonzero(rounded)), unreadable)


def _slowly(text: bytes) -> tuple[int, bool] | None:
    try:
        microseconds = Decimal(text.decode("ascii", "replace").strip(' "'))
    except InvalidOperation:
        return None
    if not microseconds:
        return 0, False
    if not microseconds.is_finite() or microseconds.adjusted() > _DIGITS:
        return None
    sign, digits, exponent = microseconds.as_tuple()
    # Multiplying would round to the precision of the context; moving the point does not.
    exact = Decimal((sign, digits, int(exponent) + 3))
    below = int(exact.to_integral_value("ROUND_FLOOR"))
    whole = below + (exact >= below + Decimal("0.5"))
    return (whole, below != exact) if abs(whole) < _MOST else None


def integer(value: object, missing: int = 0, most: int = _MOST) -> int:
    """An integer out of what JSON gives for an id: a number, or text that holds one; else `missing`."""
    if isinstance(value, str):
        try:
            value = int(value, 16 if value[:2] in ("0x", "0X") else 10)
        except ValueError:
            return missing
    elif isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and abs(value) < most else missing


def integers(values: Sequence[Any], missing: int = 0, most: int = _MOST) -> tuple[Int, int]:
    """(`integer` of each, how many are there and yet no such number). None is quietly `missing`."""
    if not any(values) and missing == 0:
        return np.zeros(len(values), np.int64), 0
    if set(map(type, values)) == {int}:
        try:
            found = np.array(values, np.int64)
        except OverflowError:
            found = np.full(1, -(2**63))
        if -most < found.min() and found.max() < most:
            return found, 0
    numbers = [integer(value, most, most) for value in values]
    odd = sum(number == most and value is not None for number, value in zip(numbers, values, strict=True))
    return np.array([missing if number == most else number for number in numbers], np.int64), odd


def row_number(argument: object, row: object) -> int:
    """A device or stream number: the argument, else the row that the event was drawn in ('stream 7' -> 7); -1 none."""
    if argument is None:
        argument = row.rsplit(" ", 1)[-1] if isinstance(row, str) else row
    return integer(argument, -1)
