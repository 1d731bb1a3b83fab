"""A growing recording, followed: in whatever pieces it comes, the end is what one read gives, and before it a part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.analysis.calls import CallKinds
from inspector.analysis.categories import Categories
from inspector.analysis.completeness import verdict
from inspector.analysis.page_log import PageLog
from inspector.analysis.page_replay import Replay
from inspector.analysis.pages import pages_at
from inspector.analysis.pipeline import Pipeline
from inspector.analysis.steps import Runs, Steps
from inspector.readers.recording import follow
from inspector.readers.recording.follow import Following
from inspector.trace import header, lock
from inspector.trace.arrow import StreamWriter
from inspector.trace.header import Anchor, Header
from inspector.trace.links import Links
from inspector.trace.schema import NEVER, SCHEMAS
from inspector.trace.selection import Window
from inspector.trace.table import Array
from inspector.trace.trace import Trace
from inspector.trace.work import Work
from tests.engine_traces import Setup, engine_trace
from tests.readers.recordings import opened

BOOT = 7_000_000_000
MS = 1_000_000


@dataclass
class Clock:
    """The clock of the records; stands still unless it is turned."""

    now: int = BOOT

    def __call__(self) -> int:
        return self.now


@dataclass
class Folder:
    """A recording that a test writes piece by piece."""

    path: Path
    held: int = -1
    writers: dict[str, StreamWriter] = field(default_factory=dict)
    tos: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        self.path.mkdir()
        self.held = lock.take(self.path)
        header.write(self.path, Header(format=1, state="recording", clock=[Anchor(BOOT, 10**18)]))

    def texts(self, producer: str, texts: list[str]) -> None:
        self._writer(producer, "names").append_texts(texts, 0)

    def rows(self, producer: str, table: str, **columns: Any) -> None:
        schema = SCHEMAS[table]
        size = max(len(values) for values in columns.values())
        found = {}
        for column in schema.columns:
            if column.name in columns:
                found[column.name] = np.array(columns[column.name], column.dtype)
            elif not column.optional:
                found[column.name] = np.full(size, NEVER if column.may_be_never else -1, column.dtype)
        self._writer(producer, table).append(found, 0)

    def _writer(self, producer: str, table: str) -> StreamWriter:
        name = f"{producer}.{table}"
        if name not in self.writers:
            self.writers[name] = StreamWriter(self.path / f"{name}.arrows")
        return self.writers[name]

    def let_go(self) -> None:
        """The recorder is gone."""
        if self.held >= 0:
            os.close(self.held)
        self.held = -1

    def end(self) -> None:
        self.let_go()
        for writer in self.writers.values():
            writer.close()
        self.writers = {}


@contextmanager
def folder() -> Iterator[Folder]:
    with tempfile.TemporaryDirectory() as parent:
        made = Folder(Path(parent) / "a.inflight")
        made.begin()
        try:
            yield made
        finally:
            made.end()


def start(made: Folder, producer: str, pid: int) -> None:
    made.texts(producer, [producer, "gemm", "attention", "launch", "step"])
    made.rows(producer, "processes", pid=[pid], name=[0])
    made.rows(producer, "threads", process=[0, 0], tid=[pid, pid + 1], name=[0, -1])
    made.rows(producer, "devices", number=[pid % 2])
    made.rows(producer, "streams", process=[0, 0], device=[0, 0], number=[7, 8])


def plain(trace: Trace, table: str) -> dict[str, list[Any]]:
    """The rows with texts, process ids and so on in place of row numbers, which differ with the order of coming."""
    small = {name: trace[name] for name in ("processes", "threads", "streams", "devices", "series")}

    def process(row: int) -> Any:
        return int(small["processes"]["pid"][row]) if row >= 0 else None

    def thread(row: int) -> Any:
        table = small["threads"]
        return (process(table["process"][row]), int(table["tid"][row])) if row >= 0 else None

    def stream(row: int) -> Any:
        table, devices = small["streams"], small["devices"]["number"]
        owner = process(table["process"][row])
        return (owner, int(devices[table["device"][row]]), int(table["number"][row])) if row >= 0 else None

    turn = {"processes": process, "threads": thread, "streams": stream}
    found: dict[str, list[Any]] = {}
    for name, values in trace[table].columns.items():
        refers = SCHEMAS[table].column(name).refers
        if refers == "names":
            found[name] = [trace.names[int(value)] for value in values]
        else:
            found[name] = [turn[refers](row) for row in values.tolist()] if refers in turn else values.tolist()
    if table == "rejected":  # in the order of coming
        order = sorted(range(len(trace[table])), key=lambda row: [str(values[row]) for values in found.values()])
        return {name: [values[row] for row in order] for name, values in found.items()}
    return found


def assert_same(trace: Trace, expected: Trace) -> None:
    for table in SCHEMAS:
        if table in ("processes", "threads", "streams", "devices", "series"):
            assert len(trace[table]) == len(expected[table]), table
        else:
            assert plain(trace, table) == plain(expected, table), table
    assert trace.info.duration_ns == expected.info.duration_ns
    assert trace.info.origin_ns == expected.info.origin_ns == BOOT


Piece = tuple[str, list[tuple[int, int]]]
PIECES = st.lists(
    st.tuples(
        st.sampled_from(["one", "two"]),
        st.lists(st.tuples(st.integers(0, 60), st.integers(-1, 40)), min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=12,
)


def write(made: Folder, piece: Piece, done: dict[str, int]) -> None:
    """Kernels, ranges, an iteration and a request with steps and page events: (start, length) in ms."""
    producer, spans = piece
    number = done.setdefault(producer, 0)
    if not number:
        start(made, producer, 10 if producer == "one" else 21)
    done[producer] += 1
    # Most of what comes later begins later.
    begin = [BOOT + (at + number * 35) * MS for at, _ in spans]
    end = [start + length * MS for start, (_, length) in zip(begin, spans, strict=True)]
    size = len(spans)
    ids = [number * 10 + at for at in range(size)]
    # In the order in which the recorder writes them: what others refer to comes first.
    made.rows(producer, "iterations", start=begin[:1], end=[max(begin[0], end[0])], process=[0], iteration=[number])
    last = [NEVER if number % 2 else end[0]]
    request = {"request": [number // 2], "arrival": [BOOT + (number // 2) * 5 * MS], "last_token": last}
    made.rows(producer, "requests", **request, prompt_tokens=[5 if number % 2 else -1])
    made.rows(producer, "kernels", start=begin, end=end, stream=[at % 2 for at in range(size)], name=[1] * size)
    made.rows(
        producer,
        "ranges",
        start=begin,
        end=end,
        thread=[at % 2 for at in range(size)],
        name=[4] * size,
        kind=[2] * size,
    )
    made.rows(producer, "steps", iteration=[number] * 2, request=[number] * 2, phase=[1, 4], tokens=[number, 0])
    kinds = [at % 7 for at in range(size)]
    made.rows(producer, "page_events", time=end, sequence=ids, block=ids, request=[number] * size, kind=kinds)


@settings(max_examples=60, deadline=None)
@given(PIECES, st.data())
def test_what_comes_in_pieces_is_what_one_read_gives(pieces: list[Piece], data: st.DataObject) -> None:
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        done: dict[str, int] = {}
        generations: list[Trace] = []
        for piece in pieces:
            write(made, piece, done)
            clock.now += data.draw(st.integers(0, 300)) * MS
            trace = following.poll()
            if trace is not None:
                generations.append(trace)
                for table in ("kernels", "ranges", "iterations"):
                    starts = trace[table]["start"]
                    assert not (starts[1:] < starts[:-1]).any()
        held = [
            {name: {k: v.copy() for k, v in t.columns.items()} for name, t in g.tables.items()} for g in generations
        ]
        made.end()
        last = following.poll()
        assert last is not None
        assert following.state == "recovered"
        assert_same(last, opened(made.path))
        assert following.poll() is None
        for generation, columns in zip(generations, held, strict=True):
            for name, table in generation.tables.items():
                for key, values in table.columns.items():
                    assert np.array_equal(values, columns[name][key]), (name, key)
        numbers = [generation.generation for generation in (*generations, last)]
        assert numbers == sorted(set(numbers))


def test_rows_are_shown_once_nothing_is_expected_before_them() -> None:
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        first = following.poll()
        assert first is not None
        assert first.info.details["state"] == "recording"
        assert following.poll() is None
        start(made, "one", 10)
        made.rows("one", "kernels", start=[BOOT, BOOT + 200 * MS], end=[BOOT + 1, BOOT + 201 * MS], stream=[0, 0])
        second = following.poll()
        assert second is not None
        assert second["kernels"]["start"].tolist() == [0]
        assert second.settled_ns == 201 * MS - following.lag_ns
        clock.now += 300 * MS
        third = following.poll()
        assert third is not None
        assert third["kernels"]["start"].tolist() == [0, 200 * MS]
        assert len(second["kernels"]) == 1
        assert third["kernels"].revision == second["kernels"].revision


def test_a_closed_recording_is_opened_as_such() -> None:
    from probes.compaction import compact

    with folder() as made:
        following = Following(made.path, Clock())
        start(made, "one", 10)
        made.rows("one", "kernels", start=[BOOT + 5], end=[BOOT + 9], stream=[1], name=[2])
        live = following.poll()
        assert live is not None
        for writer in made.writers.values():
            writer.close()
        made.writers = {}
        head = Header(format=1, state="recording", clock=[Anchor(BOOT, 10**18), Anchor(BOOT + 50, 10**18 + 50)])
        header.write(made.path, head)
        assert compact(made.path, head)
        last = following.poll()
        assert last is not None
        assert following.state == "complete"
        assert last.generation > live.generation
        assert last["kernels"]["start"].tolist() == [5]
        assert last.info.origin_ns == live.info.origin_ns == BOOT
        assert last.info.details.get("state") is None
        assert not last.quality.notes


def test_a_recording_that_goes_on_can_be_opened_without_following() -> None:
    with folder() as made:
        start(made, "one", 10)
        made.rows("one", "kernels", start=[BOOT + 5], end=[BOOT + 9], stream=[1], name=[2])
        trace = opened(made.path)
        assert trace["kernels"]["start"].tolist() == [5]
        assert trace.info.details["state"] == "recording"
        assert [note.code for note in trace.quality.notes] == ["absent"]


def test_late_rows_are_put_in_their_places() -> None:
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        start(made, "one", 10)
        starts: Array = BOOT + np.arange(1, 9) * 100 * MS
        made.rows("one", "kernels", start=starts, end=starts + MS, stream=[0] * 8)
        before = following.poll()
        made.rows("one", "kernels", start=[BOOT + 50 * MS], end=[BOOT + 60 * MS], stream=[0])
        after = following.poll()
        assert before is not None
        assert after is not None
        assert after["kernels"]["start"].tolist() == sorted([50 * MS, *before["kernels"]["start"].tolist()])
        assert after["kernels"].revision > before["kernels"].revision
        assert following.num_repairs == 1


def test_of_a_long_run_old_work_is_left_to_the_file() -> None:
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        start(made, "one", 10)
        second = 1000 * MS
        most = 0
        for begun in range(0, 400, 10):
            starts: Array = BOOT + np.arange(begun, begun + 10) * second
            made.rows("one", "kernels", start=starts, end=starts + MS, stream=[0] * 10, correlation=starts)
            made.rows("one", "host_calls", start=starts - MS, end=starts, thread=[0] * 10, correlation=starts)
            made.rows("one", "iterations", start=starts - MS, end=starts + MS, iteration=range(begun, begun + 10))
            clock.now = int(starts[-1])
            trace = following.poll()
            assert trace is not None
            most = max(most, len(trace["kernels"]))
            # What is at hand is whole: an index that was carried on is one that is made anew.
            for index in (Work, Links):
                again = Trace(trace.info, trace.tables, trace.names, trace.quality)
                assert_equal_index(trace.index(index), again.index(index))
        assert 60 <= len(trace["kernels"]) <= most <= 90 + 10
        assert trace["kernels"]["start"][-1] > 390 * second
        assert trace["kernels"]["end"].min() >= trace.kept.from_ns > 0
        assert len(trace["iterations"]) == len(trace["kernels"])
        number = trace["iterations"]["iteration"]
        assert number.tolist() == list(range(number[0], number[0] + len(number)))
        assert trace.whole == Window(trace.kept.from_ns, trace.end_ns)
        assert "all of it when the run has ended" in trace.info.details["at hand"]
        assert verdict(trace, 0).level == "trusted"
        made.let_go()
        last = following.poll()
        assert last is not None
        assert len(last["kernels"]) == len(last["iterations"]) == 400
        assert last.kept.from_ns == 0
        assert "at hand" not in last.info.details


def test_of_more_device_work_than_the_window_holds_the_newest_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "KEPT_ROWS", 100)
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        start(made, "one", 10)
        for begun in range(0, 1000, 50):
            starts: Array = BOOT + np.arange(begun, begun + 50) * MS
            made.rows("one", "kernels", start=starts, end=starts + MS, stream=[0] * 50)
            clock.now = int(starts[-1])
            trace = following.poll()
            assert trace is not None
            assert len(trace["kernels"]) <= 200
        assert 100 <= len(trace["kernels"]) <= 150
        made.let_go()
        last = following.poll()
        assert last is not None
        assert len(last["kernels"]) == 1000


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1000), stages=st.integers(1, 3), kept=st.integers(20, 200), step=st.integers(7, 60))
def test_what_stays_at_hand_of_an_engine_is_what_it_was(
    seed: int, stages: int, kept: int, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Iterations, steps, requests, texts and pages of the last while, against the same from all of the trace."""
    whole = engine_trace(Setup(seed, blocks=24, stages=stages, micro_batches=stages))
    work = [name for name in ("ranges", "kernels", "host_calls", "stage_work", "counters") if len(whole[name])]
    tables = ("pools", "requests", "iterations", "steps", "tokens", "page_events", *work)
    ends = whole["iterations"]["end"]
    known_at = {
        "pools": whole["pools"]["time"],
        "requests": whole["requests"]["arrival"],
        "iterations": ends,
        "steps": ends[whole["steps"]["iteration"]],
        "tokens": ends[whole["tokens"]["iteration"]],
        "page_events": whole["page_events"]["time"],
        **{name: np.maximum.accumulate(whole[name].get("end")) for name in work},
    }
    monkeypatch.setattr(follow, "KEPT_NS", kept * MS)
    with folder() as made:
        clock = Clock()
        following = Following(made.path, clock)
        start(made, "one", 10)
        made.texts("one", whole.names.texts)
        done = dict.fromkeys(tables, 0)
        trace = None
        for now in range(0, whole.end_ns + 2 * step * MS, step * MS):
            for table in tables:
                order = np.argsort(known_at[table], kind="stable")
                assert np.array_equal(order, np.arange(len(order)))
                upto = int(np.searchsorted(known_at[table], now, "right"))
                if upto > done[table]:
                    made.rows("one", table, **as_written(whole, table, slice(done[table], upto)))
                    done[table] = upto
            clock.now = BOOT + now
            trace = following.poll() or trace
            if trace is not None:
                assert_at_hand(trace, whole)
        assert trace is not None
        made.let_go()
        last = following.poll()
        assert last is not None
        assert [len(last[table]) for table in tables] == [len(whole[table]) for table in tables]


