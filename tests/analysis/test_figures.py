"""Busy, gaps, causes and roll-ups against slow, obvious references that look at every nanosecond."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis import calls
from inspector.analysis.busy import busy
from inspector.analysis.causes import CAUSES, LATENCY_BOUND_NS, attribute
from inspector.analysis.gaps import Gaps
from inspector.analysis.iterations import union_by
from inspector.analysis.kernels import kernels
from inspector.analysis.launch import launches
from inspector.analysis.rollup import idle_by_cause, rollup
from inspector.trace.selection import Window
from inspector.trace.trace import Trace
from tests.analysis.generate import rows, traces

WORK = ("kernels", "memcpys", "memsets", "graphs")


def work_of(trace: Trace, device: int) -> list[dict[str, Any]]:
    """Work records of a device with their table, process and launch call, graph rows with nodes left out."""
    streams = rows(trace, "streams")
    threads = rows(trace, "threads")
    found = []
    nodes = {
        (streams[w["stream"]]["process"], w["correlation"])
        for table in ("kernels", "memcpys", "memsets")
        for w in rows(trace, table)
        if w.get("graph_node")
    }
    host = [{**call, "row": at} for at, call in enumerate(rows(trace, "host_calls"))]
    for table in WORK:
        for record in rows(trace, table):
            stream = streams[record["stream"]]
            key = (stream["process"], record["correlation"])
            if stream["device"] != device or (table == "graphs" and key in nodes):
                continue
            linked = [
                call
                for call in host
                if record["correlation"] > 0 and (threads[call["thread"]]["process"], call["correlation"]) == key
            ]
            launch = min(linked, key=lambda call: (call["start"], -call["end"]), default=None)
            found.append({**record, "table": table, "process": stream["process"], "launch": launch})
    return sorted(found, key=lambda record: record["start"])


def busy_moments(work: list[dict[str, Any]]) -> set[int]:
    return {t for record in work for t in range(record["start"], record["end"])}


@settings(max_examples=120, deadline=None)
@given(traces(), st.integers(-10, 400), st.integers(0, 400))
def test_busy_idle_and_gaps_are_exact(trace: Trace, low: int, length: int) -> None:
    for device in range(len(trace["devices"])):
        work = work_of(trace, device)
        moments = busy_moments(work)
        for window in (None, Window(low, low + length)):
            figures = busy(trace, device, window)
            start = min((r["start"] for r in work), default=0)
            end = max((r["end"] for r in work), default=0)
            if window is not None:
                start, end = max(start, window.start), min(end, window.end)
            span = range(start, max(start, end))
            inside = [t in moments for t in span]
            assert figures.busy_ns == sum(inside)
            assert figures.idle_ns == len(span) - sum(inside)
            # Work without a duration parts a gap in two.
            parts = {r["start"] for r in work if r["start"] == r["end"]}
            assert figures.gaps == sum(
                not now and (at == 0 or inside[at - 1] or t in parts)
                for at, (t, now) in enumerate(zip(span, inside, strict=True))
            )
            assert sum(idle_by_cause(trace, device, window).values()) == figures.idle_ns
        assert busy(trace, device).work == len(work)
        gaps = trace.index(Gaps).devices[device]
        assert int((gaps.end - gaps.start).sum()) == busy(trace, device).idle_ns


def waits_for_requests(trace: Trace, thread: int, t: int) -> bool:
    """Whether a thread waits for requests at one moment: it blocks in the call, or stays in it for 1 ms."""
    os_calls = [c for c in rows(trace, "os_calls") if c["thread"] == thread]
    return any(
        wait["end"] - wait["start"] >= 1_000_000
        if not os_calls
        else any(
            calls.is_blocking(trace.names[c["name"]]) and wait["start"] <= c["start"] < wait["end"] for c in os_calls
        )
        for wait in rows(trace, "ranges")
        if wait["thread"] == thread
        and trace.names[wait["name"]] == "_fetch_new_requests"
        and wait["start"] <= t < wait["end"]
    )


def states(trace: Trace, thread: int, t: int) -> tuple[str, str]:
    """(cause, name) of the host's at one moment, by the definition."""
    texts = trace.names.texts
    pageable = set()
    for copy, record in enumerate(rows(trace, "memcpys")):
        if record.get("pageable") and texts[record["name"]] == "Memcpy DtoH":
            pageable.add(copy)
    covering = [c for c in rows(trace, "host_calls") if c["thread"] == thread and c["start"] <= t < c["end"]]
    kinds = trace.index(calls.CallKinds).of_row
    every = rows(trace, "host_calls")
    os_calls = [c for c in rows(trace, "os_calls") if c["thread"] == thread]
    ranges = [r for r in rows(trace, "ranges") if r["thread"] == thread]
    inside = [r for r in ranges if r["start"] <= t < r["end"]]
    if waits_for_requests(trace, thread, t):
        return "no requests", "_fetch_new_requests"
    if any(texts[r["name"]] == "recv_sample_state" for r in inside):
        fetching = {r["thread"] for r in rows(trace, "ranges") if texts[r["name"]] == "_fetch_new_requests"}
        if len(fetching) == 1 and waits_for_requests(trace, fetching.pop(), t):
            return "no requests", "_fetch_new_requests"
        return "waiting for a peer", "recv_sample_state"
    for kind in (calls.SYNC, calls.ALLOCATION, calls.MODULE, calls.LAUNCHING):
        if any(kinds[at] == kind and c in covering for at, c in enumerate(every)):
            return calls.CALL_KINDS[kind], ""
    if any(calls.is_blocking(texts[c["name"]]) and c["start"] <= t < c["end"] for c in os_calls):
        return "os blocked", ""
    if any(calls.is_gc(texts[r["name"]]) for r in inside):
        return "gc", ""
    latest = max((r["start"] for r in inside), default=None)
    names = {texts[r["name"]] for r in inside if r["start"] == latest}
    return "host code", "|".join(sorted(names))


