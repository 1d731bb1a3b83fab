"""Where the tables of an export come from, and typed access to their columns.

Exports differ in which columns they have and in how wide the integers are, and people edit them: a column is found by
its name, and a value that is not of the kind that it should be counts as none and is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Part = tuple[int, int]
"""A run of rows of one table that one thread reads: first and last row id, or whatever numbers its source."""

PROCESS_BITS = 0xFFFFFFFFFF000000
"""The bits of a globalTid that name its process: host, virtual machine, process; the other 24 are the thread."""

TEXT_COLUMNS = frozenset({"name", "value", "text", "data", "metricName"})
"""Columns that hold text in every table of which records are read."""

_DTYPES = {
    pa.from_numpy_dtype(np.dtype(name)): name
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float64")
}
_WRAP = 1 << 64
_SIGN = 1 << 63


T = TypeVar("T")


@dataclass(frozen=True)
class Codes(Generic[T]):
    """A column as `rows` (int64) of the list of its distinct `values`."""

    rows: Int
    values: list[T]


class Source(Protocol):
    """The tables of one export. Methods may be called from several threads."""

    faults: Faults

    def tables(self) -> Collection[str]:
        """Names of the tables that are there."""
        ...

    def columns(self, table: str) -> Collection[str]:
        """Names of its columns; empty when there is no such table."""
        ...

    def count(self, table: str) -> int:
        """Its rows; 0 when there is no such table."""
        ...

    def parts(self, table: str) -> Sequence[Part | None]:
        """The table cut up, in order of its rows; None for all of them."""
        ...

    def batches(
        self,
        table: str,
        columns: Sequence[str],
        part: Part | None = None,
        where: tuple[str, Sequence[int]] | None = None,
    ) -> Iterator[Batch]:
        """Rows of `part` (None: all), those of `columns` that exist.

        `where` keeps the rows whose column is one of the values.

        Raises Unreadable when the file is damaged.
        """
        ...


class Faults:
    """What could not be read as it stands: counts by (code of a quality note, words)."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()

    def add(self, code: str, text: str, count: int = 1) -> None:
        """Count `count` more."""
        self.counts[code, text] += count


class Batch:
    """Some rows of one table. A column that the export lacks reads as if every value were NULL."""

    def __init__(self, table: str, columns: Mapping[str, pa.Array], length: int, faults: Faults) -> None:
        self.table = table
        self._columns = columns
        self._length = length
        self._faults = faults

    def __len__(self) -> int:
        return self._length

    def __contains__(self, column: str) -> bool:
        return column in self._columns

    def wrong(self, column: str, count: int) -> None:
        """Note `count` values of `column` that cannot be what they should be."""
        self._faults.add("invalid", f"{self.table}.{column}: values that it cannot have, read as none", count)

    def repaired(self, what: str, count: int) -> None:
        """Note `count` values that were mended."""
        self._faults.add("repaired", f"{self.table}.{what}", count)

    def skipped(self, what: str, count: int) -> None:
        """Note `count` rows that are not read."""
        self._faults.add("ignored", f"{self.table}: {what}", count)

    def any_null(self, *columns: str) -> bool:
        """Whether `null` is true anywhere in one of the columns."""
        arrays = [self._columns.get(column) for column in columns]
        return any(array is None or not _is_number(array.type) or array.null_count for array in arrays)

    def null(self, column: str) -> Bool:
        """Where the column holds no number: NULL, not there, or something else."""
        array = self._columns.get(column)
        if array is None:
            return np.ones(self._length, bool)
        if not _is_number(array.type):
            return np.array([value is None for value in _numbers(array)], bool)
        return _nulls(array)

    def ints(self, column: str, default: int = 0) -> Int:
        """The column as int64 of its own memory; unsigned 64-bit values keep their bits."""
        array = self._integers(column)
        if array is None:
            return np.full(self._length, default, np.int64)
        # A copy, since a view would keep all columns of its batch alive.
        values = np.array(_view(array), np.int64)
        if array.null_count:
            values[_nulls(array)] = default
        return values

    def floats(self, column: str) -> npt.NDArray[np.float64]:
        """The column as float64, NaN for none."""
        array = self._columns.get(column)
        if array is None:
            return np.full(self._length, np.nan)
        if not _is_number(array.type):
            values = _numbers(array)
            self._count_wrong(column, array, values)
            array = pa.array([None if value is None else float(value) for value in values], pa.float64())
        found = np.array(_view(pc.cast(array, pa.float64(), safe=False)))
        found[_nulls(array)] = np.nan
        return found

    def codes(self, column: str) -> Codes[int | None]:
        """The distinct integers of the column, None for NULL, and which of them stands in each row."""
        array = self._integers(column)
        if array is None:
            return Codes(np.zeros(self._length, np.int64), [None])
        rows, values = _encoded(array)
        return Codes(rows, [None if v is None else _signed(v) for v in values])

    def text_codes(self, column: str) -> Codes[str | None]:
        """The distinct texts of the column, None for NULL, and which of them stands in each row."""
        array = self._columns.get(column)
        if array is None:
            return Codes(np.zeros(self._length, np.int64), [None])
        rows, values = _encoded(array)
        texts: list[str | None] = []
        for row, value in enumerate(values):
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            texts.append(None if text is None else str(text))
            if isinstance(value, bytes) and text.encode() != value:
                count = int(np.count_nonzero(rows == row))
                self._faults.add(
                    "encoding", f"{self.table}.{column}: bytes that are no UTF-8 are shown as \ufffd", count
                )
        return Codes(rows, texts)

    def values(self, column: str) -> list[Any]:
        """The column as str or None where its name is that of a text, else as int or None."""
        codes: Codes[Any] = self.text_codes(column) if column in TEXT_COLUMNS else self.codes(column)
        return [codes.values[row] for row in codes.rows.tolist()]

    def _integers(self, column: str) -> pa.Array | None:
        """The column as integers; what is no whole number becomes NULL, and stays so."""
        array = self._columns.get(column)
        if array is None or pa.types.is_integer(array.type):
            return array
        values = [_whole(value) for value in _numbers(array)]
        self._count_wrong(column, array, values)
        found = pa.array(values, pa.int64())
        self._columns = {**self._columns, column: found}
        return found

    def _count_wrong(self, column: str, array: pa.Array, values: Sequence[object]) -> None:
        wrong = sum(value is None for value in values) - array.null_count
        if wrong:
            self.wrong(column, wrong)


