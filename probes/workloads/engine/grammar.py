"""Text from templates: `{a|b|c}` is one of several, drawn anew each time; `{name}` is what is bound to it."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from random import Random

_INNERMOST = re.compile(r"\{([^{}]*)\}")
_NOTHING: Mapping[str, str] = {}
HELD_OUT_OF = 8
"""One combination in this many is kept out of the training text, for validation and for the demo's prompts."""


def fill(template: str, random: Random, bound: Mapping[str, str] = _NOTHING) -> str:
    """Expand `template` from the inside out. Raises KeyError for a name that is not bound."""

    def choose(match: re.Match[str]) -> str:
        inside = match.group(1)
        return random.choice(inside.split("|")) if "|" in inside else bound[inside]

    count = 1
    while count:
        template, count = _INNERMOST.subn(choose, template)
    return template


def sentence(text: str) -> str:
    """`text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def held_out(*parts: str) -> bool:
    """Whether this combination stays out of the training text. The same on every machine and in every process."""
    return zlib.crc32("\0".join(parts).encode()) % HELD_OUT_OF == 0
