"""A recording that is opened at the very moment at which its recorder adds to it, or closes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import inspector
from inspector.readers import recording
from inspector.readers.reader import Progress
from inspector.trace import lock
from inspector.trace.trace import Trace
from probes.compaction import compact
from probes.inprocess.producer import Producer
from probes.recording import Recording
from tests.probes.test_streams import say
from tests.waiting import PATIENCE_S, ROOT

STEPS = 40
WRITER = """
import sys
from pathlib import Path
from tests.readers.test_recording_closing import made
for number in range(int(sys.argv[2])):
    made(Path(sys.argv[1]) / f"{number}.inflight")
"""


def made(path: Path) -> None:
    """A recording made in the usual way, with a drain after every other step; a line when it has begun."""
    new = Recording(path, ["toy"], {})
    producer = Producer(str(path), "toy", 1 << 20)
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    for number in range(STEPS):
        say(producer, number)
        if number % 2:
            new.drain()
    producer.close()
    new.finish()
    assert compact(path, new.header)
    new.leave()


def is_whole(trace: Trace) -> bool:
    """Whether it is all; what there is has to belong together in any case."""
    numbers = trace["iterations"]["iteration"].tolist()
    assert numbers == list(range(len(numbers)))
    assert [(note.code, note.text) for note in trace.quality.notes if note.code != "absent"] == []
    if trace.info.details.get("state") == "recording":
        return False
    assert [len(trace[table]) for table in ("iterations", "steps", "kernels", "counters")] == [40, 40, 80, 40]
    assert (trace["steps"]["request"] >= 0).all()
    assert (trace["kernels"]["stream"] >= 0).all()
    return True


@pytest.mark.parametrize("at", range(3))
def test_what_is_closed_while_it_is_read_is_opened_as_closed(tmp_path: Path, at: int) -> None:
    """The streams go at each place of the reading in turn."""
    new = Recording(tmp_path / "a.inflight", ["toy"], {})
    producers = [Producer(str(new.path), f"toy{number}", 1 << 20) for number in range(2)]
    for number in range(STEPS):
        say(producers[0], number)
    for producer in producers:
        producer.close()
    new.finish()
    reports = 0

    def close(progress: Progress) -> None:
        nonlocal reports
        if reports == at:
            assert compact(new.path, new.header)
        reports += 1

    trace = recording.read(new.path, close)
    assert reports > at
    assert is_whole(trace)
    new.leave()


def test_opening_again_and_again_while_one_is_written_and_closed(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WRITER, str(tmp_path), "12"]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        opened = {True: 0, False: 0}
        for number, _ in enumerate(writer.stdout):
            path = tmp_path / f"{number}.inflight"
            while not (whole := is_whole(inspector.open(path))) or lock.is_held(path):
                opened[whole] += 1
            opened[True] += 1
        assert writer.wait(PATIENCE_S) == 0
    assert opened[True] >= 12
    assert opened[False] >= 12