@settings(max_examples=120, deadline=None)
@given(traces(), st.sampled_from([5, 40, LATENCY_BOUND_NS]))
def test_every_idle_nanosecond_has_the_cause_of_the_definition(trace: Trace, bound: int) -> None:
    for device in range(len(trace["devices"])):
        work = work_of(trace, device)
        gaps = trace.index(Gaps).devices[device]
        slices = attribute(trace, device, bound)
        assert (slices.end > slices.start).all()
        for gap in range(len(gaps)):
            g0, g1 = int(gaps.start[gap]), int(gaps.end[gap])
            mine = np.flatnonzero(slices.gap == gap)
            edges = [g0, *slices.end[mine].tolist()]
            assert slices.start[mine].tolist() == edges[:-1], "slices tile the gap"
            assert edges[-1] == g1
            starting = [r for r in work if r["start"] == g1]
            ending = [r for r in work if r["end"] == g0]
            assert starting
            assert ending
            never = -(2**62)
            newest = max(r["launch"]["start"] if r["launch"] else never for r in starting)
            following = [r for r in starting if (r["launch"]["start"] if r["launch"] else never) == newest]
            if (
                len(
                    {
                        (id(r["launch"]) if r["launch"] else 0, r["correlation"], bool(r.get("graph_node")))
                        for r in following
                    }
                )
                > 1
            ):
                continue  # launched at the same time by different calls: any of them may be named
            after = following[0]
            allowed = set()
            for at in mine.tolist():
                cause = CAUSES[slices.cause[at]]
                for before in ending:
                    if (
                        before.get("graph_node")
                        and after.get("graph_node")
                        and (before["process"], before["correlation"]) == (after["process"], after["correlation"])
                    ):
                        allowed.add("graph internal")
                if after["launch"] is None:
                    assert cause in allowed | {"unattributed"}
                    continue
                l0, l1 = after["launch"]["start"], after["launch"]["end"]
                h = min(max(l0, g0), g1)
                for t in range(int(slices.start[at]), int(slices.end[at])):
                    if cause == "graph internal":
                        assert "graph internal" in allowed
                    elif t < h:
                        expected, host = states(trace, after["launch"]["thread"], t)
                        assert cause == expected
                        if expected in ("host code", "waiting for a peer"):
                            shown = trace.names[int(slices.host[at])]
                            assert shown in host.split("|")
                    elif g1 <= l1 + bound or t < l1:
                        assert cause == "launch overhead"
                    else:
                        assert CAUSES.index(cause) > CAUSES.index("graph internal")
                        assert cause != "unattributed"


@settings(max_examples=60, deadline=None)
@given(traces(), st.sampled_from(["cause", "host", "kernel", "iteration", "class"]), st.integers(0, 50), st.booleans())
def test_each_rollup_sums_to_all_idle(trace: Trace, by: Any, min_ns: int, cut: bool) -> None:
    window = Window(40, 200) if cut else None
    for device in range(len(trace["devices"])):
        found, shorter = rollup(trace, device, by, window, min_ns)
        idle = busy(trace, device, window).idle_ns
        assert sum(row.total_ns for row in found) + shorter.total_ns == idle
        assert all(row.longest_ns <= row.total_ns and row.gaps > 0 for row in found)


@settings(max_examples=60, deadline=None)
@given(traces())
def test_kernel_statistics(trace: Trace) -> None:
    expected: dict[str, list[int]] = {}
    for device in range(len(trace["devices"])):
        for record in work_of(trace, device):
            expected.setdefault(trace.names[record["name"]], []).append(record["end"] - record["start"])
    found = {row.name: row for row in kernels(trace)}
    assert found.keys() == expected.keys()
    for name, lengths in expected.items():
        lengths.sort()
        row = found[name]
        assert (row.count, row.total_ns, row.min_ns, row.max_ns) == (
            len(lengths),
            sum(lengths),
            lengths[0],
            lengths[-1],
        )
        assert row.median_ns == next(x for x in lengths if sum(y <= x for y in lengths) * 2 >= len(lengths))
        assert row.p99_ns == next(x for x in lengths if sum(y <= x for y in lengths) * 100 >= 99 * len(lengths))
    by_category = kernels(trace, "category")
    assert sum(row.total_ns for row in by_category) == sum(map(sum, expected.values()))


@settings(max_examples=60, deadline=None)
@given(traces())
def test_launch_path(trace: Trace) -> None:
    for device in range(len(trace["devices"])):
        found = launches(trace, device)
        linked = [r for r in work_of(trace, device) if r["launch"]]
        used = {r["launch"]["row"]: r["launch"] for r in linked}
        assert found.calls == len(used)
        assert found.call_ns == sum(call["end"] - call["start"] for call in used.values())
        depth = max(
            (sum(r["launch"]["end"] <= t < r["start"] for r in linked) for t in {r["launch"]["end"] for r in linked}),
            default=0,
        )
        assert found.max_depth == depth


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 20)), max_size=20))
def test_union_by_key(items: list[tuple[int, int, int]]) -> None:
    keys, start, length = (np.array([item[n] for item in items], np.int64) for n in range(3))
    moments = Counter(key for key, _ in {(k, t) for k, s, n in items for t in range(s, s + n)})
    assert union_by(keys, start, start + length, 4).tolist() == [moments[key] for key in range(4)]
