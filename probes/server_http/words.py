"""Texts from elsewhere, made harmless before they are printed or kept."""

from __future__ import annotations

import json
import re

# Controls, what turns the direction of writing, line ends of Unicode, and halves of pairs that no encoding takes.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_MOST_DETAILS = 2000
MOST_NAME = 300


def shown(text: str, most: int = MOST_NAME) -> str:
    """`text` in one line of at most `most` characters, with escapes for what would steer a terminal."""
    text = _STEERING.sub(_escape, text[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def details(body: bytes) -> str:
    """A body for people: JSON on one line, any other text with its white space put together."""
    try:
        text = json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False)
    except (ValueError, RecursionError):
        text = " ".join(body.decode("utf-8", "replace").split())
    return shown(text, _MOST_DETAILS)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
