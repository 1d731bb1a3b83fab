"""HTTP on this machine only, with the paths and shapes of trtllm-serve, by the standard library."""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from probes.workloads.engine import responses
from probes.workloads.engine.asks import Refused, parse
from probes.workloads.engine.responses import Choice, Json, Reply
from probes.workloads.engine.service import Cancelled, Service, Ticket, answers

ADDRESS = "127.0.0.1"
LARGEST_BODY = 1 << 20
MOST_CONNECTIONS = 256
_LOCAL = frozenset(("127.0.0.1", "localhost", "[::1]"))
_WAIT = 0.2
"""Seconds between two looks whether a client is still there."""


class ClientGone(Exception):
    """The client hung up."""


class Server(ThreadingHTTPServer):
    """Serves `service` from threads of its own, from `start` to `stop`. Raises OSError when `port` is taken."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, service: Service, port: int) -> None:
        self.service = service
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__((ADDRESS, port), Handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="http", daemon=True)

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://{ADDRESS}:{self.server_address[1]}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more connections."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, unless there are too many."""
        if not self._room.acquire(blocking=False):
            request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error of ours."""
        if not isinstance(sys.exc_info()[1], (OSError, ClientGone)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "inflight-engine"
    timeout = 30
    _begun = False

    def do_GET(self) -> None:
        """Answer what can be looked at."""
        service = self.server.service
        self._route(
            {
                "/health": lambda: self._send(200, b"", "text/plain"),
                "/version": lambda: self._json({"version": service.version()}),
                "/server_info": lambda: self._json(service.info()),
                "/v1/models": lambda: self._json(_models(service.model)),
                "/metrics": lambda: self._json(service.iterations()),
                "/perf_metrics": lambda: self._json(service.finished()),
                "/prometheus/metrics": lambda: self._send(
                    200, service.prometheus().encode(), "text/plain; version=0.0.4; charset=utf-8"
                ),
            },
            POSTS,
        )

    def do_POST(self) -> None:
        """Answer what makes or drains something."""
        self._route(
            {
                "/v1/completions": lambda: self._generate(chat=False),
                "/v1/chat/completions": lambda: self._generate(chat=True),
                "/kv_cache_events": lambda: self._json(self.server.service.page_events()),
            },
            GETS,
        )

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: standard output has the engine's figures."""

    def _route(self, paths: dict[str, Callable[[], None]], others: frozenset[str]) -> None:
        self._begun = False
        path = self.path.partition("?")[0]
        try:
            host = (self.headers.get("Host") or "localhost").lower()
            if host.rsplit(":", 1)[0] not in _LOCAL and host not in _LOCAL:
                self.close_connection = True
                raise Refused(403, "this server answers to this machine only", "PermissionDeniedError")
            self._read_body()
            if path in others:
                raise Refused(405, f"{path} is not for {self.command}", "MethodNotAllowedError")
            if path not in paths:
                raise Refused(404, f"there is no {path}", "NotFoundError")
            paths[path]()
        except Refused as refused:
            self._refuse(refused)
        except (ClientGone, TimeoutError, ConnectionError):
            self.close_connection = True

    def _read_body(self) -> None:
        self.body = b""
        if self.headers.get("Transfer-Encoding") is not None:
            self.close_connection = True
            raise Refused(411, "a body needs a Content-Length", "LengthRequiredError")
        given = self.headers.get("Content-Length", "0")
        if not (given.isascii() and given.isdigit() and len(given) < 20):
            self.close_connection = True
            raise Refused(400, f"Content-Length {given!r} is no length")
        if int(given) > LARGEST_BODY:
            self.close_connection = True
            raise Refused(413, f"a body has at most {LARGEST_BODY} bytes", "PayloadTooLargeError")
        self.body = self.rfile.read(int(given))
        if len(self.body) < int(given):
            raise ClientGone

    def _generate(self, chat: bool) -> None:
        service = self.server.service
        ask = parse(
            self.body,
            chat=chat,
            model=service.model,
            system=service.system,
            tokenizer=service.tokenizer,
            room=service.room,
        )
        ticket = service.submit(ask)
        done = False
        try:
            reply = Reply(ask, service.model)
            if ask.stream:
                self._stream(ticket, reply)
            else:
                self._whole(ticket, reply)
            done = True
        finally:
            if not done:
                service.cancel(ticket)

    def _whole(self, ticket: Ticket, reply: Reply) -> None:
        choices: dict[int, Choice] = {}
        try:
            for news in answers(ticket, self.server.service, _WAIT):
                if news is None:
                    self._look()
                else:
                    choices[news[0].index] = news[0]
        except Cancelled:
            raise Refused(503, "the engine ended before the answer was done", "ServiceUnavailableError") from None
        self._json(reply.whole([choices[index] for index in sorted(choices)]))

    def _stream(self, ticket: Ticket, reply: Reply) -> None:
        chunked = self.request_version != "HTTP/1.0"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.close_connection = True
        self.end_headers()
        self._begun = True

        def write(body: Json | str) -> None:
            data = responses.event(body)
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

        choices: dict[int, Choice] = {}
        try:
            for news in answers(ticket, self.server.service, _WAIT):
                if news is None:
                    self._look()
                    continue
                choice, text = news
                opening = reply.opening(choice) if choice.index not in choices else None
                choices[choice.index] = choice
                if opening is not None:
                    write(opening)
                write(reply.piece(choice, text))
        except Cancelled:
            write(
                responses.error(Refused(503, "the engine ended before the answer was done", "ServiceUnavailableError"))
            )
        else:
            if reply.ask.usage_at_end:
                write(reply.closing(list(choices.values())))
            write("[DONE]")
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def _look(self) -> None:
        """Raise ClientGone when the client has hung up."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        if readable and not self.connection.recv(1, socket.MSG_PEEK):
            raise ClientGone

    def _json(self, body: object) -> None:
        self._send(200, json.dumps(body, separators=(",", ":")).encode(), "application/json")

    def _refuse(self, refused: Refused) -> None:
        if not self._begun:
            self._send(refused.status, json.dumps(responses.error(refused)).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


GETS = frozenset(
    ("/health", "/version", "/server_info", "/v1/models", "/metrics", "/perf_metrics", "/prometheus/metrics")
)
POSTS = frozenset(("/v1/completions", "/v1/chat/completions", "/kv_cache_events"))


def _models(name: str) -> Json:
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "inflight"}]}
