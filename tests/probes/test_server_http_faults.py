"""Polling a server that breaks off, hangs, drips, restarts, floods, goes away: counted, and nothing else is held up."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inspector
from inspector.errors import Missing, Unreadable
from probes.server_http import attach as attaching
from probes.server_http import client
from probes.server_http.address import address
from probes.server_http.feed import Feed
from tests.probes.attached import asked, hurry, record
from tests.probes.stand_in_server import pytorch, stand_in


@pytest.fixture(autouse=True)
def asks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "a.inflight"


def test_half_an_answer_gives_the_records_before_the_break(out: Path) -> None:
    body = json.dumps([pytorch(1), pytorch(2), pytorch(3)]).encode()

    def breaks_off(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: len(body) - 20])
        handler.close_connection = True

    with stand_in() as server:
        server.say("GET /metrics", breaks_off, b"[{", b"{}", b"\xff\xfe", [pytorch(9)])
        trace = record(server, out, asked(server, "GET /metrics", 7))
    assert trace["iterations"]["iteration"].tolist() == [1, 2, 9]
    assert trace.quality.count("truncated") == 2


def test_numbers_without_end_marks_and_parts_cost_nothing_else(out: Path) -> None:
    """What is drained is gone from the server: one odd value may not take the rest along."""
    endless = json.dumps(pytorch(3)).replace('"iterLatencyMS": 12.5', '"iterLatencyMS": ' + "9" * 5000)
    assert "9" * 5000 in endless
    body = f"\ufeff[{json.dumps(pytorch(2))},{endless},{json.dumps(pytorch(4))}]".encode()

    def part(handler: Any) -> None:
        handler.send_response(206)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)], part)
        trace = record(server, out, asked(server, "GET /metrics", 4))
    assert sorted(trace["iterations"]["iteration"].tolist()) == [1, 2, 3, 4]
    assert trace.quality.count("truncated") == 0
    assert trace.quality.count("profiler-loss") == 0


def test_samples_beyond_all_numbers_are_noted_and_not_stored(out: Path) -> None:
    wild = pytorch(1)
    wild["kvCacheStats"]["cacheHitRate"] = 1e308
    with stand_in() as server:
        server.say("GET /metrics", [wild])
        trace = record(server, out, asked(server, "GET /metrics", 3))
    assert np.isfinite(trace["counters"]["value"]).all()
    assert trace.quality.count("invalid") == 1


def test_errors_and_closed_connections_are_outlived(out: Path) -> None:
    def hang_up(handler: Any) -> None:
        handler.close_connection = True

    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1)], hang_up, [pytorch(2)])
        server.answers["GET /metrics"].insert(1, (500, b"Internal Server Error"))
        trace = record(server, out, asked(server, "GET /metrics", 6))
    assert trace["iterations"]["iteration"].tolist() == [1, 2]


def test_a_server_that_hangs_holds_up_nothing_else(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SILENCE_S", 0.3)
    release = threading.Event()
    with stand_in() as server:
        server.say("GET /metrics", lambda handler: release.wait(20), then=[])
        server.say("GET /perf_metrics")
        server.say("GET /metrics", [pytorch(4)])
        try:
            trace = record(server, out, asked(server, "GET /metrics", 5))
        finally:
            release.set()
    assert 4 in trace["iterations"]["iteration"].tolist()
    table = trace["probes"]
    said = {trace.names[message] for message in table["message"] if message >= 0}
    assert "this server does not have it" in said


def test_huge_bodies_are_bounded(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 100_000)
    many = [pytorch(n) for n in range(1, 200)]
    assert len(json.dumps(many)) > 150_000
    with stand_in() as server:
        server.say("GET /metrics", many)
        trace = record(server, out, asked(server, "GET /metrics", 3))
    told = trace["iterations"]["iteration"].tolist()
    assert told == list(range(1, len(told) + 1))
    assert 50 < len(told) < 199
    assert trace.quality.count("truncated") == 1


def test_where_nobody_listens_one_sentence_says_so(out: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(Unreadable, match="nothing listens there"):
        attaching.attach(attaching.Plan(address(f"127.0.0.1:{port}"), out))
    assert not out.exists()


def test_a_server_of_another_kind_is_no_recording(out: Path) -> None:
    with stand_in() as server, pytest.raises(Unreadable, match="tells nothing"):
        attaching.attach(attaching.Plan(address(server.url), out, seconds=20))
    assert not out.exists()


def test_an_answer_that_drips_is_broken_off(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "WHOLE_S", 0.3)
    gone = threading.Event()
    first, second = pytorch(1), pytorch(2)

    def drip(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        body = json.dumps([first]).encode()[:-1]
        handler.wfile.write(body)
        try:
            while not gone.wait(0.02):
                handler.wfile.write(b" ")
        except OSError:
            gone.set()

    with stand_in() as server:
        server.say("GET /metrics", drip, [second])
        trace = record(server, out, asked(server, "GET /metrics", 4))
        assert gone.is_set()
    assert trace["iterations"]["iteration"].tolist() == [1, 2]
    assert trace.quality.count("truncated") == 1


def test_a_head_that_drips_is_broken_off() -> None:
    """A line that never ends, a letter at a time: each one comes within the time limit of silence."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with listening.accept()[0] as sock, suppress(OSError):
                sock.recv(1 << 16)
                sock.sendall(b"HTTP/1.1 200 ")
                while not over.wait(0.01):
                    sock.sendall(b"K")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        asking = client.Client(address(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        with pytest.raises(client.NoAnswerError, match="in time"):
            asking.ask("GET", "/metrics", 0.3)
        over.set()
        thread.join(10)
    assert not thread.is_alive()


def test_what_a_server_sends_does_not_steer_the_terminal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            with listening.accept()[0] as sock:
                sock.recv(1 << 16)
                sock.sendall(b"\x1b]0;owned\x07 no HTTP\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        with pytest.raises(client.NoAnswerError) as caught:
            client.Client(address(f"http://127.0.0.1:{listening.getsockname()[1]}")).ask("GET", "/metrics")
        thread.join(10)
    assert str(caught.value).isprintable()


def test_a_server_that_goes_and_comes_back_is_found_again(out: Path) -> None:
    with ExitStack() as first, ExitStack() as second:
        server = first.enter_context(stand_in())
        server.say("GET /metrics", [pytorch(7)])
        running = [server]

        def restarted() -> bool:
            if running[-1].count("GET /metrics") < 3:
                return False
            if len(running) == 1:
                first.close()
                running.append(second.enter_context(stand_in(server.port)))
                running[-1].say("GET /metrics", [pytorch(1), pytorch(2)])
            return running[-1].count("GET /metrics") >= 3

        trace = record(server, out, restarted)
    assert trace["iterations"]["iteration"].tolist() == [7, 1, 2]
    assert trace.quality.count("profiler") == 1


def test_a_full_disk_ends_the_recording_and_leaves_what_was_written(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = Feed.flush
    written = threading.Event()

    def fills_up(feed: Feed) -> None:
        if written.is_set():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(feed)
        if feed.num_rows("iterations") >= 2:
            written.set()

    monkeypatch.setattr(Feed, "flush", fills_up)
    with stand_in() as server:
        server.say("GET /metrics", [pytorch(1), pytorch(2)], [pytorch(3)])
        outcome = attaching.attach(attaching.Plan(address(server.url), out, seconds=30))
    assert isinstance(outcome.failure, Missing)
    assert "No space left" in str(outcome.failure)
    trace = inspector.open(out)
    assert trace["iterations"]["iteration"].tolist() == [1, 2]
    assert trace.quality.count("recovered") == 1
