"""Whatever stands in a recording's folder: it opens, or says why not; and no later use of it fails otherwise."""

from __future__ import annotations

import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import ipc

from inspector.errors import InspectorError, Unreadable
from inspector.trace import header
from inspector.trace.arrow import write_columns, write_texts
from inspector.trace.guarded import in_bounds
from inspector.trace.save import save
from inspector.trace.schema import Column
from tests.readers.recordings import full_trace, opened, use


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recordings") / "whole.inflight"
    save(full_trace(), path)
    return path


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "a.inflight"
    shutil.copytree(whole, path)
    use(opened(path))
    yield path
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]


def edit(folder: Path, **changes: Any) -> None:
    said = json.loads((folder / header.NAME).read_text())
    (folder / header.NAME).write_text(json.dumps({**said, **changes}))


def rewrite(folder: Path, table: str, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    columns = {key: values.copy() for key, values in full_trace()[table].columns.items()}
    change(columns)
    (folder / f"{table}.arrow").unlink()
    write_columns(folder / f"{table}.arrow", columns)


def write_batch(path: Path, batch: pa.RecordBatch, **options: Any) -> None:
    with (
        pa.OSFile(str(path), "wb") as sink,
        ipc.new_file(sink, batch.schema, options=ipc.IpcWriteOptions(**options)) as writer,
    ):
        writer.write_batch(batch)


def kernels_as(folder: Path, column: str, array: pa.Array, **options: Any) -> None:
    columns: dict[str, Any] = {key: pa.array(values) for key, values in full_trace()["kernels"].columns.items()}
    columns[column] = array
    write_batch(folder / "kernels.arrow", pa.RecordBatch.from_pydict(columns), **options)


HEADERS: dict[str, Any] = {
    "no JSON": b"{",
    "not UTF-8": b'{"format": 1, "state": "complete", "host": "\xff"}',
    "empty": b"",
    "a list": b"[]",
    "nested": b"[" * 100_000,
    "no format": b'{"state": "complete"}',
    "format of later": b'{"format": 2, "state": "complete"}',
    "format as text": b'{"format": "1", "state": "complete"}',
    "too long": b" " * (header.MOST_BYTES + 1),
}


@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS.keys())
def test_a_wrong_header(folder: Path, data: bytes) -> None:
    (folder / header.NAME).write_bytes(data)
    with pytest.raises(Unreadable):
        opened(folder)


CLAIMS: dict[str, dict[str, Any]] = {
    "state": {"state": "fine"},
    "more rows": {"rows": {"kernels": 6}},
    "huge rows": {"rows": {"kernels": 1 << 61}},
    "beyond int64": {"rows": {"kernels": 1 << 80}},
    "negative rows": {"rows": {"kernels": -1}},
    "fractions": {"rows": {"kernels": 1.5}},
    "names": {"names": 1 << 40},
    "note": {"quality": [{"code": "nonsense", "count": 1, "text": ""}]},
    "note count": {"quality": [{"code": "clock", "count": -5, "text": ""}]},
    "duration": {"info": {"duration_ns": -1}},
    "origin": {"info": {"origin_ns": 1 << 70}},
    "basis": {"info": {"basis": "guessed"}},
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS.keys())
def test_a_wrong_claim(folder: Path, claim: dict[str, Any]) -> None:
    edit(folder, **claim)
    with pytest.raises(Unreadable):
        opened(folder)


def cut(folder: Path) -> None:
    data = (folder / "kernels.arrow").read_bytes()
    (folder / "kernels.arrow").write_bytes(data[: len(data) // 2])


def column_name(folder: Path) -> None:
    data = (folder / "kernels.arrow").read_bytes()
    (folder / "kernels.arrow").write_bytes(data.replace(b"start", b"\xff\xffart"))


def two_columns(folder: Path) -> None:
    start = pa.array(np.arange(5))
    write_batch(folder / "kernels.arrow", pa.RecordBatch.from_arrays([start, start], names=["start", "start"]))


def fifo(folder: Path) -> None:
    (folder / "kernels.arrow").unlink()
    os.mkfifo(folder / "kernels.arrow")


def subfolder(folder: Path) -> None:
    (folder / "kernels.arrow").unlink()
    (folder / "kernels.arrow").mkdir()


def link(folder: Path) -> None:
    (folder / "kernels.arrow").rename(folder.parent / "elsewhere")
    (folder / "kernels.arrow").symlink_to(folder.parent / "elsewhere")


def two_batches(folder: Path) -> None:
    batch = pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in full_trace()["kernels"].columns.items()})
    with (
        pa.OSFile(str(folder / "kernels.arrow"), "wb") as sink,
        ipc.new_file(sink, batch.schema) as writer,
    ):
        writer.write_batch(batch)
        writer.write_batch(batch)


