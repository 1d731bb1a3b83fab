"""Tables that lie in a file which nobody vouches for: each column is checked when it is first used, not before.

Opening touches no rows, so it costs the same for ten rows and ten million; and no analysis meets a value that its
schema forbids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from inspector.errors import Unreadable
from inspector.trace.header import TIME_LIMIT_NS
from inspector.trace.schema import NEVER, Column, TableSchema
from inspector.trace.table import Array, Table


class GuardedTable(Table):
    """A table over `columns`, whose dtypes must be the schema's and lengths equal already.

    `lengths` gives the number of rows of every table and of "names". Using a column raises Unreadable, which names
    `where`, when a value is out of its bounds, refers to a row that is not there, or breaks the order of the table.
    """

    def __init__(self, name: str, columns: Mapping[str, Array], lengths: Mapping[str, int], where: str) -> None:
        super().__init__(name, columns)
        self._raw = dict(self._columns)
        self._columns = _Checked(self.schema, self._raw, lengths, where)

    def nbytes(self) -> int:
        """Bytes held by the columns."""
        return sum(values.nbytes for values in self._raw.values())


class _Checked(Mapping[str, Array]):
    """The columns, each checked once."""

    def __init__(self, schema: TableSchema, raw: Mapping[str, Array], lengths: Mapping[str, int], where: str) -> None:
        self._schema = schema
        self._raw = raw
        self._lengths = lengths
        self._where = where
        self._unchecked = set(raw)

    def __getitem__(self, name: str) -> Array:
        values = self._raw[name]
        if name in self._unchecked:
            if why := self._wrong(self._schema.column(name), values):
                raise Unreadable(
                    f"cannot read {self._where}", f"{self._schema.name}.{name} {why}", "record or convert it again"
                )
            self._unchecked.discard(name)
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def _wrong(self, column: Column, values: Array) -> str:
        """What is wrong with a column, in words; '' when nothing is."""
        if not len(values):
            return ""
        if column.refers and not _within(values, -1, self._lengths[column.refers]):
            return f"refers to {column.refers} that are not there"
        if self._schema.name == "rejected":  # what is wrong with times stands there
            return "holds kinds that are not known" if not in_bounds(replace(column, unit=""), values) else ""
        if column.name == self._schema.sorted_by:
            if bool((values[1:] < values[:-1]).any()):
                return "is out of order"
            # Sorted: the ends stand for all.
            values = values[[0, -1]]
        elif column.name == "end" and self._schema.name != "flows" and bool((values < self._raw["start"]).any()):
            return "lies before the start"
        return "" if in_bounds(column, values) else "holds what cannot be"


def in_bounds(column: Column, values: Array) -> bool:
    """Whether kinds are known ones, and times such that sums and differences of them fit int64."""
    if column.below:
        return _within(values, 0, column.below)
    if column.unit != "ns":
        return True
    if column.may_be_never:
        values = values[values != NEVER]
    return _within(values, -TIME_LIMIT_NS, TIME_LIMIT_NS)


def _within(values: Array, low: int, high: int) -> bool:
    """Whether all values are in [low, high)."""
    return not len(values) or (int(values.min()) >= low and int(values.max()) < high)
