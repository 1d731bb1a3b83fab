"""A server that sends just the bytes that a test wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from probes.server_http.access import Access
from probes.server_http.address import address
from probes.server_http.client import Answer, Client

Serve = Callable[[socket.socket, bytes], None]


@contextmanager
def raw(serve: Serve, family: int = socket.AF_INET, where: object = ("127.0.0.1", 0)) -> Iterator[socket.socket]:
    """A server of one thread: `serve` gets each connection and what came first on it."""
    listening = socket.socket(family)
    listening.bind(where)  # type: ignore[arg-type]
    listening.listen()

    def run() -> None:
        while True:
            try:
                connection = listening.accept()[0]
            except OSError:
                return
            with connection, suppress(OSError):
                serve(connection, connection.recv(1 << 16))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield listening
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)
    assert not thread.is_alive()


def ask(listening: socket.socket, path: str = "/metrics", given: Access | None = None, within: float = 10.0) -> Answer:
    asking = Client(address(f"http://127.0.0.1:{listening.getsockname()[1]}"), given)
    try:
        return asking.ask("GET", path, within)
    finally:
        asking.close()


def answering(head: str, body: bytes) -> Serve:
    return lambda connection, _: connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)
