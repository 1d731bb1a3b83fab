"""As much of the flatbuffers encoding as Arrow's metadata needs; struct.error for what leads out of the data.

A table begins with the way back to its list of slots, which says where each field stands, 0 for one that is not there.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple


class FlatTable(NamedTuple):
    """A table at a place in `data`; fields are asked for by slot."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> FlatTable:
        """The outermost table."""
        return cls(data, _read("<I", data, 0)[0])

    def _slot(self, number: int) -> int:
        slots = self.at - _read("<i", self.data, self.at)[0]
        if 4 + 2 * number >= _read("<H", self.data, slots)[0]:
            return 0
        offset: int = _read("<H", self.data, slots + 4 + 2 * number)[0]
        return self.at + offset if offset else 0

    def number(self, slot: int, code: str) -> int:
        """A number of that struct code; 0, the default of all that Arrow leaves out, when it is not there."""
        at = self._slot(slot)
        return int(_read(code, self.data, at)[0]) if at else 0

    def table(self, slot: int) -> FlatTable | None:
        """A table, None when it is not there."""
        at = self._slot(slot)
        return FlatTable(self.data, at + _read("<I", self.data, at)[0]) if at else None

    def text(self, slot: int) -> str:
        """A text, '' when it is not there; UnicodeDecodeError when it is none."""
        at, length = self._vector(slot)
        return b"".join(_read(f"<{length}s", self.data, at)).decode() if length else ""

    def tables(self, slot: int) -> list[FlatTable]:
        """A list of tables."""
        at, length = self._vector(slot)
        places = (at + 4 * row for row in range(self._fitting(at, length, 4)))
        return [FlatTable(self.data, place + _read("<I", self.data, place)[0]) for place in places]

    def structs(self, slot: int, code: str) -> list[tuple[int, ...]]:
        """A list of structs of that struct code."""
        at, length = self._vector(slot)
        size = struct.calcsize(code)
        return [_read(code, self.data, at + size * row) for row in range(self._fitting(at, length, size))]

    def _vector(self, slot: int) -> tuple[int, int]:
        at = self._slot(slot)
        if not at:
            return 0, 0
        at += _read("<I", self.data, at)[0]
        return at + 4, _read("<I", self.data, at)[0]

    def _fitting(self, at: int, length: int, size: int) -> int:
        if at + length * size > len(self.data):
            raise struct.error("a list that leads out of the data")
        return length


def _read(code: str, data: bytes, at: int) -> tuple[Any, ...]:
    # struct counts a negative place from the end.
    if at < 0:
        raise struct.error("a place before the data")
    return struct.unpack_from(code, data, at)