def texts(folder: Path, values: list[Any], kind: pa.DataType) -> None:
    write_batch(folder / "names.arrow", pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["text"]))


FILES: dict[str, Callable[[Path], object]] = {
    "gone": lambda folder: (folder / "kernels.arrow").unlink(),
    "empty": lambda folder: (folder / "kernels.arrow").write_bytes(b""),
    "breaks off": cut,
    "no Arrow": lambda folder: (folder / "kernels.arrow").write_bytes(b"x" * 4096),
    "another table": lambda folder: shutil.copy(folder / "memcpys.arrow", folder / "series.arrow"),
    "a pipe": fifo,
    "a folder": subfolder,
    "a link": link,
    "column gone": lambda folder: rewrite(folder, "kernels", lambda c: c.pop("end")),
    "column name not UTF-8": column_name,
    "column twice": two_columns,
    "two batches": two_batches,
    "float times": lambda folder: kernels_as(folder, "start", pa.array(np.zeros(5))),
    "text times": lambda folder: kernels_as(folder, "start", pa.array(["1"] * 5)),
    "nested": lambda folder: kernels_as(folder, "start", pa.array([[1]] * 5)),
    "nothing in places": lambda folder: kernels_as(folder, "start", pa.array([1, None, 2, 3, 4])),
    "dictionary": lambda folder: kernels_as(folder, "start", pa.array(["a"] * 5).dictionary_encode()),
    "unsigned": lambda folder: kernels_as(folder, "start", pa.array(np.zeros(5, np.uint64))),
    "compressed": lambda folder: kernels_as(folder, "start", pa.array(np.zeros(5, np.int64)), compression="zstd"),
    "names twice": lambda folder: texts(folder, ["a", "a", "b", "c"], pa.string()),
    "names too few": lambda folder: texts(folder, ["a"], pa.string()),
    "names missing": lambda folder: texts(folder, ["a", None, "b", "c"], pa.string()),
    "names as numbers": lambda folder: texts(folder, [1, 2, 3, 4], pa.int64()),
    "names not UTF-8": lambda folder: texts(folder, [b"a", b"\xff", b"b", b"c"], pa.large_binary()),
    "names gone": lambda folder: (folder / "names.arrow").unlink(),
}


@pytest.mark.parametrize("spoil", FILES.values(), ids=FILES.keys())
def test_a_wrong_file(folder: Path, spoil: Callable[[Path], object]) -> None:
    spoil(folder)
    with pytest.raises(Unreadable):
        opened(folder)


def put(table: str, column: str, row: int, value: float) -> Callable[[Path], None]:
    def change(columns: dict[str, np.ndarray]) -> None:
        columns[column][row] = value

    return lambda folder: rewrite(folder, table, change)


VALUES: dict[str, Callable[[Path], None]] = {
    "stream that is not there": put("kernels", "stream", 2, 5),
    "stream below none": put("kernels", "stream", 2, -2),
    "name that is not there": put("ranges", "name", 0, 1 << 30),
    "thread that is not there": put("host_calls", "thread", 0, 99),
    "process that is not there": put("threads", "process", 0, 99),
    "step of no iteration": put("steps", "iteration", 0, 5),
    "out of order": put("kernels", "start", 1, 10_000),
    "samples out of order": put("counters", "time", 4, 0),
    "end before start": put("kernels", "end", 3, -1),
    "time that cannot be": put("requests", "last_token", 0, 1 << 62),
    "start that cannot be": put("kernels", "start", 0, -(1 << 62)),
    "kind that is not known": put("ranges", "kind", 0, 6),
    "negative kind": put("ranges", "kind", 0, -1),
    "rejected for no table": put("rejected", "table", 0, 120),
    "rejected for no reason": put("rejected", "reason", 0, 4),
}


