"""Texts from elsewhere, made harmless before they are printed or kept."""

from __future__ import annotations

import json
from collections.abc import Callable

_MOST_DETAILS = 2000
MOST_NAME = 300


def shown(text: str, most: int = MOST_NAME) -> str:
    """`text` in one line of at most `most` characters, with escapes for what is not printed but may steer a terminal:
    controls, marks that turn the direction of writing, line ends, halves of pairs.
    """
    text = text[: most + 1]
    if not text.isprintable():
        text = "".join(letter if letter.isprintable() else _escape(letter) for letter in text)
    return text if len(text) <= most else text[: most - 1] + "…"


def details(body: bytes, clean: Callable[[str], str]) -> str:
    """A body for people: JSON on one line, any other text with its white space put together; `clean` takes secrets
    out of what was decoded.
    """
    try:
        text = json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        text = " ".join(body.decode("utf-8", "replace").split())
    return shown(clean(text), _MOST_DETAILS)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
