"""What a column and a table are, before there is any."""

from __future__ import annotations

from dataclasses import dataclass

NEVER = -(2**63)


@dataclass(frozen=True)
class Column:
    """One column: numpy `dtype`, `unit` (empty for ids), what it means.

    `optional` ones may be absent from a table. `refers` is "names" or the table whose rows the column holds. In a time
    column that `may_be_never`, NEVER stands where there is no time. Values are in [0, `below`) where that is given.
    `unknown` stands where a file does not say. What is in ns and no `is_duration` is a moment, counted from the origin.
    """

    name: str
    dtype: str
    unit: str
    meaning: str
    optional: bool = False
    refers: str = ""
    may_be_never: bool = False
    below: int = 0
    unknown: float = 0
    is_duration: bool = False

    @property
    def is_moment(self) -> bool:
        """Whether it holds moments, which move with the origin of the clock."""
        return self.unit == "ns" and not self.is_duration


@dataclass(frozen=True)
class TableSchema:
    """One table: its columns, and the column by which its rows are sorted (ascending, stable) where there is one."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    sorted_by: str | None = None

    def column(self, name: str) -> Column:
        """The column of that name; KeyError when the schema has none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name}.{name}")
