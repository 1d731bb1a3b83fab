"""Values out of JSON that nobody vouches for: absent, null, of another type, beyond their range."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]
UNKNOWN = -1
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


def items(body: bytes) -> tuple[list[Any], bool]:
    """The items of a JSON array, and whether it was whole: of one that breaks off, those before the break."""
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
        return (found, True) if isinstance(found, list) else ([], False)
    except (ValueError, RecursionError):
        return _begun(text), False


def _begun(text: str) -> list[Any]:
    at = _past_space(text, 0)
    found: list[Any] = []
    if at >= len(text) or text[at] != "[":
        return found
    at += 1
    while True:
        try:
            item, at = _DECODER.raw_decode(text, _past_space(text, at))
        except (ValueError, RecursionError):
            return found
        found.append(item)
        at = _past_space(text, at)
        if at >= len(text) or text[at] != ",":
            return found
        at += 1


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def section(record: Json, key: str) -> Json:
    """An object within; an empty one where it is absent, null or something else."""
    found = record.get(key)
    return found if isinstance(found, Mapping) else {}


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
        digest = hashlib.blake2b(str(value).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "little") or 1
    return 0
