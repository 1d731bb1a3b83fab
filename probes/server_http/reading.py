"""Values out of JSON that nobody vouches for: absent, null, of another type, beyond their range."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Json = Mapping[str, Any]
UNKNOWN = -1
FAR = 2**62
"""Beyond all numbers of iterations, events and requests."""
MOST_ITEM = 16 << 20
"""Characters of one item of an array; a longer one is not looked at."""
_FIRST_LOOK = 1 << 16
_LONGEST_INT = 4000
_DECODER = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) < _LONGEST_INT else math.inf)
_MARK = "\ufeff"
_SPACE = re.compile(r"[ \t\r\n]*")


def is_array(body: bytes) -> bool:
    """Whether a body begins as a JSON array does."""
    return body[:4096].removeprefix(_MARK.encode()).lstrip()[:1] == b"["


def items(body: bytes, keep: Callable[[Any], Any] = lambda item: item) -> tuple[list[Any], bool]:
    """What `keep` makes of each item of a JSON array, and whether it was whole: if not, the items before the break.

    One item at a time, so that no more is held than is kept of them.
    """
    text = body.decode("utf-8", "replace").removeprefix(_MARK)
    found: list[Any] = []
    at = _past_space(text, 0)
    if text[at : at + 1] != "[":
        return found, False
    at = _past_space(text, at + 1)
    if text[at : at + 1] == "]":
        return found, _past_space(text, at + 1) == len(text)
    while True:
        one = _item(text, at)
        if one is None:
            return found, False
        value, at = one
        found.append(keep(value))
        at = _past_space(text, at)
        after = text[at : at + 1]
        if after != ",":
            return found, after == "]" and _past_space(text, at + 1) == len(text)
        at = _past_space(text, at + 1)


def _item(text: str, at: int) -> tuple[Any, int] | None:
    """The item there and its end; None where it breaks off or is too long."""
    size = _FIRST_LOOK
    while True:
        part = text[at : at + size]
        is_rest = at + size >= len(text)
        try:
            value, end = _DECODER.raw_decode(part)
        except (ValueError, RecursionError):
            if is_rest:
                return None
        else:
            # A number that reaches the end of the part may go on behind it.
            if is_rest or end < len(part):
                return value, at + end
        if size >= MOST_ITEM:
            return None
        size *= 8


def _past_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def section(record: Any, *path: str) -> Json:
    """An object within objects; an empty one where any of them is absent, null or something else."""
    for key in path:
        record = record.get(key) if isinstance(record, Mapping) else None
    return record if isinstance(record, Mapping) else {}


def whole(record: Json, key: str, most: int = 2**31 - 1) -> int:
    """A count of 0 to `most`; UNKNOWN for anything else."""
    value = record.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most:
        return value
    return UNKNOWN


def filled(record: Json, key: str) -> int:
    """A count of which 0 says that nobody filled it."""
    return whole(record, key) or UNKNOWN


def number(record: Json, key: str) -> float:
    """A finite number; NaN for anything else."""
    value = record.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            return math.nan
        return value if math.isfinite(value) else math.nan
    return math.nan


def key64(value: Any) -> int:
    """A block's hash as 64 bits; one that is text or longer as a digest of it; 0 for none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
        return value
    if isinstance(value, int | str) and not isinstance(value, bool):
        digest = hashlib.blake2b(_bytes(value), digest_size=8).digest()
        return int.from_bytes(digest, "little") or 1
    return 0


def _bytes(value: int | str) -> bytes:
    """Not through decimal digits, of which Python refuses to make many."""
    return f"{value:x}".encode() if isinstance(value, int) else value.encode("utf-8", "surrogatepass")
