"""Answers as bytes: half chunks, packing, bombs, drips, and whatever else comes."""

from __future__ import annotations

import gzip
import socket
import time
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.server_http import client
from probes.server_http.client import NoAnswerError
from tests.probes.raw_server import Serve, answering, ask, raw


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        (b"5\r\n[1,2,\r\n4\r\n3,4]\r\n0\r\n\r\n", (b"[1,2,3,4]", False)),
        (b"5\r\n[1,2,\r\n9\r\n3,", (b"[1,2,", True)),
        (b"5\r\n[1,2,\r\nzz\r\n3,4]", (b"[1,2,", True)),
        (b"-5\r\n[1,2,\r\n", (b"", True)),
        (b"fffffffffffffffff\r\n[1", (b"", True)),
        (b"", (b"", True)),
    ],
)
def test_of_broken_chunks_what_came_whole_is_kept(body: bytes, kept: tuple[bytes, bool]) -> None:
    with raw(answering("Transfer-Encoding: chunked", body)) as listening:
        answer = ask(listening)
    assert answer.body.startswith(kept[0])
    assert answer.cut == kept[1]


@pytest.mark.parametrize("packed", [gzip.compress, zlib.compress])
def test_an_answer_that_was_packed_unasked_is_unpacked(packed: Callable[[bytes], bytes]) -> None:
    body = packed(b"[1, 2]")
    head = f"Content-Encoding: gzip\r\nContent-Length: {len(body)}"
    with raw(answering(head, body)) as listening:
        assert ask(listening).body == b"[1, 2]"
    head = f"Content-Encoding: gzip\r\nContent-Length: {len(body) - 3}"
    with raw(answering(head, body[:-3])) as listening:
        answer = ask(listening)
    assert answer.cut
    assert b"[1, 2]".startswith(answer.body)


def test_a_bomb_is_unpacked_no_further_than_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1 << 20)
    body = gzip.compress(bytes(64 << 20))
    assert len(body) < 1 << 17
    head = f"Content-Encoding: gzip\r\nContent-Length: {len(body)}"
    with raw(answering(head, body)) as listening:
        answer = ask(listening)
    assert answer.cut
    assert 1 << 20 <= len(answer.body) <= (1 << 20) + 1


@pytest.mark.parametrize("encoding", ["br", "gzip, gzip", "\u00b2"])
def test_what_cannot_be_unpacked_is_a_loss(encoding: str) -> None:
    def serve(connection: socket.socket, _: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: 3\r\n\r\n"
        connection.sendall(head.encode("latin-1") + b"abc")

    with raw(serve) as listening:
        assert (ask(listening).body, ask(listening).cut) == (b"", True)


def drips(piece: bytes) -> Serve:
    def serve(connection: socket.socket, _: bytes) -> None:
        while True:
            connection.sendall(piece)
            time.sleep(0.01)

    return serve


@pytest.mark.parametrize(
    "piece",
    [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"],
    ids=["letters", "continue", "heads", "headers"],
)
def test_the_time_limit_holds_for_all_of_an_answer(piece: bytes) -> None:
    """Whatever comes, one byte within each time limit of silence: the whole has a limit too."""
    with raw(drips(piece)) as listening:
        began = time.monotonic()
        with pytest.raises(NoAnswerError):
            ask(listening, within=0.4)
        assert time.monotonic() - began < 8  # ten seconds of silence would be allowed, and each piece breaks them


def test_a_body_that_drips_is_cut_at_the_limit() -> None:
    def serve(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n[1,")
        drips(b" ")(connection, b"")

    with raw(serve) as listening:
        answer = ask(listening, within=0.4)
    assert answer.cut
    assert answer.body.startswith(b"[1,")


PARTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 999 \r\n",
        b"HTTP/1.1 -1 x\r\n",
        b"HTTP/1.1 \xb2 x\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: \xb2\r\n",
        b"Content-Length: 99999999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Encoding: gzip\r\n",
        b"Location: \xff\x1b[2J\r\n",
        b"\r\n",
        b"\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"-1\r\n",
        b": \r\n",
        b"\x00\xff",
        gzip.compress(b"[]"),
    ]
)


@settings(max_examples=60)
@given(st.lists(PARTS | st.binary(max_size=8), max_size=8).map(b"".join))
def test_whatever_bytes_come_it_is_an_answer_or_none(body: bytes) -> None:
    with raw(lambda connection, _: connection.sendall(body)) as listening:
        try:
            answer = ask(listening, within=5.0)
        except NoAnswerError as error:
            said = str(error)
        else:
            assert len(answer.body) <= max(len(body), 2)
            return
    assert said
    assert said.isprintable()
