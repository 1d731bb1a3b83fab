"""A recording gives back what was saved, and saving is all or nothing."""

from __future__ import annotations

import resource
import stat
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from inspector.errors import Cancelled, InspectorError, Unreadable, Usage
from inspector.readers import open_trace, recording
from inspector.trace import header
from inspector.trace.save import save
from inspector.trace.trace import Trace
from tests.analysis.generate import traces
from tests.readers.recordings import ROWS, assert_equal, full_trace, opened, use


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@settings(max_examples=25)
@given(traces())
def test_a_random_trace_comes_back(trace: Trace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.inflight"
        save(trace, path)
        assert_equal(opened(path), trace)


def test_every_table_and_extreme_comes_back_twice(tmp_path: Path) -> None:
    trace = full_trace()
    save(trace, tmp_path / "a.inflight")
    first = opened(tmp_path / "a.inflight")
    assert_equal(first, trace)
    assert first.info.details["converted from"] == "nsys-sqlite some file.sqlite"
    assert first.info.paths == (str(tmp_path / "a.inflight"),)
    use(first)
    save(first, tmp_path / "b.inflight")
    second = opened(tmp_path / "b.inflight")
    assert_equal(second, trace)
    assert second.info == replace(first.info, paths=second.info.paths)


def test_the_corpus_comes_back(corpus: Path, tmp_path: Path) -> None:
    number = 0
    for path in sorted(corpus.glob("*/*.*")):
        try:
            trace = open_trace(path)
        except Unreadable:
            continue
        number += 1
        save(trace, tmp_path / f"{number}.inflight")
        found = open_trace(tmp_path / f"{number}.inflight")
        assert_equal(found, trace)
        use(found)
    assert number >= 15


def test_columns_lie_in_the_file(tmp_path: Path) -> None:
    save(full_trace(), tmp_path / "a.inflight")
    column = opened(tmp_path / "a.inflight")["kernels"]["start"]
    assert not column.flags.owndata
    assert not column.flags.writeable


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    save(full_trace(), tmp_path / "a.inflight")
    assert stat.S_IMODE((tmp_path / "a.inflight").stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "a.inflight").iterdir()} == {0o600}


def test_clock_anchors_are_on_both_ends(tmp_path: Path) -> None:
    save(full_trace(), tmp_path / "a.inflight")
    head = header.read(tmp_path / "a.inflight")
    assert (head.format, head.state) == (1, "complete")
    assert [(anchor.monotonic_ns, anchor.epoch_ns) for anchor in head.clock] == [
        (123, 1_700_000_000_000_000_000),
        (4_623, 1_700_000_000_000_004_500),
    ]


def test_a_recording_is_replaced_even_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.inflight"
    save(full_trace(), path)
    trace = opened(path)
    save(trace, path)
    assert_equal(opened(path), trace)
    use(trace)
    assert left_in(tmp_path) == ["a.inflight"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.inflight").mkdir()
    save(full_trace(), tmp_path / "a.inflight")
    use(opened(tmp_path / "a.inflight"))


def test_nothing_else_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("mine")
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / header.NAME).write_text('{"mine": 1}')
    save(full_trace(), tmp_path / "real.inflight")
    (tmp_path / "link").symlink_to(tmp_path / "real.inflight")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / header.NAME).write_text('{"format": 1, "state": "recording"}')
    before = left_in(tmp_path)
    for name in ("file", "folder", "json", "link", "nowhere", "live"):
        with pytest.raises(Usage):
            save(full_trace(), tmp_path / name)
    assert left_in(tmp_path) == before
    assert (tmp_path / "file").read_text() == "mine"
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "mine"


def test_a_cancelled_save_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.inflight"
    save(full_trace(), path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    steps: list[tuple[int, int]] = []

    def cancel(done: int, total: int) -> None:
        steps.append((done, total))
        if len(steps) == 4:
            raise Cancelled

    with pytest.raises(Cancelled):
        save(full_trace(), path, cancel)
    assert left_in(tmp_path) == ["a.inflight"]
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before
    assert steps == sorted(steps)
    save(full_trace(), path, lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] == full_trace().nbytes()


def test_a_disk_that_takes_no_more_is_said_and_nothing_left(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, limits[1]))
    try:
        with pytest.raises(InspectorError, match=r"cannot save .*a\.inflight"):
            save(full_trace(), tmp_path / "a.inflight")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert left_in(tmp_path) == []


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="cannot save"):
        save(full_trace(), tmp_path / "no" / "a.inflight")


def test_it_is_known_by_content(tmp_path: Path) -> None:
    save(full_trace(), tmp_path / "whatever")
    assert recording.sniff(b"", tmp_path / "whatever") == 1
    assert recording.sniff(b"", tmp_path) == 0
    (tmp_path / "x").write_bytes(b"SQLite format 3\0")
    assert recording.sniff(b"SQLite format 3\0", tmp_path / "x") == 0
    np.testing.assert_array_equal(len(opened(tmp_path / "whatever")["kernels"]), ROWS)
