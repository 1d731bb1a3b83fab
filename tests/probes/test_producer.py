from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from inspector.trace.ring import Ring, Taken
from probes.inprocess import producer as module
from probes.inprocess.columns import LAYOUTS
from probes.inprocess.producer import ENVIRONMENT, Producer, from_environment
from probes.inprocess.ring import Frame

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path))
    return tmp_path


def rings(folder: Path) -> list[Ring]:
    return [Ring(path, writable=True) for path in sorted(folder.glob("*.ring"))]


def only(folder: Path) -> Ring:
    (ring,) = rings(folder)
    return ring


def take(ring: Ring) -> Taken:
    taken = ring.take()
    assert taken.damage == ""
    ring.release(taken.upto)
    return taken


def started(capacity: int = 1 << 16) -> Producer:
    producer = from_environment("toy", capacity)
    assert producer is not None
    return producer


def test_nothing_without_a_recording(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    assert from_environment("toy") is None
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for wrong in ("", str(tmp_path / "absent"), str(tmp_path / "file"), str(tmp_path / "link")):
        monkeypatch.setenv(ENVIRONMENT, wrong)
        assert from_environment("toy") is None


def test_rows_names_threads_and_devices_arrive(folder: Path) -> None:
    producer = started()
    step = producer.name("step")
    assert producer.name("step") == step
    assert producer.name("") == -1
    producer.thread_name("main")
    producer.device(3, "toy device", 1 << 30)
    producer.add("ranges", [(1, 2, threading.get_native_id(), step, 2, -1)] * 3)
    producer.status("sampling", "one in 30")
    producer.close()
    ring = only(folder)
    taken = take(ring)
    texts = dict(taken.names)
    assert texts[step] == "step"
    assert texts[int(taken.tables["threads"]["name"][0])] == "main"
    assert texts[int(taken.tables["devices"]["name"][0])] == "toy device"
    assert taken.tables["ranges"]["thread"].tolist() == [threading.get_native_id()] * 3
    assert taken.tables["probes"]["state"].tolist() == [2, 0]
    assert texts[int(taken.tables["probes"]["message"][0])] == "one in 30"
    assert ring.counts()[:2] == (producer.records, 0)
    assert ring.counts().closed
    producer.add("ranges", [(1, 2, 3, step, 2, -1)])
    producer.close()
    assert producer.lost == 1


def test_what_does_not_fit_is_dropped_counted_and_told(folder: Path) -> None:
    producer = started(1 << 12)
    row = (1, 2, 0, 7, producer.name("k"), 0)
    producer.add("kernels", [row] * 50)
    producer.add("kernels", [row] * 100)
    late = producer.name("x" * 4060)
    producer.add("kernels", [(*row[:4], late, 0)])
    ring = only(folder)
    assert (producer.records, producer.lost) == (50, 101)
    assert ring.lost() == {"kernels": 101}
    assert len(take(ring).tables["kernels"]) == 50
    # With room again, first comes what rows may refer to.
    producer.add("kernels", [(*row[:4], late, 1)])
    assert producer.lost == 102
    assert [len(text) for _, text in take(ring).names] == [4060]
    producer.add("kernels", [(*row[:4], late, 2)])
    assert take(ring).tables["kernels"]["correlation"].tolist() == [2]
    assert producer.lost == ring.counts().lost == 102


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("ranges", [(1, 2)]),
        ("ranges", [("a", 2, 3, 4, 5, 6)]),
        ("ranges", [(2**63, 2, 3, 4, 5, 6)]),
        ("ranges", [None]),
        ("no such table", [(1,)]),
    ],
)
def test_what_is_no_row_is_lost_and_raises_nothing(folder: Path, table: str, rows: list[Any]) -> None:
    producer = started()
    producer.add(table, rows)
    producer.add("ranges", [*rows, (1, 2, 3, -1, 1, -1)])
    good = take(only(folder)).tables["ranges"]
    assert good.tolist() == [(1, 2, 3, -1, 1, -1)] if table == "ranges" else len(good) <= 1
    assert producer.lost >= 1
    producer.status("running")
    taken = take(only(folder))
    said = dict(taken.names).get(int(taken.tables["probes"]["message"][0]), "")
    assert table in said


