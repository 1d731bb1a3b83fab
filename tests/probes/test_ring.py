from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.errors import Unreadable
from inspector.trace import ring as reading
from inspector.trace.ring_rows import RingRows
from inspector.trace.schema import PROBE_STATES, SCHEMAS
from probes.inprocess import ring as writing
from probes.inprocess.columns import LAYOUTS, NEVER, STATES

LAYOUT = {"marks": (("time", "q"), ("name", "i")), "counters": (("value", "d"), ("kind", "b"))}
MARK, COUNTER = struct.Struct("<qi"), struct.Struct("<db")
_DTYPES = {"q": "<i8", "i": "<i4", "b": "i1"}
KEYS = {"threads": "thread", "streams": "stream", "series": "series"}
relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@contextmanager
def pair(path: Path, capacity: int = 4096) -> Iterator[tuple[writing.Ring, reading.Ring]]:
    path.unlink(missing_ok=True)
    writer = writing.Ring(str(path), "test", LAYOUT, capacity)
    reader = reading.Ring(path, writable=True)
    try:
        yield writer, reader
    finally:
        writer.abandon()
        reader.close()


def test_the_layouts_are_those_of_the_schema() -> None:
    codes = {"int8": "b", "int32": "i", "int64": "q", "uint64": "Q", "float64": "d"}
    for table, layout in LAYOUTS.items():
        known = {column.name: column for column in SCHEMAS[table].columns}
        given_columns = dict(layout)
        if table == "threads":
            assert given_columns == {"thread": "q", "name": "i"}
            continue
        for name, code in layout:
            if table == "counters" and name in ("unit", "device"):
                assert code == codes[{c.name: c for c in SCHEMAS["series"].columns}[name].dtype]
            elif name in known and known[name].refers in ("", "names") and name != "stream":
                assert code == codes[known[name].dtype], f"{table}.{name}"
            elif name == "series":
                assert code == "i"
            else:
                assert name in ("thread", "device", "stream", "iteration", "request"), f"{table}.{name}"
        for column in known.values():
            told = column.name in given_columns or column.refers in ("processes", *KEYS) or column.optional
            assert told, f"{table}.{column.name} is not optional, and the workload cannot tell it"
    engine = ("iterations", "requests", "steps", "page_events", "tokens")
    for table in engine:
        missing = {c.name for c in SCHEMAS[table].columns} - {name for name, _ in LAYOUTS[table]}
        assert missing <= {"process"}, table


def test_both_ends_agree_on_constants() -> None:
    assert PROBE_STATES == STATES
    assert SCHEMAS["requests"].column("first_token").may_be_never
    assert NEVER == -(2**63)


def test_what_is_put_is_taken_in_order(tmp_path: Path) -> None:
    with pair(tmp_path / "a.ring") as (writer, reader):
        assert writer.put(writing.NAMES, 0, "kernel ä".encode())
        assert writer.put(0, 2, MARK.pack(1, 0) + MARK.pack(2, 0))
        assert writer.put(1, 1, COUNTER.pack(0.5, 3))
        assert writer.put(0, 1, MARK.pack(3, 0))
        taken = reader.take()
        assert taken.names == [(0, "kernel ä")]
        assert taken.tables["marks"]["time"].tolist() == [1, 2, 3]
        assert taken.tables["counters"].tolist() == [(0.5, 3)]
        assert (reader.pid, reader.role, taken.damage) == (os.getpid(), "test", "")
        # Nothing is given back before it is released.
        assert reader.take().upto == taken.upto
        reader.release(taken.upto)
        assert reader.take().tables == {}


def test_what_the_streams_hold_is_left_out(tmp_path: Path) -> None:
    with pair(tmp_path / "a.ring") as (writer, reader):
        writer.put(0, 1, MARK.pack(1, 0))
        middle = reader.take().upto
        writer.put(0, 1, MARK.pack(2, 0))
        writer.put(writing.NAMES, 0, b"x")
        end = reader.take().upto
        assert reader.take({"marks": middle}).tables["marks"]["time"].tolist() == [2]
        left = reader.take({"marks": end, "names": middle})
        assert (left.tables, left.names) == ({}, [(0, "x")])


