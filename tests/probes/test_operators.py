from __future__ import annotations

import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inspector.trace.engine_tables import PROBE_STATES
from inspector.trace.ring import Ring
from inspector.trace.schema import RANGE_KINDS
from probes.inprocess import operators, torch_slices
from probes.inprocess.columns import LAYOUTS
from probes.inprocess.native_operators import Build, NativeOperators
from probes.inprocess.operators import OURS, SLICE_EVERY, WHILE_BUILT_EVERY, Operators
from probes.inprocess.producer import ENVIRONMENT, from_environment
from probes.inprocess.torch_slices import Call, Operator, Slice, TorchSlices, Work

PLENTY = 10**9


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: dict[str, list[tuple[Any, ...]]] = {}
        self.devices: list[tuple[int, str, int]] = []

    def name(self, text: str) -> int:
        self.names.append(text)
        return len(self.names) - 1

    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self.rows.setdefault(table, []).extend(rows)

    def add_packed(self, table: str, rows: int, data: bytes) -> None:
        packer = struct.Struct("<" + "".join(code for _, code in LAYOUTS[table]))
        assert len(data) == rows * packer.size
        self.add(table, list(packer.iter_unpack(data)))

    def device(self, number: int, name: str, memory: int = -1) -> None:
        self.devices.append((number, name, memory))

    def ranges(self) -> list[tuple[int, int, int, str, str, str]]:
        return [
            (start, end, thread, self.names[name], RANGE_KINDS[kind], self.names[domain])
            for start, end, thread, name, kind, domain in self.rows.get("ranges", [])
        ]


def work() -> None:
    with torch.no_grad():
        torch.nn.functional.linear(torch.ones(3, 4), torch.ones(5, 4)).softmax(-1).sum()


def captured(run: Operators, function: Callable[[], None]) -> tuple[int, int]:
    run.iteration_begin()
    before = time.monotonic_ns()
    function()
    after = time.monotonic_ns()
    run.iteration_end()
    return before, after


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    build = Build(folder)
    if build.reason.startswith("there is no C++ compiler"):
        pytest.skip(build.reason)
    until = time.monotonic() + 300
    while not build.ready() and not build.reason and time.monotonic() < until:
        threading.Event().wait(0.05)
    assert build.ready(), build.reason
    assert [path.name for path in folder.iterdir()] == [build.library.name]
    return build.library


@pytest.fixture
def native(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Operators]:
    cache = tmp_path / "inflight-inspector"
    cache.mkdir(mode=0o700)
    (cache / library.name).write_bytes(library.read_bytes())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return lambda sink, per_minute=PLENTY, burst=PLENTY: operators.start(sink, "native", per_minute, burst)


def names_by_profiler() -> Counter[str]:
    slices = TorchSlices()
    slices.begin()
    work()
    return Counter(operator.name for operator in slices.end().operators)


def test_the_native_capture_sees_what_the_profiler_sees(native: Callable[..., Operators]) -> None:
    sink = Kept()
    run = native(sink)
    before, after = captured(run, work)
    rows = sink.ranges()
    assert Counter(name for _, _, _, name, _, _ in rows) == names_by_profiler()
    for start, end, thread, _, kind, domain in rows:
        assert before <= start <= end <= after
        assert (thread, kind, domain) == (threading.get_native_id(), "operator", "operators")
    spans = sorted((start, -end) for start, end, *_ in rows)
    open_ends: list[int] = []
    for start, minus_end in spans:
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        assert not open_ends or -minus_end <= open_ends[-1], "operators nest"
        open_ends.append(-minus_end)
    assert run.status.state == "running"
    assert (run.status.records, run.status.lost) == (len(rows), 0)


