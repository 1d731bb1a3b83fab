from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.trace import arrow
from inspector.trace.arrow_reader import read_columns
from inspector.trace.ring import Ring
from probes.inprocess.producer import Producer
from probes.recording import Recording
from probes.streams import Drain
from tests.probes.recorded import Rows, contents

NEVER = -(2**63)


class CrashError(Exception):
    """The recorder is no more."""


def say(producer: Producer, number: int) -> None:
    """What an engine says in one iteration, of every kind of reference."""
    thread = 100 + number % 2
    producer.add("ranges", [(number, number + 1, thread, producer.name(f"step {number % 3}"), 2, -1)])
    producer.device(number % 2, f"device {number % 2}")
    producer.add("kernels", [(number, number + 1, number % 3, 7 + number % 2, producer.name("gemm"), number)] * 2)
    producer.add("iterations", [(number, number + 1, number, *[number] * 19)])
    producer.add("requests", [(number // 2, number, NEVER, NEVER, 5, -1, NEVER, NEVER, -1, 9, producer.name("faq"))])
    producer.add("steps", [(number, number // 2, 1, 1, 0, 0, 1, 1, 1, -1)])
    producer.add("counters", [(number, producer.name("depth"), producer.name("requests"), number % 2 - 1, number / 2)])


def whole(folder: Path, steps: int) -> Rows:
    """What is there when nothing goes wrong."""
    folder.mkdir()
    producer = Producer(str(folder), "toy", 1 << 20)
    drain = Drain(Path(producer._ring.path)) if producer._ring else None
    assert drain is not None
    for number in range(steps):
        say(producer, number)
        drain.drain()
    producer.close()
    drain.drain()
    drain.close()
    return contents(folder, drain.streams.producer)


def broken_off(folder: Path, steps: int, failing: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Rows:
    """What is there when `failing`, called before every write, ends the recorder at one of them."""
    folder.mkdir()
    producer = Producer(str(folder), "toy", 1 << 20)
    (path,) = folder.glob("*.ring")
    drain = Drain(path)
    write, release = os.write, Ring.release

    def guarded_write(file: int, data: Any) -> int:
        failing()
        return write(file, data)

    def guarded_release(ring: Ring, upto: int) -> None:
        failing()
        release(ring, upto)

    with monkeypatch.context() as patch:
        patch.setattr(arrow.os, "write", guarded_write)
        patch.setattr(Ring, "release", guarded_release)
        alive = True
        for number in range(steps):
            say(producer, number)
            try:
                if alive:
                    drain.drain()
            except CrashError:
                alive = False
        producer.close()
    found = contents(folder, drain.streams.producer)
    if alive:
        drain.drain()
    drain.close()
    return found


def comparable(rows: Rows) -> Rows:
    """Without what the clock makes different."""
    return {table: found for table, found in rows.items() if table != "probes"}


def test_a_crash_between_any_two_writes_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = comparable(whole(tmp_path / "whole", 4))
    assert len(expected["steps"]) == 4
    count = 0
    for at in range(1000):
        count = 0

        def failing(at: int = at) -> None:
            nonlocal count
            count += 1
            if count > at:
                raise CrashError

        found = comparable(broken_off(tmp_path / str(at), 4, failing, monkeypatch))
        assert found == expected, f"broken off before write {at}"
        if count <= at:
            break
    assert count > 30


def test_a_full_disk_leaves_whole_batches_and_the_rest_in_the_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = comparable(whole(tmp_path / "whole", 3))
    write = os.write
    for room in range(0, 6000, 250):
        folder = tmp_path / str(room)
        folder.mkdir()
        producer = Producer(str(folder), "toy", 1 << 20)
        (path,) = folder.glob("*.ring")
        drain = Drain(path)
        left = room

        def short(file: int, data: Any) -> int:
            """As a disk does: as much as there is room for, then an error."""
            nonlocal left
            if not left:
                raise OSError(errno.ENOSPC, "No space left on device")
            done = write(file, data[: min(left, len(data))])
            left -= done
            return done

        with monkeypatch.context() as patch:
            patch.setattr(arrow.os, "write", short)
            for number in range(3):
                say(producer, number)
                if left:
                    try:
                        drain.drain()
                    except OSError:
                        left = 0
            producer.close()
        assert left == 0
        for stream in folder.glob("*.arrows"):
            if stream.stat().st_size and ".names." not in stream.name:
                assert read_columns(stream)[1], f"{stream.name} ends in the middle of a batch"
        assert comparable(contents(folder, drain.streams.producer)) == expected
        drain.close()


@given(st.lists(st.booleans(), max_size=12), st.integers(0, 12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
def test_when_it_is_drained_makes_no_difference(tmp_path_factory: Any, drained: list[bool], resumed: int) -> None:
    """Any drains, and another recorder that goes on from the streams of the first, give the same rows."""
    folder = tmp_path_factory.mktemp("any")
    steps = len(drained)
    expected = comparable(whole(folder / "whole", steps))
    (folder / "some").mkdir()
    producer = Producer(str(folder / "some"), "toy", 1 << 20)
    (path,) = (folder / "some").glob("*.ring")
    drain = Drain(path)
    for number, now in enumerate(drained):
        say(producer, number)
        if now and number < resumed:
            drain.drain()
    producer.close()
    assert comparable(contents(folder / "some", drain.streams.producer)) == expected
    drain.drain()
    assert comparable(contents(folder / "some", drain.streams.producer)) == expected
    drain.close()


def test_a_damaged_ring_costs_what_is_damaged_and_says_so(tmp_path: Path) -> None:
    producer = Producer(str(tmp_path), "toy", 1 << 16)
    (path,) = tmp_path.glob("*.ring")
    drain = Drain(path)
    say(producer, 0)
    drain.drain()
    say(producer, 1)
    at = drain.ring.take().since % drain.ring.capacity
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - drain.ring.capacity + at)
        file.write(b"\xff" * 4)
    drain.drain()
    say(producer, 2)
    drain.drain()
    rows = contents(tmp_path, drain.streams.producer)
    assert [key for (key,), *_ in rows["iterations"]] == ["0", "2"]
    assert drain.rows.quality.count("invalid") > 0


def test_a_ring_that_is_done_with_takes_no_room_and_no_file(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "a.inflight", ["toy"], {})
    rings: list[Path] = []
    for number in range(3):
        producer = Producer(str(recording.path), f"toy{number}", 1 << 20)
        (path,) = [path for path in recording.path.glob("*.ring") if path not in rings]
        rings.append(path)
        say(producer, number)
        recording.drain()
        open_files = len(os.listdir("/proc/self/fd"))
        before = path.stat().st_blocks
        say(producer, number + 10)
        producer.close()
        recording.drain()
        assert len(os.listdir("/proc/self/fd")) < open_files
        assert path.stat().st_size > 1 << 20
        # Some file systems cannot give room back; none takes more.
        assert path.stat().st_blocks <= before
        rows = contents(recording.path, path.stem)
        assert {key for (key,), *_ in rows["iterations"]} == {str(number), str(number + 10)}
    recording.finish()
    assert recording.header.producers == sorted(path.stem for path in rings)
    recording.leave()
