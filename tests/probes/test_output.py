"""What a workload wrote reaches whoever listens, to the last line."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from inspector.errors import Usage
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
    output = Output(path, writing)
    output.forward()
    output.finish()
    output.close()
    os.close(writing)
    reader.join()
    os.close(reading)
    assert sum(found) == 3_000_000


def test_who_is_gone_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "output.log"
    path.write_bytes(b"y\n" * 1_500_000)
    reading, writing = os.pipe()
    os.close(reading)
    output = Output(path, writing)
    output.finish()
    output.close()
    os.close(writing)


@pytest.mark.parametrize("text", ["http://[::1", "http://host:0", "ftp://host", "http://host:99999"])
def test_what_is_no_address_is_said_to_be_none(text: str) -> None:
    with pytest.raises(Usage, match="no address"):
        address(text)