def test_large_batches_come_in_several_frames(folder: Path) -> None:
    producer = started(4 << 20)
    rows = [(n, n + 1, 0, 7, -1, n) for n in range(50_000)]
    producer.add("kernels", rows)
    assert take(only(folder)).tables["kernels"]["correlation"].tolist() == list(range(50_000))
    assert producer.lost == 0


def test_rows_may_come_packed(folder: Path) -> None:
    producer = started(4 << 20)
    packer = struct.Struct("<qqqibi")
    rows = [(n, n + 1, 7, -1, 2, -1) for n in range(50_000)]
    producer.add_packed("ranges", len(rows), b"".join(packer.pack(*row) for row in rows))
    assert take(only(folder)).tables["ranges"].tolist() == rows
    assert (producer.records, producer.lost) == (len(rows), 0)
    producer.add_packed("ranges", 3, packer.pack(*rows[0]))
    producer.add_packed("no such table", 2, b"")
    producer.add_packed("ranges", 1, packer.pack(*rows[1]))
    assert take(only(folder)).tables["ranges"].tolist() == [rows[1]]
    assert producer.lost == 5


def test_rows_of_several_tables_come_together_and_each_as_far_as_there_is_room(folder: Path) -> None:
    producer = started(1 << 12)
    kernel, mark = (1, 2, 0, 7, -1, 0), (5, 6, -1, -1)
    producer.add_all([("kernels", [kernel] * 3), ("memcpys", []), ("marks", [mark, (1,), mark])])
    taken = take(only(folder))
    assert {table: len(rows) for table, rows in taken.tables.items()} == {"kernels": 3, "marks": 2}
    producer.add_all([("kernels", [kernel] * 200), ("marks", [mark])])
    assert {table: len(rows) for table, rows in take(only(folder)).tables.items()} == {"marks": 1}
    assert (producer.records, producer.lost) == (6, 201)


def test_many_threads_lose_nothing_and_mix_nothing(folder: Path) -> None:
    producer = started(1 << 20)

    def work(thread: int) -> None:
        for number in range(200):
            producer.add("ranges", [(number, number + 1, thread, producer.name(f"{thread}/{number}"), 2, -1)] * 2)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = take(only(folder))
    texts, rows = dict(taken.names), taken.tables["ranges"]
    assert len(rows) == 1600
    assert producer.lost == 0
    for start, thread, name in zip(rows["start"].tolist(), rows["thread"].tolist(), rows["name"].tolist(), strict=True):
        assert texts[name] == f"{thread}/{start}"


def test_a_signal_handler_that_adds_does_not_lock_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = started()
    row = (1, 2, 3, -1, 1, -1)
    put = module.Ring.put_all

    def interrupted(ring: module.Ring, frames: Sequence[Frame]) -> bool:
        signal.raise_signal(signal.SIGUSR1)
        return put(ring, frames)

    before = signal.signal(signal.SIGUSR1, lambda *_: producer.add("ranges", [row]))
    monkeypatch.setattr(module.Ring, "put_all", interrupted)
    try:
        producer.add("ranges", [row])
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(take(only(folder)).tables["ranges"]) == 1
    assert producer.lost == 1


def test_names_without_end_do_not_fill_the_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMES", 10)
    producer = started()
    ids = {producer.name(f"name {number}") for number in range(50)}
    assert len(ids) <= 10
    assert producer.name("name 3") != producer.name("name 49") == producer.name("name 48")


def test_a_cut_name_says_so(folder: Path) -> None:
    producer = started(1 << 20)
    producer.name("ä" * 40_000)
    ((_, text),) = [pair for pair in take(only(folder)).names if pair[1].startswith("ä")]
    assert text == "ä" * 32_768 + "… (14,464 bytes more)"


