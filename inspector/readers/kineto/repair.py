"""Repairs of JSON that careless writers left: each kind was seen in files of profilers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
"""Strings as wholes, brackets, and the opening mark of a string that never ends."""
EATEN = re.compile(rb'(?<!\\)\\"(?=\s*[,}\]])')
"""A backslash at the end of a string that hides its closing mark."""
_CONTROL = re.compile(rb"[\x00-\x1f]")


def repairs(text: bytes) -> Iterator[bytes]:
    """The text as it is, then ever bolder repairs."""
    yield text
    for attempt, _ in repaired(text):
        yield attempt


def repaired(text: bytes) -> Iterator[tuple[bytes, bool]]:
    """Ever bolder repairs of one JSON object, each on top of the former; True where only the encoding was wrong."""
    encoded = text.decode("utf-8", "replace").encode()
    if encoded != text:
        yield encoded, True
    steps: tuple[Callable[[bytes], bytes], ...] = (_control, _backslashes, _numbers, _commas, _closing_backslash)
    for step in steps:
        changed = step(encoded)
        if changed != encoded:
            encoded = changed
            yield encoded, False


def _control(text: bytes) -> bytes:
    return _in_strings(text, lambda inner: _CONTROL.sub(lambda match: b"\\u%04x" % match[0][0], inner))


def _backslashes(text: bytes) -> bytes:
    return re.sub(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})', rb"\\\\", _pairs_kept(text)).replace(b"\x00", b"\\\\")


def _pairs_kept(text: bytes) -> bytes:
    # A NUL cannot stand in the text any more; it holds the place of pairs that are right.
    return text.replace(b"\\\\", b"\x00")


def _closing_backslash(text: bytes) -> bytes:
    return EATEN.sub(rb'\\\\"', text)


def _numbers(text: bytes) -> bytes:
    return re.sub(rb"([:\[,]\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", rb"\1null", text, flags=re.IGNORECASE)


def _commas(text: bytes) -> bytes:
    return re.sub(rb",(\s*[}\]])", rb"\1", text)


def _in_strings(text: bytes, change: Callable[[bytes], bytes]) -> bytes:
    return TOKENS.sub(lambda match: change(match[0]) if match[0][:1] == b'"' else match[0], text)
