"""A table: named columns of equal length. Immutable; slices share memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.trace.schema import SCHEMAS, TableSchema

Array = npt.NDArray[Any]
Int = npt.NDArray[np.int64]


class Table:
    """Columns as the schema of `name` lists them; optional ones may be missing, others are there even with no rows.

    Of two generations of a growing trace with the same `revision`, the later one's rows begin with the earlier one's.
    """

    def __init__(self, name: str, columns: Mapping[str, Array] | None = None, revision: int = 0) -> None:
        self.schema: TableSchema = SCHEMAS[name]
        self.revision = revision
        given = dict(columns or {})
        found: dict[str, Array] = {}
        length = len(next(iter(given.values()))) if given else 0
        for column in self.schema.columns:
            values = given.pop(column.name, None)
            if values is None:
                if column.optional:
                    continue
                if length:
                    raise ValueError(f"{name}.{column.name} is not optional")
                values = np.empty(0, column.dtype)
            if len(values) != length:
                raise ValueError(f"{name}.{column.name} has {len(values)} rows, not {length}")
            found[column.name] = np.asarray(values, column.dtype)
        if given:
            raise KeyError(f"{name} has no column {', '.join(given)}")
        self._columns: Mapping[str, Array] = found
        self._length = length

    @property
    def name(self) -> str:
        """Its name in the schema."""
        return self.schema.name

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, column: str) -> Array:
        """A column as stored; an optional one that is absent raises KeyError (see `get`)."""
        return self._columns[column]

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def get(self, column: str) -> Array:
        """A column, or what the schema has for unknown in every row where it is absent."""
        values = self._columns.get(column)
        if values is None:
            known = self.schema.column(column)
            return np.full(self._length, known.unknown, known.dtype)
        return values

    @property
    def columns(self) -> Mapping[str, Array]:
        """The columns that are there."""
        return self._columns

    def take(self, rows: Array | slice) -> Table:
        """Those rows (indices, mask or slice) as a table."""
        return Table(self.name, {name: values[rows] for name, values in self._columns.items()})

    def nbytes(self) -> int:
        """Bytes held by the columns."""
        return sum(values.nbytes for values in self._columns.values())