def as_written(whole: Trace, table: str, rows: slice) -> dict[str, Array]:
    """Columns as a producer writes them, whose texts begin after those of `start`."""
    columns = {}
    for name, values in whole[table].columns.items():
        column = SCHEMAS[table].column(name)
        found = values[rows]
        if column.may_be_never:
            found = np.where(found == NEVER, NEVER, found + BOOT)
        elif column.is_moment:
            found = found + BOOT
        if column.refers == "names":
            found = np.where(found >= 0, found + 5, -1)
        if column.refers == "processes":
            found = np.zeros(len(found), np.int32)
        elif column.refers in ("threads", "streams"):
            found = np.minimum(found, 1)
        columns[name] = found
    return columns


def assert_at_hand(trace: Trace, whole: Trace) -> None:
    since, settled = trace.kept.from_ns, trace.settled_ns
    number = trace["iterations"]["iteration"]
    expected = (whole["iterations"]["end"] >= since) & (whole["iterations"]["start"] < settled)
    wanted = whole["iterations"]["iteration"][expected].tolist()
    # The newest may not have been told of, since they are told at their end.
    assert number.tolist() == wanted[: len(number)]
    assert len(wanted) - len(number) <= 1 or since == 0
    ids = trace["requests"]["request"]
    left = whole["requests"]["finished"]
    stay = whole["requests"]["request"][((left == NEVER) | (left >= since)) & (whole["requests"]["arrival"] < settled)]
    assert set(stay.tolist()) <= set(ids.tolist())

    def told(of: Trace, table: str) -> list[tuple[int, ...]]:
        rows = of[table]
        number = np.append(of["iterations"]["iteration"], -1)[rows["iteration"]]
        request = np.append(of["requests"]["request"], -1)[rows["request"]]
        names = [name for name in ("phase", "tokens", "emitted", "position", "kind") if name in rows]
        found = zip(number.tolist(), request.tolist(), *(rows[name].tolist() for name in names), strict=True)
        return [row for row in found if row[0] in shown]

    shown = set(number.tolist())
    for table in ("steps", "tokens"):
        assert sorted(told(trace, table)) == sorted(told(whole, table))
    steps = [replace(each, runs=in_order(each.runs)) for each in (trace.index(Steps), Steps.build(trace))]
    assert_equal_index(*steps)
    for index in (Pipeline, PageLog, Replay, Categories, CallKinds):
        assert_equal_index(trace.index(index), index.build(trace))
    if len(trace["page_events"]):
        time = max(since, int(trace["page_events"]["time"][-1]))
        found, expected_pages = pages_at(trace, time), pages_at(whole, time)
        assert found.status.tolist() == expected_pages.status.tolist()
        assert found.refs.tolist() == expected_pages.refs.tolist()
        assert ids[found.owner[found.owner >= 0]].tolist() == (
            whole["requests"]["request"][expected_pages.owner[expected_pages.owner >= 0]].tolist()
        )


def in_order(runs: Runs) -> Runs:
    return runs.take(np.lexsort((runs.phase, runs.last, runs.first, runs.request)))


def assert_equal_index(found: object, expected: object) -> None:
    """Equal in every array, however deep."""
    if isinstance(found, np.ndarray):
        assert np.array_equal(found, np.asarray(expected))
    elif isinstance(found, tuple | list):
        assert isinstance(expected, tuple | list)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_equal_index(one, other)
    elif is_dataclass(found):
        for each in fields(found):
            assert_equal_index(getattr(found, each.name), getattr(expected, each.name))
