"""Repairs of JSON that careless writers left: each kind was seen in files of profilers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
"""Strings as wholes, brackets, and the opening mark of a string that never ends."""
EATEN = re.compile(rb'(?<!\\)\\"(?=\s*[,}\]])')
"""A backslash at the end of a string that hides its closing mark."""
_CONTROL = re.compile(rb"[\x00-\x1f]")
_STRING = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")', re.DOTALL)
# Halves of a pair that stand for one character; a half alone stands for none.
_HALVES = re.compile(rb"(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_NO_NUMBER = re.compile(rb"([:\[,]\s*)[-+]?(?:nan|inf(?:inity)?)(?=\s*[,}\]])", re.IGNORECASE)
_LAST_COMMA = re.compile(rb",(\s*[}\]])")


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
    steps: tuple[Callable[[bytes], bytes], ...] = (
        *(_control, _backslashes, _surrogates, _numbers, _commas, _closing_backslash),
    )
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


def _surrogates(text: bytes) -> bytes:
    kept = _HALVES.sub(lambda match: match[1] or b"\\ufffd", _pairs_kept(text))
    return kept.replace(b"\x00", b"\\\\")


def _numbers(text: bytes) -> bytes:
    return _between_strings(text, lambda part: _NO_NUMBER.sub(rb"\1null", part))


def _commas(text: bytes) -> bytes:
    return _between_strings(text, lambda part: _LAST_COMMA.sub(rb"\1", part))


def _between_strings(text: bytes, change: Callable[[bytes], bytes]) -> bytes:
    return b"".join(part if part[:1] == b'"' else change(part) for part in _STRING.split(text))


def _in_strings(text: bytes, change: Callable[[bytes], bytes]) -> bytes:
    return TOKENS.sub(lambda match: change(match[0]) if match[0][:1] == b'"' else match[0], text)