def test_half_a_surrogate_pair_arrives(folder: Path) -> None:
    started().name("a\ud800")
    assert "a\ud800" in [text for _, text in take(only(folder)).names]


def test_a_status_comes_once_a_second_by_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 10**12
    monkeypatch.setattr(time, "monotonic_ns", lambda: now)
    producer = started()
    producer.status("sampling", "so it goes")
    for _ in range(25):
        now += 200_000_000
        producer.add("ranges", [(1, 2, 3, -1, 1, -1)])
    probes = take(only(folder)).tables["probes"]
    assert probes["time"].tolist() == [10**12 + second * 10**9 for second in range(6)]
    assert probes["state"].tolist() == [2] * 6


def test_producers_of_one_role_have_rings_of_their_own(folder: Path) -> None:
    first, second = started(), started()
    first.name("first")
    second.name("second")
    assert [[text for _, text in take(ring).names] for ring in rings(folder)] == [["toy", "second"], ["toy", "first"]]


def test_odd_roles_make_plain_file_names(folder: Path) -> None:
    assert from_environment("../Ünder cover") is not None
    assert [path.name for path in folder.iterdir()] == [f"----nder-cover-{os.getpid()}.ring"]


FORKING = """
import os, sys, threading
from probes.inprocess.producer import from_environment
producer = from_environment("fork", 1 << 16)
name = producer.name("before")
producer.device(0, "shared")
row = (1, 2, threading.get_native_id(), name, 1, -1)
stop = threading.Event()
busy = threading.Thread(target=lambda: [producer.add("ranges", [row]) for _ in iter(stop.is_set, True)])
busy.start()
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        if number < 2:
            producer.add("ranges", [(10 + number, 20, 5, name, 1, -1)])
            producer.add("ranges", [(10 + number, 20, 5, producer.name("after"), 1, -1)])
            producer.close()
        os._exit(producer.lost)
    children.append(pid)
codes = [os.waitpid(pid, 0)[1] for pid in children]
stop.set()
busy.join()
producer.add("ranges", [(7, 8, 9, producer.name("parent"), 1, -1)])
print(os.getpid(), *children, *codes)
"""


def test_children_of_a_fork_write_rings_of_their_own(folder: Path) -> None:
    """Forked while another thread is within the producer; a child that says nothing makes no ring."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    parent, *children = done.stdout.split()
    assert done.stdout.split()[4:] == ["0"] * 3
    found = {ring.path.stem: ring for ring in rings(folder)}
    assert set(found) == {f"fork-{pid}" for pid in (parent, *children[:2])}
    for number, pid in enumerate(children[:2]):
        ring = found[f"fork-{pid}"]
        taken = take(ring)
        texts = dict(taken.names)
        assert ring.pid == int(pid)
        assert [texts[int(row["name"])] for row in taken.tables["ranges"]] == ["before", "after"]
        assert taken.tables["ranges"]["start"].tolist() == [10 + number] * 2
        assert texts[int(taken.tables["devices"]["name"][0])] == "shared"
        assert ring.counts().closed
    texts = dict(take(found[f"fork-{parent}"]).names)
    assert list(texts.values()) == ["fork", "before", "shared", "parent"]


def test_the_cost_is_counted(folder: Path) -> None:
    producer = started(1 << 20)
    before = time.monotonic_ns()
    for _ in range(50):
        producer.add("ranges", [(1, 2, 3, -1, 1, -1)] * 20)
    assert 0 < producer.cost_ns <= time.monotonic_ns() - before
    assert only(folder).counts().cost_ns == producer.cost_ns


def test_every_table_takes_a_row(folder: Path) -> None:
    producer = started(1 << 20)
    for table, layout in LAYOUTS.items():
        producer.add(table, [tuple(1.5 if code == "d" else 1 for _, code in layout)])
    assert producer.lost == 0
    assert set(take(only(folder)).tables) == set(LAYOUTS)
