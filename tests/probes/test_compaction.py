from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest

import inspector
from inspector.trace import header, lock, save
from inspector.trace.trace import Trace
from probes import compaction
from probes.compaction import compact
from probes.inprocess.producer import Producer
from probes.recording import Recording
from tests.probes.test_streams import say


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    """A recording of two producers, whose streams are complete and whose workloads have ended."""
    made = Recording(tmp_path / "a.inflight", ["toy"], {"rings": {}})
    for role in ("one", "two"):
        producer = Producer(str(made.path), role, 1 << 20)
        for number in range(20):
            say(producer, number)
            if number % 7 == 0:
                made.drain()
        producer.close()
    made.finish()
    return made


def rows(trace: Trace) -> dict[str, dict[str, list[object]]]:
    return {
        name: {key: values.tolist() for key, values in table.columns.items()}
        for name, table in trace.tables.items()
        if len(table)
    }


def test_a_compacted_recording_is_what_its_streams_were(recording: Recording) -> None:
    (recording.path / compaction.OUTPUT).write_text("what the workload printed")
    before = inspector.open(recording.path)
    assert compact(recording.path, recording.header)
    after = inspector.open(recording.path)
    assert rows(after) == rows(before)
    assert list(after.names.texts) == list(before.names.texts)
    assert (after.info.origin_ns, after.info.duration_ns) == (before.info.origin_ns, before.info.duration_ns)
    assert after.info.start_epoch_ns == before.info.start_epoch_ns
    assert [note for note in after.quality.notes if note.code == "recovered"] == []
    assert header.read(recording.path).state == "complete"
    assert {path.suffix for path in recording.path.iterdir()} == {".arrow", ".json"}
    assert len(after["steps"]) == 40


@pytest.mark.parametrize("files", range(4))
def test_a_disk_that_is_full_leaves_the_streams(
    recording: Recording, files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(inspector.open(recording.path))
    left = files
    write = save.write_columns

    def short(path: Path, columns: dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]]) -> None:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= 1
        write(path, columns)

    monkeypatch.setattr(save, "write_columns", short)
    with pytest.raises(OSError, match="No space left"):
        compact(recording.path, recording.header)
    assert list(recording.path.glob("*.arrow")) == []
    assert header.read(recording.path).state == "recording"
    assert rows(inspector.open(recording.path)) == before
    monkeypatch.undo()
    assert compact(recording.path, recording.header)
    assert rows(inspector.open(recording.path)) == before


def test_one_that_is_larger_than_the_memory_stays_as_it_is(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "_available", lambda: 1000)
    assert not compact(recording.path, recording.header)
    assert list(recording.path.glob("*.arrow")) == []
    assert len(inspector.open(recording.path)["steps"]) == 40


def test_the_lock_is_held_until_the_recorder_leaves(recording: Recording) -> None:
    assert lock.is_held(recording.path)
    assert lock.is_held(recording.path)
    recording.leave()
    recording.leave()
    assert not lock.is_held(recording.path)


def test_what_workloads_dropped_is_told(tmp_path: Path) -> None:
    made = Recording(tmp_path / "a.inflight", ["toy"], {})
    producer = Producer(str(made.path), "toy", 1 << 12)
    for number in range(50):
        say(producer, number)
    made.finish()
    assert producer.lost > 100
    assert compact(made.path, made.header)
    trace = inspector.open(made.path)
    dropped = {note.text.split(":")[0]: note.count for note in trace.quality.notes if "dropped by" in note.text}
    assert sum(dropped.values()) == producer.lost
    assert dropped["iterations"] == 50 - len(trace["iterations"])
    # What belongs to an iteration that was dropped is no row, and is counted too.
    orphans = 50 - dropped["steps"] - len(trace["steps"])
    assert made.num_lost() == producer.lost + orphans


def test_what_is_no_ring_is_told_and_left_alone(tmp_path: Path) -> None:
    made = Recording(tmp_path / "a.inflight", ["toy"], {})
    (made.path / "odd.ring").write_bytes(b"no ring at all")
    made.drain()
    made.finish()
    assert [(said.code, said.first) for said in made.header.quality] == [("invalid", "odd.ring")]


def test_memory_is_that_of_the_largest_table_where_there_is_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("a.kernels", 1 << 30), ("b.kernels", 1 << 30), ("a.ranges", 1 << 29)):
        with (tmp_path / f"{name}.arrows").open("wb") as file:
            file.truncate(size)
    monkeypatch.setattr(compaction, "bytes_on_disk", lambda: 1 << 40)
    with_disk = compaction._memory(tmp_path)
    monkeypatch.setattr(compaction, "bytes_on_disk", lambda: 1 << 30)
    without = compaction._memory(tmp_path)
    assert 3 * (2 << 30) <= with_disk <= 3.5 * (2 << 30)
    assert without == 4 * (5 << 29)
