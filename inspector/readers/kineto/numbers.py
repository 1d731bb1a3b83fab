"""Microseconds as decimal text to integer nanoseconds, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]
_MOST_NS = 2**62


def exact_ns(texts: Sequence[bytes]) -> tuple[Int, int]:
    """(ns as int64, how many had digits beyond the nanosecond, rounded half up). What is no number becomes 0.

    A number may stand in quotation marks.
    """
    if not texts:
        return np.empty(0, np.int64), 0
    table = np.array(texts, np.bytes_)
    width = table.dtype.itemsize
    characters = table.view(np.uint8).reshape(len(table), width) if width else np.zeros((len(table), 1), np.uint8)
    value = np.zeros(len(table), np.int64)
    decimals = np.full(len(table), -1, np.int8)
    up, rounded = np.zeros(len(table), bool), np.zeros(len(table), bool)
    negative = characters[:, 0] == ord("-")
    plain = np.ones(len(table), bool)
    for column in range(characters.shape[1]):
        character = characters[:, column]
        digit = (character >= ord("0")) & (character <= ord("9"))
        point = (character == ord(".")) & (decimals < 0)
        plain &= digit | point | (character == 0) | ((column == 0) & negative)
        takes = digit & (decimals < 3)
        value = np.where(takes, value * 10 + (character.astype(np.int64) - ord("0")), value)
        fourth = digit & (decimals == 3)
        up |= fourth & (character >= ord("5"))
        rounded |= digit & (decimals >= 3) & (character != ord("0"))
        decimals = np.where(point, 0, np.where(digit & (decimals >= 0) & (decimals < 100), decimals + 1, decimals))
    value *= 10 ** (3 - np.clip(decimals, 0, 3).astype(np.int64))
    value = np.where(negative, -value, value + up)
    # Exponents, quotation marks, and numbers of so many digits that the loop above may have overflowed.
    odd = ~plain | (np.char.str_len(table) > 18) | (negative & rounded)
    for row in np.flatnonzero(odd).tolist():
        value[row], rounded[row] = _slowly(texts[row])
    return value, int(np.count_nonzero(rounded))


def _slowly(text: bytes) -> tuple[int, bool]:
    try:
        exact = Decimal(text.decode("ascii", "replace").strip(' "')) * 1000
        whole = int((exact + Decimal("0.5")).to_integral_value("ROUND_FLOOR"))
    except (InvalidOperation, ValueError, OverflowError):
        return 0, False
    return (whole, whole != exact) if abs(whole) < _MOST_NS else (0, False)


def integer(value: object, missing: int = 0) -> int:
    """An integer out of what JSON gives for an id: a number, or text that holds one; else `missing`."""
    if isinstance(value, int):
        return int(value) if abs(value) < _MOST_NS else missing
    if isinstance(value, float):
        return int(value) if abs(value) < _MOST_NS else missing
    if isinstance(value, str):
        try:
            number = int(value, 0) if value[:2] in ("0x", "0X") else int(value)
        except ValueError:
            return missing
        return number if abs(number) < _MOST_NS else missing
    return missing