def test_what_it_hands_over_is_what_a_ring_takes(
    native: Callable[..., Operators], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    producer = from_environment("engine")
    assert producer is not None
    run = native(producer)
    before, after = captured(run, work)
    run.stop()
    slices = operators.start(producer, "sampled", PLENTY, PLENTY)
    for _ in range(SLICE_EVERY):
        captured(slices, work)
    producer.close()
    taken = Ring(next(tmp_path.glob("engine-*.ring"))).take()
    names, rows = dict(taken.names), taken.tables["ranges"]
    by_callback = rows[rows["end"] <= after]
    assert Counter(names[name] for name in by_callback["name"].tolist()) == names_by_profiler()
    assert (by_callback["start"] >= before).all()
    assert {names[domain] for domain in rows["domain"].tolist()} == {"operators", "sampled 1/30", "probe"}
    assert set(rows["thread"].tolist()) == {threading.get_native_id()}
    told = [names[name] for name in taken.tables["probes"]["name"].tolist()]
    assert told.count("operators") >= 2
    assert producer.lost == 0


def test_nothing_is_seen_between_two_iterations_or_in_other_threads(native: Callable[..., Operators]) -> None:
    sink = Kept()
    run = native(sink)
    work()
    thread = threading.Thread(target=work)
    run.iteration_begin()
    thread.start()
    thread.join()
    run.iteration_end()
    assert sink.ranges() == []
    captured(run, work)
    once = len(sink.ranges())
    work()
    captured(run, work)
    assert len(sink.ranges()) == 2 * once > 0


def test_an_iteration_that_was_left_by_an_exception_does_not_spoil_the_next(native: Callable[..., Operators]) -> None:
    sink = Kept()
    run = native(sink)
    run.iteration_begin()
    with pytest.raises(RuntimeError):
        torch.ones(2) @ torch.ones(3)
    captured(run, work)
    names = [row[3] for row in sink.ranges()]
    assert Counter(names) - names_by_profiler(), "what ended before the exception is kept"
    assert Counter(names[-names_by_profiler().total() :]) == names_by_profiler()
    assert run.status.state == "running"


def test_more_operators_than_there_is_room_for_are_counted(library: Path) -> None:
    native = NativeOperators(library)
    assert native.record_ns < 100_000
    x = torch.zeros(1)
    native.begin()
    x.add_(1)
    each = native.end()
    before = native.lost
    native.begin()
    for _ in range(1 << 16):
        x.add_(1)
    assert native.end() == 1 << 16
    assert native.lost - before == (each - 1) << 16
    native.begin()
    x.add_(1)
    assert native.end() == each > 1


def test_a_budget_makes_it_one_whole_iteration_in_n(native: Callable[..., Operators]) -> None:
    each = names_by_profiler().total()
    sink = Kept()
    run = native(sink, 0, 3 * each)
    for _ in range(20):
        captured(run, work)
    assert Counter(row[5] for row in sink.ranges()) == {"operators": 3 * each}
    assert run.status.records == 3 * each
    assert f"at most 0 records a minute after {3 * each:,}" in run.status.message


def test_slices_take_one_whole_iteration_in_thirty_and_say_so() -> None:
    sink = Kept()
    run = operators.start(sink, "sampled", PLENTY, PLENTY)
    expected = names_by_profiler()
    spans = [captured(run, work) for _ in range(2 * SLICE_EVERY + 5)]
    ours = [row for row in sink.ranges() if row[3] == OURS]
    rows = [row for row in sink.ranges() if row[3] != OURS]
    assert {row[2:] for row in ours} == {(threading.get_native_id(), OURS, "annotation", "probe")}
    assert run.status.records == len(rows)
    for at, (starting, reading) in ((SLICE_EVERY - 1, ours[:2]), (2 * SLICE_EVERY - 1, ours[2:])):
        assert spans[at - 1][1] <= starting[0] <= starting[1] <= spans[at][0]
        assert spans[at][1] <= reading[0] <= reading[1] <= spans[at + 1][0]
    assert Counter(row[3] for row in rows) == expected + expected
    assert {row[4:] for row in rows} == {("operator", f"sampled 1/{SLICE_EVERY}")}
    assert {row[2] for row in rows} == {threading.get_native_id()}
    for at, part in ((SLICE_EVERY - 1, rows[: len(rows) // 2]), (2 * SLICE_EVERY - 1, rows[len(rows) // 2 :])):
        before, after = spans[at]
        # Two clocks are laid over each other: a part of a millisecond may be between them.
        assert all(before - 300_000 <= start <= end <= after + 300_000 for start, end, *_ in part)
    assert run.status.state == "sampling"
    assert "torch.profiler: one iteration in 30" in run.status.message
    run.stop()
    assert run.status.state == "off"


def test_while_the_library_is_built_slices_stand_in(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, compiler = tmp_path / "gate", tmp_path / "compiler"
    # Copies a finished library as soon as it is let go.
    compiler.write_text(
        f"#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep 0.05; done\n"
        f'while [ "$1" != -o ]; do shift; done\ncp {library} "$2"\n'
    )
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sink = Kept()
    run = operators.start(sink, "native", PLENTY, PLENTY)
    assert run.status.state == "sampling"
    assert "being built" in run.status.message
    for _ in range(WHILE_BUILT_EVERY):
        captured(run, work)
    assert {row[5] for row in sink.ranges() if row[3] != OURS} == {f"sampled 1/{WHILE_BUILT_EVERY}"}
    gate.touch()
    until = time.monotonic() + 60
    while not run.status.message.startswith("native") and time.monotonic() < until:
        captured(run, work)
    captured(run, work)
    assert run.status.state == "running"
    assert sink.ranges()[-1][5] == "operators"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'x.cpp:1: error: no such thing'; exit 1", "the C++ compiler failed: x.cpp:1: error: no such thing"),
        ("exit 3", "the C++ compiler failed: exit code 3"),
    ],
)
def test_a_failed_build_is_a_reason_and_slices_go_on(
    script: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = operators.start(Kept(), "native")
    until = time.monotonic() + 60
    while reason not in run.status.message and time.monotonic() < until:
        captured(run, work)
    assert run.status.state == "sampling"
    assert f"no native capture: {reason}" in run.status.message
    assert list((tmp_path / "inflight-inspector").iterdir()) == []


def test_no_compiler_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert Build(tmp_path / "cache").reason == "there is no C++ compiler (c++, g++ or clang++)"


def test_nothing_is_loaded_from_where_others_can_write(library: Path) -> None:
    library.parent.chmod(0o777)
    try:
        build = Build(library.parent)
        assert not build.ready()
        assert "can be written by others" in build.reason
    finally:
        library.parent.chmod(0o700)


def test_a_cache_that_cannot_be_made_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    build = Build(tmp_path / "file" / "cache")
    assert not build.ready()
    assert build.reason.startswith("cannot build it: ")


def test_stopping_ends_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\nexec sleep 600\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("CXX", str(compiler))
    build = Build(tmp_path / "cache")
    assert not build.ready()
    build.close()
    assert not build.ready()
    assert list((tmp_path / "cache").iterdir()) == []


class Broken(Kept):
    """A sink that fails when it is given operators."""

    def add(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if table == "ranges":
            raise ValueError("the ring is gone")
        super().add(table, rows)


def test_a_capture_that_fails_leaves_the_workload_alone(native: Callable[..., Operators]) -> None:
    sink = Broken()
    run = native(sink)
    for _ in range(3):
        captured(run, work)
    run.stop()
    assert (run.status.state, run.status.message) == ("failed", "ValueError: the ring is gone")
    state, message = (sink.rows["probes"][-1][at] for at in (2, 6))
    assert (PROBE_STATES[state], sink.names[message]) == ("failed", "ValueError: the ring is gone")


def test_the_profiler_of_somebody_else_is_left_alone() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as other:
        run = operators.start(Kept(), "sampled")
        captured(run, work)
    assert (run.status.state, run.status.message) == ("failed", "RuntimeError: another profiler is at work")
    assert {"aten::mm", "aten::_softmax"} <= {event.name for event in other.events()}


def test_what_it_says_of_itself_is_in_the_probes_table(native: Callable[..., Operators]) -> None:
    sink = Kept()
    run = native(sink)
    captured(run, work)
    run.stop()
    when, name, state, records, lost, cost, message = sink.rows["probes"][0]
    assert sink.names[name] == "operators"
    assert PROBE_STATES[state] == "running"
    assert (records, lost) == (len(sink.ranges()), 0)
    assert 0 < cost < 60 * 10**9
    assert sink.names[message].startswith("native: one iteration in 1; at most 1,000,000,000 records a minute")
    assert when <= time.monotonic_ns()
    assert PROBE_STATES[sink.rows["probes"][-1][2]] == "off"


def test_nothing_asked_nothing_done() -> None:
    sink = Kept()
    run = operators.start(sink, "none")
    captured(run, work)
    assert sink.rows == {}
    assert run.status.state == "off"


def event(kind: str, name: str, **more: int) -> SimpleNamespace:
    """An event as torch's Kineto binding gives it: everything is a method."""
    values = {"start_ns": 1_000_500, "end_ns": 1_000_900, "device_index": 0, "device_resource_id": 7, "nbytes": 0}
    values |= {"correlation_id": 0, **more}
    methods = {key: lambda value=value: value for key, value in values.items()}
    return SimpleNamespace(activity_type=lambda: kind, name=lambda: name, **methods)


def test_device_events_become_work_and_calls() -> None:
    found = torch_slices.read(
        [
            event("cpu_op", "aten::mm"),
            event("cuda_runtime", "cudaLaunchKernel", correlation_id=5),
            event("kernel", "gemm", correlation_id=5, device_index=1, start_ns=1_000_700),
            event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", correlation_id=6, nbytes=64),
            event("gpu_memset", "Memset (Device)", correlation_id=8, nbytes=32),
            event("overhead", "Command Buffer Full"),
        ],
        1_000_000,
    )
    assert found == Slice(
        [Operator(500, 900, 7, "aten::mm")],
        [Call(500, 900, 7, "cudaLaunchKernel", 5)],
        [
            Work("kernels", 700, 900, 1, 7, "gemm", 5, -1),
            Work("memcpys", 500, 900, 0, 7, "Memcpy HtoD (Pinned -> Device)", 6, 64),
            Work("memsets", 500, 900, 0, 7, "Memset (Device)", 8, 32),
        ],
        0,
    )


def test_a_wall_clock_that_was_set_loses_the_slice_and_counts_it(monkeypatch: pytest.MonkeyPatch) -> None:
    slices = TorchSlices()
    readings = iter([10**18, 10**18 + 5_000_000])
    with monkeypatch.context() as patch:
        patch.setattr(torch_slices, "_wall_ahead_of_monotonic", lambda: next(readings))
        slices.begin()
        work()
        found = slices.end()
    assert found.operators == []
    assert found.lost >= names_by_profiler().total()


def test_the_guest_needs_nothing_but_the_standard_library_until_it_is_asked() -> None:
    code = "import sys, probes.inprocess.operators as o; o.start(None, 'none'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
