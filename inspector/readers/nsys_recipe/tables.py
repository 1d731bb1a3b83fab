"""One output of a recipe, Parquet or text between commas, as a table of results; bounded in rows and bytes."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from inspector.errors import Unreadable
from inspector.readers.nsys_recipe.meaning import meaning_of, plain_name
from inspector.readers.nsys_recipe.texts import Texts, clean
from inspector.trace.results import ResultColumn, ResultTable

# What a person can look at; what is beyond is counted and said.
MOST_ROWS = 4_000_000
_MOST_COLUMNS = 400
_MOST_BYTES = 1 << 30
_BATCH_ROWS = 1 << 16
_INDEX = "__index_level_"
_REPORT = "rank"
# Labels of rows that are numbers by a rule: their name, the first and the step.
_Range = tuple[str, int, int]


def read_table(name: str, file: BinaryIO, is_text: bool, recipe: str) -> ResultTable:
    """The table in `file`. Raises Unreadable for what is none."""
    try:
        wrong: list[int] = []
        labels: list[_Range] = []
        columns, batches, total = _text_batches(file, wrong) if is_text else _parquet_batches(file, labels)
        left_out = len(columns) - _MOST_COLUMNS
        kept, rows, size, whole = [], 0, 0, True
        for batch in batches:
            take = min(batch.num_rows, MOST_ROWS - rows)
            if (not take and batch.num_rows) or size > _MOST_BYTES:
                whole = False
                if not is_text:
                    break
                total += batch.num_rows
                continue
            part = batch.select(columns[:_MOST_COLUMNS]).slice(0, take)
            rows, size = rows + take, size + part.nbytes
            total += batch.num_rows if is_text else 0
            kept.append(part)
        schema = kept[0].schema if kept else None
        table = pa.Table.from_batches(kept, schema) if schema is not None else pa.table({})
        for at, (name_of, first, step) in enumerate(labels):
            table = table.add_column(at, name_of, pa.array(first + step * np.arange(rows, dtype=np.int64)))
        found = tuple(_column(column, table.column(column), recipe, is_text) for column in table.column_names)
    except (pa.ArrowException, ValueError, OSError, KeyError, csv.Error) as error:
        raise Unreadable(f"cannot read {name}", clean(str(error)), "run the recipe again") from error
    notes = [f"{left_out:,} more columns are not shown"] if left_out > 0 else []
    notes += [f"{len(wrong):,} lines with another number of values than the heading are left out"] if wrong else []
    notes += [f"the first {rows:,} of {total:,} rows"] if rows < total or not whole else []
    places = [at for at, column in enumerate(found) if plain_name(column.name) == _REPORT and column.texts is None]
    return ResultTable(name, found, total, "; ".join(notes), places[0] if places else -1)


def _parquet_batches(file: BinaryIO, labels: list[_Range]) -> tuple[list[int], Iterator[pa.RecordBatch], int]:
    parquet = pq.ParquetFile(file)
    names = list(parquet.schema_arrow.names)
    index = []
    for label in _labels(parquet.schema_arrow):
        if isinstance(label, str) and names.count(label) == 1:
            index.append(names.index(label))
        elif isinstance(label, dict) and label.get("kind") == "range":
            name, first, step = (label.get(key) for key in ("name", "start", "step"))
            bounded = all(isinstance(value, int) and abs(value) < 1 << 31 for value in (first, step))
            if isinstance(name, str) and name not in names and bounded:
                labels.append((name, int(first or 0), int(step or 0)))
    order = index + [at for at in range(len(names)) if at not in index]
    return order, parquet.iter_batches(_BATCH_ROWS, use_threads=False), parquet.metadata.num_rows


def _labels(schema: pa.Schema) -> list[Any]:
    """What pandas says of the labels of its rows: columns, or numbers of which only the rule is kept."""
    kept = (schema.metadata or {}).get(b"pandas")
    try:
        labels = json.loads(kept).get("index_columns") if kept else None
    except (ValueError, AttributeError, RecursionError):
        return []
    return labels if isinstance(labels, list) else []


def _text_batches(file: BinaryIO, wrong: list[int]) -> tuple[list[int], Iterator[pa.RecordBatch], int]:
    head = file.read(1 << 20).split(b"\n", 1)[0]
    file.seek(0)

    def skip(row: Any) -> str:
        wrong.append(row.actual_columns)
        return "skip"

    reader = pyarrow.csv.open_csv(
        file,
        # Types are found from the whole column, not from where it begins.
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(_heads(head), pa.string()), strings_can_be_null=True, null_values=[""]
        ),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=1 << 22),
    )
    return list(range(len(reader.schema.names))), iter(reader), 0


def _heads(line: bytes) -> Sequence[str]:
    text = line.decode("utf-8-sig", "replace").rstrip("\r")
    return next(csv.reader([text]), [])


def _column(name: str, values: pa.ChunkedArray, recipe: str, is_text: bool) -> ResultColumn:
    heading = "" if name.startswith(_INDEX) else clean(name)
    known = meaning_of(recipe, heading)
    numbers = _numbers(values, is_text)
    absent = np.asarray(values.is_null()) if values.null_count else None
    more: dict[str, Any] = {"unit": known.unit, "meaning": known.text, "is_moment": known.is_moment}
    if numbers is not None:
        if numbers.dtype.kind == "f":
            missing = np.isnan(numbers)
            absent = missing if missing.any() else None
        return ResultColumn(heading, numbers, None, absent, **more)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        values = _as_texts(values)
    encoded = values.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], values.type).dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1), np.int32)
    return ResultColumn(heading, codes, Texts(encoded.dictionary), absent, **more)


def _numbers(values: pa.ChunkedArray, is_text: bool) -> np.ndarray[Any, np.dtype[Any]] | None:
    """As int64 or float64, exact; None for what is no number or does not fit."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    if pa.types.is_duration(kind):
        wanted = [pa.duration("ns")]
    elif pa.types.is_integer(kind):
        wanted = [pa.int64()]
    elif pa.types.is_floating(kind):
        wanted = [pa.float64()]
    elif is_text and pa.types.is_string(kind) and values.null_count < len(values):
        wanted = [pa.int64(), pa.float64()]
    else:
        return None
    for target in wanted:
        try:
            found = values.cast(target)
        except pa.ArrowException:
            continue
        if pa.types.is_duration(target):
            found = found.cast(pa.int64())
        if pa.types.is_floating(found.type):
            return np.asarray(found.fill_null(np.nan), np.float64)
        return np.asarray(found.fill_null(0), np.int64)
    return None


def _as_texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Anything else in words."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values
    chunks = []
    for chunk in values.chunks:
        words = Texts(chunk)
        valid = np.asarray(chunk.is_valid())
        chunks.append(pa.array([words[at] if valid[at] else None for at in range(len(chunk))], pa.string()))
    return pa.chunked_array(chunks, pa.string())
