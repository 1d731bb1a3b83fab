"""The HTTP server over a service that answers by a script: shapes, limits, and clients that misbehave."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from probes.workloads.engine.asks import Ask, Refused
from probes.workloads.engine.request import Room
from probes.workloads.engine.responses import Json
from probes.workloads.engine.server import GETS, LARGEST_BODY, POSTS, Server
from probes.workloads.engine.service import Progress, Ticket
from probes.workloads.engine.tokens import END, Tokenizer

BYTES = Tokenizer([])


class Scripted:
    """Says `says` to every prompt, a token at a time; with `silent` it only listens."""

    model = "tiny"
    system = ""
    tokenizer = BYTES
    room = Room(400, "no more positions")

    def __init__(self, says: bytes = b"one two", silent: bool = False, reason: str = "stop") -> None:
        self.says, self.silent, self.reason = says, silent, reason
        self.asked: list[Ticket] = []
        self.cancelled: list[tuple[Ticket, int | None]] = []
        self.was_cancelled = threading.Event()
        self.was_asked = threading.Event()
        self.drained = [{"iter": 1}, {"iter": 2}]

    def submit(self, ask: Ask) -> Ticket:
        if ask.seed == 503:
            raise Refused(503, "full", "ServiceUnavailableError")
        ticket = Ticket(ask)
        self.asked.append(ticket)
        self.was_asked.set()
        if not self.silent:
            for choice in range(len(ask.prompts)):
                for byte in self.says:
                    ticket.progress.put(Progress(choice, (byte,)))
                ticket.progress.put(Progress(choice, (END,), self.reason))
        return ticket

    def cancel(self, ticket: Ticket, choice: int | None = None) -> None:
        self.cancelled.append((ticket, choice))
        self.was_cancelled.set()

    def iterations(self) -> list[Json]:
        drained, self.drained = self.drained, []
        return list(drained)

    def page_events(self) -> list[Json]:
        return [{"event_id": 2**64 - 1}]

    def finished(self) -> list[Json]:
        return []

    def version(self) -> str:
        return "1.2"

    def info(self) -> Json:
        return {"blocks": 3}

    def prometheus(self) -> str:
        return "request_success_total 0\n"


def _serving(service: Scripted) -> Iterator[Server]:
    server = Server(service, 0)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def service() -> Scripted:
    return Scripted()


@pytest.fixture
def server(service: Scripted) -> Iterator[Server]:
    yield from _serving(service)


def _connect(server: Server) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)


def _ask(
    server: Server, path: str, body: Any = None, method: str = "POST", headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    connection = _connect(server)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request(method, path, data, headers or {})
    answer = connection.getresponse()
    read = answer.read()
    connection.close()
    return answer.status, read


def _events(raw: bytes) -> list[Any]:
    parts = raw.decode().split("\n\n")
    assert parts.pop() == ""
    assert all(part.startswith("data: ") for part in parts)
    assert parts.pop() == "data: [DONE]"
    return [json.loads(part[6:]) for part in parts]


def test_a_completion(server: Server) -> None:
    status, body = _ask(server, "/v1/completions", {"prompt": "hello", "max_tokens": 20})
    answer = json.loads(body)
    assert status == 200
    assert answer["object"] == "text_completion"
    assert answer["model"] == "tiny"
    assert answer["id"].startswith("cmpl-")
    assert answer["choices"] == [
        {"index": 0, "text": "one two", "logprobs": None, "finish_reason": "stop", "stop_reason": None}
    ]
    assert answer["usage"] == {"prompt_tokens": 5, "completion_tokens": 8, "total_tokens": 13}


def test_several_prompts_are_several_choices(server: Server) -> None:
    answer = json.loads(_ask(server, "/v1/completions", {"prompt": ["a", "bc"], "echo": True})[1])
    assert [(choice["index"], choice["text"]) for choice in answer["choices"]] == [(0, "aone two"), (1, "bcone two")]
    assert answer["usage"]["prompt_tokens"] == 3


def test_a_chat(server: Server) -> None:
    answer = json.loads(_ask(server, "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})[1])
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "one two"}


@pytest.mark.parametrize("chat", [False, True])
def test_a_stream_gives_the_same_text_in_parts(server: Server, chat: bool) -> None:
    asks = {"messages": [{"role": "user", "content": "x"}]} if chat else {"prompt": "x"}
    path = "/v1/chat/completions" if chat else "/v1/completions"
    status, raw = _ask(server, path, {**asks, "stream": True, "stream_options": {"include_usage": True}})
    *parts, last = _events(raw)
    assert status == 200
    assert len({part["id"] for part in parts}) == 1
    bodies = [part["choices"][0] for part in parts]
    if chat:
        assert bodies[0]["delta"] == {"role": "assistant", "content": ""}
        assert {part["object"] for part in parts} == {"chat.completion.chunk"}
    text = "".join(body["delta"]["content"] if chat else body["text"] for body in bodies)
    assert text == "one two"
    assert [body["finish_reason"] for body in bodies] == [None] * (len(bodies) - 1) + ["stop"]
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 8


def test_a_stop_text_cuts_the_answer_and_ends_the_request(server: Server, service: Scripted) -> None:
    answer = json.loads(_ask(server, "/v1/completions", {"prompt": "a", "stop": ["e t", "zz"]})[1])
    choice = answer["choices"][0]
    assert (choice["text"], choice["finish_reason"], choice["stop_reason"]) == ("on", "stop", "e t")
    assert service.cancelled == [(service.asked[0], 0)]


def test_a_character_of_several_tokens_comes_whole() -> None:
    for server in _serving(Scripted("é→".encode())):
        parts = _events(_ask(server, "/v1/completions", {"prompt": "a", "stream": True})[1])
        assert [part["choices"][0]["text"] for part in parts] == ["é", "→", ""]


def test_length_is_a_reason() -> None:
    for server in _serving(Scripted(reason="length")):
        answer = json.loads(_ask(server, "/v1/completions", {"prompt": "a"})[1])
        assert answer["choices"][0]["finish_reason"] == "length"


def test_an_old_client_gets_a_stream_without_chunks(server: Server) -> None:
    body = json.dumps({"prompt": "a", "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=10) as client:
        client.sendall(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        raw = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, stream = raw.partition(b"\r\n\r\n")
    assert b"Transfer-Encoding" not in head
    assert len(_events(stream)) == 8


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_hangs_up_cancels_its_request(stream: bool) -> None:
    silent = Scripted(silent=True)
    for server in _serving(silent):
        connection = _connect(server)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "stream": stream}))
        assert silent.was_asked.wait(10)
        connection.close()
        assert silent.was_cancelled.wait(10)
        assert silent.cancelled == [(silent.asked[0], None)]


@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_that_ends_says_so(stream: bool) -> None:
    for server in _serving(Scripted(reason="cancelled")):
        status, raw = _ask(server, "/v1/completions", {"prompt": "a", "stream": stream})
        assert status == (200 if stream else 503)
        last = raw.decode().strip().rpartition("data: ")[2]
        assert json.loads(last)["message"] == "the engine ended before the answer was done"


def test_what_is_drained_and_what_is_not(server: Server) -> None:
    assert json.loads(_ask(server, "/metrics", method="GET")[1]) == [{"iter": 1}, {"iter": 2}]
    assert json.loads(_ask(server, "/metrics", method="GET")[1]) == []
    assert json.loads(_ask(server, "/kv_cache_events")[1]) == [{"event_id": 2**64 - 1}]
    assert json.loads(_ask(server, "/perf_metrics", method="GET")[1]) == []
    assert json.loads(_ask(server, "/version", method="GET")[1]) == {"version": "1.2"}
    assert json.loads(_ask(server, "/server_info", method="GET")[1]) == {"blocks": 3}
    assert _ask(server, "/health", method="GET") == (200, b"")
    assert _ask(server, "/prometheus/metrics?x=1", method="GET") == (200, b"request_success_total 0\n")
    assert json.loads(_ask(server, "/v1/models", method="GET")[1])["data"][0]["id"] == "tiny"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", None, 404),
        ("POST", "/nowhere", {}, 404),
        ("GET", "/kv_cache_events", None, 405),
        ("POST", "/metrics", {}, 405),
        ("POST", "/v1/completions", b"{", 400),
        ("POST", "/v1/completions", {"prompt": "x", "seed": 503}, 503),
        ("POST", "/v1/completions", {"prompt": "x" * 400}, 400),
        ("POST", "/v1/completions", b" " * (LARGEST_BODY + 1), 413),
    ],
)
def test_errors_are_json_with_their_code(server: Server, method: str, path: str, body: Any, status: int) -> None:
    connection = _connect(server)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.putrequest(method, path)
    if data is not None:
        connection.putheader("Content-Length", str(len(data)))
    connection.endheaders()
    if data is not None and status != 413:
        connection.send(data.encode() if isinstance(data, str) else data)
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    assert answer.status == told["code"] == status
    assert told["object"] == "error"
    assert told["message"]


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Content-Length", "-5", 400),
        ("Content-Length", "9" * 30, 400),
        ("Transfer-Encoding", "chunked", 411),
        ("Host", "evil.example", 403),
    ],
)
def test_headers_that_do_not_do(server: Server, header: str, value: str, status: int) -> None:
    connection = _connect(server)
    connection.putrequest("POST", "/v1/completions", skip_host=header == "Host")
    connection.putheader(header, value)
    connection.endheaders()
    assert connection.getresponse().status == status
    connection.close()


def test_a_connection_serves_many_requests_an_error_among_them(server: Server) -> None:
    connection = _connect(server)
    for body, status in (({"prompt": "a"}, 200), ({}, 400), ({"prompt": "a", "stream": True}, 200)):
        connection.request("POST", "/v1/completions", json.dumps(body))
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_many_at_once(server: Server, service: Scripted) -> None:
    wrong: list[object] = []

    def one() -> None:
        for _ in range(5):
            status, body = _ask(server, "/v1/completions", {"prompt": "a"})
            if status != 200 or json.loads(body)["choices"][0]["text"] != "one two":
                wrong.append((status, body))

    threads = [threading.Thread(target=one) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(service.asked) == 80


def test_every_path_belongs_to_one_method(server: Server) -> None:
    for path in GETS:
        assert _ask(server, path, method="GET")[0] == 200
        assert _ask(server, path, {})[0] == 405
    for path in POSTS:
        assert _ask(server, path, method="GET")[0] == 405
