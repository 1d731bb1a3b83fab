"""A recording that was not compacted, read a little of each table at a time: the same as in one go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.readers.reader import Progress
from inspector.readers.recording import read, streams
from inspector.trace import arrow_reader
from inspector.trace.quality import Quality
from inspector.trace.table import Table
from tests.readers.recordings import opened
from tests.readers.test_follow import BOOT, MS, PIECES, Piece, assert_same, folder, start, write


def noted(quality: Quality) -> list[tuple[str, str, int]]:
    return sorted((note.code, note.text, note.count) for note in quality.notes)


@settings(max_examples=60, deadline=None)
@given(PIECES, st.integers(200, 20_000), st.integers(200, 2000), st.sampled_from([0, 20 * MS, 1000 * MS]))
def test_rounds_of_any_size_give_the_same(pieces: list[Piece], size: int, chunk: int, late: int) -> None:
    with folder() as made:
        done: dict[str, int] = {}
        for piece in pieces:
            write(made, piece, done)
        made.end()
        expected = opened(made.path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(streams, "_ROUND_BYTES", size)
            patch.setattr(streams, "_LATE_NS", late)
            patch.setattr(arrow_reader, "_CHUNK", chunk)
            found = opened(made.path)
        assert_same(found, expected)
        # Which of them was met first depends on how much is read at once.
        assert noted(found.quality) == noted(expected.quality)


def test_what_was_read_does_not_wait_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are shown, and so lie where tables grow, while most of the file has not been read."""
    monkeypatch.setattr(streams, "_ROUND_BYTES", 4000)
    monkeypatch.setattr(streams, "_LATE_NS", 50 * MS)
    monkeypatch.setattr(arrow_reader, "_CHUNK", 1000)
    shown: list[int] = []
    told: list[Progress] = []
    show = streams.Growth.settle

    def settle(growth: streams.Growth, horizon: int) -> bool:
        done = show(growth, horizon)
        kernels: Table = growth._tables["kernels"].table
        assert growth._tables["kernels"].num_waiting < 200
        shown.append(len(kernels))
        return done

    monkeypatch.setattr(streams.Growth, "settle", settle)
    with folder() as made:
        start(made, "one", 10)
        for number in range(200):
            begin = [BOOT + (number * 10 + at) * MS for at in range(10)]
            end = [time + MS for time in begin]
            made.rows("one", "kernels", start=begin, end=end, stream=[0] * 10, name=[1] * 10)
        made.end()
        trace = read(made.path, told.append)
    assert len(trace["kernels"]) == 2000
    assert len(shown) > 10
    assert shown == sorted(shown)
    assert shown[len(shown) // 2] > 500
    assert [each.done for each in told[1:]] == sorted(each.done for each in told[1:])
    assert told[-1].done < told[-1].total


def test_rounds_in_which_no_row_of_a_table_is_sound_leave_the_others_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_ROUND_BYTES", 200)
    monkeypatch.setattr(streams, "_LATE_NS", 0)
    monkeypatch.setattr(arrow_reader, "_CHUNK", 200)
    with folder() as made:
        done: dict[str, int] = {}
        for piece in (("one", [(0, -1)]), ("one", [(0, -1)]), ("one", [(0, 0)])):
            write(made, piece, done)
        made.end()
        assert opened(made.path).quality.count("reversed") > 0
