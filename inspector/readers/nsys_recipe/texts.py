"""Texts of an Arrow column, made when they are asked for: a trace of ranges has a million stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import pyarrow as pa

_LONGEST = 4_000


def clean(text: str) -> str:
    """`text` in one line without controls; of one that is very long, its beginning and how much is not shown."""
    more = len(text) - _LONGEST
    cut = text if more <= 0 else f"{text[:_LONGEST]} … ({more:,} more characters)"
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in cut)


class Texts(Sequence[str]):
    """The distinct values of a column in words; immutable."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        """The text there."""
        if isinstance(at, slice):
            return Texts(self._values[at])
        return clean(_words(self._values[at]))


def _words(scalar: Any) -> str:
    if pa.types.is_string(scalar.type) or pa.types.is_large_string(scalar.type):
        # Not as_py: a writer may have put in what is not UTF-8.
        buffer = scalar.as_buffer()
        return buffer.to_pybytes().decode(errors="replace") if buffer is not None else ""
    if pa.types.is_binary(scalar.type) or pa.types.is_large_binary(scalar.type):
        buffer = scalar.as_buffer()
        return f"{buffer.size if buffer is not None else 0:,} bytes"
    try:
        return str(scalar.as_py())
    except (ValueError, OverflowError):
        return str(scalar)
