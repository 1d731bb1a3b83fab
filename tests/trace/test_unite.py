"""A recording and a profile of one run, laid together: what both know is there once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given

from inspector.trace.builder import Builder
from inspector.trace.merge import merge
from inspector.trace.schema import SCHEMAS
from inspector.trace.table import Table
from inspector.trace.trace import Trace, TraceInfo
from inspector.trace.unite import runs
from tests.analysis.generate import traces
from tests.trace.test_merge import assert_sorted, contents

OF_A_PROFILE = (
    "streams",
    "kernels",
    "memcpys",
    "memsets",
    "graphs",
    "host_calls",
    "syncs",
    "event_waits",
    "event_records",
)
SHARED = ("devices", "processes", "threads")


def trace(
    kind: str, pids: Sequence[int], epoch: int | None = 0, device: str = "NVIDIA H200", length: int = 100
) -> Trace:
    """A device, and a process with a thread and a range for each of `pids`."""
    builder = Builder()
    builder.device(0, device, memory=5 if kind == "recording" else -1)
    for pid in pids:
        thread = builder.thread(builder.process(pid, "" if kind == "recording" else f"of {kind}"), pid + 1)
        name = builder.names.add(f"{kind} {pid}")
        columns = {column.name: [column.unknown] for column in SCHEMAS["ranges"].columns if not column.optional}
        builder.add("ranges", **{**columns, "start": [0], "end": [100], "thread": [thread], "name": [name]})
    return builder.build(TraceInfo((kind,), kind, start_epoch_ns=epoch))


def part(whole: Trace, kind: str, tables: Sequence[str]) -> Trace:
    info = replace(whole.info, kind=kind, start_epoch_ns=0, duration_ns=max(whole.info.duration_ns, 1))
    return Trace(
        info, {name: whole.tables[name] for name in tables if name in whole.tables}, whole.names, whole.quality
    )


@given(traces())
def test_a_run_that_was_taken_apart_is_whole_again(whole: Trace) -> None:
    rest = [name for name in whole.tables if name not in OF_A_PROFILE]
    recording = part(whole, "recording", rest)
    profile = part(whole, "nsys-sqlite", (*SHARED, *OF_A_PROFILE))
    found = merge([recording, profile])
    assert sorted(contents(found, 0)) == sorted(contents(whole, 0))
    assert found["devices"]["number"].tolist() == whole["devices"]["number"].tolist()
    assert_sorted(found)


def test_threads_processes_and_devices_are_one_and_what_both_know_is_kept() -> None:
    found = merge([trace("recording", [7, 9]), trace("nsys-sqlite", [9, 8])])
    assert sorted(found["processes"]["pid"].tolist()) == [7, 8, 9]
    assert len(found["threads"]) == 3
    assert len(found["devices"]) == 1
    assert found["devices"].get("memory").tolist() == [5]
    row = found["processes"]["pid"].tolist().index(9)
    assert found.names[int(found["processes"]["name"][row])] == "of nsys-sqlite"
    texts = {
        found.names[int(name)]: int(found["processes"]["pid"][found["threads"]["process"][thread]])
        for name, thread in zip(found["ranges"]["name"], found["ranges"]["thread"], strict=True)
    }
    assert texts == {"recording 7": 7, "recording 9": 9, "nsys-sqlite 9": 9, "nsys-sqlite 8": 8}
    assert found.quality.count("assumed") == 1


def test_what_is_not_of_one_run_stays_apart() -> None:
    recording = trace("recording", [7])
    for other in (
        trace("recording", [7]),
        trace("nsys-sqlite", [8]),
        trace("nsys-sqlite", [7], epoch=101),
        trace("nsys-sqlite", [7], epoch=None),
    ):
        assert len(merge([recording, other])["processes"]) == 2
        assert merge([recording, other])["devices"]["number"].tolist() == [0, 1]
    assert len(merge([trace("kineto", [7]), trace("nsys-sqlite", [7])])["processes"]) == 2
    assert len(merge([recording, trace("nsys-sqlite", [7], epoch=100)])["processes"]) == 1


def test_a_processor_that_stands_for_a_device_is_no_gpu() -> None:
    found = merge([trace("recording", [7], device="CPU stage 0"), trace("nsys-sqlite", [7])])
    assert found["devices"]["number"].tolist() == [0, 1]
    assert len(found["processes"]) == 1


def test_every_profile_goes_to_its_recording() -> None:
    kinds = [("recording", 1), ("nsys-sqlite", 2), ("recording", 2), ("nsys-sqlite", 1), ("kineto", 2), ("kineto", 3)]
    assert runs([trace(kind, [pid]) for kind, pid in kinds]) == [0, 2, 2, 0, 2, 5]
    found = merge([trace(kind, [pid]) for kind, pid in kinds])
    # Both recordings and the last profile saw a GPU 0 of their own.
    assert found["devices"]["number"].tolist() == [0, 1, 2]
    assert np.unique(found["processes"]["pid"]).tolist() == sorted(found["processes"]["pid"].tolist())


def test_tables_that_are_not_there() -> None:
    full = trace("nsys-sqlite", [7])
    bare = Trace(full.info, {"processes": full["processes"]}, full.names, full.quality)
    assert len(merge([trace("recording", [7]), bare])["processes"]) == 1
    assert isinstance(merge([trace("recording", [7]), bare])["threads"], Table)