@pytest.mark.parametrize("spoil", VALUES.values(), ids=VALUES.keys())
def test_a_wrong_value_is_found_when_it_is_used(folder: Path, spoil: Callable[[Path], None]) -> None:
    spoil(folder)
    trace = opened(folder)  # touches no rows
    for _ in range(2):  # and not only the first time
        with pytest.raises(Unreadable, match=r"a\.inflight"):
            use(trace)


def test_what_is_not_known_is_noted(folder: Path) -> None:
    def add(columns: dict[str, np.ndarray]) -> None:
        columns["colour"] = np.arange(5)

    rewrite(folder, "kernels", add)
    said = json.loads((folder / header.NAME).read_text())
    edit(folder, rows={**said["rows"], "../../etc/passwd": 1}, later={"x": 1})
    (folder / "notes.txt").write_text("mine")
    trace = opened(folder)
    assert trace.quality.count("ignored") == 2
    use(trace)


@settings(max_examples=120)
@given(st.data())
def test_flipped_bits_end_in_a_trace_or_an_error(whole: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "a.inflight"
        shutil.copytree(whole, folder)
        file = data.draw(st.sampled_from(sorted(folder.iterdir())), "file")
        raw = bytearray(file.read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=3), "bytes"):
            raw[at] ^= 1 << data.draw(st.integers(0, 7), "bit")
        file.write_bytes(raw)
        said = ""
        try:
            use(opened(folder))
        except InspectorError as error:  # any other exception is a failure
            said = str(error)
        assert "\n" not in said


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(["kernels.arrow", "names.arrow"]))
@example(0, "kernels.arrow")
def test_a_file_of_noise_after_the_magic(whole: Path, seed: int, name: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "a.inflight"
        shutil.copytree(whole, folder)
        noise = random.Random(seed).randbytes(400)
        (folder / name).write_bytes(b"ARROW1\0\0" + b"\xff\xff\xff\xff" + noise)
        with pytest.raises(Unreadable):
            use(opened(folder))


def test_texts_come_back(tmp_path: Path) -> None:
    from inspector.trace.arrow_reader import read_texts

    for number, values in enumerate(([], ["a", "", "大"], ["\ud800", "x"])):
        write_texts(tmp_path / str(number), values)
        assert read_texts(tmp_path / str(number)) == (values, True)


def test_compressed_rows_are_not_taken_for_plain_ones(folder: Path) -> None:
    # What does not get smaller is stored as it is behind its length: enough bytes for a reader that does not look.
    noise = np.random.default_rng(0).integers(0, 1 << 60, 5)
    kernels_as(folder, "start", pa.array(np.sort(noise)), compression="lz4")
    with pytest.raises(Unreadable, match="compressed"):
        opened(folder)


def test_more_rows_than_bytes(folder: Path) -> None:
    data = (folder / "kernels.arrow").read_bytes()
    claimed = (1 << 40).to_bytes(8, "little")
    (folder / "kernels.arrow").write_bytes(data.replace((5).to_bytes(8, "little"), claimed))
    edit(folder, rows={**json.loads((folder / header.NAME).read_text())["rows"], "kernels": 1 << 40})
    with pytest.raises(Unreadable, match=r"kernels\.arrow"):
        opened(folder)


def test_each_column_is_looked_through_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def counting(column: Column, values: np.ndarray) -> bool:
        looked.append(column.name)
        return in_bounds(column, values)

    monkeypatch.setattr("inspector.trace.guarded.in_bounds", counting)
    kernels = opened(folder)["kernels"]
    assert (looked, kernels.nbytes() > 0, "end" in kernels, len(kernels.columns)) == ([], True, True, 7)
    assert kernels["end"] is kernels["end"] is kernels.columns["end"]
    assert looked == ["end"]
