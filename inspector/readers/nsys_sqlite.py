"""Nsight Systems SQLite exports, every schema: opened read-only, never written to.

Columns are read through ADBC, several runs of row ids at a time; a table whose columns hold values of several types
goes through the sqlite3 module instead, a few times slower.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import adbc_driver_manager
import adbc_driver_sqlite
import pyarrow as pa

from inspector.errors import Unreadable
from inspector.readers.nsys import TEXT_COLUMNS, Batch, Faults, Part, is_export, read_tables
from inspector.readers.reader import Report
from inspector.trace.trace import Trace

NAME = "nsys-sqlite"
SUFFIXES = (".sqlite", ".sqlite3", ".db")

_MAGIC = b"SQLite format 3\0"
# SQLite quotes the damaged text in its message, which need not be UTF-8.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError)
_BATCH_ROWS = 1 << 16
_PART_ROWS = 1 << 18
_MOST_PARTS = 1 << 10
_TEXT = ("CHAR", "CLOB", "TEXT", "BLOB")
_REAL = ("REAL", "FLOA", "DOUB")


def sniff(head: bytes, path: Path) -> float:
    """Certainty that `path` is an export: its first bytes, then its tables."""
    if not head.startswith(_MAGIC):
        return 0.0
    try:
        with closing(_connect(path)) as connection:
            return 1.0 if is_export(_table_names(connection)) else 0.0
    except _DAMAGE:
        # Damaged beyond its list of tables: `read` says so better than "no trace that this program knows".
        return 0.1


def read(path: Path, report: Report) -> Trace:
    """The whole export. Raises Unreadable when the file is damaged or no export, Cancelled."""
    return read_tables(SqliteSource(path), path, NAME, path.stat().st_size, report)


def _uri(path: Path) -> str:
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro"
    # Without a write-ahead log nobody is writing: no lock is needed, and no file appears beside this one.
    wal = path.with_name(path.name + "-wal")
    return uri if wal.exists() and wal.stat().st_size else uri + "&immutable=1"


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(_uri(path), uri=True)
    connection.text_factory = bytes
    return connection


def _table_names(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return [name.decode(errors="replace") for (name,) in rows]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_text(column: str, declared: str) -> bool:
    return any(word in declared for word in _TEXT) or (not declared and column in TEXT_COLUMNS)


def _is_real(declared: str) -> bool:
    return any(word in declared for word in _REAL)


def _selected(column: str, declared: str) -> str:
    # Text as bytes, so that what is not UTF-8 survives.
    name = _quoted(column)
    return f"CAST({name} AS BLOB) AS {name}" if _is_text(column, declared) else name


class SqliteSource:
    """Tables of an SQLite file; a part is a range of row ids."""

    def __init__(self, path: Path) -> None:
        self.faults = Faults()
        self._path = path
        self._uri = _uri(path)
        self._types: dict[str, dict[str, str]] = {}
        try:
            with closing(_connect(path)) as connection:
                for table in _table_names(connection):
                    self._types[table] = self._columns_of(connection, table)
        except _DAMAGE as error:
            raise self._unreadable("its list of tables", error) from error

    def _columns_of(self, connection: sqlite3.Connection, table: str) -> dict[str, str]:
        """Declared type by name."""
        try:
            rows = connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
        except sqlite3.OperationalError as error:
            # A virtual table that somebody added, whose module is not here.
            self.faults.add("ignored", f"{table}: {error}")
            return {}
        return {name.decode(errors="replace"): kind.decode(errors="replace").upper() for _, name, kind, *_ in rows}

    def tables(self) -> Collection[str]:
        """As in Source."""
        return self._types

    def columns(self, table: str) -> Collection[str]:
        """As in Source."""
        return self._types.get(table, {})

    def count(self, table: str) -> int:
        """As in Source."""
        if table not in self._types:
            return 0
        return self._one(table, f"SELECT count(*) FROM {_quoted(table)}") or 0

    def parts(self, table: str) -> Sequence[Part | None]:
        """As in Source: ranges of row ids."""
        if table not in self._types:
            return []
        try:
            # One query for both would read the whole table.
            low, high = (
                self._one(
                    table, f"SELECT {which}({self._row_id(table)}) FROM {_quoted(table)}", sqlite3.OperationalError
                )
                for which in ("min", "max")
            )
        except sqlite3.OperationalError:
            return [None]  # a table without row ids
        if low is None or high is None:
            return []
        # Row ids may be far apart, and to count the rows would read the whole table once more.
        step = max(_PART_ROWS, -(-(high - low + 1) // _MOST_PARTS))
        return [(at, min(at + step - 1, high)) for at in range(low, high + 1, step)]

    def _row_id(self, table: str) -> str:
        """A name of the row id that no column of the table has taken."""
        taken = {column.lower() for column in self._types[table]}
        return next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), "rowid")

    def batches(
        self,
        table: str,
        columns: Sequence[str],
        part: Part | None = None,
        where: tuple[str, Sequence[int]] | None = None,
    ) -> Iterator[Batch]:
        """As in Source."""
        types = self._types.get(table, {})
        wanted = [column for column in columns if column in types]
        if not wanted or (where and where[0] not in types):
            return
        whole = [column for column in wanted if not _is_text(column, types[column]) and not _is_real(types[column])]
        query = f"SELECT {', '.join(_selected(column, types[column]) for column in wanted)} FROM {_quoted(table)}"
        conditions = []
        if part is not None:
            conditions.append(f"{self._row_id(table)} BETWEEN {part[0]} AND {part[1]}")
        if where:
            conditions.append(f"{_quoted(where[0])} IN ({', '.join(map(str, where[1]))})")
        if conditions:
            query += " WHERE " + " AND ".join(conditions)
        done = 0
        try:
            for batch in self._through_adbc(query):
                if not all(map(pa.types.is_integer, (batch.schema.field(column).type for column in whole))):
                    # What ADBC makes of integers among floats or texts is not exact.
                    break
                columns_ = dict(zip(wanted, batch.columns, strict=True))
                yield Batch(table, columns_, batch.num_rows, self.faults)
                done += batch.num_rows
            else:
                return
        except (adbc_driver_manager.Error, pa.ArrowException, OSError, UnicodeDecodeError):
            # Values of several types in one column, or damage, which sqlite3 tells apart.
            pass
        yield from self._through_sqlite3(table, wanted, f"{query} LIMIT -1 OFFSET {done}")

    def _through_adbc(self, query: str) -> Iterator[pa.RecordBatch]:
        # Not through its DB-API module, which loads pandas.
        with (
            closing(adbc_driver_sqlite.connect(self._uri)) as database,
            closing(adbc_driver_manager.AdbcConnection(database)) as connection,
            closing(adbc_driver_manager.AdbcStatement(connection)) as statement,
        ):
            statement.set_options(**{"adbc.sqlite.query.batch_rows": _BATCH_ROWS})
            statement.set_sql_query(query)
            stream, _ = statement.execute_query()
            with pa.RecordBatchReader.from_stream(stream) as reader:
                yield from reader

    def _through_sqlite3(self, table: str, columns: Sequence[str], query: str) -> Iterator[Batch]:
        try:
            with closing(_connect(self._path)) as connection:
                cursor = connection.execute(query)
                while rows := cursor.fetchmany(_BATCH_ROWS):
                    values = {c: _array(v) for c, v in zip(columns, zip(*rows, strict=True), strict=True)}
                    yield Batch(table, values, len(rows), self.faults)
        except _DAMAGE as error:
            raise self._unreadable(table, error) from error

    def _one(self, table: str, query: str, *expected: type[Exception]) -> int | None:
        try:
            with closing(_connect(self._path)) as connection:
                found: int | None = connection.execute(query).fetchone()[0]
                return found
        except expected:
            raise
        except _DAMAGE as error:
            raise self._unreadable(table, error) from error

    def _unreadable(self, where: str, error: Exception) -> Unreadable:
        return Unreadable(
            f"cannot read {self._path}", f"{where}: {error}", "the file may be damaged; export the report again"
        )


def _array(values: Sequence[int | float | bytes | None]) -> pa.Array:
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) < 2:
        return pa.array(values)
    # As texts, which keep every digit of integers among floats.
    return pa.array([v if v is None or isinstance(v, bytes) else repr(v).encode() for v in values], pa.binary())