def _signed(value: int) -> int:
    return value - _WRAP if value >= _SIGN else value


def _numbers(array: pa.Array) -> list[int | float | None]:
    """Numbers and texts of numbers; None for anything else."""
    return [_number(value) for value in _plain(array).to_pylist()]


def _number(value: object) -> int | float | None:
    if isinstance(value, bytes):
        text = value.decode("ascii", "replace")
        try:
            return int(text)
        except ValueError:
            pass
        try:
            return float(text)
        except ValueError:
            return None
    return value if isinstance(value, int | float) else None


def _whole(value: int | float | None) -> int | None:
    """A number as a signed 64-bit integer, where it is one."""
    if value is None or (isinstance(value, float) and not value.is_integer()):
        return None
    return _signed(int(value)) if -_SIGN <= value < _WRAP else None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _plain(array: pa.Array) -> pa.Array:
    """The values themselves, texts as bytes: what is not UTF-8 is ours to handle."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        array = pc.cast(array, pa.large_binary())
    elif pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = array.cast(pa.large_binary() if pa.types.is_large_string(array.type) else pa.binary())
    return array


def _encoded(array: pa.Array) -> tuple[npt.NDArray[np.int64], list[Any]]:
    array = _plain(array)
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64), [None]
    if len(array) and not array.null_count and pa.types.is_integer(array.type):
        # Process, device and thread are mostly the same in a whole batch, which is found out much faster.
        values = _view(array)
        if (values == values[0]).all():
            return np.zeros(len(array), np.int64), [int(values[0])]
    encoded = array.dictionary_encode(null_encoding="encode")
    return np.array(_view(encoded.indices), np.int64), encoded.dictionary.to_pylist()


# What Arrow offers for this loads pandas, which takes longer than to read a small file.


def _view(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an array of numbers without a copy; anything where it is NULL."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.empty(0, _DTYPES[array.type])
    return np.frombuffer(buffer, _DTYPES[array.type], len(array), array.offset * (array.type.bit_width // 8))


def _nulls(array: pa.Array) -> Bool:
    """Where an array is NULL."""
    if not array.null_count:
        return np.zeros(len(array), bool)
    if pa.types.is_null(array.type):
        return np.ones(len(array), bool)
    bits = np.unpackbits(np.frombuffer(array.buffers()[0], np.uint8), bitorder="little")
    nulls: Bool = bits[array.offset : array.offset + len(array)] == 0
    return nulls


def mask_array(mask: Bool) -> pa.Array:
    """A numpy mask as an Arrow array."""
    packed = pa.py_buffer(np.packbits(mask, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, packed], 0)


def records(source: Source, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """A small table as rows of int, str or None; [] when it is not there. A column that is not there is None."""
    found: list[tuple[Any, ...]] = []
    for batch in source.batches(table, columns):
        found.extend(zip(*(batch.values(column) for column in columns), strict=True))
    return found
