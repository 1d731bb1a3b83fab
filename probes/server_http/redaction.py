"""A token out of texts in which a server repeats it, however it is written there."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import groupby
from typing import Any

HIDDEN = "***"
# Texts may be packed into others, and each packing doubles them. Bounded, so that no text makes the search slow.
_SLASHES = r"\\{0,16}"


def without(token: str, text: str) -> str:
    """`text` with `token` replaced wherever it stands as it is, or escaped as in JSON, an address or HTML."""
    return _pattern(token).sub(HIDDEN, text) if token else text


def tree_without(token: str, value: Any) -> Any:
    """The same of all texts in a decoded JSON value, keys too. Raises RecursionError."""
    if isinstance(value, str):
        return without(token, value)
    if isinstance(value, list):
        return [tree_without(token, each) for each in value]
    if isinstance(value, dict):
        return {without(token, key): tree_without(token, each) for key, each in value.items()}
    return value


@lru_cache(maxsize=4)
def _pattern(token: str) -> re.Pattern[str]:
    parts: list[str] = []
    before = "\\"
    for letter, run in groupby(token):
        count = len(list(run))
        if letter == "\\":
            parts.append(rf"(?:\\{{{count},{16 * count}}}|(?:{_coded(letter)}){{{count}}})")
        else:
            # A backslash of the token takes all that follow it.
            parts.append("" if before == "\\" else _SLASHES)
            parts.append(_SLASHES.join([f"(?:{_coded(letter)}|{re.escape(letter)})"] * count))
        before = letter
    return re.compile("".join(parts))


def _coded(letter: str) -> str:
    """A letter by its number: \\u002f and \\x2f, %2F and %252F, &#47; and &#x2f;, and the names that HTML has."""
    code = f"{ord(letter):02x}"
    digits = "".join(f"[{each}{each.upper()}]" if each.isalpha() else each for each in code)
    html = {"&": "|&amp;", "<": "|&lt;", ">": "|&gt;", '"': "|&quot;", "'": "|&apos;"}.get(letter, "")
    return rf"\\(?:u00|x){digits}|%(?:25){{0,4}}{digits}|&#(?:[xX]0{{0,4}}{digits}|0{{0,4}}{ord(letter)});{html}"
