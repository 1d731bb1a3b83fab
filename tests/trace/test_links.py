from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.trace.links import Links
from inspector.trace.names import Names
from inspector.trace.quality import Quality
from inspector.trace.schema import SCHEMAS, WORK_TABLES
from inspector.trace.table import Table
from inspector.trace.trace import Trace, TraceInfo
from inspector.trace.work import Work
from tests.analysis.generate import rows, traces
from tests.drawn import draw

# Dense ids, ids too far apart for a table, and the ends of int64.
IDS = (0, 1, 2, 3, 1 << 33, 1 << 41, (1 << 63) - 1, -1, -(1 << 63))


def naive(trace: Trace, table: str) -> list[int]:
    """The first call of the same process and id, the longest where several start first; -1 none."""
    streams, threads, calls = rows(trace, "streams"), rows(trace, "threads"), rows(trace, "host_calls")
    found = []
    for work in rows(trace, table):
        mine = [
            (call["start"], -call["end"], row)
            for row, call in enumerate(calls)
            if work["correlation"] > 0
            and call["correlation"] == work["correlation"]
            and call["thread"] >= 0
            and work["stream"] >= 0
            and threads[call["thread"]]["process"] == streams[work["stream"]]["process"] >= 0
        ]
        found.append(min(mine)[2] if mine else -1)
    return found


@given(traces())
def test_of_readers(trace: Trace) -> None:
    links = trace.index(Links).launch
    for table in WORK_TABLES:
        assert links[table].dtype == np.int32
        assert links[table].tolist() == naive(trace, table)


@st.composite
def odd(draw: st.DrawFn) -> Trace:
    """Three processes with one thread and stream each, unknown ones among the rows, and ids from IDS."""
    calls, work = draw(st.integers(0, 8)), draw(st.integers(0, 8))

    def some(values: Any, count: int) -> list[int]:
        return [draw(values) for _ in range(count)]

    def table(name: str, /, **columns: list[int]) -> Table:
        return Table(name, {k: np.array(v, SCHEMAS[name].column(k).dtype) for k, v in columns.items()})

    ids, owner = st.sampled_from(IDS), st.integers(-1, 2)
    starts = sorted(some(st.integers(0, 5), calls))
    tables = {
        "threads": table("threads", process=[0, 1, 2], tid=[1, 1, 1], name=[-1] * 3),
        "streams": table("streams", process=[2, 1, 0], device=[0] * 3, number=[7] * 3, name=[-1] * 3),
        "host_calls": table(
            "host_calls",
            start=starts,
            end=[start + draw(st.integers(0, 5)) for start in starts],
            thread=some(owner, calls),
            name=[-1] * calls,
            correlation=some(ids, calls),
        ),
        "memcpys": table(
            "memcpys",
            start=list(range(work)),
            end=list(range(work)),
            stream=some(owner, work),
            name=[-1] * work,
            correlation=some(ids, work),
            bytes=[0] * work,
        ),
    }
    return Trace(TraceInfo(("odd",), "test"), tables, Names(), Quality())


@pytest.mark.parametrize("small", [1 << 20, 0], ids=["table", "list"])
def test_of_any_ids(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.trace.links._SMALL", small)

    @given(odd())
    def holds(trace: Trace) -> None:
        assert trace.index(Links).launch["memcpys"].tolist() == naive(trace, "memcpys")

    holds()


def test_the_runtime_call_is_the_launch_not_the_driver_call_in_it() -> None:
    trace = draw(
        """
        gpu 0 stream 7      .....A..B
        thread 1 launches   AAA.BBB..
        """,
    ).trace
    table = trace["host_calls"]
    inner = {name: np.r_[values, values] for name, values in table.columns.items()}
    inner["start"][2] += 0  # begins at the same moment
    inner["start"][3] += 1
    inner["end"][2:] -= 1
    order = np.argsort(inner["start"], kind="stable")[[1, 0, 2, 3]]
    both = Table("host_calls", {name: values[order] for name, values in inner.items()})
    found = Trace(trace.info, {**trace.tables, "host_calls": both}, trace.names, trace.quality)
    launch = found.index(Links).launch["kernels"]
    assert (both["end"] - both["start"])[launch].tolist() == [3_000, 3_000]
    assert [(name, rows.tolist()) for name, rows in found.index(Links).started_by(found, int(launch[1]))] == [
        ("kernels", [1])
    ]


def test_the_same_id_in_two_processes_is_two_launches() -> None:
    trace = draw("""
        gpu 0 stream 7                ...A.
        gpu 0 process 2 stream 7      ....B
        thread 1 process 2 calls      .L...
        thread 1 calls                ..L..
    """).trace
    assert trace["host_calls"]["correlation"].tolist() == [1, 1]
    assert trace["host_calls"]["start"][trace.index(Links).launch["kernels"]].tolist() == [1_000, 0]


@given(traces())
def test_work_of_each_device(trace: Trace) -> None:
    streams = rows(trace, "streams")
    nodes = {
        (streams[work["stream"]]["process"], work["correlation"])
        for table in ("kernels", "memcpys", "memsets")
        for work in rows(trace, table)
        if work.get("graph_node")
    }
    found = trace.index(Work)
    seen = 0
    for device, work in enumerate(found.devices):
        wanted = [
            (record["start"], code, row)
            for code, table in enumerate(WORK_TABLES)
            for row, record in enumerate(rows(trace, table))
            if streams[record["stream"]]["device"] == device
            and not (table == "graphs" and (streams[record["stream"]]["process"], record["correlation"]) in nodes)
        ]
        assert list(zip(work.start.tolist(), work.table.tolist(), work.row.tolist(), strict=True)) == sorted(wanted)
        for end, table, row, stream in zip(work.end, work.table, work.row, work.stream, strict=True):
            record = trace[WORK_TABLES[table]]
            assert (end, stream) == (record["end"][row], record["stream"][row])
        seen += len(work)
    assert seen == sum(int(counted.sum()) for counted in found.counted.values())


def test_work_on_an_unknown_stream_is_of_no_device() -> None:
    drawn = draw("gpu 0 stream 7   AB", unlinked="AB").trace
    columns = dict(drawn["kernels"].columns) | {"stream": np.array([-1, 0], np.int32)}
    trace = Trace(drawn.info, {**drawn.tables, "kernels": Table("kernels", columns)}, drawn.names, drawn.quality)
    assert trace.index(Work).devices[0].row.tolist() == [1]