@given(st.lists(st.one_of(st.lists(st.integers(1, 12), max_size=5), st.none()), max_size=60))
@relaxed
def test_frames_that_are_put_together_come_together_or_not_at_all(
    tmp_path: Path, steps: list[list[int] | None]
) -> None:
    """Against lists: each number is a frame of so many rows, None a drain."""
    with pair(tmp_path / "t.ring", 4096) as (writer, reader):
        expected: list[int] = []
        got: list[int] = []
        used = number = 0
        for frames in steps:
            if frames is None:
                taken = reader.take()
                assert taken.damage == ""
                got += taken.tables["marks"]["time"].tolist() if "marks" in taken.tables else []
                reader.release(taken.upto)
                assert got == expected
                used = 0
                continue
            times = [list(range(number + 100 * at, number + 100 * at + rows)) for at, rows in enumerate(frames)]
            number += 1000
            size = sum((24 + MARK.size * rows + 7) // 8 * 8 for rows in frames)
            told = writer.put_all([(0, len(own), b"".join(MARK.pack(time, 0) for time in own)) for own in times])
            assert told == (used + size <= 4096)
            if told:
                used += size
                expected += [time for own in times for time in own]


def test_a_ring_needs_no_pages_made_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 5.14 nothing knows the advice."""
    monkeypatch.setattr(writing, "_POPULATE_WRITE", 9_999)
    with pair(tmp_path / "o.ring", 1 << 17) as (writer, reader):
        for time in range(20_000):
            assert writer.put(0, 1, MARK.pack(time, 0))
            if time % 1000 == 999:
                taken = reader.take()
                assert taken.tables["marks"]["time"].tolist() == list(range(time - 999, time + 1))
                reader.release(taken.upto)


@given(st.lists(st.one_of(st.integers(1, 40), st.none()), max_size=80))
@relaxed
def test_a_ring_is_a_queue_that_drops_the_newest(tmp_path: Path, steps: list[int | None]) -> None:
    """Against a list: numbers are rows to put, None a drain."""
    with pair(tmp_path / "q.ring", 2048) as (writer, reader):
        expected: list[int] = []
        got: list[int] = []
        used = number = 0
        for rows in steps:
            if rows is None:
                taken = reader.take()
                assert taken.damage == ""
                got += taken.tables["marks"]["time"].tolist() if "marks" in taken.tables else []
                reader.release(taken.upto)
                assert got == expected
                used = 0
                continue
            times = list(range(number, number + rows))
            number += rows
            size = (24 + MARK.size * rows + 7) // 8 * 8
            fits = used + size <= 2048
            assert writer.put(0, rows, b"".join(MARK.pack(time, 0) for time in times)) == fits
            if fits:
                used += size
                expected += times


@given(st.data())
@relaxed
def test_a_hostile_ring_is_an_error_or_less_data(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "h.ring"
    with pair(path) as (writer, reader):
        for number in range(20):
            writer.put(writing.NAMES, number, b"name %d" % number)
            writer.put(0, 3, MARK.pack(number, number) * 3)
            writer.put(1, 2, COUNTER.pack(1.0, 2) * 2)
        reader.take()
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.one_of(st.integers(0, 2048), st.integers(0, len(whole) - 8)))
        piece = data.draw(
            st.one_of(
                st.binary(min_size=1, max_size=8),
                st.integers(0, 2**64 - 1).map(lambda n: n.to_bytes(8, "little")),
                st.sampled_from([b"\xff" * 8, b"\0" * 8]),
            )
        )
        whole[at : at + len(piece)] = piece
    path.write_bytes(whole[: data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))))])
    try:
        reader = reading.Ring(path, writable=True)
    except Unreadable:
        return
    try:
        taken = reader.take()
        assert sum(len(rows) for rows in taken.tables.values()) <= 4096
        RingRows(reader.pid).resolve(taken)
        reader.counts()
        reader.lost()
        reader.skip()
        assert reader.take().tables == {}
    except Unreadable:
        return
    finally:
        reader.close()


@given(st.integers(0, 2**64 - 1))
@relaxed
def test_a_tail_that_cannot_be_is_as_good_as_full(tmp_path: Path, tail: int) -> None:
    with pair(tmp_path / "t.ring") as (writer, reader):
        assert writer.put(0, 1, MARK.pack(1, 0))
        end = reader.take().upto
        reader.release(tail)
        assert writer.put(0, 1, MARK.pack(2, 0)) == (0 <= end - tail <= 4096 - 40)


def test_links_and_folders_are_no_rings(tmp_path: Path) -> None:
    with pair(tmp_path / "a.ring"):
        (tmp_path / "link.ring").symlink_to(tmp_path / "a.ring")
        (tmp_path / "folder.ring").mkdir()
        os.mkfifo(tmp_path / "pipe.ring")
        for name in ("link", "folder", "pipe", "absent"):
            with pytest.raises(Unreadable, match=f"{name}.ring"):
                reading.Ring(tmp_path / f"{name}.ring")


def test_a_ring_never_takes_the_place_of_another(tmp_path: Path) -> None:
    with pair(tmp_path / "a.ring"), pytest.raises(FileExistsError):
        writing.Ring(str(tmp_path / "a.ring"), "test", LAYOUT, 4096)
    assert (tmp_path / "a.ring").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_gives_a_small_ring_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = 9 << 20

    def fallocate(file: int, at: int, size: int) -> None:
        if size > room:
            raise OSError(28, "No space left on device")
        os.ftruncate(file, size)

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    ring = writing.Ring(str(tmp_path / "a.ring"), "test", LAYOUT)
    assert ring.capacity == writing.SMALL_CAPACITY
    ring.abandon()
    room = 1 << 20
    with pytest.raises(OSError, match="No space left"):
        writing.Ring(str(tmp_path / "b.ring"), "test", LAYOUT)
    assert not (tmp_path / "b.ring").exists()


def test_keys_become_rows_and_what_was_lost_is_counted() -> None:
    rows = RingRows(4711)
    some = ("steps", "iterations", "requests", "kernels")
    dtype = {table: np.dtype([(column, _DTYPES[code]) for column, code in LAYOUTS[table]]) for table in some}
    steps = np.zeros(3, dtype["steps"])
    steps["iteration"], steps["request"] = [5, 5, 9], [70, 71, 70]
    iterations, requests = np.zeros(1, dtype["iterations"]), np.zeros(1, dtype["requests"])
    iterations["iteration"], requests["request"], requests["first_token"] = 5, 70, NEVER
    kernels = np.zeros(4, dtype["kernels"])
    kernels["device"], kernels["stream"], kernels["name"] = [0, 1, 0, 1], [7, 7, 8, 7], [0, 1, 5, -1]
    tables = {"steps": steps, "iterations": iterations, "requests": requests, "kernels": kernels}
    texts, found = rows.resolve(reading.Taken(0, 1, tables, [(0, "toy"), (1, "gemm")]))
    assert texts == ["toy", "gemm"]
    assert found["processes"]["pid"].tolist() == [4711]
    assert found["steps"]["iteration"].tolist() == [0]
    assert found["steps"]["request"].tolist() == [0]
    devices, streams = found["devices"]["number"], found["streams"]
    kernel_streams = found["kernels"]["stream"]
    assert devices[streams["device"][kernel_streams]].tolist() == [0, 1, 0, 1]
    assert streams["number"][kernel_streams].tolist() == [7, 7, 8, 7]
    assert found["kernels"]["name"].tolist() == [0, 1, -1, -1]
    assert rows.quality.count("profiler-loss") == 2
    assert rows.quality.count("invalid") == 1


def test_rows_that_hold_what_cannot_be_are_left_out() -> None:
    rows = RingRows(1)
    dtype = np.dtype([(column, _DTYPES[code]) for column, code in LAYOUTS["ranges"]])
    ranges = np.zeros(3, dtype)
    ranges["kind"] = [0, 100, 1]
    ranges["end"] = [1, 1, 2**62]
    ranges["name"] = ranges["domain"] = -1
    _, found = rows.resolve(reading.Taken(0, 1, {"ranges": ranges}, []))
    assert found["ranges"]["end"].tolist() == [1]
    assert rows.quality.count("invalid") == 2


def extremes(code: str) -> st.SearchStrategy[float]:
    if code == "d":
        return st.floats()
    low, high = {"b": (-128, 127), "i": (-(2**31), 2**31 - 1), "q": (-(2**63), 2**63 - 1), "Q": (0, 2**64 - 1)}[code]
    return st.one_of(st.integers(-1, min(6, high)) if low else st.integers(0, 6), st.sampled_from([low, high]))


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_whatever_rows_hold_what_they_refer_to_is_there(tmp_path: Path, data: st.DataObject) -> None:
    """Any numbers in any tables, taken in any parts: the columns fit the schema, and every reference a row."""
    path = tmp_path / "any.ring"
    path.unlink(missing_ok=True)
    writer = writing.Ring(str(path), "test", LAYOUTS, 1 << 16)
    reader = reading.Ring(path, writable=True)
    tables = list(LAYOUTS)
    rows = RingRows(reader.pid)
    lengths = dict.fromkeys(SCHEMAS, 0)
    num_names = 0
    try:
        for _ in range(data.draw(st.integers(0, 12))):
            if data.draw(st.booleans()):
                writer.put(writing.NAMES, data.draw(st.integers(0, 4)), b"text")
            table = data.draw(st.sampled_from(tables))
            packer = struct.Struct("<" + "".join(code for _, code in LAYOUTS[table]))
            drawn = data.draw(
                st.lists(st.tuples(*[extremes(code) for _, code in LAYOUTS[table]]), min_size=1, max_size=5)
            )
            writer.put(tables.index(table), len(drawn), b"".join(packer.pack(*row) for row in drawn))
            if data.draw(st.booleans()):
                taken = reader.take()
                reader.release(taken.upto)
                texts, found = rows.resolve(taken)
                num_names += len(texts)
                for name, columns in found.items():
                    lengths[name] += len(next(iter(columns.values())))
                for name, columns in found.items():
                    check(name, columns, lengths, num_names)
    finally:
        writer.abandon()
        reader.close()


def check(table: str, columns: dict[str, np.ndarray], lengths: dict[str, int], num_names: int) -> None:
    needed = {column.name for column in SCHEMAS[table].columns if not column.optional}
    assert needed <= set(columns)
    for column in SCHEMAS[table].columns:
        if column.name not in columns:
            continue
        values = columns[column.name]
        assert values.dtype == column.dtype
        most = num_names if column.refers == "names" else lengths.get(column.refers, 0)
        if column.refers:
            assert values.min() >= -1
            assert values.max() < most
        if column.below:
            assert values.min() >= 0
            assert values.max() < column.below
        if column.unit == "ns":
            assert all(abs(value) <= 1 << 61 or (column.may_be_never and value == NEVER) for value in values.tolist())
