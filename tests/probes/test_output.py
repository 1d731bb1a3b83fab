"""What a workload wrote reaches whoever listens, to the last line."""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path

import pytest

from inspector.errors import Usage
from probes import output
from probes.output import Output
from probes.server_http.address import address


def test_all_of_it_goes_through_a_pipe_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"y\n" * 1_500_000)
    reading, writing = os.pipe()
    found: list[int] = []

    def read() -> None:
        while piece := os.read(reading, 1 << 16):
            found.append(len(piece))

    reader = threading.Thread(target=read)
    reader.start()
    copied = Output(path, writing)
    copied.forward()
    copied.finish()
    copied.close()
    os.close(writing)
    reader.join()
    os.close(reading)
    assert sum(found) == 3_000_000


def test_who_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"y\n" * 1_500_000)
    reading, writing = os.pipe()
    os.close(reading)
    copied = Output(path, writing)
    copied.finish()
    copied.close()
    os.close(writing)


class Far:
    """The other end of a pipe, read by a thread for as long as it lets it."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.found = b""
        self._reader = threading.Thread(target=self._read)

    def _read(self) -> None:
        pieces = []
        while piece := os.read(self.reading, 1 << 16):
            pieces.append(piece)
        self.found = b"".join(pieces)

    def start(self) -> None:
        self._reader.start()

    def close(self) -> None:
        os.close(self.writing)
        self._reader.join()
        os.close(self.reading)


def numbered(begin: int, end: int) -> bytes:
    """Lines of 20 bytes."""
    return b"".join(b"%019d\n" % number for number in range(begin, end))


@pytest.mark.parametrize("punches", [True, False])
@pytest.mark.parametrize("listens", [True, False])
def test_the_file_takes_no_more_room_however_much_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, punches: bool, listens: bool
) -> None:
    """60 MB, with a reader that takes them at once, or one that takes nothing before the end."""
    if not punches:
        monkeypatch.setattr(output, "punch", lambda file, at, size: False)
    path = tmp_path / "output.log"
    path.touch()
    far = Far()
    copied = Output(path, far.writing)
    if listens:
        far.start()
    room, lines = 0, 3_000_000
    with path.open("ab", buffering=0) as file:
        for begin in range(0, lines, 50_000):
            file.write(numbered(begin, begin + 50_000))
            if listens:
                copied.finish()
            copied.forward()
            room = max(room, path.stat().st_blocks * 512)
    assert output.TAIL < room < output.HEAD + 3 * output.TAIL
    if not listens:
        far.start()
    copied.finish()
    copied.close()
    far.close()
    if listens:
        assert far.found == numbered(0, lines)
    else:
        told = sum(int(count.replace(b",", b"")) for count in re.findall(rb"\n\[([\d,]+) bytes of output", far.found))
        came = re.sub(rb"\n\[[\d,]+ bytes of output were not read in time\]\n", b"", far.found)
        assert len(came) + told == 20 * lines
        assert told > 20_000_000
        if punches:
            assert came.endswith(numbered(lines - 50_000, lines))
    if punches:
        kept = path.read_bytes()
        assert kept[: output.HEAD] == numbered(0, 60_000)[: output.HEAD]
        assert re.match(rb"\n\[[\d,]+ bytes of output are not kept\]\n\0", kept[output.HEAD :])
        assert kept[-output.TAIL :] == numbered(lines - 500_000, lines)[-output.TAIL :]


def test_a_writer_that_never_stops_keeps_nobody_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"y\n" * 1_000_000)
    far = Far()
    far.start()
    stop = threading.Event()

    def write() -> None:
        with path.open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"y\n" * 100_000)

    writer = threading.Thread(target=write)
    writer.start()
    copied = Output(path, far.writing)
    copied.forward()
    copied.finish()
    copied.close()
    stop.set()
    writer.join()
    far.close()
    assert len(far.found) >= 2_000_000


@pytest.mark.parametrize("text", ["http://[::1", "http://host:0", "ftp://host", "http://host:99999"])
def test_what_is_no_address_is_said_to_be_none(text: str) -> None:
    with pytest.raises(Usage, match="no address"):
        address(text)
